"""Projected and conditional gradient descent on a loss, at a given radius; and the published one, with its flaws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from polyrelu.checks import positive_numbers
from polyrelu.errors import require
from polyrelu.robust.attacks.contract import GradientAttack, RadiusAttack
from polyrelu.robust.attacks.starts import Anchor, ZeroStart
from polyrelu.robust.attacks.task import EXPONENTIAL, AttackTask


@final
@dataclass(frozen=True)
class PGD(GradientAttack, RadiusAttack):
    """z <- P(z - a_k s(grad loss(z))),  a_k = r last^(k/(steps-1))  (Madry et al., ICLR 2018).

    s is the steepest direction of the norm: g/|g| for l2, sign(g) for l-infinity, the largest coordinate for l1
    (Tramer & Boneh, NeurIPS 2019, with one coordinate at a time). Normalised exactly, each point by itself: no guard
    that stops small gradients. Steps shrink geometrically from r to ``last`` r. Cost: ``steps`` gradients per start.
    """

    last: float = 1e-3

    def __post_init__(self) -> None:
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
class FrankWolfe(GradientAttack, RadiusAttack):
    """z <- z + a (s - z),  s = argmin <grad loss(z), s> over ball and box  (Frank & Wolfe 1956).

    a is where the parabola through loss(z), its slope and loss(s) is least, at most 1. A step that does not lower the
    loss is taken back, and the next one is at most half as long. There is no step size to choose, the box is part of
    the problem in every norm (an l1 step of radius 5 moves five pixels from black to white), and where the loss bends
    little a handful of steps is enough. Cost: a forward and a gradient pass a step.
    """

    steps: int = 10

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """The descent; the ends of all steps are evaluated too."""
        Z, _ = task.inside(Z)
        value, g = task.slope(Z, self.loss)
        most = torch.ones_like(value)
        for _ in range(self.steps):
            step = task.linear_minimiser(g) - Z
            slope = (g * step).sum(dim=1)
            bend = task.value(Z + step, self.loss) - value - slope
            share = torch.where(bend > 0, -slope / torch.where(bend > 0, 2 * bend, 1.0), 1.0).clamp(max=1) * most
            trial = Z + share[:, None] * step
            there, ahead = task.slope(trial, self.loss)
            better = there < value
            most = torch.where(better, most, most / 2)
            Z, g = torch.where(better[:, None], trial, Z), torch.where(better[:, None], ahead, g)
            value = torch.where(better, there, value)


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
        super().__post_init__()
        positive_numbers(step=self.step, guard=self.guard)

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """x itself."""
        return ZeroStart().anchors(task)

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """The published loop."""
        for _ in range(self.steps):
            g = task.slope(Z, EXPONENTIAL, remember=False)[1] / self.mean_over
            Z = task.project(Z - self.step * g / (torch.linalg.vector_norm(g, dim=1, keepdim=True) + self.guard))
        task.margin(Z)
