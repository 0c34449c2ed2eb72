"""Neurons of ReLU nets turn first and grow later (Min, Mallada & Vidal 2024; Fig. 5, Theorem 1 and App. A).

two points   two positive points in the plane, by
                 w_j <- w_j + (rate/n) v_j sum_{i: <x_i, w_j> > 0} e^(-f(x_i)) x_i
                 v_j <- v_j + (rate/n) sum_i e^(-f(x_i)) relu(<x_i, w_j>)
             Published: 50 neurons, rate 2e-3. Size and loss are not printed; here the points have norm 1, the loss is
             the mean exponential one (its pull at the start is that of the summed logistic one), and v_j = +-|w_j|, as
             in the theorem.
separable    orthogonally separable data, y_i y_j cos(x_i, x_j) >= mu for all i, j: neurons end in one of three cones,
             S_+ = active on every positive point, on no negative one; S_- the reverse; S_dead = active on none.
             After O(log n/sqrt(mu)) every live neuron is in S_+ or S_-; then L = O(1/t), |W|_F^2 <= 2 |W|_2^2 + O(eps)
digits       images of 0 and 1: iterations are flow time / 2e-3, the published rate
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from polyrelu.bias import cones as neuron_cones
from polyrelu.bias import median_alignment, phases, weight_stable_ranks
from polyrelu.claims import Key, Measured, Profile, Quantity, experiment
from polyrelu.claims.setups.requirements import needs_mnist
from polyrelu.data import Dataset, read
from polyrelu.nets import PolyReLUNet
from polyrelu.train import Until, descend, flow

Array = NDArray[np.float64]
RATE, WIDTH = 2e-3, 50  # published
SCALE = 1e-6  # of the start
ITERATIONS = 15_000
REPEATS: Mapping[Profile, int] = {"quick": 1, "paper": 5}


def two_points(angle: float) -> Array:
    """Two unit points in the plane with <x1, x2> = sin(angle), both positive."""
    return np.array([[1.0, 0.0], [math.sin(angle), math.cos(angle)]])


def small_start(seed: int, *, both: bool = True) -> tuple[Array, Array]:
    """Entries of W N(0, 1e-12), v_j = +-|w_j|, or +-1 where only the first layer is trained."""
    source = np.random.default_rng(seed)
    W, sign = SCALE * source.standard_normal((WIDTH, 2)), np.sign(source.standard_normal(WIDTH))
    return W, sign * np.linalg.norm(W, axis=1) if both else sign


def gradient_descent(X: Array, W: Array, v: Array, steps: int, every: int, *, both: bool = True) -> dict[str, Array]:
    """Gradient descent at the published rate on (1/n) sum_i exp(-f(x_i)), f = sum_j v_j relu(<w_j, x>).

    Iterations 0, ``every``, ... with W (T, h, 2), v (T, h), the gates (T, n, h) and the loss (T,).
    """
    kept: dict[str, list[Any]] = {"iteration": [], "W": [], "v": [], "on": [], "loss": []}
    for k in range(steps + 1):
        Z = X @ W.T
        on, hidden = Z > 0, np.maximum(Z, 0)
        pull = np.exp(-hidden @ v) / len(X)
        if k % every == 0:
            for name, value in (("iteration", k), ("W", W), ("v", v), ("on", on), ("loss", pull.sum())):
                kept[name].append(value)
        turn, grow = (on * pull[:, None]).T @ X * v[:, None], hidden.T @ pull
        W = W + RATE * turn
        if both:
            v = v + RATE * grow
    return {name: np.asarray(value) for name, value in kept.items()}


@experiment(repeats=REPEATS)
def cones(profile: Profile, seed: int) -> Measured:
    """Live neurons that are not yet active on both points."""
    values: dict[Key, float] = {}
    drawn: dict[str, Any] = {}
    for mu, angle in (("μ = sin .1", 0.1), ("μ = sin .001", 0.001)):
        run = gradient_descent(two_points(angle), *small_start(seed), 21_000, every=250)
        outside = (run["on"].any(axis=1) & ~run["on"].all(axis=1)).sum(axis=1)
        for at in (7000, 21_000):
            values[Quantity("live neurons outside S+", mu=mu, iteration=at)] = float(outside[at // 250])
        drawn[mu] = outside.tolist()
    return Measured(values, {"iterations": run["iteration"].tolist(), **drawn})


@experiment(repeats=REPEATS)
def first_layer(profile: Profile, seed: int) -> Measured:
    """How the loss falls while the neurons turn to x_+ = x_1 + x_2, with both layers trained or the first only."""
    X = two_points(0.1)
    aim = X.sum(axis=0) / np.linalg.norm(X.sum(axis=0))
    values: dict[Key, float] = {}
    drawn: dict[str, Any] = {}
    for trained, both, steps, every in (("both layers", True, 12_000, 10), ("first layer only", False, 500, 1)):
        run = gradient_descent(X, *small_start(seed, both=both), steps, every, both=both)
        carry = run["on"][-1].all(axis=0) & (run["v"][-1] > 0)
        cosine = np.median((run["W"] @ aim / np.linalg.norm(run["W"], axis=2))[:, carry], axis=1)
        left = run["loss"] / run["loss"][0]
        aligned = int(np.flatnonzero(cosine < 0.99)[-1]) + 1
        fallen = [int(np.flatnonzero(left <= share)[0]) for share in (0.99, 0.5)]
        values |= {
            Quantity("share of the time to half the loss spent on a plateau", trained=trained): fallen[0] / fallen[1],
            Quantity("loss lost when the neurons have aligned", trained=trained): 1 - float(left[aligned]),
            Quantity("iteration of the alignment", trained=trained): float(run["iteration"][aligned]),
            Quantity("iteration at which the loss has lost 1 %", trained=trained): float(run["iteration"][fallen[0]]),
        }
        thin = np.unique(np.geomspace(1, len(left), 120).astype(int)) - 1
        lines = {"iterations": run["iteration"], "cosine": cosine, "loss": left}
        drawn[trained] = {key: line[thin].tolist() for key, line in lines.items()}
    return Measured(values, drawn)


@experiment(repeats=REPEATS)
def orthogonal_points(profile: Profile, seed: int) -> Measured:
    """Where neurons point once they have turned (iteration 6000) and who carries the net at the end."""
    X = two_points(0.0)
    run = gradient_descent(X, *small_start(seed), 15_000, every=250)
    size = np.linalg.norm(run["W"], axis=2)
    aims = np.array([X[0], X[1], X.sum(axis=0) / math.sqrt(2)])
    early, live = 6000 // 250, run["on"][-1].any(axis=0) & (run["v"][-1] > 0)
    cosine = run["W"][early] @ aims.T / size[early][:, None]
    nearest = np.where(live, cosine.argmax(axis=1), -1)
    carried = size * np.abs(run["v"])
    single, joint = (nearest == 0) | (nearest == 1), nearest == 2
    values = {
        "share of live neurons along x1, x2 or x+": float((cosine.max(axis=1) >= 0.99)[live].mean()),
        "share of the net carried by neurons along x+": float(carried[-1, joint].sum() / carried[-1].sum()),
        "neurons along x1 or x2": float(single.sum()),
        "neurons along x+": float(joint.sum()),
    }
    groups = {"x+": joint, "x1 or x2": single}
    drawn = {name: carried[:, group].mean(axis=1).tolist() for name, group in groups.items() if group.any()}
    return Measured(values, {"iterations": run["iteration"].tolist(), "loss": run["loss"].tolist(), **drawn})


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
        "neurons outside the three cones at the end": float(neuron_cones(run.net, data).other.sum()),
    }
    drawn = {"time": times[::10].tolist(), "inverse": inverse[::10].tolist(), "log10 loss": levels, "rank": ranks}
    return Measured(values, drawn)


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
    net, rate, steps = _small_net(data.dim, seed), RATE * faster, ITERATIONS // faster
    run = descend(net, data, method="sgd", rate=rate, batch=batch, until=0.05, steps=steps, every=every, seed=seed)
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
