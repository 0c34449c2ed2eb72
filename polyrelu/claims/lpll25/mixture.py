r"""Class labels teach averages, cluster labels single clusters; where both nets break (Li et al., ICLR 2025).

both        w = w(0) + sum_j lambda_j mu_j + sum_i sigma_i xi_i                                  (Section 4)
averaged    cos(w, mu_j) = 1/sqrt(|J_own|) for every own centre, 0 for the others                (Fig. 2a)
            breaks at sqrt(d/k)                                                                  (Fig. 3 left)
decoupled   cos(w_i, mu_j) = 1 for i = j, else 0                                                 (Fig. 2b)
            read out as a sum it is F^(1): sqrt(d/(1 + |J_opp|)) at a centre, of order sqrt(d/k)
            read out as a maximum: sqrt(d/2), half-way to the nearest opposite centre
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from polyrelu.bias import decompose
from polyrelu.claims import Key, Measured, Profile, Quantity, experiment
from polyrelu.claims.lpll25 import sizes
from polyrelu.claims.lpll25.nets import Pair, TwoSidedNet, radii, right, trained_pair
from polyrelu.claims.lpll25.pgd import pgd
from polyrelu.claims.lpll25.sizes import AVERAGED, DECOUPLED, LARGEST, OWN_LOSS_PGD, READ_OUT_PGD, SUMMED
from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.nets import AverageClassifier, CentreClassifier


@experiment(repeats={"quick": 1, "paper": 5})
def learned(profile: Profile, seed: int) -> Measured:
    """Cosines, accuracies, slopes, and what of the weights lies outside the samples."""
    pair = trained_pair(profile, seed)
    mixture, test, nets = pair.mixture, pair.test(sizes.POINTS[profile]), pair.nets()
    averaged = normalize(pair.averaged.weight.detach()) @ mixture.directions.T
    decoupled = normalize(pair.decoupled.weight.detach()[:, 0]) @ mixture.directions.T
    own, same = pair.averaged.signs[:, None] == mixture.labels, torch.eye(mixture.clusters, dtype=torch.bool)
    values: dict[Key, Any] = {
        "mean cosine to own centres": averaged[own].mean(),
        "smallest cosine to own centres": averaged[own].amin(),
        "largest cosine to own centres": averaged[own].amax(),
        "smallest cosine to other centres": averaged[~own].amin(),
        "largest cosine to other centres": averaged[~own].amax(),
        Quantity("smallest cosine to the own centre", net=DECOUPLED): decoupled[same].amin(),
        Quantity("largest cosine to another centre", net=DECOUPLED): decoupled[~same].abs().amax(),
    }
    X, y = test.rows(), test.y
    values |= {Quantity("test accuracy", net=name): right(net(X), y) for name, net in nets.items()}
    hit = pair.decoupled(X).argmax(dim=1) == test.cluster
    values[Quantity("test accuracy", net="cluster of the largest logit")] = hit.double().mean()
    for where, Z in (("at the centres", mixture.centres), ("at fresh points", X)):
        ratio = steepness(nets[AVERAGED], Z) / steepness(nets[SUMMED], Z)
        values[Quantity("slope over margin, averaged over decoupled", at=where)] = ratio.median()
    for labels, net, start in zip(("class", "cluster"), (pair.averaged, pair.decoupled), pair.starts, strict=True):
        outside = decompose(net, mixture.centres, mixture.labels, start, pair.train).outside
        assert outside is not None
        values[Quantity("weights outside the span of the samples", labels=f"{labels} labels")] = outside.amax()
    drawn = {AVERAGED: averaged, DECOUPLED: decoupled}
    return Measured(
        {key: float(value) for key, value in values.items()} | ideal_ratios(),
        {name: [[round(cosine, 4) for cosine in row] for row in found.tolist()] for name, found in drawn.items()},
    )


def steepness(net: torch.nn.Module, X: Tensor) -> Tensor:
    """|grad f|/|f| at every row, (n,)."""
    X = X.clone().requires_grad_()
    f = net(X)
    (slope,) = torch.autograd.grad(f.sum(), X)
    steep: Tensor = slope.norm(dim=1) / f.detach().abs()
    return steep


def ideal_ratios() -> dict[Key, float]:
    """(|grad F|/F) / (|grad F^(1)|/F^(1)) at a positive centre: sqrt(K1)."""
    found: dict[Key, float] = {}
    for K1, K2 in sizes.SPLITS:
        mixture = OrthonormalMixture(16, K1, K2, 0.0, dtype=torch.float64)
        mu, labels = mixture.centres, mixture.labels
        ratio = steepness(AverageClassifier(mu, labels), mu[:1]) / steepness(CentreClassifier(mu, labels, 1), mu[:1])
        found[Quantity("slope over margin at a centre, F over F^(1)", clusters=f"{K1}+{K2}")] = float(ratio)
    return found


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
            "proven": {r: _holding(lower, r / math.sqrt(sizes.PUBLISHED_DIM) * root) for r in sizes.READ_AT[name]},
            "attacked": {r: _holding(upper, r / math.sqrt(sizes.PUBLISHED_DIM) * root) for r in sizes.READ_AT[name]},
            **left_by_pgd(net, name, test),
        }
        for way, line in lines.items():
            for r, share in line.items():
                values[Quantity("accuracy", net=name, radius=sizes.multiple(r), way=way)] = share
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
    losses: dict[str, Callable[[Tensor], Tensor]] = {READ_OUT_PGD: lambda Z: -y * small(Z)}
    if name != AVERAGED:
        losses[OWN_LOSS_PGD] = lambda Z: cross_entropy(small.hidden(Z), cluster, reduction="none")
    found: dict[str, Mapping[int, float]] = {}
    for how, loss in losses.items():
        ends = {
            r: pgd(loss, X, r / math.sqrt(sizes.PUBLISHED_DIM) * scale, smallest=1e-30) for r in sizes.READ_AT[name]
        }
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
