"""How large the experiments on the inconsistencies are, where both profiles are not of one size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from polyrelu.claims import Profile
from polyrelu.claims.setups.sizes import MixtureSize

IMAGE_INPUTS: Mapping[Profile, int] = {"quick": 64, "paper": 784}
IMAGE_NEURONS: Mapping[Profile, int] = {"quick": 64, "paper": 500}
DEGREE: Mapping[Profile, int] = {"quick": 100, "paper": 1000}  # dimensions
ALIGNMENT: Mapping[Profile, MixtureSize] = {
    "quick": MixtureSize(dim=20, positive=3, negative=2, samples=1000, width=50),
    "paper": MixtureSize(dim=1000, positive=3, negative=2, samples=1000, width=1000),
}
STARTING_LOSS: Mapping[Profile, MixtureSize] = {
    "quick": MixtureSize(dim=100, positive=5, negative=5, samples=1000, width=100),
    "paper": MixtureSize(dim=1000, positive=5, negative=5, samples=5000, width=100),
}
LARGEST_DELTA: Mapping[Profile, int] = {"quick": 4000, "paper": 20_000}  # points
ONE_DIRECTION: Mapping[Profile, int] = {"quick": 2000, "paper": 20_000}  # points
UNIT_AVERAGES: Mapping[Profile, int] = {"quick": 20, "paper": 1000}  # dimensions
LOSSES: Mapping[Profile, MixtureSize] = {
    "quick": MixtureSize(dim=100, positive=2, negative=2, samples=1000, width=50),
    "paper": MixtureSize(dim=1000, positive=5, negative=5, samples=5000, width=200),
}
START_DISTANCE: Mapping[Profile, MixtureSize] = {  # points: random vectors
    "quick": MixtureSize(dim=1000, positive=5, negative=5, samples=0, width=50, points=200),
    "paper": MixtureSize(dim=1000, positive=5, negative=5, samples=0, width=200, points=1000),
}
RANDOM_STARTS: Mapping[Profile, int] = {"quick": 100, "paper": 500}  # points


class DigitSize(NamedTuple):
    """Neurons, epochs and rate of a net of 8 x 8 digits, and how many images are attacked."""

    width: int
    epochs: int
    rate: float
    attacked: int


DIGITS: Mapping[Profile, DigitSize] = {
    "quick": DigitSize(width=64, epochs=40, rate=1e-2, attacked=200),
    "paper": DigitSize(width=500, epochs=200, rate=1e-3, attacked=497),
}
POWERS: Mapping[Profile, tuple[float, ...]] = {"quick": (1.0, 4.0), "paper": (1.0, 2.0, 3.0, 4.0)}  # of the digits
SAME_CLASSIFIER: Mapping[Profile, int] = {"quick": 64, "paper": 320}  # points
KKT: Mapping[Profile, MixtureSize] = {
    "quick": MixtureSize(dim=256, positive=4, negative=4, samples=200, width=100, points=400, alpha=1.0),
    "paper": MixtureSize(dim=1024, positive=4, negative=4, samples=400, width=1000, points=400, alpha=1.0),
}
