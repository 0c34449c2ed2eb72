"""Auto-PGD, at a given radius: momentum and a step that is halved per point; and the sparse one for l1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from polyrelu.robust.attacks.contract import GradientAttack, RadiusAttack
from polyrelu.robust.attacks.starts import RandomStart, Start
from polyrelu.robust.attacks.task import CROSS_ENTROPY, AttackTask, Loss

MOMENTUM, PROGRESS = 0.75, 0.75  # of APGD: alpha and rho of the paper
RADII = ((3, 0.3), (2, 0.3), (1, 0.4))  # of SparseAPGD: times the radius, share of the steps
SPARSE_DIVISOR = 1.5  # of eta where the best point got no sparser, and of its number of changed entries for k
LEAST_STEP_DIVISOR = 10  # eta stays above the radius divided by this
PROJECTION_STEPS = 60  # Newton steps of the projection at most; about six are taken


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


@final
@dataclass(frozen=True)
class SparseAPGD(GradientAttack, RadiusAttack):
    """z <- P(z - eta sign(g_k) / k),  g_k the k largest entries of the gradient (Croce & Hein, ICML 2021).

    k = |best - x|_0 / 1.5, renewed after every 4 % of the steps; where the best point got sparser by more than 5 %,
    eta is r again and z goes back to it, elsewhere eta is divided by 1.5, down to r/10. 30 % of the steps are taken
    with radius 3 r, 30 % with 2 r, the rest with r. P projects onto the ball and the box together. All per point.
    """

    steps: int = 100
    loss: Loss = CROSS_ENTROPY
    starts: tuple[Start, ...] = (RandomStart(5),)
    norms = (1.0,)

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """One ball after the other."""
        for times, share in RADII:
            radius = times * task.within()
            Z = self._descend(task, _onto(task, Z, radius), radius, math.ceil(share * self.steps))

    def _descend(self, task: AttackTask, Z: Tensor, radius: Tensor, steps: int) -> Tensor:
        """The best point found in a ball of this radius."""
        eta, entries = radius.clone(), _entries(task, Z)
        value, g = task.slope(Z, self.loss)
        best, lowest, downhill = Z, value, g
        every = max(int(0.04 * steps), 1)
        for step in range(1, steps + 1):
            size = g.abs()
            place = (entries / SPARSE_DIVISOR).long().clamp(1, Z.shape[1])[
                :, None
            ] - 1  # rank of the last entry that counts
            least = size.topk(int(place.max()) + 1, dim=1).values.gather(1, place)
            sparse = torch.where(size >= least, g.sign(), 0.0)
            Z = _onto(task, Z - eta[:, None] * sparse / sparse.abs().sum(dim=1, keepdim=True).clamp(min=1), radius)
            value, g = task.slope(Z, self.loss)
            better = value < lowest
            lowest = torch.where(better, value, lowest)
            best, downhill = torch.where(better[:, None], Z, best), torch.where(better[:, None], g, downhill)
            if step % every == 0:
                now = _entries(task, best)
                sparser = now < 0.95 * entries
                entries = now
                eta = torch.where(sparser, radius, (eta / SPARSE_DIVISOR).clamp(min=radius / LEAST_STEP_DIVISOR))
                Z, g = torch.where(sparser[:, None], best, Z), torch.where(sparser[:, None], downhill, g)
        return best


def _entries(task: AttackTask, Z: Tensor) -> Tensor:
    """|z - x|_0 of each row."""
    return (task.X != Z).sum(dim=1).to(Z)


def _onto(task: AttackTask, Z: Tensor, radius: Tensor) -> Tensor:
    """argmin |z' - z| over |z' - x|_1 <= radius and the box: z' - x = sign(u) min(relu(|u| - t), slack), u = z - x.

    t >= 0 solves sum_i min(relu(|u_i| - t), slack_i) = radius: Newton's steps, exact on a line, halving where they
    leave what is known of t (1000 images: 25 ms; sorting the 1568 knots of the lines took 110 ms).
    """
    u = Z - task.X
    size, radius = u.abs(), radius[:, None]
    slack = torch.full_like(u, torch.inf)
    if task.bounds is not None:
        slack = torch.where(u > 0, task.bounds[1] - task.X, task.X - task.bounds[0])
    t, low, high = torch.zeros_like(radius), torch.zeros_like(radius), size.amax(dim=1, keepdim=True)
    for _ in range(PROJECTION_STEPS):
        left = size - t
        kept = torch.minimum(left.clamp(min=0), slack)
        over = kept.sum(dim=1, keepdim=True) - radius
        low, high = torch.where(over > 0, t, low), torch.where(over < 0, t, high)
        step = over / ((left > 0) & (left < slack)).sum(dim=1, keepdim=True)
        done = ((over <= 0) & (t == 0)) | (over.abs() <= 4 * torch.finfo(u.dtype).eps * radius)
        if bool((done | (high - low <= 0)).all()):
            break
        inside = (t + step > low) & (t + step < high)
        t = torch.where(done, t, torch.where(inside, t + step, (low + high) / 2))
    return task.X + u.sign() * kept
