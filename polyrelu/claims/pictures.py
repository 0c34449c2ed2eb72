"""Where small neurons turn: the pictures of Fig. 1, the field behind them, and where it ends (Min & Vidal 2024).

    d/dt w_j/|w_j| = sign(v_j) P_{w_j} x^(p)(w_j),   x^(p)(w) = sum_{i: <x_i, w> > 0} y_i p cos^(p-1)(x_i, w) x_i

Min & Vidal, ICML 2024. All of it is as small as the published pictures, so both profiles are the same.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from polyrelu.bias import alignment, alignment_field, stationary_directions, tangent_part
from polyrelu.claims.claim import Check, Claim, Standing, at_least, at_most
from polyrelu.claims.experiment import Experiment, Measured
from polyrelu.claims.profile import Profile
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import PolyReLUNet, unit_rows
from polyrelu.train import Until, descend, flow

POWERS = (1, 3)
ALIGNED, GROWN = 0.99, 0.01  # exponential losses at the end of the two phases; it starts at 1


def picture(profile: Profile, seed: int, p: int) -> Measured:
    """Fig. 1: two positive sub-classes and a negative one in space, at the start, after alignment and after growth."""
    mixture = OrthonormalMixture(3, 2, 1, 0.05, dtype=torch.float64)
    data = mixture.sample(150, seed=seed)
    start = PolyReLUNet(3, 60, p, scale=1e-6, seed=seed, dtype=torch.float64)
    every: dict[str, Any] = {"merge": False, "drop": False}  # every neuron is integrated, whatever it sees
    first = flow(start, data, until=Until(loss=ALIGNED), **every)
    last = flow(first.net, data, until=Until(loss=GROWN), after=first, **every)
    nets = (start, first.net, last.net)
    aligned, grown = nets[1:]
    assert isinstance(aligned, PolyReLUNet) and isinstance(grown, PolyReLUNet)
    found = alignment(grown, data)
    averages = grown.directions() @ mixture.class_averages.T  # of the centres, not of the sample
    assert found.centres is not None
    dead = ~(data.rows() @ aligned.directions().T > 0).any(0)
    before, after = aligned.log_contributions(), grown.log_contributions()
    growth = ((after - before)[dead].abs() / 2).exp()  # of |w|, the contribution being |v| |w|
    share = (after[dead] - after.max()).exp()
    target = averages if p == 1 else found.centres
    values = {
        f"smallest cosine of a large neuron to its goal, p={p}": float(target.amax(1)[found.dominant].min()),
        f"goals without a large neuron, p={p}": float((target[found.dominant] < 0.99).all(0).sum()),
        f"large neurons, p={p}": float(len(found.dominant)),
        f"neurons no point activates after alignment, p={p}": float(dead.sum()),
        f"growth of their norms afterwards, p={p}": _largest(growth),
        f"largest of them / largest of all, p={p}": _largest(share),
    }
    stages = [
        {
            "directions": net.directions().tolist(),
            "log contributions": net.log_contributions().tolist(),
            "signs": net.output[0].sign().tolist(),
        }
        for net in nets
        if isinstance(net, PolyReLUNet)
    ]
    points: dict[str, Any] = {"points": data.rows().tolist(), "labels": data.y.tolist()}
    goals = {"centres": mixture.centres.tolist(), "averages": mixture.class_averages.tolist()}
    return Measured(values, {"p": p, "stages": stages, **points, **goals})


def _largest(values: Tensor) -> float:
    """NaN for none: a picture without such neurons shows nothing about them."""
    return float(values.max()) if len(values) else math.nan


def formula(profile: Profile, seed: int) -> Measured:
    """One tiny step of descent from a start of 1e-8: which way the directions turned, against the printed field."""
    values: dict[str, float] = {}
    for p in POWERS:
        data = OrthonormalMixture(20, 6, 4, 0.1, dtype=torch.float64).sample(1000, seed=seed)
        net = PolyReLUNet(20, 200, p, init="balanced", scale=1e-8, seed=seed, dtype=torch.float64)
        after = descend(net, data, rate=1e-4, steps=1).net
        assert isinstance(after, PolyReLUNet)
        u = net.directions()
        turned = after.directions() - u
        field = tangent_part(alignment_field(data, u, p), u)
        sign = net.output[0].detach().sign()
        with_sign, without = _cosines(turned, sign[:, None] * field), _cosines(turned, field)
        values |= {
            f"smallest cosine to the field with sign(v), p={p}": float(with_sign.min()),
            f"median cosine to the field with sign(v), p={p}": float(with_sign.median()),
            f"largest cosine without the sign where v < 0, p={p}": float(without[sign < 0].max()),
        }
    return Measured(values)


def _cosines(a: Tensor, b: Tensor) -> Tensor:
    return (unit_rows(a.detach())[0] * unit_rows(b.detach())[0]).sum(1)


def attractors(profile: Profile, seed: int, p: int) -> Measured:
    """Where the field takes 500 random directions of neurons with v > 0."""
    mixture = OrthonormalMixture(20, 6, 4, 0.1, dtype=torch.float64)
    found = stationary_directions(mixture.sample(1000, seed=seed), p, 500, seed)
    ends, counts = found.directions, found.counts.double()
    goals = mixture.class_averages[:1] if p == 1 else mixture.centres[:6]
    near_goal = ends @ goals.T
    best = near_goal.amax(1)
    values = {
        f"share of the ends at a goal, p={p}": float(counts[best > 0.99].sum() / counts.sum()),
        f"smallest cosine of a stable end to its goal, p={p}": float(best[found.stable].min()),
        f"goals reached, p={p}": float((near_goal > 0.99).any(0).sum()),
        f"starts that no point activates, p={p}": float(found.dead),
    }
    return Measured(values, {"cosines": near_goal.tolist(), "counts": found.counts.tolist()})


def _powers(profile: Profile) -> list[dict[str, int]]:
    return [{"p": p} for p in POWERS]


PICTURE = Experiment(picture, parts=_powers)
FORMULA = Experiment(formula)
ATTRACTORS = Experiment(attractors, parts=_powers)
TOY = (
    "D=3, 2+1 clusters, α=.05, n=150, h=60, start N(0, 1e-12), exponential loss, by gradient flow to loss .99 "
    "(aligned) and .01 (grown); sizes are ours, the published ones are not known"
)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="B22",
        sentence="In a picture with two positive sub-classes and a negative class, neurons turn first and grow then: "
        "for p = 1 the large ones end at the class averages, for p = 3 at the sub-class centres.",
        paper="MV24",
        where="Fig. 1",
        standing=Standing.PRINTED,
        published="drawn on the averages (p=1) and on the centres (p=3): cosine ≈ 1",
        settings=TOY,
        experiment=PICTURE,
        checks=(
            at_least("smallest cosine of a large neuron to its goal, p=1", 0.99, 1.0),
            at_least("smallest cosine of a large neuron to its goal, p=3", 0.99, 1.0),
            at_most("goals without a large neuron, p=1", 0, 0.0),
            at_most("goals without a large neuron, p=3", 0, 0.0),
        ),
    ),
    Claim(
        id="B23",
        sentence="Neurons that point elsewhere are activated by no data point and stay small: after the alignment "
        "phase their norms do not change at all.",
        paper="MV24",
        where="Fig. 1",
        standing=Standing.PRINTED,
        published="unchanged norms",
        settings=TOY,
        experiment=PICTURE,
        checks=tuple(
            check
            for p in POWERS
            for check in (
                Check(f"growth of their norms afterwards, p={p}", 1 - 1e-9, 1 + 1e-9, 1.0),
                at_most(f"largest of them / largest of all, p={p}", 1e-6, 0.0),
                at_least(f"neurons no point activates after alignment, p={p}", 1),
            )
        ),
    ),
    Claim(
        id="B27",
        sentence="Directions of small neurons move along sign(v_j) P x^(p)(w_j), x^(p)(w) = Σ y_i p cos^(p−1)(x_i, w) "
        "x_i over the points that activate w; without the sign the formula is wrong for v_j < 0.",
        paper="MV24",
        where="alignment phase; the poster of MV25 leaves the sign out",
        standing=Standing.PRINTED,
        published="d/dt w/|w| ≈ sign(v) P x^(p)(w)",
        settings="D=20, 6+4 clusters, α=.1, n=1000, h=200, balanced start 1e-8, one step of descent at rate 1e-4",
        experiment=FORMULA,
        checks=tuple(
            check
            for p in POWERS
            for check in (
                at_least(f"smallest cosine to the field with sign(v), p={p}", 0.999, 1.0),
                at_most(f"largest cosine without the sign where v < 0, p={p}", -0.999, -1.0),
            )
        ),
    ),
    Claim(
        id="B28",
        sentence="The alignment field takes neurons with v > 0 to the positive class average for p = 1 and to single "
        "positive centres for p = 3.",
        paper="MV24",
        where="alignment phase, Theorem 2",
        standing=Standing.PRINTED,
        published="class average (p=1), centres (p>2)",
        settings="D=20, 6+4 clusters, α=.1, n=1000, 500 random directions, by the flow of x^(p) on the sphere",
        experiment=ATTRACTORS,
        checks=(
            at_least("share of the ends at a goal, p=1", 0.99, 1.0),
            at_least("share of the ends at a goal, p=3", 0.99, 1.0),
            at_least("smallest cosine of a stable end to its goal, p=1", 0.99, 1.0),
            at_least("smallest cosine of a stable end to its goal, p=3", 0.99, 1.0),
            at_least("goals reached, p=3", 6, 6.0),
        ),
    ),
)
