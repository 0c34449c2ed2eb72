"""How far any classifier can hold, and that the best one does: sqrt(2)/2, half the distance between two centres.

    f*(x) = sum_{y_k=+1} exp(D <x,mu_k>/alpha^2) - sum_{y_k=-1} exp(D <x,mu_k>/alpha^2)     (Min & Vidal 2025, Prop. 2)

A proof for f*: where <x, mu_k - mu_l> > (alpha^2/D) log K_opp for one own k and all opposite l, f* is right.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from polyrelu.claims.claim import Check, Claim, Standing, at_least, near
from polyrelu.claims.experiment import Experiment, Measured
from polyrelu.claims.ideal import HALF_GAP, expected, mixture_of
from polyrelu.claims.profile import Profile
from polyrelu.claims.setups.mixture_nets import ideal, proven_for_bayes, trained
from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.nets import BayesClassifier, CentreClassifier, NearestCentre
from polyrelu.robust import Score, bracket, curve
from polyrelu.robust.attacks import CentreToCentre
from polyrelu.robust.theory import bayes_robust_bound, impossibility_bound

BAYES = {1: 0.943, 2: 0.987, 3: 0.995, 4: 0.998}  # agreement of F^(p) with f* on 4000 points, another program
NEARLY = (8, 16)
NU = {0.1: (0.1, 0.15, 0.2, 0.3, 0.5, 1.0), 0.5: (0.5, 0.6, 0.8, 1.0, 1.2)}  # by alpha
CLASSIFIERS = (
    "a trained ReLU net",
    "a trained p = 3 net",
    "F",
    "F^(3)",
    "the Bayes classifier",
    "the nearest centre",
    "the nearest training point",
    "always +1",
)


def impossibility(profile: Profile, seed: int) -> Measured:
    """P(f breaks within sqrt(2)/2) >= min(K1, K2)/K for every f (Min & Vidal 2025, Prop. 1), as shares of points."""
    relu, poly = trained(profile, 1, seed), trained(profile, 3, seed)
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
    return Measured({_broken(name): share for name, share in zip(CLASSIFIERS, shares, strict=True)})


def _broken(name: str) -> str:
    return f"share broken within √2/2: {name}"


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


def bayes(profile: Profile, seed: int) -> Measured:
    """How far f* and F^(3) hold, proven and attacked, beside 1 - 2K exp(-D nu^2/(64 alpha^2)) at (sqrt(2) - nu)/2."""
    (dim, clusters), values = (200, 10) if profile == "quick" else (2000, 20), {}
    for alpha, widths in NU.items():
        mixture = mixture_of(dim, clusters, alpha)
        data = mixture.sample(300, seed=seed)
        lower = proven_for_bayes(data.rows(), data.y, mixture)
        held = [float((lower > (math.sqrt(2) - nu) / 2).double().mean()) for nu in widths]
        spare = [share - bayes_robust_bound(nu, dim, clusters, alpha) for share, nu in zip(held, widths, strict=True)]
        values[f"least proven accuracy above the bound, α = {alpha:g}"] = min(spare)
        if alpha == 0.1:
            net = BayesClassifier(mixture.centres, mixture.labels, alpha)
            upper = CentreToCentre()(net, data.rows(), data.y, pool=data).radius
            found = curve(bracket(CentreClassifier(mixture.centres, mixture.labels, 3), data.rows(), data.y))
            values |= {
                "clean accuracy of f*": float((upper > 0).double().mean()),
                "clean accuracy of F^(3)": found.clean,
                "r50 of f*, proven": float(lower.median()),
                "r50 of f*, attacked": float(upper.median()),
                "r50 of F^(3), proven": found.median_radius.lower,
                "r50 of F^(3), attacked": found.median_radius.upper,
            }
    return Measured(values)


def towards_bayes(profile: Profile, seed: int) -> Measured:
    """Share of points where F^(p) and f* agree in sign; points moved by .6 at random in the span of the centres."""
    n, alpha = 40_000 if profile == "quick" else 400_000, 2.0
    mixture = mixture_of(100, 10, alpha)
    data, generator = mixture.sample(n, seed=seed), torch.Generator().manual_seed(seed)
    way = torch.randn(n, 10, generator=generator, dtype=torch.float64)
    X = data.rows() + 0.6 * (way / torch.linalg.vector_norm(way, dim=1, keepdim=True)) @ mixture.directions
    best = BayesClassifier(mixture.centres, mixture.labels, alpha)(X) > 0

    def agreement(net: CentreClassifier | NearestCentre) -> float:
        return float(((net(X) > 0) == best).double().mean())

    shares = {p: agreement(CentreClassifier(mixture.centres, mixture.labels, p)) for p in (*BAYES, *NEARLY)}
    values = {f"agreement of F^({p}) with f*": share for p, share in shares.items()}
    values["agreement of the nearest centre with f*"] = agreement(NearestCentre(mixture.centres, mixture.labels))
    values["smallest rise of the agreement to p = 8"] = float(np.diff([shares[p] for p in (1, 2, 3, 4, 8)]).min())
    return Measured(values)


IMPOSSIBLE, BEST, TOWARDS = Experiment(impossibility), Experiment(bayes), Experiment(towards_bayes)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="A7",
        sentence="No classifier survives √2/2: whatever it is, at least min(K1, K2)/K of all points can be broken "
        "within that radius.",
        paper="MV25",
        where="Prop. 1",
        standing=Standing.PRINTED,
        published="≥ min(K1, K2)/K = .4",
        settings={
            "quick": "D = 100, 6+4 clusters, α = .1, 300 points; trained and ideal nets (by brackets), f*, nearest "
            "centre, nearest of 1000 training points, a constant (moved half-way to every opposite centre)",
            "paper": "D = 1000, 6+4 clusters, α = .1, 300 points; nets of width 2000 trained on 20 000 points and "
            "ideal ones (by brackets), f*, nearest centre, nearest training point, a constant (moved half-way)",
        },
        experiment=IMPOSSIBLE,
        checks=tuple(  # 300 points of equal clusters: a constant +1 is broken on exactly .4
            at_least(_broken(name), impossibility_bound(6, 4) - 0.03, published=impossibility_bound(6, 4))
            for name in CLASSIFIERS
        ),
    ),
    Claim(
        id="A8",
        sentence="The Bayes classifier f* resists every perturbation of radius (√2−ν)/2 with probability at least "
        "1 − 2K exp(−Dν²/(64α²)).",
        paper="MV25",
        where="Prop. 2",
        standing=Standing.PRINTED,
        published="≥ 1 − 2K exp(−Dν²/(64α²))",
        settings={
            "quick": "D = 200, 6+4 clusters, 300 points, ν = .1 to 1 at α = .1, .5 to 1.2 at α = .5; proven radii",
            "paper": "D = 2000, 12+8 clusters, 300 points, ν = .1 to 1 at α = .1, .5 to 1.2 at α = .5; proven radii",
        },
        experiment=BEST,
        checks=(
            *(at_least(f"least proven accuracy above the bound, α = {alpha:g}", 0.0) for alpha in NU),
            Check("r50 of f*, proven", HALF_GAP - 0.02, HALF_GAP),
            Check("r50 of f*, attacked", HALF_GAP - 0.02, HALF_GAP),
        ),
    ),
    Claim(
        id="A9",
        sentence="F^(p) tends to the Bayes-optimal classifier f* as p grows, and f* is nearly the nearest-centre rule.",
        paper="MV25",
        where="Prop. 2, poster",
        standing=Standing.PRINTED,
        published="F^(p) approximates f* for large p; no number is printed",
        settings={
            "quick": "D = 100, 6+4 clusters, α = 2, 40 000 points moved by .6 in the span",
            "paper": "D = 100, 6+4 clusters, α = 2, 400 000 points moved by .6 in the span",
        },
        experiment=TOWARDS,
        checks=(
            *(expected(f"agreement of F^({p}) with f*", share, 0.005) for p, share in BAYES.items()),
            *(at_least(f"agreement of F^({p}) with f*", 0.999) for p in NEARLY),
            at_least("smallest rise of the agreement to p = 8", 0.0),
            at_least("agreement of the nearest centre with f*", 0.999),
        ),
    ),
    Claim(
        id="A14",
        sentence="Robustness to √2/2 costs no clean accuracy: F^(3) and f* classify all clean points rightly and hold "
        "to about √2/2.",
        paper="MV25",
        where="poster",
        standing=Standing.PRINTED,
        published="clean accuracy 1, radius √2/2",
        settings={
            "quick": "D = 200, 6+4 clusters, α = .1, 300 points, proven and attacked",
            "paper": "D = 2000, 12+8 clusters, α = .1, 300 points, proven and attacked",
        },
        experiment=BEST,
        checks=(
            *(at_least(f"clean accuracy of {name}", 1.0, published=1.0) for name in ("F^(3)", "f*")),
            *(
                near(f"r50 of {name}, {side}", 0.70, 0.01, published=HALF_GAP)
                for name in ("F^(3)", "f*")
                for side in ("proven", "attacked")
            ),
        ),
    ),
)
