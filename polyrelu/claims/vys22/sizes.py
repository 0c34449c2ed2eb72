"""How large the experiment on Vardi, Yehudai & Shamir (NeurIPS 2022) is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from polyrelu.claims.profile import Profile

MOST = 2000  # points on the sphere


class SphereSize(NamedTuple):
    """Dimensions d, powers a in m = d^a points, neurons, and the size of the start.

    From a smaller start a point may be left without any active neuron.
    """

    dims: tuple[int, ...]
    exponents: tuple[float, ...]
    width: int
    start: float


SPHERE: Mapping[Profile, SphereSize] = {
    "quick": SphereSize(dims=(60, 120, 240), exponents=(1.0,), width=100, start=3e-3),
    "paper": SphereSize(dims=(100, 200, 400, 1000), exponents=(0.5, 0.8, 1.0, 1.2, 1.5), width=1000, start=3e-4),
}
