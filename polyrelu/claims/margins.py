r"""The margin of a homogeneous net grows for ever (Lyu & Li, ICLR 2020, Thms 4.1, 4.3, 4.4; E1-E4 and E21).

    q_n = y_n f(x_n),  rho = |theta|,  degree 2,  L = sum_n e^(-q_n),  N points
    normalised  q_min / rho^2          smoothed  log(1/L) / rho^2          0 <= q_min - log(1/L) <= log N
    flow:  L t log t -> 1 / (4 margin),   rho / sqrt(log t) -> margin^(-1/2)

The limits follow from |grad L| = 2 sqrt(margin log(1/L)) L, which holds at a KKT point; the paper says Theta(.).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from polyrelu.bias import kkt, margin_history, monotone
from polyrelu.claims.claim import Claim, Standing, at_least, at_most, near
from polyrelu.claims.experiment import Experiment, Measured
from polyrelu.claims.profile import Profile
from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.nets import PolyReLUNet
from polyrelu.train import Trajectory, Until, flow

POINTS, SMALL = 20, 1e-4
BELOW_ONE = -1.31  # log10 of a mean loss of 20 points whose sum is just below 1
LEVELS = (BELOW_ONE, -2, -3, -5, -10, -20, -50, -100, -200, -500, -1000, -2000)
FAR: dict[Profile, float] = {"quick": -1000, "paper": -5000}  # log10 losses
RATE: dict[Profile, float] = {"quick": 1e-3, "paper": 1e-4}
STARTS = (1e-4, 1e-2, 1.0)
CLOSE = 0.1  # KKT residual of E21


def trained(seed: int, std: float, log10_loss: float) -> tuple[Dataset, Trajectory]:
    """Twenty ReLU neurons on twenty points of 3+2 clusters in five dimensions, by gradient flow."""
    data = OrthonormalMixture(5, 3, 2, alpha=0.1, dtype=torch.float64).sample(POINTS, seed)
    net = PolyReLUNet(5, 20, 1, scale=std, seed=seed, dtype=torch.float64)
    levels = [level for level in LEVELS if level > log10_loss]
    run = flow(net, data, until=Until(log10_loss=log10_loss), checkpoints=levels)
    run.checkpoints[log10_loss] = run.net
    return data, run


def residual(net: torch.nn.Module, data: Dataset) -> float:
    """The larger of stationarity and slackness, for the multipliers (of three choices) that make it smallest."""
    found = kkt(net, data)
    choices = [one for one in (found.least_squares, found.loss, found.free) if one is not None]
    return min(max(one.stationarity, one.slackness) for one in choices)


def descended(net: PolyReLUNet, data: Dataset, rate: float, log10_loss: float) -> list[float]:
    """Smoothed margins along theta <- theta - (rate / L) grad L until the mean loss is reached."""
    X, y, W, v = data.rows(), data.y, net.weight.detach().clone(), net.output.detach()[0].clone()
    found: list[float] = []
    log_loss, last = 0.0, log10_loss * math.log(10) + math.log(len(y))
    while log_loss > last:
        hidden = (X @ W.T).relu()
        q = y * (hidden @ v)
        log_loss = float((-q).logsumexp(0))
        found.append(-log_loss / float(W.square().sum() + v.square().sum()))
        pull = y * (-q).softmax(0)
        W += rate * (pull[:, None] * v * (hidden > 0)).T @ X
        v += rate * hidden.T @ pull
    return found


def growth(profile: Profile, seed: int) -> Measured:
    """E1-E4: margins, norm and loss along the flow and along descent, and how near a KKT point the flow comes."""
    data, run = trained(seed, SMALL, FAR[profile])
    net = run.checkpoints[BELOW_ONE]
    assert isinstance(net, PolyReLUNet)
    steps, far_steps = descended(net, data, RATE[profile], -10), descended(net, data, 0.01, -100)
    history, along = run.history, margin_history(run)
    known = np.isfinite(along.log_smoothed)
    log_loss, log_rho = history.log_loss[known] + math.log(POINTS), history.log_rho[known]
    log_t = history.log_time[known] - math.log(POINTS)  # of the flow of the sum; the mean's is slower
    smoothed, normalised = np.exp(along.log_smoothed[known]), along.normalised[known]
    gap = history.min_margin[known] + log_loss
    late = log_loss <= -30 * math.log(10)
    constant = 4 * normalised[late] * np.exp(log_loss[late] + log_t[late]) * log_t[late]
    length = np.sqrt(normalised[late] / log_t[late]) * np.exp(log_rho[late])
    far = {level: residual(one, data) for level, one in run.checkpoints.items()}
    first, last = far[-2], far[FAR[profile]]
    values = {
        "largest fall of the smoothed margin, gradient descent": monotone(steps).largest_fall,
        "largest fall of the smoothed margin, gradient flow": monotone(smoothed).largest_fall,
        "smallest q_min - log(1/L)": float(gap.min()),
        "largest q_min - log(1/L)": float(gap.max()),
        "L t log t, largest over smallest": _spread(constant / normalised[late]),
        "norm / sqrt(log t), largest over smallest": _spread(length / np.sqrt(normalised[late])),
        "4 margin L t log t at the end": float(constant[-1]),
        "norm sqrt(margin / log t) at the end": float(length[-1]),
        "KKT residual at the end": last,
        "KKT residual at loss 1e-2": first,
        "KKT residual, end over loss 1e-2": last / first,
        "smoothed margin, end over begin": float(smoothed[-1] / smoothed[0]),
        "largest fall of the smoothed margin, descent of rate .01/L to 1e-100": monotone(far_steps).largest_fall,
    }
    drawn: dict[str, Any] = {
        "decades": -(log_loss - math.log(POINTS)) / math.log(10),
        "smoothed": smoothed,
        "normalised": normalised,
        "lower": normalised - math.log(POINTS) * np.exp(-2 * log_rho),
        "late decades": -(log_loss[late] - math.log(POINTS)) / math.log(10),
        "loss constant": constant,
        "norm constant": length,
        "levels": [-level for level in far],
        "residuals": list(far.values()),
    }
    return Measured(values, {name: np.asarray(line).tolist() for name, line in drawn.items()})


def from_starts(profile: Profile, seed: int, std: float) -> Measured:
    """E21: flow time (of the mean loss) from which on the KKT residual is below .1; that of the run if it never is."""
    data, run = trained(seed, std, -100 if profile == "quick" else -1000)
    history = run.history
    far = {level: residual(net, data) for level, net in run.checkpoints.items()}
    late = list(far)[1 + max((i for i, value in enumerate(far.values()) if value > CLOSE), default=-1) :]
    moment = late[0] if late else list(far)[-1]
    log_time = float(np.interp(-moment * math.log(10), -history.log_loss, history.log_time))
    values = {
        f"decades of flow time to residual .1, start {std:g}": log_time / math.log(10),
        f"decades of loss to residual .1, start {std:g}": -moment,
        f"KKT residual at the end, start {std:g}": list(far.values())[-1],
    }
    drawn = {"std": std, "levels": [-level for level in far], "residuals": list(far.values())}
    note = "" if late else f"From start {std:g} the residual is still above .1 at the end."
    return Measured(values, drawn, note)


def _spread(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    return float(values.max() / values.min())


def _slowest(values: Any) -> dict[str, float]:
    times = [values[f"decades of flow time to residual .1, start {std:g}"] for std in STARTS]
    return {"decades of flow time between the slowest and the fastest start": max(times) - min(times)}


FIVE: dict[Profile, int] = {"quick": 1, "paper": 5}
GROWTH = Experiment(growth, repeats=FIVE)
FROM_STARTS = Experiment(
    from_starts, parts=lambda profile: [{"std": std} for std in STARTS], repeats=FIVE, combine=_slowest
)
TOY = "20 ReLU neurons, 20 points of 3+2 clusters in 5 dimensions (α = .1), start 1e-4, exponential loss"
SETTINGS: dict[Profile, str] = {
    "quick": f"{TOY}; gradient flow to loss 1e-1000; gradient descent of rate 1e-3/L from L = 1 to loss 1e-10",
    "paper": f"{TOY}; five seeds; gradient flow to loss 1e-5000; gradient descent of rate 1e-4/L to 1e-10",
}

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="E1",
        sentence="Once the summed loss L is below 1, the smoothed margin log(1/L)/|θ|² of a two-layer net never falls.",
        paper="LL20",
        where="Theorem 4.1",
        standing=Standing.PRINTED,
        published="never falls",
        settings=SETTINGS,
        experiment=GROWTH,
        checks=(
            at_most("largest fall of the smoothed margin, gradient descent", 1e-8, published=0.0),
            at_most("largest fall of the smoothed margin, gradient flow", 1e-8, published=0.0),
            at_least("smoothed margin, end over begin", 1.0),
        ),
        reason="Late steps of our gradient flow are shortened when they would lower the smoothed margin; plain "
        "gradient descent, which knows nothing of margins, is the independent witness. Steps of finite length cross "
        "kinks: of rate .01/L they can lower it by 1e-5 on the way to loss 1e-100, shorter ones by less.",
    ),
    Claim(
        id="E2",
        sentence="The smoothed margin is at most the normalised margin q_min/|θ|² and at least (q_min − log N)/|θ|².",
        paper="LL20",
        where="Section 4.1",
        standing=Standing.PRINTED,
        published="0 ≤ q_min − log(1/L) ≤ log N",
        settings=SETTINGS,
        experiment=GROWTH,
        checks=(
            at_least("smallest q_min - log(1/L)", -1e-9, published=0.0),
            at_most("largest q_min - log(1/L)", math.log(POINTS) + 1e-9, published=math.log(POINTS)),
        ),
    ),
    Claim(
        id="E3",
        sentence="For a net of degree 2 the loss falls as 1/(t log t) and the norm grows as the square root of log t.",
        paper="LL20",
        where="Theorem 4.3",
        standing=Standing.PRINTED,
        published="L = Θ(1/(t (log t)^(2−2/degree))), |θ| = Θ((log t)^(1/degree)); the constants are ours",
        settings=SETTINGS,
        experiment=GROWTH,
        checks=(
            at_most("L t log t, largest over smallest", 2.0),
            at_most("norm / sqrt(log t), largest over smallest", 1.5),
            near("4 margin L t log t at the end", 1.0, 0.1),
            near("norm sqrt(margin / log t) at the end", 1.0, 0.02),
        ),
        reason="At a KKT point the constants are 1/(4 margin) and margin^(-1/2); both are met. Steps are many decades "
        "long at the end, and flow time is known to some percent.",
    ),
    Claim(
        id="E4",
        sentence="The direction of the weights converges to a KKT point of margin maximisation: θ/q_min^(1/2) comes "
        "ever nearer to stationarity and complementary slackness.",
        paper="LL20",
        where="Theorem 4.4",
        standing=Standing.PRINTED,
        published="residual → 0",
        settings=SETTINGS,
        experiment=GROWTH,
        checks=(
            at_most("KKT residual at the end", 0.05, published=0.0),
            at_most("KKT residual, end over loss 1e-2", 0.5),
        ),
        reason="Gates within .01 rad of a training point count as free, as at the kink itself, where ReLU has many "
        "gradients.",
    ),
    Claim(
        id="E21",
        sentence="From some starts it takes very long to come near a KKT point.",
        paper="LL20",
        where="slides of a talk by Jian Li (2024)",
        standing=Standing.PRINTED,
        published="“very long”, no number",
        settings={
            "quick": "E4's toy from starts 1e-4, 1e-2 and 1; flow time to KKT residual .1, or to loss 1e-100",
            "paper": "the same with five seeds, to loss 1e-1000",
        },
        experiment=FROM_STARTS,
        checks=(
            at_least("decades of flow time between the slowest and the fastest start", math.log10(3)),
            at_most("decades of loss to residual .1, start 0.0001", 50.0),
        ),
        reason="Neurons that a large start leaves unused keep their norm, and weigh less only as the others grow, "
        "like 1/sqrt(log t): from start 1 the residual is above .1 when the loss is 1e-100.",
    ),
)
