r"""Early alignment: from a small start the neurons of a ReLU net turn first and grow later (E17-E20, E22, E27, E28).

    S_+ = active on every positive point, on no negative one; S_- the reverse; S_dead = active on none
    after O(log n/sqrt(mu))   every live neuron is in S_+ or S_-;   y_i y_j cos(x_i, x_j) >= mu for all i, j
    then                      L = O(1/t),  |W|_F^2 <= 2 |W|_2^2 + O(eps)          (Min, Mallada, Vidal, ICLR 2024)

Published: 50 neurons, gradient descent at 2e-3; iterations are flow time / 2e-3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from polyrelu.bias import cones, median_alignment, phases, weight_stable_ranks
from polyrelu.claims.claim import Check, Claim, Standing, at_least, at_most
from polyrelu.claims.experiment import Experiment, Measured
from polyrelu.claims.profile import Profile
from polyrelu.claims.setups.planar import RATE, SCALE, WIDTH, first_layer, orthogonal_points, toy_cones
from polyrelu.data import Dataset, read
from polyrelu.data.images import cached
from polyrelu.nets import PolyReLUNet
from polyrelu.train import Until, descend, flow

ITERATIONS = 15_000


def zero_or_one(profile: Profile) -> Dataset:
    """Images of 0 (+1) and 1 (-1), centred: 8 x 8, or MNIST's."""
    images = read("digits" if profile == "quick" else "mnist")
    images = images.subset(images.y <= 1)
    X = images.rows().double()
    return Dataset(X - X.mean(dim=0), torch.where(images.y == 0, 1.0, -1.0), name=f"{images.name}, 0 and 1")


def _small_net(dim: int, seed: int) -> PolyReLUNet:
    return PolyReLUNet(dim, WIDTH, 1, scale=SCALE, seed=seed, dtype=torch.float64)


def digits(profile: Profile, seed: int) -> Measured:
    """E17: cosines of the mean neurons to x_+ and x_-, loss and stable rank, at 36 moments."""
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
    values = {
        "iteration of the fall over iteration of the alignment": turned.fallen.time / turned.aligned.time,
        "largest cosine of the mean neurons to x+ and x-": float(both.max()),
        "cosine of the mean neurons at 2000": float(both[marks.index(2000)]),
        "fall of that cosine until the end": float(both.max() - both[-1]),
        "stable rank at the end": drawn["rank"][-1],
        "iteration of the alignment": turned.aligned.time / RATE,
        "iteration at which the loss has lost a tenth": turned.fallen.time / RATE,
        "|W|_2^2 at the end": drawn["size"][-1],
    }
    return Measured(values, drawn)


def batches(profile: Profile, seed: int) -> Measured:
    """E28: the same by SGD; at quick size ten times the rate and a tenth of the steps."""
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


def orthogonally_separable(dim: int, n: int, seed: int) -> Dataset:
    """|g| in the half of the coordinates that belongs to the class, -.05 |g| in the other; divided by sqrt(dim).

    Every product is > 0 within a class and < 0 between classes, and x_+ and x_- are nearly orthogonal, so that two
    directions are needed.
    """
    g = torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).abs()
    positive, left = torch.arange(n)[:, None] < n // 2, torch.arange(dim) < dim // 2
    X = torch.where(positive == left, g, -0.05 * g) / math.sqrt(dim)
    return Dataset(X, torch.where(positive[:, 0], 1.0, -1.0), name="orthogonally separable")


def after_alignment(profile: Profile, seed: int) -> Measured:
    """E20, E22: 1/L against time from the fall of the loss to 1e-6, and the stable rank on the way."""
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


def _mnist(profile: Profile) -> str:
    there = profile == "quick" or cached("mnist") is not None
    return "" if there else "needs MNIST: polyrelu data fetch mnist"


FIVE: Mapping[Profile, int] = {"quick": 1, "paper": 5}
DIGITS, BATCHES = Experiment(digits, needs=_mnist), Experiment(batches, needs=_mnist)
TOYS, FIRST = Experiment(toy_cones, repeats=FIVE), Experiment(first_layer, repeats=FIVE)
POINTS, AFTER = Experiment(orthogonal_points, repeats=FIVE), Experiment(after_alignment, repeats=FIVE)
TOY = "two unit points in the plane, 50 neurons, balanced start 1e-6, gradient descent at 2e-3, mean exponential loss"

