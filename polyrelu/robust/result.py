"""What an attack hands back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import final

from torch import Tensor


class AttackStatus(Enum):
    """How it went for one point; the text is the message for a person."""

    BROKEN = "The perturbation found changes the decision."
    ALREADY_WRONG = "The point is misclassified without any perturbation: radius 0."
    HELD = "No perturbation was found; this proves nothing."


@final
@dataclass(frozen=True, eq=False)
class AttackResult:
    """One row per point; every number was checked with the score itself after the last projection.

    perturbation : (n, D), in the dtype of X; zero for points already wrong, and where nothing was found
    radius : (n,) float64, norm of (x + perturbation) - x; 0 where already wrong; inf where nothing was found
    success : (n,) bool, margin(x + perturbation) <= 0
    status : one `AttackStatus` per point
    evaluations : forward or gradient passes over one point, summed over points
    """

    perturbation: Tensor
    radius: Tensor
    success: Tensor
    status: tuple[AttackStatus, ...]
    evaluations: int
