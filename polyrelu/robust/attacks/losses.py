"""What an attack descends: one number per point, lower is better for the attacker.

With normalised steps only the direction of the gradient and the order of the values matter, so each loss stands here
in the form that never under- or overflows. A loss marked ``targeted`` compares with one other class at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

import torch
from torch import Tensor

from polyrelu.robust.core.margin import margin_of


@final
@dataclass(frozen=True)
class Loss:
    """``value(logits, y, target)`` -> (n,); ``target`` (n,) holds the class aimed at, and is read if ``targeted``."""

    name: str
    value: Callable[[Tensor, Tensor, Tensor], Tensor] = field(repr=False)
    targeted: bool = False


def _margin(logits: Tensor, y: Tensor, target: Tensor) -> Tensor:
    return margin_of(logits, y)


def _targeted_margin(logits: Tensor, y: Tensor, target: Tensor) -> Tensor:
    if logits.ndim == 1:
        return y * logits
    return (logits.gather(1, y[:, None]) - logits.gather(1, target[:, None]))[:, 0]


def _log_odds(logits: Tensor, y: Tensor, target: Tensor) -> Tensor:
    if logits.ndim == 1:
        return y * logits
    others = logits.scatter(1, y[:, None], -torch.inf).logsumexp(dim=1)
    return logits.gather(1, y[:, None])[:, 0] - others


def _exponential(logits: Tensor, y: Tensor, target: Tensor) -> Tensor:
    return -(-_log_odds(logits, y, target)).exp()


MARGIN = Loss("margin", _margin)  # y f, or f_y - max_{c != y} f_c
TARGETED = Loss("targeted margin", _targeted_margin, targeted=True)  # f_y - f_c, every c != y in turn
# log p_y/(1 - p_y) = f_y - log sum_{c != y} exp f_c. Cross-entropy is log(1 + exp(-this)), and the exponential loss
# exp(-this): the same steps, but those two are flat in floating point where the net is sure of itself.
CROSS_ENTROPY = Loss("cross-entropy", _log_odds)
EXPONENTIAL = Loss("exponential", _exponential)  # -exp(-y f) as it stands, underflow included: for `PublishedPGD`
