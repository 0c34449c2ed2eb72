"""Conditional gradient at a given radius: straight to where the linearised loss is least in ball and box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from polyrelu.robust.attacks.contract import GradientAttack, RadiusAttack
from polyrelu.robust.attacks.starts import Start, Towards, Zero
from polyrelu.robust.attacks.task import TARGETED, AttackTask, Loss


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
    loss: Loss = TARGETED
    starts: tuple[Start, ...] = (Zero(), Towards())

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """The descent; the ends of all steps are evaluated too."""
        Z, _ = task.inside(Z)
        value, g = task.slope(Z, self.loss)
        most = torch.ones_like(value)
        for _ in range(self.steps):
            step = task.lowest(g) - Z
            slope = (g * step).sum(dim=1)
            bend = task.value(Z + step, self.loss) - value - slope
            share = torch.where(bend > 0, -slope / torch.where(bend > 0, 2 * bend, 1.0), 1.0).clamp(max=1) * most
            trial = Z + share[:, None] * step
            there, ahead = task.slope(trial, self.loss)
            better = there < value
            most = torch.where(better, most, most / 2)
            Z, g = torch.where(better[:, None], trial, Z), torch.where(better[:, None], ahead, g)
            value = torch.where(better, there, value)
