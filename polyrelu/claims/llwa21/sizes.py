"""How large the experiments on Lyu, Li, Wang & Arora (NeurIPS 2021) are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from polyrelu.claims.profile import Profile


class MirroredSize(NamedTuple):
    """Dimensions, mirrored pairs of points and neurons."""

    dim: int
    pairs: int
    width: int


class SlabSize(NamedTuple):
    """Points, neurons, and points of the grid along each side on which the boundary is looked for."""

    samples: int
    width: int
    cells: int


MIRRORED: Mapping[Profile, MirroredSize] = {
    "quick": MirroredSize(dim=5, pairs=10, width=20),
    "paper": MirroredSize(dim=20, pairs=100, width=100),
}
SLABS: Mapping[Profile, SlabSize] = {
    "quick": SlabSize(samples=200, width=100, cells=301),
    "paper": SlabSize(samples=2000, width=1000, cells=601),
}
