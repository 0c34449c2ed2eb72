"""How far any classifier can hold, and that the best one does: sqrt(2)/2, half the distance between two centres.

    f*(x) = sum_{y_k=+1} exp(D <x,mu_k>/alpha^2) - sum_{y_k=-1} exp(D <x,mu_k>/alpha^2)     (Min & Vidal 2025, Prop. 2)

A proof for f*: where <x, mu_k - mu_l> > (alpha^2/D) log K_opp for one own k and all opposite l, f* is right.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from polyrelu.claims import Key, Measured, Profile, Quantity, experiment
from polyrelu.claims.mv24 import sizes
from polyrelu.claims.mv24.ideal import mixture_of
from polyrelu.claims.setups.mixture_nets import ideal, proven_for_bayes, trained
from polyrelu.claims.setups.sizes import SIX_FOUR
from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.nets import BayesClassifier, CentreClassifier, NearestCentre
from polyrelu.robust import Score, bracket, curve
from polyrelu.robust.attacks import CentreToCentre
from polyrelu.robust.theory import HALF_GAP, bayes_robust_bound


@experiment()
def impossibility(profile: Profile, seed: int) -> Measured:
    """P(f breaks within sqrt(2)/2) >= min(K1, K2)/K for every f (Min & Vidal 2025, Prop. 1), as shares of points."""
    relu, poly = (trained(SIX_FOUR[profile], p, seed) for p in (1, 3))
    mixture, test = poly.mixture, poly.test(300)
    nets = (relu.net, poly.net, ideal(mixture, 1), ideal(mixture, 3))
    scores: tuple[Score, ...] = (
        BayesClassifier(mixture.centres, mixture.labels, mixture.alpha),
        NearestCentre(mixture.centres, mixture.labels),
        nearest_neighbour(poly.data),
        lambda X: torch.ones_like(X[:, 0]),
    )
    attacked = [1 - float(curve(bracket(net, test.rows(), test.y)).attacked(HALF_GAP)) for net in nets]
    shares = [*attacked, *(broken_midway(score, test, mixture) for score in scores)]
    named = zip(sizes.CLASSIFIERS, shares, strict=True)
    return Measured({Quantity("share broken within √2/2", of=name): share for name, share in named})


def nearest_neighbour(data: Dataset) -> Score:
    """d_- - d_+, the distances to the nearest row of each class."""
    plus, minus = (data.rows()[data.y == label] for label in (1, -1))
    return lambda X: torch.cdist(X, minus).amin(dim=1) - torch.cdist(X, plus).amin(dim=1)


@torch.no_grad()
def broken_midway(score: Score, data: Dataset, mixture: OrthonormalMixture) -> float:
    """Share of points that are wrong at x or at x + (mu_l - mu_k)/2, k the own cluster, l any of the other class.

    The proof of the impossibility: x of cluster k and x + mu_l - mu_k meet half-way, where f can suit only one of them.
    """
    assert data.cluster is not None
    X, y = data.rows(), data.y
    wrong = y * score(X) <= 0
    for centre, label in zip(mixture.directions, mixture.labels, strict=True):
        half_way = X + (centre - mixture.directions[data.cluster]) / 2
        wrong |= (label != y) & (y * score(half_way) <= 0)
    return float(wrong.double().mean())


@experiment()
def bayes(profile: Profile, seed: int) -> Measured:
    """How far f* and F^(3) hold, proven and attacked, beside 1 - 2K exp(-D nu^2/(64 alpha^2)) at (sqrt(2) - nu)/2."""
    size = sizes.BAYES[profile]
    dim, clusters = size.dim, size.positive + size.negative
    values: dict[Key, float] = {}
    for alpha, widths in sizes.NU.items():
        mixture = mixture_of(dim, clusters, alpha)
        data = mixture.sample(size.points, seed=seed)
        lower = proven_for_bayes(data.rows(), data.y, mixture)
        held = [float((lower > (math.sqrt(2) - nu) / 2).double().mean()) for nu in widths]
        spare = [share - bayes_robust_bound(nu, dim, clusters, alpha) for share, nu in zip(held, widths, strict=True)]
        values[Quantity("least proven accuracy above the bound", alpha=alpha)] = min(spare)
        if alpha == 0.1:
            net = BayesClassifier(mixture.centres, mixture.labels, alpha)
            upper = CentreToCentre()(net, data.rows(), data.y, pool=data).radius
            found = curve(bracket(CentreClassifier(mixture.centres, mixture.labels, 3), data.rows(), data.y))
            values |= {
                Quantity("clean accuracy", of="f*"): float((upper > 0).double().mean()),
                Quantity("clean accuracy", of="F^(3)"): found.clean,
                Quantity("r50", of="f*", side="proven"): float(lower.median()),
                Quantity("r50", of="f*", side="attacked"): float(upper.median()),
                Quantity("r50", of="F^(3)", side="proven"): found.median_radius.lower,
                Quantity("r50", of="F^(3)", side="attacked"): found.median_radius.upper,
            }
    return Measured(values)


@experiment()
def towards_bayes(profile: Profile, seed: int) -> Measured:
    """Share of points where F^(p) and f* agree in sign; points moved by .6 at random in the span of the centres."""
    n, alpha = sizes.AGREEMENT_POINTS[profile], 2.0
    mixture = mixture_of(100, 10, alpha)
    data, generator = mixture.sample(n, seed=seed), torch.Generator().manual_seed(seed)
    way = torch.randn(n, 10, generator=generator, dtype=torch.float64)
    X = data.rows() + 0.6 * (way / torch.linalg.vector_norm(way, dim=1, keepdim=True)) @ mixture.directions
    best = BayesClassifier(mixture.centres, mixture.labels, alpha)(X) > 0

    def agreement(net: CentreClassifier | NearestCentre) -> float:
        return float(((net(X) > 0) == best).double().mean())

    shares = {p: agreement(CentreClassifier(mixture.centres, mixture.labels, p)) for p in (1, 2, 3, 4, 8, 16)}
    values: dict[Key, float] = {Quantity("agreement of F^(p) with f*", p=p): share for p, share in shares.items()}
    values["agreement of the nearest centre with f*"] = agreement(NearestCentre(mixture.centres, mixture.labels))
    values["smallest rise of the agreement to p = 8"] = float(np.diff([shares[p] for p in (1, 2, 3, 4, 8)]).min())
    return Measured(values)
