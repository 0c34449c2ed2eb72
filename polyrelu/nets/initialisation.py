"""Starting points of PolyReLUNet, drawn at unit scale in float64; ``scale`` only multiplies afterwards.

gaussian   every entry of W and v N(0, 1)                                     published code, Min & Vidal 2024
balanced   entries of w_j N(0, 1), |v_j| = |w_j|, random sign or direction    Min & Vidal 2025
nudged     balanced after w_j <- w_j + nudge (mu - w_j), mu a random centre   Min & Vidal 2025, B.1
kaiming    W uniform +-sqrt(6/width), v and bias uniform +-1/sqrt(width)      published MNIST code, Min & Vidal 2024
zeros      nothing is drawn: the caller fills the net in
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from polyrelu.checks import plain_tensor
from polyrelu.errors import InputError, require
from polyrelu.nets.base import draw


@dataclass(frozen=True)
class Plan:
    """Sizes and randomness of one draw; ``centres`` [K, dim] and ``nudge`` matter to "nudged" only."""

    dim: int
    width: int
    outputs: int
    source: torch.Generator
    centres: Tensor | None = None
    nudge: float = 0.05

    def normal(self, *shape: int) -> Tensor:
        """N(0, 1) entries."""
        return draw(torch.randn, shape, self.source)

    def uniform(self, bound: float, *shape: int) -> Tensor:
        """Entries uniform in [-bound, bound]."""
        return bound * (2 * draw(torch.rand, shape, self.source) - 1)


class InitialWeights(NamedTuple):
    """A start at unit scale, float64: W [width, dim], V [width, outputs], bias [outputs]."""

    W: Tensor
    V: Tensor
    bias: Tensor


def gaussian(plan: Plan) -> InitialWeights:
    """Every entry N(0, 1)."""
    W = plan.normal(plan.width, plan.dim)
    return InitialWeights(W, plan.normal(plan.width, plan.outputs), torch.zeros(plan.outputs))


def balanced(plan: Plan) -> InitialWeights:
    """The gaussian W and the directions of the gaussian v, with |v_j| = |w_j|: gradient flow keeps it so."""
    return _balance(gaussian(plan))


def nudged(plan: Plan) -> InitialWeights:
    """Non-degenerate start: every w_j moved a fraction ``nudge`` of the way to a random centre.

    As printed, w_j has N(0, 1) entries, so for unit centres cos(w_j, mu) gains only nudge/((1 - nudge) sqrt(dim)).
    In a one-seed check (dim 1000) .05 left the alignment time of a random start as it was (about 255 steps); the
    published 170-180 is nearer to what .05 does to w_j of norm 1, or .625 here (about 190).
    """
    centres = None if plan.centres is None else plain_tensor("centres", plan.centres)
    if centres is None or centres.ndim != 2 or centres.shape[1] != plan.dim:
        given = None if centres is None else f"shape {tuple(centres.shape)}"
        raise InputError(f"centres={given}: expected (K, {plan.dim}), which init='nudged' moves towards.")
    require(0 <= plan.nudge <= 1, "nudge", plan.nudge, "a fraction between 0 and 1")
    W, V, bias = gaussian(plan)
    pick = torch.randint(len(centres), (plan.width,), generator=plan.source)
    return _balance(InitialWeights(W + plan.nudge * (centres.double().cpu()[pick] - W), V, bias))


def kaiming(plan: Plan) -> InitialWeights:
    """Kaiming-uniform on the transposed first layer (fan-in = width); output layer as torch.nn.Linear."""
    W = plan.uniform(math.sqrt(6 / plan.width), plan.width, plan.dim)
    bound = 1 / math.sqrt(plan.width)
    return InitialWeights(W, plan.uniform(bound, plan.width, plan.outputs), plan.uniform(bound, plan.outputs))


def zeros(plan: Plan) -> InitialWeights:
    """All zero."""
    sizes = (plan.width, plan.dim), (plan.width, plan.outputs), (plan.outputs,)
    return InitialWeights(*(draw(torch.zeros, size) for size in sizes))


def _balance(shape: InitialWeights) -> InitialWeights:
    r, s = (torch.linalg.vector_norm(rows, dim=1, keepdim=True) for rows in (shape.W, shape.V))
    return shape._replace(V=shape.V / s * r)


INITIALISATIONS: dict[str, Callable[[Plan], InitialWeights]] = {
    "gaussian": gaussian,
    "balanced": balanced,
    "nudged": nudged,
    "kaiming": kaiming,
    "zeros": zeros,
}
