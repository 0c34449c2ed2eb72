"""What an attack hands back."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import final

import torch
from torch import Tensor

from polyrelu.robust.core.norms import lengths

Changed = Callable[[Tensor, Tensor], Tensor]  # rows (k,), points (k, D): is the decision about them another one?
PUSHES = (0.0, 1e-9, 1e-6, 1e-5, 1e-4, 1e-3)  # relative lengthenings tried until the classifier's decision changes


class AttackStatus(Enum):
    """How it went for one point; the text is the message for a person."""

    BROKEN = "The perturbation found changes the decision."
    ALREADY_WRONG = "The point is misclassified without any perturbation: radius 0."
    UNBROKEN = "No perturbation was found; this proves nothing."


@final
@dataclass(frozen=True, eq=False)
class AttackResult:
    """One row per point; every number was checked with the score itself after the last projection.

    perturbation : (n, D), in the dtype of X; zero for points already wrong, and where nothing was found
    radius : (n,) float64, norm of (x + perturbation) - x; 0 where already wrong; inf where nothing was found
    evaluations : forward or gradient passes over one point, summed over points
    """

    perturbation: Tensor
    radius: Tensor
    evaluations: int

    @property
    def success(self) -> Tensor:
        """(n,) bool, margin(x + perturbation) <= 0."""
        return self.radius.isfinite()

    @property
    def status(self) -> tuple[AttackStatus, ...]:
        """One `AttackStatus` per point."""
        return tuple(_status(length) for length in self.radius.tolist())


def _status(length: float) -> AttackStatus:
    if length == 0:
        return AttackStatus.ALREADY_WRONG
    return AttackStatus.BROKEN if math.isfinite(length) else AttackStatus.UNBROKEN


def recheck(changed: Changed, X: Tensor, radius: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
    """Radii (n,) and perturbations (n, D) that change the classifier's own decision, a little longer if need be.

    For one that computes in less than float64, or by other operations than those attacked. A perturbation
    that changes nothing does not count: inf and 0; points wrong from the start: 0.
    """
    wrong = changed(torch.arange(len(X)), X) | (radius == 0)
    length, sure = torch.where(wrong, 0.0, torch.inf).double(), torch.zeros_like(step)
    left = (radius.isfinite() & ~wrong).nonzero()[:, 0]
    for push in PUSHES:
        if not len(left):
            break
        longer = step[left] * (1 + push)
        good = changed(left, X[left] + longer)
        sure[left[good]] = longer[good]
        length[left[good]] = lengths((X[left[good]] + longer[good]) - X[left[good]], 2.0)
        left = left[~good]
    return length, sure
