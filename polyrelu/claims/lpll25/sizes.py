"""How large the experiments on Li et al. (ICLR 2025) are, and what their nets, read-outs and attacks are called."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, final

from polyrelu.claims import Profile
from polyrelu.claims.setups.sizes import MixtureSize

# the two nets of the orthonormal mixture; the one trained on clusters with either binary read-out
AVERAGED, DECOUPLED = "averaged", "decoupled"
SUMMED, LARGEST = "summed read-out", "largest-logit read-out"
NETS = (AVERAGED, SUMMED, LARGEST)


class Recipe(NamedTuple):
    """d, n, learning rate and steps."""

    dim: int
    samples: int
    rate: float
    steps: int


RECIPES: Mapping[Profile, Recipe] = {"quick": Recipe(512, 500, 0.005, 200), "paper": Recipe(3072, 1000, 0.001, 100)}
NEVER = 1e-30  # a loss that ends no run
PUBLISHED_DIM = 3072
READ_AT: Mapping[str, tuple[int, ...]] = {  # radii at which Fig. 3, left, is read off
    AVERAGED: (12, 14, 16, 18, 20),
    SUMMED: (34, 36, 38, 40, 42, 44),
    LARGEST: (34, 36, 38, 40, 42, 44),
}
POINTS: Mapping[Profile, int] = {"quick": 200, "paper": 400}
SPLITS = ((5, 5), (6, 4), (9, 1))  # K1 + K2 clusters of the ideal nets
CLUSTERS = (4, 8, 16, 32)
CLUSTER_POINTS: Mapping[Profile, int] = {"quick": 96, "paper": 320}
BUILT_CLUSTERS = (4, 10, 20)
BUILT_DIMS: Mapping[Profile, tuple[int, ...]] = {"quick": (256, 1024), "paper": (256, 1024, 4096)}

# nets of images: trained with two labels or with ten, which are read out as one logit, and attacked
TWO_LABELS, TEN_LABELS = "two labels", "ten labels"
LOGIT_READ_OUT, ODDS_READ_OUT, SUM_READ_OUT = "logit", "odds", "sum"
CLEAN, OWN_LOSS_PGD, READ_OUT_PGD, STRONGEST = "clean", "PGD on its own loss", "PGD on the read-out", "strongest attack"


@final
@dataclass(frozen=True)
class ImageTask:
    """One comparison at one size: the set, how its classes are halved, and what is trained and attacked."""

    images: str
    halves: str
    epochs: int
    attacked: int
    radii: tuple[float, ...]
    radius: float  # of the strongest attack
    samples: int | None = None  # images trained on, if not all
    blocks: tuple[int, ...] = (2, 2, 2, 2)  # of the ResNet; ResNet-18
    width: int = 64


PARITY: Mapping[Profile, ImageTask] = {
    "quick": ImageTask("digits", "parity", 40, 150, (0.2, 0.4, 0.6, 0.8), 0.4),
    "paper": ImageTask("mnist-full", "parity", 3, 100, (0.4, 0.8, 1.0, 1.6, 2.0), 1.0),
}
HALVES: Mapping[Profile, ImageTask] = {
    "quick": ImageTask("digits", "halves", 40, 150, (0.2, 0.4, 0.6, 0.8), 0.4),
    "paper": ImageTask("cifar10", "halves", 12, 100, (0.08, 0.24, 0.4, 0.56, 0.8), 0.4),
}
# the same with a small ResNet, at every size
MNIST = ImageTask("mnist-full", "parity", 1, 150, (0.4, 1.0), 0.4, samples=20_000, blocks=(1, 1, 1), width=8)
CIFAR10 = ImageTask("cifar10", "halves", 2, 150, (0.08, 0.24), 0.08, samples=20_000, blocks=(1, 1, 1), width=8)

# what linear models learn
SEPARABLE: Mapping[Profile, tuple[tuple[int, int], ...]] = {  # dimensions and points
    "quick": ((2, 40),),
    "paper": ((2, 40), (10, 200), (50, 1000)),
}
LINEAR_RULE: Mapping[Profile, MixtureSize] = {
    "quick": MixtureSize(dim=100, positive=6, negative=4, samples=1000, width=0, points=500),
    "paper": MixtureSize(dim=1000, positive=6, negative=4, samples=20_000, width=0, points=2000),
}


def multiple(radius: float) -> str:
    """A radius of Fig. 3, left, as a multiple of sqrt(d): ".613√d"."""
    return f"{radius / math.sqrt(PUBLISHED_DIM):.3f}√d".lstrip("0")
