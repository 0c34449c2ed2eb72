r"""Class labels teach averages, cluster labels teach single clusters (C1-C3, C14, C15).

    averaged    cos(w, mu_j) = 1/sqrt(|J_own|) for every own centre, 0 for the others
    decoupled   cos(w_i, mu_j) = 1 for i = j, else 0
    both        w = w(0) + sum_j lambda_j mu_j + sum_i sigma_i xi_i

(Li et al., ICLR 2025, Fig. 2a,b and Section 4.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from polyrelu.bias import decompose
from polyrelu.claims.claim import Claim, Standing, at_least, at_most, near
from polyrelu.claims.experiment import Experiment, Measured
from polyrelu.claims.profile import Profile
from polyrelu.claims.setups.averaging_nets import Pair, TwoSided, trained_pair
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import AverageClassifier, CentreClassifier

AVERAGED = "averaged"
RULES = {"sum": "summed read-out", "max": "largest-logit read-out"}
NETS = (AVERAGED, *RULES.values())
SIZES = ((5, 5), (6, 4), (9, 1))  # K1 + K2 clusters
POINTS: Mapping[Profile, int] = {"quick": 200, "paper": 400}


def learned(profile: Profile, seed: int) -> Measured:
    """Cosines, accuracies, slopes, and what of the weights lies outside the samples."""
    pair = trained_pair(profile, seed)
    mixture, test = pair.mixture, pair.test(POINTS[profile])
    averaged = normalize(pair.averaged.weight.detach()) @ mixture.directions.T
    decoupled = normalize(pair.decoupled.weight.detach()[:, 0]) @ mixture.directions.T
    own, same = pair.averaged.signs[:, None] == mixture.labels, torch.eye(mixture.clusters, dtype=torch.bool)
    values: dict[str, Any] = {
        "mean cosine to own centres": averaged[own].mean(),
        "smallest cosine to own centres": averaged[own].amin(),
        "largest cosine to own centres": averaged[own].amax(),
        "smallest cosine to other centres": averaged[~own].amin(),
        "largest cosine to other centres": averaged[~own].amax(),
        "decoupled: smallest cosine to the own centre": decoupled[same].amin(),
        "decoupled: largest cosine to another centre": decoupled[~same].abs().amax(),
    }
    X, y = test.rows(), test.y
    values |= {f"test accuracy, {name}": right(net(X), y) for name, net in nets(pair).items()}
    hit = pair.decoupled(X).argmax(dim=1) == test.cluster
    values["test accuracy, cluster of the largest logit"] = hit.double().mean()
    for name, Z in (("at the centres", mixture.centres), ("at fresh points", X)):
        ratio = steepness(pair.average(), Z) / steepness(pair.readout("sum"), Z)
        values[f"slope over margin, averaged over decoupled, {name}"] = ratio.median()
    for name, net, start in zip(("class", "cluster"), (pair.averaged, pair.decoupled), pair.starts, strict=True):
        outside = decompose(net, mixture.centres, mixture.labels, start, pair.train).outside
        assert outside is not None
        values[f"weights outside the span of the samples, {name} labels"] = outside.amax()
    drawn = {"averaged": rounded(averaged), "decoupled": rounded(decoupled)}
    return Measured({name: float(value) for name, value in values.items()} | ideal_ratios(), drawn)


def nets(pair: Pair) -> dict[str, TwoSided]:
    """The averaged net and the decoupled one with either read-out."""
    return {AVERAGED: pair.average()} | {name: pair.readout(rule) for rule, name in RULES.items()}


def right(f: Tensor, y: Tensor) -> float:
    """Share of points with y f > 0."""
    return float((y * f > 0).double().mean())


def steepness(net: torch.nn.Module, X: Tensor) -> Tensor:
    """|grad f|/|f| at every row, (n,)."""
    X = X.clone().requires_grad_()
    f = net(X)
    (slope,) = torch.autograd.grad(f.sum(), X)
    steep: Tensor = slope.norm(dim=1) / f.detach().abs()
    return steep


def ideal_ratios() -> dict[str, float]:
    """(|grad F|/F) / (|grad F^(1)|/F^(1)) at a positive centre: sqrt(K1)."""
    found = {}
    for K1, K2 in SIZES:
        mixture = OrthonormalMixture(16, K1, K2, 0.0, dtype=torch.float64)
        mu, labels = mixture.centres, mixture.labels
        ratio = steepness(AverageClassifier(mu, labels), mu[:1]) / steepness(CentreClassifier(mu, labels, 1), mu[:1])
        found[f"slope over margin at a centre, F over F^(1), {K1}+{K2}"] = float(ratio)
    return found


def rounded(values: Tensor) -> list[Any]:
    """Four decimals are enough for a figure."""
    return [round(float(v), 4) for v in values] if values.ndim == 1 else [rounded(row) for row in values]


LEARNED = Experiment(learned, repeats={"quick": 1, "paper": 5})
DATA: Mapping[Profile, str] = {
    "quick": "d = 512, 5+5 clusters with |μ| = √d and noise N(0, I), 500 points, 5+5 neurons with biases (one a "
    "cluster for cluster labels), output layer fixed, start 1e-5, 200 full-batch steps of .005",
    "paper": "d = 3072, 5+5 clusters with |μ| = √d and noise N(0, I), 1000 points, 5+5 neurons with biases (one a "
    "cluster for cluster labels), output layer fixed, start 1e-5, 100 full-batch steps of .001, 5 seeds",
}
TRAINED = {profile: f"{words}." for profile, words in DATA.items()}
LARGEST_OTHER: Mapping[Profile, float] = {"quick": 0.05, "paper": 0.04}  # eight seeds at quick size: .039 to .046

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="C1",
        sentence="Trained on class labels, every neuron learns the average of its class: its cosine to each of its "
        "five own centres is about 1/√5 = .447, to the others about 0.",
        paper="LPLL25",
        where="Fig. 2a",
        standing=Standing.READ_OFF,
        published="own .40 to .48, others −.05 to 0 (±.02)",
        settings=TRAINED,
        experiment=LEARNED,
        checks=(
            near("mean cosine to own centres", 0.447, 0.02),
            at_least("smallest cosine to own centres", 0.40),
            at_most("largest cosine to own centres", 0.48),
            at_least("smallest cosine to other centres", -0.07),
            at_most("largest cosine to other centres", 0.02),
        ),
    ),
    Claim(
        id="C2",
        sentence="Trained on cluster labels, every neuron learns the centre of its own cluster and nothing else.",
        paper="LPLL25",
        where="Fig. 2b",
        standing=Standing.READ_OFF,
        published="diagonal .99 to 1.0, others about 0 (±.02)",
        settings=TRAINED,
        experiment=LEARNED,
        checks={
            profile: (
                at_least("decoupled: smallest cosine to the own centre", 0.98, 0.99),
                at_most("decoupled: largest cosine to another centre", most, 0.0),
            )
            for profile, most in LARGEST_OTHER.items()
        },
    ),
    Claim(
        id="C3",
        sentence="Both nets classify nearly all fresh points correctly.",
        paper="LPLL25",
        where="Theorems 4.5 and 4.7, Fig. 3",
        standing=Standing.PRINTED,
        published="accuracy 1 − o(1)",
        settings=TRAINED,
        experiment=LEARNED,
        checks=(
            *(at_least(f"test accuracy, {name}", 0.99, 1.0) for name in NETS),
            at_least("test accuracy, cluster of the largest logit", 0.99, 1.0),
        ),
    ),
    Claim(
        id="C14",
        sentence="At the same margin the gradient of the averaged net is larger, since most neurons of the class are "
        "switched on: √K_own times, for the ideal nets.",
        paper="LPLL25",
        where="slides of a talk by Jian Li (2024)",
        standing=Standing.DERIVED,
        published='"the gradient norm is much larger at a similar margin"; √K_own for F against F^(1) at a centre',
        settings={
            profile: f"F and F^(1) at a centre, 5+5, 6+4 and 9+1 clusters; {words}"
            for profile, words in TRAINED.items()
        },
        experiment=LEARNED,
        checks=(
            *(near(f"slope over margin at a centre, F over F^(1), {a}+{b}", math.sqrt(a), 1e-9) for a, b in SIZES),
            at_least("slope over margin, averaged over decoupled, at the centres", 1.5, math.sqrt(5)),
            at_least("slope over margin, averaged over decoupled, at fresh points", 1.1),
        ),
        shown="slope over margin, averaged over decoupled, at the centres",
        reason="At fresh points noise switches on neurons of other clusters too, and the ratio is smaller than at the "
        "centres: 1.3 at quick size, 1.6 at d = 3072.",
    ),
    Claim(
        id="C15",
        sentence="What gradient descent adds to a weight lies in the span of the centres and of the noise: w = w(0) + "
        "Σ_j λ_j μ_j + Σ_i σ_i ξ_i.",
        paper="LPLL25",
        where="weight decomposition, Section 4",
        standing=Standing.PRINTED,
        published="exactly",
        settings=TRAINED,
        experiment=LEARNED,
        checks=tuple(
            at_most(f"weights outside the span of the samples, {name} labels", 1e-10) for name in ("class", "cluster")
        ),
        reason="The span of the samples x_i = μ_j + ξ_i is looked at, which is the smaller one.",
    ),
)
