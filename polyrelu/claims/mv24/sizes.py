"""How large the experiments on Min & Vidal (ICML 2024) are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from polyrelu.claims import Profile
from polyrelu.claims.setups.sizes import SIX_FOUR, MixtureSize

ALPHAS: Mapping[Profile, tuple[float, ...]] = {  # noise at which distances to F are measured
    "quick": (0.05, 0.1, 0.3),
    "paper": (0.01, 0.0307, 0.0514, 0.0721, 0.0929, 0.1136, 0.1343, 0.155, 0.1757, 0.1964, 0.2171, 0.2379, 0.2586,
              0.2793, 0.3),
}  # fmt: skip
CENTRE_ALPHAS: Mapping[Profile, tuple[float, ...]] = {"quick": (0.05, 0.1), "paper": ALPHAS["paper"]}  # to F^(p)

CENTRE_DISTANCE: Mapping[Profile, MixtureSize] = {  # D = 1000 always: there the published estimator's guard bites
    "quick": MixtureSize(dim=1000, positive=6, negative=4, samples=2000, width=200),
    "paper": SIX_FOUR["paper"],
}
CLIMBS: Mapping[Profile, int] = {"quick": 1000, "paper": 10_000}  # points from which the published estimator climbs
EIGHT_TWELVE: Mapping[Profile, MixtureSize] = {
    "quick": MixtureSize(dim=200, positive=8, negative=12, samples=1000, width=200, points=60),
    "paper": MixtureSize(dim=1000, positive=8, negative=12, samples=20_000, width=2000, points=400),
}
POWERS: Mapping[Profile, tuple[float, ...]] = {"quick": (1.0, 1.5, 2.0, 2.5, 3.0, 4.0), "paper": (1.0, 2.0, 3.0, 4.0)}
STEEP_TIME: Mapping[Profile, float] = {"quick": 400.0, "paper": 1000.0}
PUBLISHED_ATTACK_POINTS: Mapping[Profile, int] = {"quick": 50, "paper": 100}
PUBLISHED_ATTACK_STEPS: Mapping[Profile, int] = {"quick": 500, "paper": 2000}
AGREE: Mapping[Profile, MixtureSize] = {
    "quick": SIX_FOUR["quick"]._replace(points=20),
    "paper": SIX_FOUR["paper"]._replace(samples=500, width=100, points=200),
}
REPEATS: Mapping[Profile, int] = {"quick": 3, "paper": 10}

# the ideal classifiers, without training
NOISY_POINTS: Mapping[Profile, int] = {"quick": 50_000, "paper": 200_000}
CENTRE_POWERS = (1, 2, 3, 4)
DIRECTION_DIM: Mapping[Profile, int] = {"quick": 100, "paper": 1000}


class ClusterSize(NamedTuple):
    """Numbers of clusters, D (0 for 2K) and points for each of them."""

    K: tuple[int, ...]
    dim: int
    points: int


FRAGILITY: Mapping[Profile, ClusterSize] = {
    "quick": ClusterSize(K=(2, 4, 8, 16, 32, 64), dim=0, points=100),
    "paper": ClusterSize(K=(2, 4, 8, 16, 32, 64, 128, 200), dim=1000, points=500),
}
RESISTANCE: Mapping[Profile, ClusterSize] = {
    "quick": ClusterSize(K=(4, 10, 20), dim=50, points=60),
    "paper": ClusterSize(K=(4, 10, 20, 40), dim=1000, points=200),
}
THRESHOLD_K: Mapping[Profile, tuple[int, ...]] = {"quick": (10,), "paper": (10, 20)}
CLASSIFIERS = (
    "a trained ReLU net",
    "a trained p = 3 net",
    "F",
    "F^(3)",
    "the Bayes classifier",
    "the nearest centre",
    "the nearest training point",
    "always +1",
)
NU = {0.1: (0.1, 0.15, 0.2, 0.3, 0.5, 1.0), 0.5: (0.5, 0.6, 0.8, 1.0, 1.2)}  # of Prop. 2 of 2025, by alpha
BAYES: Mapping[Profile, MixtureSize] = {
    "quick": MixtureSize(dim=200, positive=6, negative=4, samples=0, width=0, points=300),
    "paper": MixtureSize(dim=2000, positive=12, negative=8, samples=0, width=0, points=300),
}
AGREEMENT_POINTS: Mapping[Profile, int] = {"quick": 40_000, "paper": 400_000}


class StartSize(NamedTuple):
    """D, noise and points of the classifier that is attacked, and steps of the published attack."""

    dim: int
    alpha: float
    points: int
    steps: int


STARTS: Mapping[Profile, StartSize] = {  # the noise of each coordinate is the same
    "quick": StartSize(dim=50, alpha=0.02, points=40, steps=300),
    "paper": StartSize(dim=1000, alpha=0.1, points=100, steps=2000),
}
SAME_POINTS: Mapping[Profile, int] = {"quick": 64, "paper": 512}
GAUSSIAN_POINTS: Mapping[Profile, int] = {"quick": 200, "paper": 2000}  # where the radius of F is known in closed form
SOLVED: Mapping[Profile, int] = {"quick": 6, "paper": 24}  # of them, for each p of F^(p)
SIZE_DIM: Mapping[Profile, int] = {"quick": 100, "paper": 1000}

# digits, and heads on embeddings
HEAD_POWERS = (1, 2, 3, 4)
DIGIT_RADII: Mapping[Profile, Mapping[str, tuple[float, ...]]] = {  # by norm
    "quick": {"l∞": (0.05, 0.1), "l2": (0.4, 0.7), "l1": (1.2, 2.0)},
    "paper": {"l∞": (0.05, 0.1), "l2": (1.0, 2.0), "l1": (5.0, 10.0)},
}
DIGIT_CURVE: dict[Profile, tuple[float, ...]] = {  # l-infinity
    "quick": (0.025, 0.075, 0.15),
    "paper": tuple(round(0.2 * k / 14, 4) for k in range(1, 15)),
}
SCALES = (0.1, 1.0, 10.0)
