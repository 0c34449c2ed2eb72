"""How large the experiments on Lyu & Li (ICLR 2020) are."""

from __future__ import annotations

from collections.abc import Mapping

from polyrelu.claims import Profile

# the toy: a two-layer net on twenty points
POINTS = 20
STARTS = (1e-4, 1e-2, 1.0)
SEEDS: Mapping[Profile, int] = {"quick": 1, "paper": 5}
FINAL_LOG10_LOSS: Mapping[Profile, float] = {"quick": -1000, "paper": -5000}  # of the flow
FINAL_LOG10_LOSS_FROM_STARTS: Mapping[Profile, float] = {"quick": -100, "paper": -1000}
DESCENT_RATE: Mapping[Profile, float] = {"quick": 1e-3, "paper": 1e-4}  # over the loss

# images
LOG10_LOSSES = (-10.04, -15.12, -20.07, -120.01, -881.51)  # of model-1 to model-5
REACHED: Mapping[Profile, int] = {"quick": 5, "paper": 3}  # models
ATTACKED: Mapping[Profile, int] = {"quick": 40, "paper": 100}  # training images
NEIGHBOURS = ((2, 1), (3, 2), (4, 3), (5, 4))  # models compared with one another
AGAINST_FIRST = ((4, 1), (5, 1))
RATES = {"constant rate": 0.01, "loss-based rate": 0.1}

FRESH_POINTS: Mapping[Profile, int] = {"quick": 100, "paper": 500}  # of the mixture
