"""What only trained nets settle: a power between 2 and 3, the noise of a caption and that of its code, KKT points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from polyrelu.bias import alignment, kkt
from polyrelu.claims.errata import sizes
from polyrelu.claims.experiment import Measured, experiment
from polyrelu.claims.profile import Profile
from polyrelu.claims.quantity import Quantity, Values
from polyrelu.claims.setups.mixture_nets import TEST_SEED, trained
from polyrelu.claims.setups.sizes import SIX_FOUR
from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.nets import PolyReLUNet
from polyrelu.robust import bracket, centre_radius, curve
from polyrelu.train import Until, flow


@experiment()
def power_between(profile: Profile, seed: int) -> Measured:
    """p = 2.5: the radius of F^(2.5) at a centre, and what a trained net learned and how far it is robust."""
    found = trained(SIX_FOUR[profile], 2.5, seed)
    mixture, test, seen = found.mixture, found.test(100), alignment(found.net, found.data)
    assert seen.covered is not None and seen.best_centre is not None
    at_centres = centre_radius(mixture.centres, mixture.labels, mixture.centres, mixture.labels, 2.5)
    return Measured(
        {
            "radius of F^(2.5) at a centre": float(at_centres.min()),
            "median radius of the net, p = 2.5": curve(bracket(found.net, test.rows(), test.y)).median_radius.lower,
            "median cosine of its neurons to a centre": seen.best_centre,
            "centres learned": float(seen.covered.sum()),
        }
    )


def _repeats(profile: Profile, alpha: float) -> int:
    """As the caption has it for α = .1, as the code for α = .01; a fifth of both for quick."""
    return (10 if alpha == 0.1 else 5) // (1 if profile == "paper" else 5)


def _nets(profile: Profile) -> Sequence[dict[str, Any]]:
    kinds = [(p, alpha) for p in (1.0, 3.0) for alpha in (0.1, 0.01)]
    return [
        {"p": p, "alpha": alpha, "repeat": repeat}
        for p, alpha in kinds
        for repeat in range(1, _repeats(profile, alpha) + 1)
    ]


def _caption_and_code(values: Values) -> dict[Quantity, float]:
    """Mean over the repeats at α = .1 minus that over the repeats at α = .01, or over half of them at α = .1."""
    out = {}
    for p in (1, 3):
        caption, code = (list(values.along("repeat", "median radius", p=p, alpha=a).values()) for a in (0.1, 0.01))
        half = caption[: len(caption) // 2]
        out[Quantity("median radius at α = .1 minus at .01", p=p)] = float(np.mean(caption) - np.mean(code))
        out[Quantity("median radius over all repeats minus over half", p=p)] = float(np.mean(caption) - np.mean(half))
    return out


@experiment(parts=_nets, combine=_caption_and_code)
def attacked_alpha(profile: Profile, seed: int, p: float, alpha: float, repeat: int) -> Measured:
    """The median radius of one net."""
    found = trained(SIX_FOUR[profile]._replace(alpha=alpha), p, seed * _repeats(profile, 0.1) + repeat - 1)
    test = found.test(200)
    radius = curve(bracket(found.net, test.rows(), test.y, tol=1e-2)).median_radius.upper
    return Measured({"median radius": radius})


def _with_one(X: Tensor) -> Tensor:
    """Rows with a last coordinate 1, so that the last weight of a neuron is its bias."""
    return torch.cat([X, torch.ones_like(X[:, :1])], dim=1)


@experiment(over={"start": ("small start", "robust start")})
def not_every_net(profile: Profile, seed: int, start: str) -> Measured:
    """x - y z, |z| = 3 sqrt(d/k), on a ReLU net with biases after the flow of the logistic loss to 1e-6."""
    size = sizes.KKT[profile]
    dim, k = size.dim, size.positive + size.negative
    mixture = OrthonormalMixture(dim, size.positive, size.negative, 1.0, scale="sqrt_dim", dtype=torch.float64)
    data, test = mixture.sample(size.samples, seed=seed), mixture.sample(size.points, seed=TEST_SEED + seed)
    seen = Dataset(_with_one(data.rows()), data.y)
    if start == "small start":
        net = PolyReLUNet(dim + 1, size.width, 1.0, init="balanced", scale=1e-4, seed=seed, dtype=torch.float64)
    else:
        net = PolyReLUNet(dim + 1, k, 1.0, init="zeros", dtype=torch.float64)
        net.weight.data = torch.cat([4 * mixture.centres / dim, torch.full((k, 1), -2.0, dtype=torch.float64)], dim=1)
        net.output.data = 5 * mixture.labels[None]
    run = flow(net, seen, loss="logistic", until=Until(loss=1e-6))
    assert isinstance(run.net, PolyReLUNet)
    z = 3 * math.sqrt(dim / k) * (mixture.labels @ mixture.directions) / math.sqrt(k)
    with torch.no_grad():
        broken = test.y * run.net(_with_one(test.rows() - test.y[:, None] * z)) <= 0
    return Measured(
        {
            "share broken by one z of length 3√(d/k)": float(broken.double().mean()),
            "log10 of the loss": run.log10_loss,
            "KKT residual": kkt(run.net, seen).stationarity,
        }
    )
