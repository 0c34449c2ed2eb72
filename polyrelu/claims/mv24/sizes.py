"""How large the experiments on Min & Vidal (ICML 2024) are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from polyrelu.claims.profile import Profile
from polyrelu.claims.setups.sizes import MixtureSize

ALPHAS: Mapping[Profile, tuple[float, ...]] = {  # noise at which distances to F are measured
    "quick": (0.05, 0.1, 0.3),
    "paper": (0.01, 0.0307, 0.0514, 0.0721, 0.0929, 0.1136, 0.1343, 0.155, 0.1757, 0.1964, 0.2171, 0.2379, 0.2586,
              0.2793, 0.3),
}  # fmt: skip
CENTRE_ALPHAS: Mapping[Profile, tuple[float, ...]] = {"quick": (0.05, 0.1), "paper": ALPHAS["paper"]}  # to F^(p)

RELU_READ_AT = (0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)  # where Fig. 2a can be read
CENTRE_READ_AT = (0.01, 0.05, 0.1, 0.2, 0.25, 0.3)


class DistanceSize(NamedTuple):
    """D, training points and neurons of the nets of p = 3, and from how many points the published estimator climbs."""

    dim: int
    samples: int
    width: int
    starts: int


CENTRE_DISTANCE: Mapping[Profile, DistanceSize] = {  # D = 1000 always: there the estimator's guard bites
    "quick": DistanceSize(dim=1000, samples=2000, width=200, starts=1000),
    "paper": DistanceSize(dim=1000, samples=20_000, width=2000, starts=10_000),
}
SIX_FOUR: Mapping[Profile, MixtureSize] = {
    "quick": MixtureSize(dim=100, positive=6, negative=4, samples=1000, width=100, points=200),
    "paper": MixtureSize(dim=1000, positive=6, negative=4, samples=20_000, width=2000, points=1000),
}
EIGHT_TWELVE: Mapping[Profile, MixtureSize] = {
    "quick": MixtureSize(dim=200, positive=8, negative=12, samples=1000, width=200, points=60),
    "paper": MixtureSize(dim=1000, positive=8, negative=12, samples=20_000, width=2000, points=400),
}
POWERS: Mapping[Profile, tuple[float, ...]] = {"quick": (1.0, 1.5, 2.0, 2.5, 3.0, 4.0), "paper": (1.0, 2.0, 3.0, 4.0)}
STEEP = (3.0, 4.0, 8.0, 16.0)
STEEP_TIME: Mapping[Profile, float] = {"quick": 400.0, "paper": 1000.0}


class AttackSize(NamedTuple):
    """Points and steps of the published attack."""

    points: int
    steps: int


PUBLISHED_ATTACK: Mapping[Profile, AttackSize] = {"quick": AttackSize(50, 500), "paper": AttackSize(100, 2000)}
AGREE: Mapping[Profile, MixtureSize] = {
    "quick": MixtureSize(dim=100, positive=6, negative=4, samples=1000, width=100, points=20),
    "paper": MixtureSize(dim=1000, positive=6, negative=4, samples=500, width=100, points=200),
}
LOOKS = {1.0: (0.28, 0.3, 0.32, 0.34, 0.35, 0.4), 3.0: (0.66, 0.7, 0.7071, 0.72, 0.75, 0.85)}  # radii, by p
ATTACKED = {1.0: (0.28, 0.3, 0.32, 0.34, 0.4), 3.0: (0.7, 0.75, 0.8, 0.85, 0.9, 0.98)}  # by the published attack
REPEATS: Mapping[Profile, int] = {"quick": 3, "paper": 10}
