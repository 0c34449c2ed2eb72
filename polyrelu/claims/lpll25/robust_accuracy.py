r"""Where the two nets of the feature-averaging paper break (Li et al., ICLR 2025, Fig. 3 left).

averaged    at sqrt(d/k)
decoupled   read out as a sum it is F^(1): sqrt(d/(1 + |J_opp|)) at a centre, of order sqrt(d/k)
            read out as a maximum: sqrt(d/2), half-way to the nearest opposite centre
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from polyrelu.claims.experiment import Measured, experiment
from polyrelu.claims.lpll25 import sizes
from polyrelu.claims.lpll25.nets import Pair, TwoSidedNet, radii, right, trained_pair
from polyrelu.claims.lpll25.pgd import pgd
from polyrelu.claims.lpll25.published import DIM, FIG3, multiple
from polyrelu.claims.lpll25.sizes import AVERAGED, LARGEST, OWN, READ_OUT, SUMMED
from polyrelu.claims.profile import Profile
from polyrelu.claims.quantity import Key, Quantity
from polyrelu.data import Dataset


@experiment(repeats={"quick": 1, "paper": 5})
def curves(profile: Profile, seed: int) -> Measured:
    """Where both nets break: proven, under the strongest attack, and under PGD on the own loss or on the read-out."""
    pair = trained_pair(profile, seed)
    test, k, root = pair.test(sizes.POINTS[profile]), pair.mixture.clusters, math.sqrt(pair.mixture.dim)
    values: dict[Key, float] = {}
    data: dict[str, Any] = {"dim": pair.mixture.dim, "clusters": k, "points": len(test)}
    for name, net in pair.nets().items():
        lower, upper = radii(net, test, pair.train, seed)
        what, unit = ("√(d/k)", root / math.sqrt(k)) if name == AVERAGED else ("√d", root)
        values[Quantity(f"median radius over {what}", net=name, way="proven")] = float(lower.median()) / unit
        values[Quantity(f"median radius over {what}", net=name, way="broken")] = float(upper.median()) / unit
        lines = {
            "proven": {r: _holding(lower, r / math.sqrt(DIM) * root) for r in FIG3[name]},
            "attacked": {r: _holding(upper, r / math.sqrt(DIM) * root) for r in FIG3[name]},
            **left_by_pgd(net, name, test),
        }
        for way, line in lines.items():
            values |= {Quantity("accuracy", net=name, radius=multiple(r), way=way): one for r, one in line.items()}
        left = _holding(upper, root / math.sqrt(k))
        values[Quantity("accuracy", net=name, radius="√(d/k)", way="attacked")] = left
        data[name] = {
            side: [round(r, 4) for r in found[found.isfinite()].sort().values.tolist()]
            for side, found in (("lower", lower), ("upper", upper))
        }
    return Measured(values | along_centres(pair, test), data)


def _holding(radii: Tensor, radius: float) -> float:
    """Share of points that hold at ``radius``."""
    return float((radii > radius).double().mean())


def left_by_pgd(net: TwoSidedNet, name: str, test: Dataset) -> dict[str, Mapping[int, float]]:
    """Accuracy at the published radii under PGD down the binary read-out, and up the cross-entropy of the clusters.

    For the averaged net the first is PGD on its own loss: with normalised steps the logistic loss gives the same ones.
    """
    small, Q = net.inside()
    X, y, cluster, scale = test.rows() @ Q.T, test.y, test.cluster, math.sqrt(test.dim)
    assert cluster is not None
    losses: dict[str, Callable[[Tensor], Tensor]] = {READ_OUT: lambda Z: -y * small(Z)}
    if name != AVERAGED:
        losses[OWN] = lambda Z: cross_entropy(small.hidden(Z), cluster, reduction="none")
    found: dict[str, Mapping[int, float]] = {}
    for how, loss in losses.items():
        ends = {r: pgd(loss, X, r / math.sqrt(DIM) * scale, smallest=1e-30) for r in FIG3[name]}
        found[how] = {r: right(small(Z), y) for r, Z in ends.items()}
    return found


@torch.no_grad()
def along_centres(pair: Pair, test: Dataset) -> dict[Key, float]:
    """Accuracy at x + .5 sqrt(d) (sum_opp mu - mu_own)/|.| (sum), and at x + .7 sqrt(d) (mu_opp - mu_own)/|.| (max)."""
    assert test.cluster is not None
    X, y, mu, scale, nets = test.rows(), test.y, pair.mixture.directions, math.sqrt(pair.mixture.dim), pair.nets()
    opposite = y[:, None] != pair.mixture.labels
    every = normalize(opposite.to(mu) @ mu - mu[test.cluster])
    one = normalize(mu[opposite.double().argmax(dim=1)] - mu[test.cluster])
    towards_all = right(nets[SUMMED](X + 0.5 * scale * every), y)
    towards_one = right(nets[LARGEST](X + 0.7 * scale * one), y)
    return {
        Quantity("accuracy", net=SUMMED, radius=".5√d", way="towards all opposite centres"): towards_all,
        Quantity("accuracy", net=LARGEST, radius=".7√d", way="towards one opposite centre"): towards_one,
    }
