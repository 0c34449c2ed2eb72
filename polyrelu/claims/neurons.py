"""What the neurons of trained nets point at and which of them carry the net (Min & Vidal 2024, Fig. 2b-d and 5).

p = 1: w_j along a class average, so cos(w_j, own centre) = 1/sqrt(K_own)
p > 2: w_j along one centre, so cos(w_j, own class average) = 1/sqrt(K_own)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise

import torch

from polyrelu.bias import alignment
from polyrelu.claims.claim import Check, Claim, Standing, at_least, at_most, near
from polyrelu.claims.experiment import Experiment, Measured
from polyrelu.claims.profile import Profile
from polyrelu.claims.setups.mixture_nets import Trained, ideal, sorted_radii, trained
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import PolyReLUNet
from polyrelu.robust import Budget, bracket, curve, dist
from polyrelu.train import Until, flow

SHOWN = {1.0: 300, 3.0: 40}  # rows of the colormaps; published: 300 and 20
POWERS: Mapping[Profile, tuple[float, ...]] = {"quick": (1.0, 1.5, 2.0, 2.5, 3.0, 4.0), "paper": (1.0, 2.0, 3.0, 4.0)}
STEEP = (3.0, 4.0, 8.0, 16.0)


def look(run: Trained, p: float) -> Measured:
    """Cosines and contributions of the neurons that carry 99 % of sum_j |v_j| |w_j|; names begin with "p = ..."."""
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
    return Measured({f"p = {p:g}: {name}": value for name, value in values.items()}, data)


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


def learned(profile: Profile, seed: int, p: float) -> Measured:
    """The published picture of the neurons, one p."""
    return look(trained(profile, p, seed), p)


def powers(profile: Profile, seed: int, p: float) -> Measured:
    """Averages or centres, and the median radius."""
    run = trained(profile, p, seed)
    seen = alignment(run.net, run.data)
    test = run.test(40)
    median = curve(bracket(run.net, test.rows(), test.y, budget=Budget(nodes=60))).median_radius
    values = {
        f"p = {p:g}: cosine to class averages": seen.best_average or 0.0,
        f"p = {p:g}: cosine to centres": seen.best_centre or 0.0,
        f"p = {p:g}: median radius, certified": median.lower,
        f"p = {p:g}: median radius, attacked": median.upper,
    }
    return Measured(values, {"p": p, "lower": median.lower, "upper": median.upper})


def twenty(profile: Profile, seed: int, p: float) -> Measured:
    """Fig. 5: everything for 8 + 12 clusters, one p."""
    run = trained(profile, p, seed, clusters="8+12")
    seen = look(run, p)
    test = run.test(60 if profile == "quick" else 400)
    radii = bracket(run.net, test.rows(), test.y, tol=1e-3)
    median = curve(radii).median_radius
    values = {
        f"p = {p:g}: distance": dist(run.net, ideal(run.mixture, p), seed=seed).value,
        f"p = {p:g}: median radius, certified": median.lower,
        f"p = {p:g}: median radius, attacked": median.upper,
    }
    return Measured(
        {**seen.values, **values}, {**seen.data, "distance": values[f"p = {p:g}: distance"], **sorted_radii(radii)}
    )


def steep(profile: Profile, seed: int, p: float) -> Measured:
    """log10 of the loss after the same flow time for every p: 400 (2000 steps of .2), 1000 at paper scale."""
    dim, samples, width, time = (1000, 20_000, 2000, 1000.0) if profile == "paper" else (100, 1000, 100, 400.0)
    dtype = torch.float64  # where nothing has been learned yet, log10 of the loss is -1e-8
    data = OrthonormalMixture(dim, 6, 4, 0.1, dtype=dtype).sample(samples, seed=seed, balanced=False)
    net = PolyReLUNet(dim, width, p, init="gaussian", scale=1e-7, seed=seed, dtype=data.dtype)
    loss = flow(net, data, loss="exp", until=Until(time=time)).log10_loss
    return Measured({f"p = {p:g}: log10 loss": loss}, {"p": p, "log10_loss": loss})


def _least_rise(values: Mapping[str, float]) -> dict[str, float]:
    losses = [values[f"p = {p:g}: log10 loss"] for p in STEEP[:-1]]
    return {"least rise from one p to the next, to p = 8": min(b - a for a, b in pairwise(losses))}


def _each_p(*chosen: float) -> Callable[[Profile], list[dict[str, float]]]:
    return lambda profile: [{"p": p} for p in chosen]


LEARNED = Experiment(learned, _each_p(1.0, 3.0))
POWERS_SWEPT = Experiment(powers, lambda profile: [{"p": p} for p in POWERS[profile]])
TWENTY = Experiment(twenty, _each_p(1.0, 3.0))
STEEP_ONES = Experiment(steep, _each_p(*STEEP), combine=_least_rise)
AS_PUBLISHED: Mapping[Profile, str] = {
    "quick": "D=100, 6+4 clusters, α = .1, n=1000, h=100, gradient flow to time 16 040.",
    "paper": "D=1000, 6+4 clusters, α = .1, n=20 000, h=2000, gradient flow to time 16 040.",
}
TWENTY_SETTINGS: Mapping[Profile, str] = {
    "quick": "D=200, 8+12 clusters, α = .1, n=1000, h=200, gradient flow to time 16 040; 60 points bracketed to 1e-3.",
    "paper": "D=1000, 8+12 clusters, α = .1, n=20 000, h=2000, gradient flow to time 16 040; 400 points bracketed.",
}
SQRT6, SQRT4, SQRT8, SQRT12 = (1 / math.sqrt(k) for k in (6, 4, 8, 12))
POSITIVE, NEGATIVE = ("cosine of positive neurons to", "cosine of negative neurons to")


def _centres(*chosen: float) -> tuple[Check, ...]:
    """Neurons at centres, and a radius near √2/2."""
    aligned = [at_least(f"p = {p:g}: cosine to centres", 0.99) for p in chosen]
    return (*aligned, *(Check(f"p = {p:g}: median radius, certified", 0.67, 0.7172) for p in chosen))


def _ends() -> tuple[Check, ...]:
    """p = 1 at averages and 1/√10, p = 3 and 4 at centres and √2/2."""
    first = at_least("p = 1: cosine to class averages", 0.99), near("p = 1: median radius, attacked", 10**-0.5, 0.01)
    return (*first, *_centres(3, 4))


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="B4",
        sentence="For p = 1 every neuron that matters points at the average of a class, so its cosine to each centre "
        "of that class is 1/√6 = .41 or 1/√4 = .5.",
        paper="MV24",
        where="Fig. 2c",
        standing=Standing.READ_OFF,
        published="cosine ≈ 1 to a class average; .41 and .5 to own centres (±.02)",
        settings=AS_PUBLISHED,
        experiment=LEARNED,
        checks=(
            at_least("p = 1: median cosine to a class average", 0.99, 1.0),
            near(f"p = 1: {POSITIVE} the centres of their class", SQRT6, 0.02),
            near(f"p = 1: {NEGATIVE} the centres of their class", SQRT4, 0.02),
        ),
    ),
    Claim(
        id="B5",
        sentence="For p = 3 every neuron that matters points at one centre, all K = 10 centres are covered, and about "
        "13 neurons carry 99 % of the net.",
        paper="MV24",
        where="Fig. 2d",
        standing=Standing.READ_OFF,
        published="cosine ≈ 1 to a centre; all 10 covered; about 13 neurons",
        settings=AS_PUBLISHED,
        experiment=LEARNED,
        checks=(
            at_least("p = 3: median cosine to a centre", 0.99, 1.0),
            near("p = 3: centres covered", 10, 0),
            Check("p = 3: neurons with 99 %", 10, 25, published=13),
        ),
        reason="How many neurons share a centre depends on the random start.",
    ),
    Claim(
        id="B18",
        sentence="As p grows, what neurons learn changes from class averages (p = 1) to single centres (p > 2), and "
        "the radius at which half of the points break rises from 1/√10 = .316 to about √2/2 = .707.",
        paper="MV24",
        where="Section 3, Fig. 2",
        standing=Standing.PRINTED,
        published="averages at p = 1, centres for p > 2",
        settings={
            "quick": f"{AS_PUBLISHED['quick']} p = 1, 1.5, 2, 2.5, 3, 4; 40 points bracketed.",
            "paper": f"{AS_PUBLISHED['paper']} p = 1, 2, 3, 4; 40 points bracketed.",
        },
        experiment=POWERS_SWEPT,
        checks={"quick": (*_ends(), *_centres(2.5)), "paper": _ends()},
        reason="At p = 2 neurons stay between: neither averages nor centres. p = 1.5 still learns averages.",
        shown="p = 3: median radius, certified",
    ),
    Claim(
        id="B24",
        sentence="With p = 1 hundreds of neurons (of h = 2000) share the net, the largest contribution |v||w| being "
        "about .7; with p = 3 about 13 carry it, the largest about 9.5.",
        paper="MV24",
        where="Fig. 2b",
        standing=Standing.READ_OFF,
        published="hundreds, largest ≈ .7 (p = 1); about 13, largest ≈ 9.5 (p = 3)",
        settings={
            "quick": f"{AS_PUBLISHED['quick']} With h = 100 fewer can share: more than half of them at p = 1.",
            "paper": AS_PUBLISHED["paper"],
        },
        experiment=LEARNED,
        checks={
            "quick": (
                at_least("p = 1: neurons with 99 %", 40),
                Check("p = 3: neurons with 99 %", 10, 25, published=13),
                Check("p = 3: largest contribution", 7, 12, published=9.5),
            ),
            "paper": (
                Check("p = 1: neurons with 99 %", 200, 2000),
                Check("p = 1: largest contribution", 0.35, 1.4, published=0.7),
                Check("p = 3: neurons with 99 %", 10, 25, published=13),
                Check("p = 3: largest contribution", 7, 12, published=9.5),
            ),
        },
    ),
    Claim(
        id="B25",
        sentence="In the table of cosines of neurons to the two class averages and the K centres, a row for p = 1 has "
        "one average at 1 and its own centres at .41 or .5; a row for p = 3 has one centre at 1 and its class average "
        "at .41 or .5; the rest is 0.",
        paper="MV24",
        where="Fig. 2c, d",
        standing=Standing.READ_OFF,
        published="1, .41 = 1/√6, .5 = 1/√4 and 0 (±.02)",
        settings={
            "quick": f"{AS_PUBLISHED['quick']} Largest error of a row, its median over the neurons with 99 %; with "
            "about 100 points a cluster .04 at p = 1.",
            "paper": f"{AS_PUBLISHED['paper']} Largest error of a row, its median over the neurons with 99 %.",
        },
        experiment=LEARNED,
        checks={
            "quick": (
                at_most("p = 1: median error of the colormap", 0.06),
                at_most("p = 3: median error of the colormap", 0.02),
            ),
            "paper": tuple(at_most(f"p = {p}: median error of the colormap", 0.02) for p in (1, 3)),
        },
    ),
    Claim(
        id="B26",
        sentence="With K = 20 clusters (8 + 12) the same happens: p = 1 learns class averages (cosines 1/√8 = .354 and "
        "1/√12 = .289 to own centres) and breaks at 1/√20 = .224; p = 3 learns all 20 centres and holds to about √2/2.",
        paper="MV24",
        where="Fig. 5",
        standing=Standing.UNKNOWN,
        published="a figure without numbers known to us",
        settings=TWENTY_SETTINGS,
        experiment=TWENTY,
        checks=(
            near("p = 1: median radius, attacked", 20**-0.5, 0.01),
            near(f"p = 1: {POSITIVE} the centres of their class", SQRT8, 0.03),
            near(f"p = 1: {NEGATIVE} the centres of their class", SQRT12, 0.03),
            near("p = 3: median radius, certified", 0.7, 0.02),
            near("p = 3: centres covered", 20, 0),
            at_least("p = 3: median cosine to a centre", 0.99),
        ),
    ),
    Claim(
        id="B32",
        sentence="Very large p stalls training: after the same time the loss is larger, the larger p is, "
        "until from p = 8 on it has not begun to fall.",
        paper="MV24",
        where="Section 5 (second-hand)",
        standing=Standing.SECONDARY,
        published="no number: gradients vanish almost everywhere",
        settings={
            "quick": "D=100, 6+4 clusters, α = .1, n=1000, h=100, flow time 400 (2000 steps of .2), p = 3, 4, 8, 16.",
            "paper": "D=1000, 6+4 clusters, α = .1, n=20 000, h=2000, flow time 1000, p = 3, 4, 8, 16.",
        },
        experiment=STEEP_ONES,
        checks=(
            at_least("least rise from one p to the next, to p = 8", 0.1),
            at_most("p = 3: log10 loss", -1),
            at_least("p = 8: log10 loss", -0.01),
            at_least("p = 16: log10 loss", -0.01),
        ),
    ),
)
