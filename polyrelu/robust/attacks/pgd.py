"""Projected gradient descent on a loss, at a given radius."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from torch import Tensor

from polyrelu.errors import require
from polyrelu.robust.attacks.contract import RadiusAttack
from polyrelu.robust.attacks.gradient_attack import GradientAttack
from polyrelu.robust.attacks.losses import TARGETED, Loss
from polyrelu.robust.attacks.starts import Start, Towards, Zero
from polyrelu.robust.attacks.task import AttackTask


@final
@dataclass(frozen=True)
class PGD(GradientAttack, RadiusAttack):
    """z <- P(z - a_k s(grad loss(z))),  a_k = r last^(k/(steps-1))  (Madry et al., ICLR 2018).

    s is the steepest direction of the norm: g/|g| for l2, sign(g) for l-infinity, the largest coordinate for l1
    (Tramer & Boneh, NeurIPS 2019, with one coordinate at a time). Normalised exactly, each point by itself: no guard
    that stops small gradients. Steps shrink geometrically from r to ``last`` r. Cost: ``steps`` gradients per start.
    """

    steps: int = 60
    loss: Loss = TARGETED
    starts: tuple[Start, ...] = (Zero(), Towards())
    last: float = 1e-3

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        require(0 < self.last <= 1, "last", self.last, "a number in (0, 1]")

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """The descent; the last point is evaluated too."""
        Z, radius = task.inside(Z)
        for step in range(self.steps):
            _, g = task.slope(Z, self.loss)
            size = radius * self.last ** (step / max(1, self.steps - 1))
            Z = task.project(Z + size[:, None] * task.downhill(Z, g))
        task.margin(Z)
