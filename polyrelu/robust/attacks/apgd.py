"""Auto-PGD: projected gradient with momentum that halves its own step, at a given radius."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from polyrelu.robust.attacks.contract import RadiusAttack
from polyrelu.robust.attacks.gradient_attack import GradientAttack
from polyrelu.robust.attacks.losses import TARGETED, Loss
from polyrelu.robust.attacks.starts import Start, Towards, Zero
from polyrelu.robust.attacks.task import AttackTask

MOMENTUM, PROGRESS = 0.75, 0.75  # alpha and rho of the paper


def checkpoints(steps: int) -> set[int]:
    """w_j = ceil(p_j steps), p_0 = 0, p_1 = .22, p_{j+1} = p_j + max(p_j - p_{j-1} - .03, .06); without w_0 = 0."""
    p = [0.0, 0.22]
    while p[-1] < 1:
        p.append(p[-1] + max(p[-1] - p[-2] - 0.03, 0.06))
    return {math.ceil(share * steps) for share in p[1:] if share < 1}


@final
@dataclass(frozen=True)
class APGD(GradientAttack, RadiusAttack):
    """u = P(z_k - eta s(grad loss(z_k))),  z_{k+1} = P(z_k + .75 (u - z_k) + .25 (z_k - z_{k-1}))  (Croce & Hein 2020).

    eta starts at 2 r. At each checkpoint it is halved, and the point goes back to its best, if (1) fewer than 3/4 of
    the steps since the last one lowered the loss or (2) neither eta nor the best loss changed there. All per point.
    ``loss`` is cross-entropy, margin or targeted margin; the paper's DLR divides the margin by a gap between logits to
    be free of their scale, which normalised steps are anyway, and needs three classes.
    """

    steps: int = 60
    loss: Loss = TARGETED
    starts: tuple[Start, ...] = (Zero(), Towards())

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """The paper's algorithm 1."""
        Z, radius = task.inside(Z)
        eta = 2 * radius
        value, g = task.slope(Z, self.loss)
        best, lowest, downhill = Z, value, g
        before, lowered = Z, torch.zeros_like(value)
        halved, lowest_there, last = torch.ones_like(value, dtype=torch.bool), value, 0
        marks = checkpoints(self.steps)
        for step in range(1, self.steps + 1):
            aim = task.project(Z + eta[:, None] * task.downhill(Z, g))
            momentum = MOMENTUM if step > 1 else 1.0
            Z, before = task.project(Z + momentum * (aim - Z) + (1 - momentum) * (Z - before)), Z
            old, (value, g) = value, task.slope(Z, self.loss)
            lowered = lowered + (value < old)
            better = value < lowest
            best, downhill = torch.where(better[:, None], Z, best), torch.where(better[:, None], g, downhill)
            lowest = torch.where(better, value, lowest)
            if step in marks:
                stuck = (lowered < PROGRESS * (step - last)) | (~halved & (lowest == lowest_there))
                eta = torch.where(stuck, eta / 2, eta)
                Z, g = torch.where(stuck[:, None], best, Z), torch.where(stuck[:, None], downhill, g)
                value = torch.where(stuck, lowest, value)
                halved, lowest_there, last = stuck, lowest, step
                lowered = torch.zeros_like(lowered)
