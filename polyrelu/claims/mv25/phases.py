"""Directions first, norms later (Min & Vidal, ICML 2025, Figs 5-6, Prop. 4).

    5+5 clusters, alpha = .1, p = 3, squared loss, balanced start of size 1e-7

The width is not published; 200 is that of the paper's other nets. A step counts as the flow time it passes: the plotted
loss begins at 1, so it is the mean of (y - f)^2 without the 1/2 of the text, and a step of .2 on it is .4 of the flow
of the mean of (y - f)^2 / 2. With the 1/2 every published step count would be half of what the flow needs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from polyrelu.claims import Key, Measured, Profile, Quantity, Values, experiment
from polyrelu.claims.mv25 import sizes
from polyrelu.claims.setups.mixture_nets import untrained
from polyrelu.claims.setups.sizes import MixtureSize
from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.nets import CentreClassifier, PolyReLUNet
from polyrelu.robust import dist
from polyrelu.train import History, Trajectory, Until, descend, flow

P, SCALE, STEP = 3.0, 1e-7, 0.4  # STEP: flow time of one published step
NUDGE, PLOTTED = 0.05, "of a unit weight"
READINGS = ("none", "as printed", PLOTTED)
SUMS = "largest |sum of a cluster's |w|² − 1|"


def start(size: MixtureSize, seed: int, nudge: float = 0.0) -> tuple[OrthonormalMixture, Dataset, PolyReLUNet]:
    """w_j = 1e-7 ((1 - d) g + d mu), g ~ N(0, I), mu a random centre, |v_j| = |w_j|; d = ``nudge``, one g for all d."""
    mixture, data, net = untrained(size, P, seed, scale=SCALE)
    if nudge:
        how: dict[str, Any] = {"init": "nudged", "centres": mixture.centres, "nudge": nudge}
        net = PolyReLUNet(size.dim, size.width, P, scale=SCALE, seed=seed, dtype=net.dtype, **how)
    return mixture, data, net


def first(values: NDArray[np.float64], steps: NDArray[np.float64], level: float) -> float:
    """The step at which rising ``values`` first reach ``level``, straight between two moments; NaN if never."""
    reached = np.flatnonzero(values >= level)
    if not reached.size:
        return math.nan
    k = int(reached[0])
    return float(np.interp(level, values[max(k - 1, 0) : k + 1], steps[max(k - 1, 0) : k + 1]))


def quartiles(history: History) -> NDArray[np.float64]:
    """25 %, 50 %, 75 % over all neurons of max_k cos(mu_k, w_j), (3, T)."""
    return np.quantile(history.cos_centre.astype(np.float64), [0.25, 0.5, 0.75], axis=1)


def curves(out: Trajectory) -> tuple[dict[str, float], dict[str, Any]]:
    """When neurons had aligned and the loss had fallen, in steps, and the lines that show it; loss as share of 1."""
    steps, bands = out.history.time / STEP, quartiles(out.history)
    loss = np.exp(out.history.log_loss - out.history.log_loss[0])
    values = {
        "median cosine at the start": float(bands[1, 0]),
        "step of median cosine .9": first(bands[1], steps, 0.9),
        "step at which the loss has lost 10 %": first(-loss, steps, -0.9),
        "step at which the loss has lost 98 %": first(-loss, steps, -0.02),
    }
    lines = {"step": steps, "cosine quartiles": bands, "loss": loss}
    return values, {name: np.round(line, 5).tolist() for name, line in lines.items()}


def distances(out: Trajectory, mixture: OrthonormalMixture) -> dict[str, list[float]]:
    """sup |f - F^(3)| on the unit sphere (no factor c) at every snapshot."""
    ideal = CentreClassifier(mixture.centres, mixture.labels, P)
    found = sorted(out.snapshots.items())
    assert all(isinstance(net, PolyReLUNet) for _, net in found)
    values = [dist(net, ideal, c=1.0).value for _, net in found if isinstance(net, PolyReLUNet)]
    return {"distance step": [round(time / STEP, 3) for time, _ in found], "distance": values}


def cluster_sums(net: PolyReLUNet, mixture: OrthonormalMixture) -> list[float]:
    """sum_{j in N_k} |v_j| |w_j|, N_k the neurons of sign y_k nearest to mu_k; |v_j| = |w_j| here (Prop. 4)."""
    with torch.no_grad():
        nearest = (net.directions() @ mixture.centres.T).argmax(1)
        own = net.output[0].sign() == mixture.labels[nearest]
        sums = torch.zeros(mixture.clusters, dtype=torch.float64)
        return sums.index_add_(0, nearest[own], net.contributions()[own]).tolist()


@experiment()
def random_start(profile: Profile, seed: int) -> Measured:
    """Fig. 5: alignment, loss and distance from a random start, and long after."""
    mixture, data, net = start(sizes.PHASES[profile], seed)
    times = [look * STEP for look in sizes.LOOKS[profile]]
    out = flow(net, data, loss="squared", until=Until(time=times[-1]), record=times)
    values, lines = curves(out)
    found = distances(out, mixture)
    far = dict(zip(found["distance step"], found["distance"], strict=True))
    best = min(far, key=lambda step: far[step])
    nets = {round(time / STEP, 3): net for time, net in out.snapshots.items()}
    left = {step: np.interp(step, lines["step"], lines["loss"]) for step in far}
    early, sums = (
        cluster_sums(nets[next((step for step in far if left[step] < share), max(far))], mixture)  # type: ignore[arg-type]
        for share in (0.02, 0.002)
    )
    values |= {
        "steps from alignment to the fall of the loss": values["step at which the loss has lost 10 %"]
        - values["step of median cosine .9"],
        "distance at the first look": found["distance"][0],
        "smallest distance": far[best],
        "step of the smallest distance": best,
        "distance at the last look": found["distance"][-1],
        "distance at the last look / smallest": found["distance"][-1] / far[best],
        SUMS: max(abs(one - 1) for one in sums),
        f"{SUMS}, when the loss has lost 98 %": max(abs(one - 1) for one in early),
    }
    if profile == "paper":
        values["distance at step 490"] = float(np.interp(490, found["distance step"], found["distance"]))
    return Measured(values, {"profile": profile, **lines, **found, "cluster sums": sums})


@experiment()
def losses(profile: Profile, seed: int) -> Measured:
    """Median alignment over time under three losses; logistic runs at half speed, because l'(0) = -1/2."""
    _, data, net = start(sizes.PHASES[profile], seed)
    runs = {}
    for loss, speed, initial in (("squared", 1.0, 0.5), ("exp", 1.0, 1.0), ("logistic", 0.5, math.log(2))):
        history = flow(net, data, loss=loss, until=0.9 * initial).history
        runs[loss] = history.time * speed, quartiles(history)[1], np.exp(history.log_loss - history.log_loss[0])
    end = min(first(-loss, time, -0.99) for time, _, loss in runs.values())  # norms grow from here on
    grid = np.linspace(0, end, 200)
    medians = {loss: np.interp(grid, time, median) for loss, (time, median, _) in runs.items()}
    values: dict[Key, float] = {
        Quantity("largest gap of the median cosine to that of the squared loss", loss=loss): float(
            np.abs(medians[loss] - medians["squared"]).max()
        )
        for loss in ("exp", "logistic")
    }
    values["median cosine when the first loss has lost 1 %"] = float(medians["squared"][-1])
    return Measured(values, {"time": grid.tolist(), **{loss: line.tolist() for loss, line in medians.items()}})


