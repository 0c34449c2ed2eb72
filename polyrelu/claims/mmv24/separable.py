"""Orthogonally separable data, where neurons end in one of three cones (Min, Mallada & Vidal 2024, Theorem 1).

S_+ = active on every positive point, on no negative one; S_- the reverse; S_dead = active on none
after O(log n/sqrt(mu))   every live neuron is in S_+ or S_-;   y_i y_j cos(x_i, x_j) >= mu for all i, j
then                      L = O(1/t),  |W|_F^2 <= 2 |W|_2^2 + O(eps)
"""

from __future__ import annotations

import math

import numpy as np
import torch

from polyrelu.bias import cones, weight_stable_ranks
from polyrelu.claims.experiment import Measured, experiment
from polyrelu.claims.mmv24.sizes import REPEATS, SCALE
from polyrelu.claims.profile import Profile
from polyrelu.data import Dataset
from polyrelu.nets import PolyReLUNet
from polyrelu.train import flow


def orthogonally_separable(dim: int, n: int, seed: int) -> Dataset:
    """|g| in the half of the coordinates that belongs to the class, -.05 |g| in the other; divided by sqrt(dim).

    Every product is > 0 within a class and < 0 between classes, and x_+ and x_- are nearly orthogonal, so that two
    directions are needed.
    """
    g = torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).abs()
    positive, left = torch.arange(n)[:, None] < n // 2, torch.arange(dim) < dim // 2
    X = torch.where(positive == left, g, -0.05 * g) / math.sqrt(dim)
    return Dataset(X, torch.where(positive[:, 0], 1.0, -1.0), name="orthogonally separable")


@experiment(repeats=REPEATS)
def after_alignment(profile: Profile, seed: int) -> Measured:
    """1/L against time from the fall of the loss to 1e-6, and the stable rank on the way."""
    size = 20 if profile == "quick" else 100
    data = orthogonally_separable(size, size, seed)
    start = PolyReLUNet(size, size, 1, init="balanced", scale=SCALE, seed=seed, dtype=torch.float64)
    levels = (-0.5, -1, -2, -3, -4, -5, -6)
    run = flow(start, data, until=1e-6, rtol=1e-3, checkpoints=levels)
    log_time, log_loss = run.history.log_time, run.history.log_loss
    late = log_loss <= math.log(0.9)
    times = np.linspace(math.exp(log_time[late][0]), run.time, 400)
    inverse = np.exp(-np.interp(np.log(times), log_time[late], log_loss[late]))
    ranks = [weight_stable_ranks(run.checkpoints[level])["weight"] for level in levels]
    tail = log_loss <= math.log(1e-2)
    values = {
        "R² of 1/loss against time": float(np.corrcoef(times, inverse)[0, 1] ** 2),
        "slope of log loss against log time": float(np.polyfit(log_time[tail], log_loss[tail], 1)[0]),
        "largest |W|_F^2 / |W|_2^2": max(ranks),
        "stable rank at the end": ranks[-1],
        "neurons outside the three cones at the end": float(cones(run.net, data).other.sum()),
    }
    drawn = {"time": times[::10].tolist(), "inverse": inverse[::10].tolist(), "log10 loss": levels, "rank": ranks}
    return Measured(values, drawn)