ORDER = (
    at_least("iteration of the fall over iteration of the alignment", 1.2, published=1.5),
    at_least("largest cosine of the mean neurons to x+ and x-", 0.98, published=1.0),
    Check("fall of that cosine until the end", 1e-4, 0.15),
    at_most("stable rank at the end", 2.0, published=1.0),
)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="E17",
        sentence="On centred images of 0 and 1 the mean neurons align with the class directions first, the loss falls "
        "later, and the first layer ends with stable rank near 1.",
        paper="MMV24",
        where="Fig. 5",
        standing=Standing.READ_OFF,
        published="MNIST: aligned after ~2000 iterations, loss falls after ~3000, rank < 2, |W|₂² ≈ 2 at 15 000",
        settings={
            "quick": "8×8 digits 0 and 1, 50 neurons N(0, 1e-12), flow for the time of 15 000 iterations at 2e-3",
            "paper": "MNIST digits 0 and 1, else the same",
        },
        experiment=DIGITS,
        checks={
            "quick": ORDER,
            "paper": (
                *ORDER,
                at_least("cosine of the mean neurons at 2000", 0.98, published=1.0),
                Check("iteration at which the loss has lost a tenth", 2400, 3600, published=3000),
            ),
        },
        reason={
            "quick": "8×8 images are shorter than MNIST's, so that norms take three times as long to grow; only the "
            "order of events is compared.",
            "paper": "",
        },
    ),
    Claim(
        id="E18",
        sentence="The less two positive points are correlated (μ), the longer neurons take to reach the cone S+ where "
        "they are active on both.",
        paper="MMV24",
        where="Appendix A",
        standing=Standing.PRINTED,
        published="μ = sin .1: all live neurons in S+ by 7000; μ = sin .001: not at 7000, one still outside at 21 000",
        settings=TOY,
        experiment=TOYS,
        checks=(
            at_most("live neurons outside S+ at 7000, mu = sin .1", 0.0, published=0.0),
            at_least("live neurons outside S+ at 7000, mu = sin .001", 1.0),
        ),
        reason="A flow would bring every neuron with v > 0 into S+ by 7600 iterations at μ = sin .001. Those still "
        "outside at 21 000 began with v < 0, and the finite step changed their sign; how many depends on the start.",
    ),
    Claim(
        id="E19",
        sentence="When only the first layer is trained (v = ±1), there are no two phases: directions and norms change "
        "together.",
        paper="MMV24",
        where="Appendix A",
        standing=Standing.PRINTED,
        published="no two phases",
        settings=f"{TOY}; v = ±1 kept, or trained from ±|w|; μ = sin .1",
        experiment=FIRST,
        checks=(
            at_most("share of the time to half the loss spent on a plateau, first layer only", 0.1),
            at_least("loss lost when the neurons have aligned, first layer only", 0.005),
            at_least("share of the time to half the loss spent on a plateau, both layers", 0.5),
            at_most("loss lost when the neurons have aligned, both layers", 1e-3),
        ),
        reason="With v = ±1 norms grow linearly from the first step, so that the plateau is gone. That the loss falls "
        "while neurons still turn is a matter of the step, which is 2000 times the start.",
    ),
    Claim(
        id="E20",
        sentence="Once the neurons have aligned on orthogonally separable data, the loss falls like 1/t.",
        paper="MMV24",
        where="Theorem 1",
        standing=Standing.PRINTED,
        published="L(t) = O(1/t)",
        settings={
            "quick": "d = n = h = 20, balanced start 1e-6, exponential loss by gradient flow to 1e-6",
            "paper": "d = n = h = 100, else the same",
        },
        experiment=AFTER,
        checks=(
            at_least("R² of 1/loss against time", 0.99),
            Check("slope of log loss against log time", -1.4, -1.0),
        ),
        reason="O(1/t) is an upper bound; a homogeneous net of degree 2 has L = Θ(1/(t log t)), a slope below −1.",
    ),
    Claim(
        id="E22",
        sentence="There the first layer becomes nearly a matrix of two directions: ‖W‖_F² ≤ 2 ‖W‖₂² + O(ε).",
        paper="MMV24",
        where="Theorem 1",
        standing=Standing.PRINTED,
        published="stable rank ≤ 2",
        settings={
            "quick": "d = n = h = 20, balanced start 1e-6, exponential loss by gradient flow to 1e-6",
            "paper": "d = n = h = 100, else the same",
        },
        experiment=AFTER,
        checks=(Check("largest |W|_F^2 / |W|_2^2", 1.0, 2.05, published=2.0),),
    ),
    Claim(
        id="E27",
        sentence="On two orthogonal positive points neurons turn to x1, x2 or x+ = x1 + x2, and those along x+ grow.",
        paper="MMV24",
        where="Appendix A",
        standing=Standing.PRINTED,
        published="only neurons along x+ grow",
        settings=TOY,
        experiment=POINTS,
        checks=(
            at_least("share of live neurons along x1, x2 or x+", 0.9),
            at_least("share of the net carried by neurons along x+", 0.98),
            at_least("neurons along x1 or x2", 1.0),
        ),
        shown="share of the net carried by neurons along x+",
    ),
    Claim(
        id="E28",
        sentence="Batches do not change it: with SGD, too, the neurons turn first and the loss falls later.",
        paper="MMV24",
        where="Appendix A",
        standing=Standing.PRINTED,
        published="two phases with batches of 2000",
        settings={
            "quick": "8×8 digits 0 and 1, 50 neurons N(0, 1e-12), SGD with batches of 32 at 2e-2 to loss .05",
            "paper": "MNIST digits 0 and 1, batches of 2000 at 2e-3, else the same",
        },
        experiment=BATCHES,
        checks=(
            at_least("step of the fall over step of the alignment", 1.2),
            at_least("log10 of the growth between alignment and fall", 2.0),
        ),
    ),
)
