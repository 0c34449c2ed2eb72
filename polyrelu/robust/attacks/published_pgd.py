"""The attack behind the published robust-accuracy curves, with its flaws, to show what they hide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from polyrelu.checks import positive_numbers
from polyrelu.robust.attacks.contract import RadiusAttack
from polyrelu.robust.attacks.losses import EXPONENTIAL
from polyrelu.robust.attacks.starts import Anchor, Zero
from polyrelu.robust.attacks.task import AttackTask


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

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        positive_numbers(step=self.step, guard=self.guard)

    @property
    def norms(self) -> tuple[float, ...]:
        """As published."""
        return (2.0,)

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """x itself."""
        return Zero().anchors(task)

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """The published loop."""
        for _ in range(self.steps):
            g = task.slope(Z, EXPONENTIAL, remember=False)[1] / self.mean_over
            Z = task.project(Z - self.step * g / (torch.linalg.vector_norm(g, dim=1, keepdim=True) + self.guard))
        task.margin(Z)
