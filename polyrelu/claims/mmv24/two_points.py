"""Two positive points in the plane, and neurons that turn to them (Min, Mallada, Vidal 2024, App. A).

    w_j <- w_j + (rate/n) v_j sum_{i: <x_i, w_j> > 0} e^(-f(x_i)) x_i
    v_j <- v_j + (rate/n) sum_i e^(-f(x_i)) relu(<x_i, w_j>)

Published: 50 neurons, rate 2e-3. Size and loss are not printed; here the points have norm 1, the loss is the mean
exponential one (its pull at the start is that of the summed logistic one), and v_j = +-|w_j|, as in the theorem.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyrelu.claims.experiment import Measured, experiment
from polyrelu.claims.mmv24.sizes import RATE, REPEATS, SCALE, WIDTH
from polyrelu.claims.profile import Profile
from polyrelu.claims.quantity import Key, Quantity

Array = NDArray[np.float64]


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
