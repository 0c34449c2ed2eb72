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
from polyrelu.claims import Key, Measured, Profile, Quantity, experiment
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import PolyReLUNet, unit_rows
from polyrelu.train import Until, descend, flow

POWERS = (1, 3)
ALIGNED, GROWN = 0.99, 0.01  # exponential losses at the end of the two phases; it starts at 1


@experiment(over={"p": POWERS})
def picture(profile: Profile, seed: int, p: int) -> Measured:
    """Fig. 1: two positive sub-classes and a negative one in space, at the start, after alignment and after growth."""
    mixture = OrthonormalMixture(3, 2, 1, 0.05, dtype=torch.float64)
    data = mixture.sample(150, seed=seed)
    start = PolyReLUNet(3, 60, p, scale=1e-6, seed=seed, dtype=torch.float64)
    every: dict[str, Any] = {"merge": False, "drop": False}  # every neuron is integrated, whatever it sees
    first = flow(start, data, until=Until(loss=ALIGNED), **every)
    last = flow(first.net, data, until=Until(loss=GROWN), after=first, **every)
    aligned, grown = first.net, last.net
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
        "smallest cosine of a large neuron to its goal": float(target.amax(1)[found.dominant].min()),
        "goals without a large neuron": float((target[found.dominant] < 0.99).all(0).sum()),
        "large neurons": float(len(found.dominant)),
        "neurons no point activates after alignment": float(dead.sum()),
        "growth of their norms afterwards": _largest(growth),
        "largest of them / largest of all": _largest(share),
    }
    stages = [
        {
            "directions": net.directions().tolist(),
            "log contributions": net.log_contributions().tolist(),
            "signs": net.output[0].sign().tolist(),
        }
        for net in (start, aligned, grown)
    ]
    points: dict[str, Any] = {"points": data.rows().tolist(), "labels": data.y.tolist()}
    goals = {"centres": mixture.centres.tolist(), "averages": mixture.class_averages.tolist()}
    return Measured(values, {"p": p, "stages": stages, **points, **goals})


def _largest(values: Tensor) -> float:
    """NaN for none: a picture without such neurons shows nothing about them."""
    return float(values.max()) if len(values) else math.nan


@experiment()
def formula(profile: Profile, seed: int) -> Measured:
    """One tiny step of descent from a start of 1e-8: which way the directions turned, against the printed field."""
    values: dict[Key, float] = {}
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
            Quantity("smallest cosine to the field with sign(v)", p=p): float(with_sign.min()),
            Quantity("median cosine to the field with sign(v)", p=p): float(with_sign.median()),
            Quantity("largest cosine without the sign where v < 0", p=p): float(without[sign < 0].max()),
        }
    return Measured(values)


def _cosines(a: Tensor, b: Tensor) -> Tensor:
    return (unit_rows(a.detach())[0] * unit_rows(b.detach())[0]).sum(1)


@experiment(over={"p": POWERS})
def attractors(profile: Profile, seed: int, p: int) -> Measured:
    """Where the field takes 500 random directions of neurons with v > 0."""
    mixture = OrthonormalMixture(20, 6, 4, 0.1, dtype=torch.float64)
    found = stationary_directions(mixture.sample(1000, seed=seed), p, 500, seed)
    ends, counts = found.directions, found.counts.double()
    goals = mixture.class_averages[:1] if p == 1 else mixture.centres[:6]
    near_goal = ends @ goals.T
    best = near_goal.amax(1)
    values = {
        "share of the ends at a goal": float(counts[best > 0.99].sum() / counts.sum()),
        "smallest cosine of a stable end to its goal": float(best[found.stable].min()),
        "goals reached": float((near_goal > 0.99).any(0).sum()),
        "starts that no point activates": float(found.dead),
    }
    return Measured(values, {"cosines": near_goal.tolist(), "counts": found.counts.tolist()})
