"""Sizes of an experiment, as plain numbers."""

from __future__ import annotations

from typing import NamedTuple


class MixtureSize(NamedTuple):
    """D, K1, K2, noise, training points, neurons and test points of a net trained on the orthonormal mixture."""

    dim: int
    positive: int
    negative: int
    samples: int
    width: int
    points: int = 0
    alpha: float = 0.1
