"""What attacks that stop short report, beside the truth; and what ascents to sup |f - F^(3)| on the sphere do."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from polyrelu.claims import Measured, Profile, Quantity, Values, experiment
from polyrelu.claims.errata import sizes
from polyrelu.claims.setups.digit_nets import images
from polyrelu.claims.setups.mixture_nets import TEST_SEED, trained
from polyrelu.claims.setups.sizes import SIX_FOUR
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import CentreClassifier, PolyReLUNet
from polyrelu.robust import Score, bracket, centre_radius, curve, dist
from polyrelu.robust.attacks import (
    APGD,
    CROSS_ENTROPY,
    MARGIN,
    PGD,
    TARGETED,
    PublishedPGD,
    RadiusAttack,
    RandomStart,
    ZeroStart,
)
from polyrelu.robust.core import unit
from polyrelu.robust.distance import published_dist
from polyrelu.train import published_head


def _reported(attack: RadiusAttack, score: Score, X: Tensor, y: Tensor, radius: float, seed: int) -> float:
    """The robust accuracy that an attack reports."""
    return 1 - float(attack(score, X, y, radius=radius, seed=seed).success.double().mean())


@experiment()
def beyond_half_gap(profile: Profile, seed: int) -> Measured:
    """The published attack and the bracket at .75, p = 3: on F^(3), or on the net trained at full size."""
    if profile == "paper":
        found = trained(SIX_FOUR["paper"], 3.0, seed)
        mixture, net = found.mixture, found.net
    else:
        mixture = OrthonormalMixture(1000, 6, 4, 0.1)
        net = CentreClassifier(mixture.centres, mixture.labels, 3.0).as_polyrelu_net()
    test = mixture.sample(50, seed=TEST_SEED + seed)
    X, y = test.rows(), test.y
    true = curve(bracket(net, X, y, tol=1e-3))
    values = {
        "robust accuracy at .75": true.attacked(0.75),
        "reported by the published attack at .75": _reported(PublishedPGD(), net, X, y, 0.75, seed),
        "certified at .66": true.certified(0.66),
    }
    return Measured(values)


@experiment(over={"dim": (10, 50, 1000)})
def random_starts(profile: Profile, seed: int, dim: int) -> Measured:
    """F^(3) at .75 by PGD from one random start, in D = K, 50 and 1000 dimensions."""
    mixture = OrthonormalMixture(dim, 6, 4, 0.1, dtype=torch.float64)
    test = mixture.sample(sizes.RANDOM_STARTS[profile], seed=seed)
    F = CentreClassifier(mixture.centres, mixture.labels, 3.0)
    X, y = test.rows(), test.y
    attack = PGD(steps=200, loss=MARGIN, starts=(RandomStart(),))
    exact = centre_radius(X, y, mixture.centres, mixture.labels, 3.0)
    values = {
        "reported accuracy at .75": _reported(attack, F, X, y, 0.75, seed),
        "true accuracy at .75": float((exact > 0.75).double().mean()),
    }
    return Measured(values)


def _rises(values: Values) -> dict[str, float]:
    reported, true = (values.along("p", name) for name in ("median radius it reports", "median radius"))
    return {
        "rise it reports from p = 1 to 4": reported[4] - reported[1],
        "true rise from p = 1 to 4": true[4] - true[1],
    }


@experiment(over={"p": (1, 4)}, combine=_rises)
def same_classifier(profile: Profile, seed: int, p: int) -> Measured:
    """Logits relu(x_j)^p, j < 10: one classifier for all p; its radius, and what APGD on the cross-entropy reports."""
    n = sizes.SAME_CLASSIFIER[profile]
    y, eye = torch.arange(n) % 10, torch.eye(64, dtype=torch.float64)
    X = eye[y] + 0.01 * torch.randn(n, 64, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    attack, grid = APGD(loss=CROSS_ENTROPY, starts=(ZeroStart(),)), [0.8, *np.arange(0.86, 1.005, 0.01)]
    net = PolyReLUNet(64, 10, p, 10, init="zeros", dtype=torch.float64)
    net.weight.data, net.output.data = eye[:10].clone(), eye[:10, :10].clone()
    true = curve(bracket(net, X, y))
    reported = np.array([_reported(attack, net, X, y, r, seed) for r in grid])
    values = {
        "robust accuracy at .8": true.attacked(0.8),
        "median radius": true.median_radius.upper,
        "reported by APGD on the cross-entropy at .8": float(reported[0]),
        "median radius it reports": float(np.interp(0.5, reported[::-1], grid[::-1])),
    }
    return Measured(values)


RADII = (0.1, 0.15)
ALONE, BOTH = "robust accuracy by APGD-CE", "robust accuracy by APGD-CE and targeted APGD"


def _gaps(values: Values) -> dict[str, float]:
    both = values.along("p", BOTH, radius=0.1)
    places = [{"p": p, "radius": radius} for p in both for radius in RADII]
    gaps = [values[Quantity(ALONE, **where)] - values[Quantity(BOTH, **where)] for where in places]
    return {"largest gap between APGD-CE and both": max(gaps), "by both at .1, p = 4 minus p = 1": both[4] - both[1]}


@experiment(over={"p": sizes.POWERS}, combine=_gaps)
def cross_entropy_only(profile: Profile, seed: int, p: float) -> Measured:
    """l-infinity robust accuracy of a digit net by APGD-CE alone, and by APGD-CE and targeted APGD together."""
    train, test = images("quick", seed)
    size = sizes.DIGITS[profile]
    net = published_head(train, p, width=size.width, epochs=size.epochs, rate=size.rate, batch=130, seed=seed).net
    X, y, values = test.rows(0, size.attacked), test.y[: size.attacked], {}
    for radius in RADII:
        alone, targeted = (
            APGD(loss=loss, starts=(ZeroStart(),))(
                net, X, y, radius=radius, norm="inf", bounds=(0, 1), seed=seed
            ).success
            for loss in (CROSS_ENTROPY, TARGETED)
        )
        values[Quantity(ALONE, radius=radius)] = 1 - float(alone.double().mean())
        values[Quantity(BOTH, radius=radius)] = 1 - float((alone | targeted).double().mean())
    return Measured(values)


def climb(f: Score, F: Score, X: Tensor, steps: int) -> float:
    """max |f - F| after x <- unit(x + .01 g/|g|), g = grad (f - F)^2; no guard, each point by itself."""
    for _ in range(steps):
        X.requires_grad_(True)
        (g,) = torch.autograd.grad((f(X) - F(X)).square().sum(), X)
        X = unit(X.detach() + 0.01 * unit(g))
    with torch.no_grad():
        return float((f(X) - F(X)).abs().max())


def _unit_vectors(n: int, dim: int, seed: int) -> Tensor:
    return unit(torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64))


@experiment()
def distance_at_start(profile: Profile, seed: int) -> Measured:
    """sup |f - F^(3)| for f = 0 up to 1e-10, and what a short ascent from random vectors reports."""
    size = sizes.START_DISTANCE[profile]
    mixture = OrthonormalMixture(size.dim, size.positive, size.negative, size.alpha, dtype=torch.float64)
    F = CentreClassifier(mixture.centres, mixture.labels, 3.0)
    f = PolyReLUNet(size.dim, size.width, 3.0, init="balanced", scale=1e-7, seed=seed, dtype=torch.float64)
    values = {
        "distance at the start": dist(f, F, c=1.0, seed=seed).value,
        "reported by an ascent of 100 steps of .01": climb(f, F, _unit_vectors(size.points, size.dim, seed), 100),
    }
    return Measured(values)


@experiment()
def guarded_distance(profile: Profile, seed: int) -> Measured:
    """dist(f, F^(3)), f with one coefficient 3 % off, by the published estimator, without its guard, and exactly."""
    mixture = OrthonormalMixture(1000, 6, 4, 0.1, dtype=torch.float64)
    F = CentreClassifier(mixture.centres, mixture.labels, 3.0)
    f = F.as_polyrelu_net()
    f.output.data[0, 0] *= 1.03
    batches, steps = (2, 1000) if profile == "paper" else (1, 50)
    published = published_dist(f, F, mixture, seed=seed, batches=batches, steps=steps)
    f.output.data *= published.c
    values = {
        "true distance": dist(f, F, c=1.0, seed=seed).value,
        "reported by the published estimator": published.value,
        "reported without the guard": climb(f, F, _unit_vectors(50, 1000, seed), 500),
    }
    return Measured(values)
