"""A robustness number: proven below, found above."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import final

from torch import Tensor


class BracketStatus(Enum):
    """How it went for one point; the text is the message for a person."""

    CLOSED = "Proven and found radius agree within the tolerance."
    BUDGET = "The budget ended before the bounds met; both hold."
    WRONG = "Misclassified without any perturbation: radius 0."
    UNPROVEN = "No certificate reaches this net or norm beyond the lower bound given; both bounds hold."
    UNBROKEN = "No perturbation changes the decision, as far as was found; the upper bound is infinite."


@final
@dataclass(frozen=True, eq=False)
class Bracket:
    """lower_i <= min |d| : margin(x_i + d) <= 0 <= upper_i, in real arithmetic with the stored weights.

    lower, upper : (n,) float64; 0 for misclassified points, upper = inf where no attack succeeded
    perturbation : (n, D) float64, the attack behind ``upper``; zero where there is none
    status : one `BracketStatus` per point
    norm : 1, 2 or inf
    nodes : (n,) int64, nodes of branch and bound spent
    """

    lower: Tensor
    upper: Tensor
    perturbation: Tensor
    status: tuple[BracketStatus, ...]
    norm: float
    nodes: Tensor

    def __len__(self) -> int:
        """Number of points."""
        return len(self.lower)
