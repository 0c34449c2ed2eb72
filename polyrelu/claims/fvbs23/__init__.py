"""Frei, Vardi, Bartlett & Srebro, NeurIPS 2023: one direction that breaks nearly all points of a mixture.

Here, how large the experiment is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from polyrelu.claims import Profile


class ClustersSize(NamedTuple):
    """Numbers of clusters, dimensions, neurons and fresh points."""

    k: tuple[int, ...]
    dim: int
    width: int
    points: int


CLUSTERS: Mapping[Profile, ClustersSize] = {
    "quick": ClustersSize(k=(2, 4, 8, 16), dim=256, width=100, points=200),
    "paper": ClustersSize(k=(2, 4, 8, 16, 32), dim=1024, width=1000, points=2000),
}
