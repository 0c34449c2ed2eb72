"""Sizes of an experiment, as plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from polyrelu.claims import Profile


class MixtureSize(NamedTuple):
    """D, K1, K2, noise, training points, neurons and test points of a net trained on the orthonormal mixture."""

    dim: int
    positive: int
    negative: int
    samples: int
    width: int
    points: int = 0
    alpha: float = 0.1


SIX_FOUR: Mapping[Profile, MixtureSize] = {  # the published nets of Min & Vidal (ICML 2024), Fig. 2
    "quick": MixtureSize(dim=100, positive=6, negative=4, samples=1000, width=100, points=200),
    "paper": MixtureSize(dim=1000, positive=6, negative=4, samples=20_000, width=2000, points=1000),
}
