"""What the neurons of trained nets point at and which of them carry the net (Min & Vidal 2024, Fig. 2b-d and 5).

p = 1: w_j along a class average, so cos(w_j, own centre) = 1/sqrt(K_own)
p > 2: w_j along one centre, so cos(w_j, own class average) = 1/sqrt(K_own)
"""

from __future__ import annotations

from itertools import pairwise

import torch

from polyrelu.bias import alignment
from polyrelu.claims import Measured, Profile, Values, experiment
from polyrelu.claims.mv24 import sizes
from polyrelu.claims.setups.mixture_nets import Trained, ideal, sorted_radii, trained, untrained
from polyrelu.claims.setups.sizes import SIX_FOUR
from polyrelu.robust import Budget, bracket, curve, dist
from polyrelu.train import Until, flow

STEEP = (3.0, 4.0, 8.0, 16.0)  # p
SHOWN = {1.0: 300, 3.0: 40}  # rows of the colormaps; published: 300 and 20


def look(run: Trained, p: float) -> Measured:
    """Cosines and contributions of the neurons that carry 99 % of sum_j |v_j| |w_j|."""
    seen = alignment(run.net, run.data)
    assert seen.centres is not None and seen.covered is not None
    mixture = run.mixture
    averages = run.net.directions().double() @ mixture.class_averages.double().T
    everyone, carriers = torch.cat([averages, seen.centres], dim=1), seen.dominant
    table = everyone[carriers]
    to_average, to_centre = table[:, :2].amax(dim=1), table[:, 2:].amax(dim=1)
    values = {
        "neurons with 99 %": float(len(carriers)),
        "largest contribution": float(seen.contributions.max()),
        "median cosine to a class average": float(to_average.median()),
        "median cosine to a centre": float(to_centre.median()),
        "centres covered": float(seen.covered.sum()),
        "median error of the colormap": float((table - _pure(table, mixture.positive)).abs().amax(dim=1).median()),
    }
    for side, name in ((0, "positive"), (1, "negative")):
        mine = table[:, side] > table[:, 1 - side]
        own = table[:, 2 : 2 + mixture.positive] if side == 0 else table[:, 2 + mixture.positive :]
        values[f"cosine of {name} neurons to the centres of their class"] = float(own[mine].mean(dim=1).median())
        values[f"cosine of {name} neurons to their class average"] = float(table[mine, side].median())
    largest, order = seen.contributions.sort(descending=True)
    data = {
        "p": p,
        "clusters": [mixture.positive, mixture.negative],
        "contributions": _rounded(largest[:300]),
        "cosines": [_rounded(row) for row in everyone[order[: SHOWN[p]]]],
        "carriers": len(carriers),
    }
    return Measured(values, data)


def _pure(table: torch.Tensor, positive: int) -> torch.Tensor:
    """The colormap if every neuron pointed exactly at the column it is nearest to: 1, 1/sqrt(K_own) or 0."""
    K = table.shape[1] - 2
    side = torch.cat([torch.tensor([0, 1]), torch.tensor([0] * positive + [1] * (K - positive))])
    size = torch.tensor([positive, K - positive]).double()
    kind = torch.cat([torch.zeros(2), torch.ones(K)])  # averages, centres
    across = torch.where(kind[:, None] == kind, 0.0, 1 / size[side].sqrt()) * (side[:, None] == side)
    return (across + torch.eye(K + 2))[table.argmax(dim=1)]


def _rounded(row: torch.Tensor) -> list[float]:
    return [round(float(value), 4) for value in row]


@experiment(over={"p": (1.0, 3.0)})
def learned(profile: Profile, seed: int, p: float) -> Measured:
    """The published picture of the neurons, one p."""
    return look(trained(SIX_FOUR[profile], p, seed), p)


@experiment(over={"p": sizes.POWERS})
def powers(profile: Profile, seed: int, p: float) -> Measured:
    """Averages or centres, and the median radius."""
    run = trained(SIX_FOUR[profile], p, seed)
    seen = alignment(run.net, run.data)
    test = run.test(40)
    median = curve(bracket(run.net, test.rows(), test.y, budget=Budget(nodes=60))).median_radius
    values = {
        "cosine to class averages": seen.best_average or 0.0,
        "cosine to centres": seen.best_centre or 0.0,
        "median radius, certified": median.lower,
        "median radius, attacked": median.upper,
    }
    return Measured(values, {"p": p, "lower": median.lower, "upper": median.upper})


@experiment(over={"p": (1.0, 3.0)})
def twenty(profile: Profile, seed: int, p: float) -> Measured:
    """Fig. 5: everything for 8 + 12 clusters, one p."""
    run = trained(sizes.EIGHT_TWELVE[profile], p, seed)
    seen = look(run, p)
    test = run.test(sizes.EIGHT_TWELVE[profile].points)
    radii = bracket(run.net, test.rows(), test.y, tol=1e-3)
    median = curve(radii).median_radius
    values = {
        "distance": dist(run.net, ideal(run.mixture, p), seed=seed).value,
        "median radius, certified": median.lower,
        "median radius, attacked": median.upper,
    }
    return Measured({**seen.values, **values}, {**seen.data, "distance": values["distance"], **sorted_radii(radii)})


def _least_rise(values: Values) -> dict[str, float]:
    losses = values.along("p", "log10 loss")
    return {"least rise from one p to the next, to p = 8": min(losses[q] - losses[p] for p, q in pairwise(STEEP[:-1]))}


@experiment(over={"p": STEEP}, combine=_least_rise)
def steep(profile: Profile, seed: int, p: float) -> Measured:
    """log10 of the loss after the same flow time for every p: 400 (2000 steps of .2), 1000 at paper scale."""
    size = SIX_FOUR[profile]  # in float64: where nothing has been learned yet, log10 of the loss is -1e-8
    _, data, net = untrained(size, p, seed, init="gaussian", balanced=False)
    loss = flow(net, data, loss="exp", until=Until(time=sizes.STEEP_TIME[profile])).log10_loss
    return Measured({"log10 loss": loss}, {"p": p, "log10_loss": loss})
