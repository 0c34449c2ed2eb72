"""Every certificate by its public name: what it takes, and what it proves.

A certificate gives for each row of X a radius within which the label holds in real arithmetic with the stored weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from polyrelu.nets import PolyReLUNet, ReadOut
from tools.campaign.names import located
from tools.campaign.scores import Array

NORMS = (1.0, 2.0, math.inf)


@dataclass(frozen=True)
class Job:
    """A net and its points: X (n, D) in the net's dtype, labels y (n,); ``steps`` (n, D) perturbations that break."""

    net: Any
    X: Tensor
    y: Tensor
    norm: float
    steps: Array | None = None


@dataclass(frozen=True)
class Certificate:
    """``name`` (and what tells it from others of that name), where it applies, and how to ask it.

    ``prove`` gives lower bounds (n,), and upper ones (n,) or None. ``slack``: relative, for closed forms, which are
    documented as exact up to their last digits and not as rounded to the safe side. ``after``: asked after the search.
    """

    name: str
    parameters: tuple[str, ...]
    applies: Callable[[Job], bool]
    prove: Callable[[Callable[..., Any], Job], tuple[Tensor, Tensor | None]]
    variant: str = ""
    slack: float = 0.0
    after: bool = False

    @property
    def title(self) -> str:
        """What tables call it."""
        return self.name + (f" ({self.variant})" if self.variant else "")

    def __call__(self, job: Job) -> tuple[Array, Array | None]:
        """Proven radii and, of a bracket, found ones."""
        lower, upper = self.prove(located(self.name, *self.parameters), job)
        return np.asarray(lower.detach().double()), None if upper is None else np.asarray(upper.detach().double())


def _is_net(job: Job) -> bool:
    return isinstance(job.net, PolyReLUNet)


def _quadratic(job: Job) -> bool:
    return _is_net(job) and job.norm == 2 and (job.net.p == 1 or job.net.p >= 2)


def _any_norm(function: Callable[..., Any], job: Job) -> tuple[Tensor, None]:
    return function(job.net, job.X, job.y, norm=job.norm), None


def _bracket(**more: Any) -> Callable[[Callable[..., Any], Job], tuple[Tensor, Tensor]]:
    def prove(function: Callable[..., Any], job: Job) -> tuple[Tensor, Tensor]:
        found = function(job.net, job.X, job.y, norm=job.norm, **more)
        return found.lower, found.upper

    return prove


def _doubled(job: Job) -> tuple[PolyReLUNet, Tensor, Tensor]:
    """What the quick certificate and branch and bound take: float64."""
    import copy

    y = job.y.double() if job.y.is_floating_point() else job.y
    return copy.deepcopy(job.net).double(), job.X.double(), y


def _right(net: Any, X: Tensor, y: Tensor) -> Tensor:
    """(n,) bool: rows that the net, as it runs, is right about."""
    with torch.no_grad():
        return located("margin_of", "logits", "y")(net(X), y) > 0


def _quick(function: Callable[..., Any], job: Job) -> tuple[Tensor, None]:
    net, X, y = _doubled(job)
    radius, right = torch.zeros(len(X), dtype=torch.float64), _right(net, X, y)
    assert job.steps is not None
    if bool(right.any()):
        radius[right] = function(net, X[right], y[right], torch.as_tensor(job.steps)[right])
    return radius, None


def _least(function: Callable[..., Any], job: Job) -> tuple[Tensor, None]:
    def quick(net: Any, X: Tensor, y: Tensor, step: Tensor) -> Tensor:
        logits = torch.arange(net.outputs).expand(len(X), -1)
        rivals = torch.ones_like(logits, dtype=torch.bool) if net.outputs == 1 else logits != y[:, None]
        radius: Tensor = function(net, X, y, rivals, step)
        return radius

    return _quick(quick, job)


def _branch(function: Callable[..., Any], job: Job) -> tuple[Tensor, None]:
    """Branch and bound in the ball of twice the break that the search found: it may be proven to be too large."""
    net, X, y = _doubled(job)
    radius, right = torch.zeros(len(X), dtype=torch.float64), _right(net, X, y)
    assert job.steps is not None
    upper = 2 * torch.linalg.vector_norm(torch.as_tensor(job.steps), dim=1)
    here = (right & (upper > 0)).nonzero()[:, 0]
    shallow = located("reduce", "net")(net, 1e-3)
    if len(here) and 0 < shallow.groups <= 60:
        rows = shallow.rows(X[here], y[here])
        near = located("nearest", "net", "rows")(shallow, rows)
        budget = torch_budget(20)
        found = function(shallow, X[here], y[here], rows, near.z, upper[here], tol=1e-3, budget=budget)
        radius[here] = found.lower
    return radius, None


def torch_budget(nodes: int) -> Any:
    """A `polyrelu.Budget` of so many nodes."""
    import polyrelu

    return polyrelu.Budget(nodes=nodes)


def _held(function: Callable[..., Any], job: Job) -> tuple[Tensor, None]:
    """Asked at one radius, the median of the breaks that the search found: half of the points must not hold there."""
    assert job.steps is not None
    radii = torch.linalg.vector_norm(torch.as_tensor(job.steps), dim=1)
    proven, radii = torch.zeros(len(job.X), dtype=torch.float64), radii[radii > 0]
    if len(radii):
        radius = float(radii.median()) * (1 + 1e-9)
        held = function(job.net, job.X, job.y, radius)
        proven[getattr(held, "proven", held)] = radius
    return proven, None


def _bracketed(job: Job) -> bool:
    return isinstance(job.net, (PolyReLUNet, ReadOut))


NET = ("net", "X", "y")
CERTIFICATES = (
    Certificate("bracket", NET, _bracketed, _bracket()),
    Certificate("bracket", NET, lambda job: _bracketed(job) and job.norm == 2, _bracket(widest=1), "without branching"),
    Certificate("cheap_radius", NET, _is_net, _any_norm),
    Certificate("linear_radius", NET, _is_net, _any_norm),
    Certificate("certified_radius", NET, _is_net, _any_norm),
    Certificate("quadratic_radius", NET, _quadratic, lambda f, job: (f(job.net, job.X, job.y), None)),
    Certificate("quick_radius", (*NET, "step"), _quadratic, _quick, after=True),
    Certificate("least_radius", ("net", "X", "own", "rivals", "step"), _quadratic, _least, after=True),
    Certificate(
        "certify", (*NET, "rows"), lambda job: _is_net(job) and job.norm == 2, _branch, "branch and bound", after=True
    ),
    Certificate("held", (*NET, "radius"), lambda job: _bracketed(job) and job.norm == 2, _held, after=True),
)
