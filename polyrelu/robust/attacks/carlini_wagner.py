"""The attack of Carlini and Wagner: an unconstrained minimisation of length plus margin (l2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from polyrelu.checks import positive_numbers
from polyrelu.errors import require
from polyrelu.robust.attacks.contract import GradientAttack, MinimalAttack
from polyrelu.robust.attacks.starts import Start, ZeroStart
from polyrelu.robust.attacks.task import AttackTask, first_crossing
from polyrelu.robust.core.norms import lengths

DECAY, SQUARE_DECAY, GUARD = 0.9, 0.999, 1e-8  # Adam's own (Kingma & Ba, ICLR 2015)


@final
@dataclass(frozen=True)
class CarliniWagner(GradientAttack, MinimalAttack):
    """min_z |z - x|^2/s^2 + c max(m(z)/m(x), -kappa) by Adam, bisecting over c  (Carlini & Wagner, S&P 2017).

    m is the loss, a margin; dividing by its value at x and by a length s (|start - x|, or m/|grad m| for a start at x)
    makes every setting free of units. In a box z = low + (high - low)(1 + tanh w)/2; without one z is the variable.
    The step shrinks linearly to 0. The paper starts at x, hence the default; nets flat there need `OtherClassStart`.
    Cost: ``searches`` times ``steps`` gradients per start.
    """

    steps: int = 100
    starts: tuple[Start, ...] = (ZeroStart(),)
    searches: int = 6
    rate: float = 0.1
    first: float = 1.0
    kappa: float = 0.0
    norms = (2.0,)

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_numbers(rate=self.rate, first=self.first)
        require(self.kappa >= 0, "kappa", self.kappa, "a number >= 0")

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """Bisection over c: down where the last c broke the point, up where it did not."""
        Z = first_crossing(task, Z, samples=16, halvings=8)
        at_x, g = task.slope(task.X, self.loss)
        length, slope = lengths(Z - task.X, 2), lengths(g, 2)
        scale = torch.where(length > 0, length, at_x / torch.where(slope > 0, slope, torch.inf))
        scale = torch.where(scale > 0, torch.minimum(scale, task.reach()), task.reach())[:, None]
        low, high = torch.zeros_like(at_x), torch.full_like(at_x, torch.inf)
        c = torch.full_like(at_x, self.first)
        for _ in range(self.searches):
            broken = self._adam(task, Z, c, at_x, scale)
            low, high = torch.where(broken, low, c), torch.where(broken, c, high)
            c = torch.where(high.isfinite(), (low + high) / 2, 10 * c)

    def _adam(self, task: AttackTask, Z: Tensor, c: Tensor, at_x: Tensor, scale: Tensor) -> Tensor:
        """One descent from Z; which points were broken in its second half."""
        variable, dim = _into(task, Z), Z.shape[1]
        mean, square = torch.zeros_like(Z), torch.zeros_like(Z)
        broken, last = torch.zeros_like(c, dtype=torch.bool), task.X
        for step in range(self.steps):
            Z, chain_rule = _out_of(task, variable)
            value, g = task.slope(Z, self.loss)
            if step >= self.steps // 2:  # the start itself may be broken, which says nothing about c
                broken, last = broken | (value <= 0), torch.where((value <= 0)[:, None], Z, last)
            active = (value / at_x > -self.kappa)[:, None]
            gradient = 2 * (Z - task.X) / scale + torch.where(active, (c / at_x)[:, None] * g * scale, 0.0)
            gradient = gradient * chain_rule
            mean = DECAY * mean + (1 - DECAY) * gradient
            square = SQUARE_DECAY * square + (1 - SQUARE_DECAY) * gradient.square()
            m, s = mean / (1 - DECAY ** (step + 1)), square / (1 - SQUARE_DECAY ** (step + 1))
            rate = self.rate * (1 - step / self.steps) / dim**0.5
            variable = variable - rate * scale / chain_rule.amax(dim=1, keepdim=True) * m / (s.sqrt() + GUARD)
        first_crossing(task, last, samples=1, halvings=8)
        return broken


def _into(task: AttackTask, Z: Tensor) -> Tensor:
    """The free variable of Z; in a box an entry on a face of the box begins 1e-6 of the width away from it."""
    if task.bounds is None:
        return Z
    low, high = task.bounds
    return (2 * (Z - low) / (high - low) - 1).clamp(-1 + 2e-6, 1 - 2e-6).atanh()


def _out_of(task: AttackTask, variable: Tensor) -> tuple[Tensor, Tensor]:
    """Z, and its derivative by the variable."""
    if task.bounds is None:
        return variable, torch.ones_like(variable)
    low, high = task.bounds
    curve = variable.tanh()
    return task.project(low + (high - low) * (1 + curve) / 2), (high - low) * (1 - curve.square()) / 2
