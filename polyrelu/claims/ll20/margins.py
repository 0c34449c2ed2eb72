r"""The margin of a homogeneous net grows for ever (Lyu & Li, ICLR 2020, Thms 4.1, 4.3, 4.4; E1-E4, E10, E21, E26).

    q_n = y_n f(x_n),  rho = |theta|,  degree 2,  L = sum_n e^(-q_n),  N points
    normalised  q_min / rho^2          smoothed  log(1/L) / rho^2          0 <= q_min - log(1/L) <= log N
    flow:  L t log t -> 1 / (4 margin),   rho / sqrt(log t) -> margin^(-1/2)

The limits follow from |grad L| = 2 sqrt(margin log(1/L)) L, which holds at a KKT point; the paper says Theta(.).
A margin proves a radius: R(x) >= q(x)/beta, beta the Lipschitz constant of q.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from polyrelu.bias import kkt, lipschitz_radius, margin_history, monotone
from polyrelu.claims import Measured, Profile, Values, experiment
from polyrelu.claims.ll20 import sizes
from polyrelu.claims.setups import mixture_nets
from polyrelu.claims.setups.sizes import SIX_FOUR
from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.nets import PolyReLUNet
from polyrelu.robust import bracket
from polyrelu.train import Trajectory, Until, flow

BELOW_ONE = -1.31  # log10 of a mean loss of 20 points whose sum is just below 1
LEVELS = (BELOW_ONE, -2, -3, -5, -10, -20, -50, -100, -200, -500, -1000, -2000)
CLOSE = 0.1  # KKT residual of E21


def trained(seed: int, std: float, log10_loss: float) -> tuple[Dataset, Trajectory]:
    """Twenty ReLU neurons on twenty points of 3+2 clusters in five dimensions, by gradient flow."""
    data = OrthonormalMixture(5, 3, 2, alpha=0.1, dtype=torch.float64).sample(sizes.POINTS, seed)
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


def along_the_flow(run: Trajectory) -> tuple[dict[str, float], dict[str, Any]]:
    """Bounds of the margins, and loss and norm over their predicted rates, of the summed loss L."""
    history, along = run.history, margin_history(run)
    known = np.isfinite(along.log_smoothed)
    log_loss, log_rho = history.log_loss[known] + math.log(sizes.POINTS), history.log_rho[known]
    log_t = history.log_time[known] - math.log(sizes.POINTS)  # of the flow of the sum; the mean's is slower
    smoothed, normalised = np.exp(along.log_smoothed[known]), along.normalised[known]
    gap = history.min_margin[known] + log_loss
    late = log_loss <= -30 * math.log(10)
    constant = 4 * normalised[late] * np.exp(log_loss[late] + log_t[late]) * log_t[late]
    length = np.sqrt(normalised[late] / log_t[late]) * np.exp(log_rho[late])
    values = {
        "largest fall of the smoothed margin, gradient flow": monotone(smoothed).largest_fall,
        "smoothed margin, end over begin": float(smoothed[-1] / smoothed[0]),
        "smallest q_min - log(1/L)": float(gap.min()),
        "largest q_min - log(1/L)": float(gap.max()),
        "L t log t, largest over smallest": _spread(constant / normalised[late]),
        "norm / sqrt(log t), largest over smallest": _spread(length / np.sqrt(normalised[late])),
        "4 margin L t log t at the end": float(constant[-1]),
        "norm sqrt(margin / log t) at the end": float(length[-1]),
    }
    lines = {
        "decades": -(log_loss - math.log(sizes.POINTS)) / math.log(10),
        "smoothed": smoothed,
        "normalised": normalised,
        "lower": normalised - math.log(sizes.POINTS) * np.exp(-2 * log_rho),
        "late decades": -(log_loss[late] - math.log(sizes.POINTS)) / math.log(10),
        "loss constant": constant,
        "norm constant": length,
    }
    return values, {name: line.tolist() for name, line in lines.items()}


def _spread(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    return float(values.max() / values.min())


@experiment(repeats=sizes.SEEDS)
def growth(profile: Profile, seed: int) -> Measured:
    """E1-E4: margins, norm and loss along the flow and along descent, and how near a KKT point the flow comes."""
    data, run = trained(seed, sizes.STARTS[0], sizes.FINAL_LOG10_LOSS[profile])
    net = run.checkpoints[BELOW_ONE]
    assert isinstance(net, PolyReLUNet)
    steps, far_steps = descended(net, data, sizes.DESCENT_RATE[profile], -10), descended(net, data, 0.01, -100)
    values, lines = along_the_flow(run)
    far = {level: residual(one, data) for level, one in run.checkpoints.items()}
    first, last = far[-2], far[sizes.FINAL_LOG10_LOSS[profile]]
    values |= {
        "largest fall of the smoothed margin, gradient descent": monotone(steps).largest_fall,
        "largest fall of the smoothed margin, descent of rate .01/L to 1e-100": monotone(far_steps).largest_fall,
        "KKT residual at the end": last,
        "KKT residual at loss 1e-2": first,
        "KKT residual, end over loss 1e-2": last / first,
    }
    return Measured(values, {**lines, "levels": [-level for level in far], "residuals": list(far.values())})


def _slowest(values: Values) -> dict[str, float]:
    times = values.along("start", "decades of flow time to residual .1").values()
    return {"decades of flow time between the slowest and the fastest start": max(times) - min(times)}


@experiment(over={"start": sizes.STARTS}, repeats=sizes.SEEDS, combine=_slowest)
def from_starts(profile: Profile, seed: int, start: float) -> Measured:
    """E21: flow time (of the mean loss) from which on the KKT residual is below .1; that of the run if it never is."""
    data, run = trained(seed, start, sizes.FINAL_LOG10_LOSS_FROM_STARTS[profile])
    history = run.history
    far = {level: residual(net, data) for level, net in run.checkpoints.items()}
    late = list(far)[1 + max((i for i, value in enumerate(far.values()) if value > CLOSE), default=-1) :]
    moment = late[0] if late else list(far)[-1]
    log_time = float(np.interp(-moment * math.log(10), -history.log_loss, history.log_time))
    values = {
        "decades of flow time to residual .1": log_time / math.log(10),
        "decades of loss to residual .1": -moment,
        "KKT residual at the end": list(far.values())[-1],
    }
    drawn = {"start": start, "levels": [-level for level in far], "residuals": list(far.values())}
    note = "" if late else f"From start {start:g} the residual is still above .1 at the end."
    return Measured(values, drawn, note)


@experiment(over={"p": (1.0, 3.0)})
def sample_radii(profile: Profile, seed: int, p: float) -> Measured:
    """How far fresh points are from the boundary (bracket), and how far the slope proves them to be."""
    found = mixture_nets.trained(SIX_FOUR[profile], p, seed)
    test = found.test(sizes.FRESH_POINTS[profile])
    both = bracket(found.net, test.rows(), test.y, tol=1e-3)
    share = lipschitz_radius(found.net, test) / both.upper
    share = torch.where(both.upper > 0, share, 0.0)
    relative = torch.stack([both.lower, both.upper]) / test.rows().double().norm(dim=1)
    values = {
        "largest certificate over attack": float(share.max()),
        "median certificate over attack": float(share.median()),
        "median radius over |x|": float(relative.mean(dim=0).median()),
        "gap of the median radius": float(relative[1].median() - relative[0].median()),
    }
    return Measured(values)
