"""A walk along the decision boundary towards the point: the minimal-norm attack for any model and all three norms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from polyrelu.robust.attacks.contract import GradientAttack, MinimalAttack
from polyrelu.robust.attacks.task import AttackTask, first_crossing, halve
from polyrelu.robust.core.norms import lengths, to_hyperplane


@final
@dataclass(frozen=True)
class BoundaryWalk(GradientAttack, MinimalAttack):
    """z <- boundary on the way from x to z + a (x + d(x) - z): a minimal attack after FAB (Croce & Hein, ICML 2020).

    d(.) is the shortest step, in the norm and inside the box, onto the plane {loss linearised at z = 0}; x + d(x) is
    the point of that plane nearest to x. A start that is not broken first steps onto planes, z <- z + 1.05 d(z), until
    it is. FAB keeps a <= .1 and steps back by a tenth from each broken point, so that its planes are not those of the
    boundary: on F^(3) it slides away from the optimum. Here z stays on the boundary, and a is halved where the new z
    would not be nearer to x, doubled (up to 1) where it is: the distance never grows. Cost: 8 evaluations a step.
    """

    steps: int = 40

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """First to the boundary, then along it; no step is longer than ``task.reach``."""
        X, most = task.X, task.reach()
        Z = first_crossing(task, Z, samples=16, halvings=12)
        there, share = lengths(Z - X, task.norm) > 0, torch.ones_like(X[:, 0])
        for _ in range(self.steps):
            value, g = task.slope(Z, self.loss)
            nearest = X + self._onto(task, X, g, value + ((X - Z) * g).sum(dim=1), most)
            along = Z + share[:, None] * (nearest - Z)
            stretch = lengths(Z - X, task.norm) / lengths(along - X, task.norm)
            along = X + torch.where(stretch.isfinite(), stretch, 0.0)[:, None] * (along - X)  # no farther than Z
            trial = torch.where(there[:, None], along, Z + 1.05 * self._onto(task, Z, g, value, most))
            trial = task.project(trial)
            broken = task.margin(trial) <= 0
            low, high = 0.9 * there.to(X), torch.ones_like(share).masked_fill(~broken, torch.inf)
            nearer = halve(task, trial - X, low, high, halvings=6)
            share = torch.where(there, torch.where(broken, 2 * share, share / 2).clamp(max=1), share)
            Z = torch.where(broken[:, None], nearer, torch.where(there[:, None], Z, trial))
            there = there | broken

    def _onto(self, task: AttackTask, Z: Tensor, g: Tensor, value: Tensor, most: Tensor) -> Tensor:
        """The shortest step from Z to the plane, no longer than ``most``."""
        slack = None if task.bounds is None else (Z - task.bounds[0], task.bounds[1] - Z)
        step = to_hyperplane(g, value, task.norm, slack)
        size = lengths(step, task.norm)
        return step * torch.where(size > most, most / torch.where(size > 0, size, 1.0), 1.0)[:, None]
