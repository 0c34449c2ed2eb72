"""Images of 0 and 1: the neurons turn to the class directions first, the loss falls later (MMV24, Fig. 5 and App. A).

Iterations are flow time / 2e-3, the published rate.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from polyrelu.bias import median_alignment, phases, weight_stable_ranks
from polyrelu.claims.experiment import Measured, experiment
from polyrelu.claims.mmv24.sizes import ITERATIONS, RATE, SCALE, WIDTH
from polyrelu.claims.profile import Profile
from polyrelu.claims.quantity import Key, Quantity
from polyrelu.claims.setups.needs import needs_mnist
from polyrelu.data import Dataset, read
from polyrelu.nets import PolyReLUNet
from polyrelu.train import Until, descend, flow


def zero_or_one(profile: Profile) -> Dataset:
    """Images of 0 (+1) and 1 (-1), centred: 8 x 8, or MNIST's."""
    images = read("digits" if profile == "quick" else "mnist")
    images = images.subset(images.y <= 1)
    X = images.rows().double()
    return Dataset(X - X.mean(dim=0), torch.where(images.y == 0, 1.0, -1.0), name=f"{images.name}, 0 and 1")


def _small_net(dim: int, seed: int) -> PolyReLUNet:
    return PolyReLUNet(dim, WIDTH, 1, scale=SCALE, seed=seed, dtype=torch.float64)


@experiment(needs=needs_mnist)
def alignment(profile: Profile, seed: int) -> Measured:
    """Fig. 5: cosines of the mean neurons to x_+ and x_-, loss and stable rank, at 36 moments."""
    data = zero_or_one(profile)
    sums = data.class_means()
    marks = [*range(250, 3000, 250), *range(3000, ITERATIONS + 1, 500)]
    run = flow(_small_net(data.dim, seed), data, until=Until(time=ITERATIONS * RATE), record=[RATE * k for k in marks])
    turned = phases(run)
    drawn: dict[str, Any] = {"iterations": marks, "plus": [], "minus": [], "loss": [], "rank": [], "size": []}
    for mark in marks:
        net = run.snapshots[RATE * mark]
        assert isinstance(net, PolyReLUNet)
        polar = net.polar()
        W = polar.u * polar.log_r.exp()[:, None]
        for name, vote, sign in (("plus", sums[0], 1), ("minus", sums[1], -1)):
            mean = W[polar.q[:, 0] * sign > 0].mean(dim=0)
            drawn[name].append(float(torch.cosine_similarity(mean, vote, dim=0)))
        with torch.no_grad():
            drawn["loss"].append(float((-data.y * net(data.rows())).exp().mean()))
        drawn["rank"].append(weight_stable_ranks(net)["weight"])
        drawn["size"].append(float(torch.linalg.matrix_norm(W, 2)) ** 2)
    both = np.minimum(drawn["plus"], drawn["minus"])
    assert turned.aligned is not None and turned.fallen is not None
    values: dict[Key, float] = {
        "iteration of the fall over iteration of the alignment": turned.fallen.time / turned.aligned.time,
        "largest cosine of the mean neurons to x+ and x-": float(both.max()),
        Quantity("cosine of the mean neurons", iteration=2000): float(both[marks.index(2000)]),
        "fall of that cosine until the end": float(both.max() - both[-1]),
        "stable rank at the end": drawn["rank"][-1],
        "iteration of the alignment": turned.aligned.time / RATE,
        "iteration at which the loss has lost a tenth": turned.fallen.time / RATE,
        "|W|_2^2 at the end": drawn["size"][-1],
    }
    return Measured(values, drawn)


@experiment(needs=needs_mnist)
def batches(profile: Profile, seed: int) -> Measured:
    """The same by SGD; at quick size ten times the rate and a tenth of the steps."""
    data = zero_or_one(profile)
    faster, batch, every = (10, 32, 1) if profile == "quick" else (1, 2000, 4)
    run = descend(
        _small_net(data.dim, seed),
        data,
        method="sgd",
        rate=RATE * faster,
        batch=batch,
        until=0.05,
        steps=ITERATIONS // faster,
        every=every,
        seed=seed,
    )
    turned = phases(run)
    assert turned.aligned is not None and turned.fallen is not None and turned.grown is not None
    values = {
        "step of the fall over step of the alignment": turned.fallen.clock / turned.aligned.clock,
        "log10 of the growth between alignment and fall": -turned.grown / math.log(10),
        "step of the alignment": turned.aligned.clock,
        "step at which the loss has lost a tenth": turned.fallen.clock,
        "loss at the end": math.exp(run.log_loss),
    }
    history = run.history
    drawn = {"steps": history.clock, "alignment": median_alignment(history), "loss": np.exp(history.log_loss)}
    return Measured(values, {name: np.asarray(line)[::2].tolist() for name, line in drawn.items()})
