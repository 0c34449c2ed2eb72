"""Along the segment from a point to another: the first crossing, and the last step to the boundary."""

from __future__ import annotations

import torch
from torch import Tensor

from polyrelu.robust.attacks.task import AttackTask


def first_crossing(task: AttackTask, ends: Tensor, samples: int, halvings: int) -> Tensor:
    """The first broken point on the way from x to each end, or x where none is seen.

    A ray may cross the boundary more than once: the way is scanned at ``samples`` equal distances, and the interval
    before the first broken one is halved ``halvings`` times. Error: a sliver thinner than |end - x|/samples is missed.
    """
    step = task.project(ends) - task.X
    t = torch.full_like(task.X[:, 0], torch.inf)
    for number in range(1, samples + 1):
        here = torch.full_like(t, number / samples)
        broken = task.margin(task.X + here[:, None] * step) <= 0
        t = torch.where(broken & t.isinf(), here, t)
    return halve(task, step, t - 1 / samples, t, halvings)


def shrink(task: AttackTask, halvings: int) -> None:
    """Pull the best point of every row towards x until the boundary, by bisection."""
    known = task.best.size.isfinite()
    t = torch.where(known, torch.ones_like(task.X[:, 0]), torch.inf)
    halve(task, task.best.Z - task.X, torch.zeros_like(t), t, halvings)


def halve(task: AttackTask, step: Tensor, low: Tensor, high: Tensor, halvings: int) -> Tensor:
    """x + high step after halving (low, high) towards the boundary; x where ``high`` is infinite."""
    none = high.isinf()
    low, high = torch.where(none, 0.0, low), torch.where(none, 0.0, high)
    for _ in range(halvings):
        middle = (low + high) / 2
        broken = task.margin(task.X + middle[:, None] * step) <= 0
        low, high = torch.where(broken, low, middle), torch.where(broken, middle, high)
    return torch.where(none[:, None], task.X, task.X + high[:, None] * step)
