"""Lyu & Li, ICLR 2020: the margin of a homogeneous net grows for ever.

Here, what they print: five models of one run on MNIST, and what two rates come to in 10,000 epochs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from polyrelu.claims.ll20.sizes import LOG10_LOSSES

__all__ = ["MARGIN_BY_RATE", "MODELS", "PublishedModel"]


class PublishedModel(NamedTuple):
    """log10 of the loss at which training was stopped, epochs until then, and the normalised margin."""

    log10_loss: float
    epochs: int
    margin: float


MODELS: Mapping[str, PublishedModel] = {
    "model-1": PublishedModel(LOG10_LOSSES[0], 38, 5.65e-5),
    "model-2": PublishedModel(LOG10_LOSSES[1], 75, 9.50e-5),
    "model-3": PublishedModel(LOG10_LOSSES[2], 107, 1.30e-4),
    "model-4": PublishedModel(LOG10_LOSSES[3], 935, 4.61e-4),
    "model-5": PublishedModel(LOG10_LOSSES[4], 10_000, 1.18e-3),
}
MARGIN_BY_RATE: Mapping[str, float] = {"constant rate": 1.8e-4, "loss-based rate": 1.2e-3}