def _order(values: Values) -> dict[str, float]:
    """4 for a first-order change, 16 for a second-order one."""
    change = values.along("finer", "largest change of |v|² − |w|²")
    return {"change, coarse / 4 times finer": change[1] / change[4]}


@experiment(over={"finer": (1, 4)}, combine=_order)
def balance(profile: Profile, seed: int, finer: int) -> Measured:
    """Plain gradient descent: what a flow conserves may change only as much as the steps are long.

    ``finer``: how many times shorter the steps are than at rate 1.6.
    """
    _, data, net = start(sizes.PHASES[profile], seed)
    rate = 4 * STEP / finer
    moved, flips = _conserved(net, data, rate)
    values = {"largest change of |v|² − |w|²": moved, "sign flips of v": flips}
    if finer == 1:
        loose = PolyReLUNet(net.dim, net.width, P, scale=SCALE, seed=seed, dtype=net.dtype)
        values["sign flips of v from N(0, 1) entries, |v| < |w|"] = _conserved(loose, data, rate)[1]
    return Measured(values)


def _conserved(net: PolyReLUNet, data: Dataset, rate: float) -> tuple[float, float]:
    """Largest change of |v_j|^2 - |w_j|^2 and number of sign flips on the way to a loss of .01."""
    end = descend(net, data, rate=rate, loss="squared", until=0.01, steps=int(400 / rate), every=20).net
    assert isinstance(end, PolyReLUNet)
    with torch.no_grad():
        before, after = (one.output[0].square() - one.weight.square().sum(1) for one in (net, end))
        return float((after - before).abs().max()), float((net.output.sign() != end.output.sign()).sum())


def unit_nudge(dim: int) -> float:
    """The d that turns w as NUDGE turns a w of length 1: d/(1-d) = sqrt(D) NUDGE/(1-NUDGE), |g| being sqrt(D)."""
    reach = math.sqrt(dim) * NUDGE / (1 - NUDGE)
    return reach / (1 + reach)


def _sooner(values: Values) -> dict[Quantity, float]:
    """How long the nudged starts take, as a share of the random one with the same weights."""
    steps = values.along("reading", "step of median cosine .9")
    return {
        Quantity("share of the random start's time", reading=one): steps[one] / steps["none"] for one in READINGS[1:]
    }


@experiment(over={"reading": READINGS}, combine=_sooner)
def nudged_start(profile: Profile, seed: int, reading: str) -> Measured:
    """Fig. 6: every weight moved by 5 % towards a random centre; of what length 5 % are taken is the ``reading``."""
    nudge = {"none": 0.0, "as printed": NUDGE, PLOTTED: unit_nudge(sizes.NUDGED.dim)}[reading]
    mixture, data, net = start(sizes.NUDGED, seed, nudge)
    looks = (*range(260, 380, 40), *range(380, 520, 20), 560, 600) if reading == PLOTTED else (320,)
    times = [look * STEP for look in looks]
    out = flow(net, data, loss="squared", until=Until(time=times[-1]), record=times if reading == PLOTTED else ())
    values, lines = curves(out)
    found: dict[str, Any] = {"nudge": nudge, **lines, **distances(out, mixture)}
    step = "step of median cosine .9"
    return Measured({step: values[step]}, found)
