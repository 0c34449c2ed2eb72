r"""Class labels teach averages, cluster labels teach single clusters (Li et al., ICLR 2025, Fig. 2a,b and Section 4).

averaged    cos(w, mu_j) = 1/sqrt(|J_own|) for every own centre, 0 for the others
decoupled   cos(w_i, mu_j) = 1 for i = j, else 0
both        w = w(0) + sum_j lambda_j mu_j + sum_i sigma_i xi_i
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from polyrelu.bias import decompose
from polyrelu.claims.experiment import Measured, experiment
from polyrelu.claims.lpll25 import sizes
from polyrelu.claims.lpll25.nets import right, trained_pair
from polyrelu.claims.lpll25.sizes import AVERAGED, DECOUPLED, SUMMED
from polyrelu.claims.profile import Profile
from polyrelu.claims.quantity import Key, Quantity
from polyrelu.data import OrthonormalMixture
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
