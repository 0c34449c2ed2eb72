"""How large the experiments on Li et al. (ICLR 2025) are."""

from __future__ import annotations

from collections.abc import Mapping

from polyrelu.claims.profile import Profile
from polyrelu.claims.setups.sizes import MixtureSize

SEPARABLE: Mapping[Profile, tuple[tuple[int, int], ...]] = {  # dimensions and points
    "quick": ((2, 40),),
    "paper": ((2, 40), (10, 200), (50, 1000)),
}
LINEAR_RULE: Mapping[Profile, MixtureSize] = {
    "quick": MixtureSize(dim=100, positive=6, negative=4, samples=1000, width=0, points=500),
    "paper": MixtureSize(dim=1000, positive=6, negative=4, samples=20_000, width=0, points=2000),
}
