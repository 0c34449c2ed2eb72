"""How large the experiments on Min & Vidal (ICML 2025) are."""

from __future__ import annotations

from collections.abc import Mapping

from polyrelu.claims import Profile
from polyrelu.claims.setups.sizes import MixtureSize

GAUSSIAN, HALF = "pReLU, Gaussian start", "MLP(4), half start"  # beside the others: starts are not published
MODELS = ("pReLU", GAUSSIAN, "ReLU", "Bayes", "MLP(4)", HALF, "Tanh", "LogReg")
FIG2: Mapping[Profile, MixtureSize] = {
    "quick": MixtureSize(dim=200, positive=12, negative=8, samples=1000, width=200, points=60),
    "paper": MixtureSize(dim=2000, positive=12, negative=8, samples=20_000, width=200, points=200, alpha=0.3),
}
INITIALISATION: Mapping[Profile, MixtureSize] = {
    "quick": MixtureSize(dim=100, positive=6, negative=4, samples=1000, width=100, points=60),
    "paper": MixtureSize(dim=2000, positive=12, negative=8, samples=20_000, width=200, points=100),
}
PHASES: Mapping[Profile, MixtureSize] = {
    "quick": MixtureSize(dim=100, positive=5, negative=5, samples=1000, width=100),
    "paper": MixtureSize(dim=1000, positive=5, negative=5, samples=5000, width=200),
}
NUDGED = PHASES["paper"]  # fast enough to be run as published in both profiles


_LOOKS = (*range(240, 561, 20), 600, 700, 800, 1000, 1250, 1500)
LOOKS: Mapping[Profile, tuple[int, ...]] = {  # steps at which the distance to F^(3) is measured
    "quick": _LOOKS,
    "paper": (*_LOOKS, 2500, 5000, 10_000),
}
ALPHAS: Mapping[Profile, tuple[float, ...]] = {"quick": (0.05, 0.1, 0.2), "paper": (0.025, 0.05, 0.1, 0.2)}
PROPOSITION3: Mapping[Profile, MixtureSize] = {
    "quick": MixtureSize(dim=1000, positive=2, negative=2, samples=0, width=0, points=50),
    "paper": MixtureSize(dim=2000, positive=12, negative=8, samples=0, width=0, points=200),
}
