"""Readings of class averages: F, its noise and the direction that breaks it; the experiments on feature averaging."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

from polyrelu.bias import flip_radii
from polyrelu.claims import Measured, Profile, experiment
from polyrelu.claims.errata import sizes
from polyrelu.claims.lpll25.nets import trained_pair
from polyrelu.claims.lpll25.sizes import NEVER, RECIPES
from polyrelu.claims.setups.mixture_nets import TEST_SEED
from polyrelu.data import OrthonormalMixture, parse_clusters
from polyrelu.nets import AverageClassifier, FixedOutputNet, unit_rows
from polyrelu.robust import average_radius, bracket
from polyrelu.robust.attacks import CROSS_ENTROPY, PGD, ZeroStart
from polyrelu.train import descend

ALPHA, DIM = 0.1, 1000
NOISE = {"covariance α²I/D": ALPHA / math.sqrt(DIM), "covariance α²I": ALPHA}


def _in_span(noise: float) -> OrthonormalMixture:
    """The K = 6 + 4 coordinates that F sees of x = mu_k + noise g in any dimension."""
    return OrthonormalMixture(10, 6, 4, ALPHA, noise=noise, dtype=torch.float64)


@experiment(over={"covariance": tuple(NOISE)})
def noise_covariance(profile: Profile, seed: int, covariance: str) -> Measured:
    """Radii of F for x = mu_k + N(0, alpha^2 I/D) and for x = mu_k + N(0, alpha^2 I)."""
    mixture = _in_span(NOISE[covariance])
    data = mixture.sample(20_000, seed=seed)
    radii = average_radius(data.rows(), data.y, mixture.centres, mixture.labels)
    quantiles = {f"{level:.0%} quantile of F's radius": float(radii.quantile(level)) for level in (0.1, 0.9)}
    return Measured({"accuracy of F at .30": float((radii > 0.30).double().mean()), **quantiles})


@experiment()
def one_direction(profile: Profile, seed: int) -> Measured:
    """F at x + r d for one d for all points, at x - y r d0, and where a single d makes F = 0 at every centre."""
    mixture = _in_span(ALPHA / math.sqrt(DIM))
    data = mixture.sample(sizes.ONE_DIRECTION[profile], seed=seed)
    X, y, F, r = data.rows(), data.y, AverageClassifier(mixture.centres, mixture.labels), 1.5 / math.sqrt(10)

    def accuracy(Z: Tensor) -> float:
        return float((y * F(Z) > 0).double().mean())

    plus, minus = mixture.class_averages  # all that F sees
    turns = torch.linspace(0, 2 * math.pi, 361, dtype=torch.float64)[:-1].tolist()
    common = [accuracy(X + r * (math.cos(a) * plus + math.sin(a) * minus)) for a in turns]
    d0 = mixture.labels @ mixture.centres / math.sqrt(10)
    down = unit_rows(-(plus / math.sqrt(6) + minus / 2)[None])[0]
    far = flip_radii(F, mixture.centres, mixture.labels, down.expand(10, -1), torch.ones(10)).max()
    values = {
        "accuracy of F at 1.5/√K, best common direction": min(common),
        "accuracy of F at 1.5/√K, x − y r d0": accuracy(X - r * y[:, None] * d0),
        "radius in 1/√K at which one direction makes F = 0 at every centre": float(far) * math.sqrt(10),
    }
    return Measured(values)


@experiment(over={"averages": ("sums", "unit averages"), "clusters": ("6+4", "5+5")})
def unit_averages(profile: Profile, seed: int, averages: str, clusters: str) -> Measured:
    """Radius at a centre of relu<x, m_+> - relu<x, m_-> with m the sums of the centres, or unit vectors."""
    dim = sizes.UNIT_AVERAGES[profile]
    mixture = OrthonormalMixture(dim, *parse_clusters(clusters), ALPHA, rotate=seed, dtype=torch.float64)
    net = AverageClassifier(mixture.centres, mixture.labels).as_polyrelu_net()
    if averages == "unit averages":
        net.weight.data = mixture.class_averages
    radii = bracket(net, mixture.centres, mixture.labels, tol=1e-6).upper
    return Measured({"radius at a positive centre": float(radii[0]), "radius at a negative centre": float(radii[-1])})


DEVIATIONS = {"start 1e-5": 1e-5, "start 1/√d": None}


@experiment(over={"start": tuple(DEVIATIONS)})
def averaging_starts(profile: Profile, seed: int, start: str) -> Measured:
    """cos(w, mu) of the fixed-output net after the same steps from deviation 1e-5 and from w ~ N(0, I/d)."""
    dim, n, rate, steps = RECIPES[profile]
    mixture = OrthonormalMixture(dim, 5, 5, 1.0, scale="sqrt_dim")
    net = FixedOutputNet(dim, 5, scale=DEVIATIONS[start], seed=seed)
    data = mixture.sample(n, seed=seed)
    run = descend(net, data, rate=rate, loss="logistic", until=NEVER, steps=steps, every=steps)
    cosines = normalize(run.net.weight.detach()) @ mixture.directions.T  # type: ignore[operator]
    own = net.signs[:, None] == mixture.labels
    values = {
        "mean cosine to own centres": float(cosines[own].mean()),
        "largest absolute cosine to other centres": float(cosines[~own].abs().max()),
        "training accuracy": run.accuracy,
    }
    return Measured(values)


@experiment()
def summed_readout(profile: Profile, seed: int) -> Measured:
    """The net trained on cluster labels at R = .6 sqrt(d): read-outs, directions, and the attack on its own loss."""
    pair = trained_pair(profile, seed, dtype=torch.float32)
    mixture, net = pair.mixture, pair.decoupled
    test, R = mixture.sample(400, seed=TEST_SEED + seed), 0.6 * math.sqrt(mixture.dim)
    assert test.cluster is not None
    X, y, labels, mu = test.rows(), test.y, mixture.labels, mixture.directions

    @torch.no_grad()
    def right(way: Tensor, rule: str) -> Tensor:
        return y * net.binary(X + R * normalize(way), labels, rule) > 0

    opposite = y[:, None] != labels
    every = opposite.to(mu) @ mu - mu[test.cluster]
    single = torch.stack([right(row - mu[test.cluster], "max") | ~opposite[:, k] for k, row in enumerate(mu)]).all(0)
    own_loss = PGD(steps=40, loss=CROSS_ENTROPY, starts=(ZeroStart(),))(net, X, test.cluster, radius=R, seed=seed)
    values = {
        "accuracy of the summed read-out at .6√d": float(right(every, "sum").double().mean()),
        "accuracy of the largest-logit read-out at .6√d": float((single & right(every, "max")).double().mean()),
        "reported by PGD on the net's own loss at .6√d": 1 - float(own_loss.success.double().mean()),
    }
    return Measured(values)
