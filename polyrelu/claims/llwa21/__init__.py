"""Lyu, Li, Wang & Arora, NeurIPS 2021: the simplest boundary, and the largest margin.

Here, how large the experiments are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from polyrelu.claims import Profile


class TaskSize(NamedTuple):
    """Dimensions, points or mirrored pairs of them, and neurons."""

    dim: int
    points: int
    width: int


MIRRORED: Mapping[Profile, TaskSize] = {
    "quick": TaskSize(dim=5, points=10, width=20),
    "paper": TaskSize(dim=20, points=100, width=100),
}
SLABS: Mapping[Profile, TaskSize] = {
    "quick": TaskSize(dim=2, points=200, width=100),
    "paper": TaskSize(dim=2, points=2000, width=1000),
}
