"""Projected gradient descent on a loss, at a given radius; and the published one, with its flaws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from polyrelu.checks import positive_numbers
from polyrelu.errors import require
from polyrelu.robust.attacks.contract import GradientAttack, RadiusAttack
from polyrelu.robust.attacks.starts import Anchor, Start, Towards, Zero
from polyrelu.robust.attacks.task import EXPONENTIAL, TARGETED, AttackTask, Loss


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


@final
@dataclass(frozen=True)
class PublishedPGD(RadiusAttack):
    """z <- P(z + 0.1 g/(|g| + 1e-7)),  g = grad (1/n) sum_i exp(-y_i f(z_i)), from z = x (Min & Vidal 2024, Fig. 2).

    The settings of the published code. Do not use it to judge a net; it is here to repeat what was published:

    - the start at x sees no slope towards the other class for p > 2 and stays at a poor local optimum;
    - the loss is a mean over ``mean_over`` points, so each gradient is that much smaller, and the guard ``guard``
      then shortens the steps of every point with a margin above about 10;
    - exp(-y f) underflows; only the last point is evaluated; the step does not shrink.

    ``mean_over`` is the size of the published batch, whatever the number of points attacked here.
    """

    steps: int = 2000
    step: float = 0.1
    guard: float = 1e-7
    mean_over: int = 20000
    norms = (2.0,)

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        positive_numbers(step=self.step, guard=self.guard)

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """x itself."""
        return Zero().anchors(task)

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """The published loop."""
        for _ in range(self.steps):
            g = task.slope(Z, EXPONENTIAL, remember=False)[1] / self.mean_over
            Z = task.project(Z - self.step * g / (torch.linalg.vector_norm(g, dim=1, keepdim=True) + self.guard))
        task.margin(Z)
