"""What only trained nets settle: a power between 2 and 3, noise, losses and KKT points, and what images were tested."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch

from polyrelu.bias import alignment, kkt
from polyrelu.claims import Key, Measured, Profile, Quantity, Values, experiment
from polyrelu.claims.errata import sizes
from polyrelu.claims.quantity import located
from polyrelu.claims.setups import digit_nets
from polyrelu.claims.setups.biased_nets import with_ones
from polyrelu.claims.setups.digit_nets import Head, accuracy, published_accuracy
from polyrelu.claims.setups.mixture_nets import TEST_SEED, trained, untrained
from polyrelu.claims.setups.requirements import needs_mnist
from polyrelu.claims.setups.sizes import SIX_FOUR
from polyrelu.data import Dataset, OrthonormalMixture, read
from polyrelu.nets import CentreClassifier, PolyReLUNet
from polyrelu.robust import bracket, centre_radius, curve, dist
from polyrelu.train import Until, flow


@experiment()
def power_between(profile: Profile, seed: int) -> Measured:
    """p = 2.5: the radius of F^(2.5) at a centre, and what a trained net learned and how far it is robust."""
    found = trained(SIX_FOUR[profile], 2.5, seed)
    mixture, test, seen = found.mixture, found.test(100), alignment(found.net, found.data)
    assert seen.covered is not None and seen.best_centre is not None
    at_centres = centre_radius(mixture.centres, mixture.labels, mixture.centres, mixture.labels, 2.5)
    values = {
        "radius of F^(2.5) at a centre": float(at_centres.min()),
        "median radius of the net, p = 2.5": curve(bracket(found.net, test.rows(), test.y)).median_radius.lower,
        "median cosine of its neurons to a centre": seen.best_centre,
        "centres learned": float(seen.covered.sum()),
    }
    return Measured(values)


REPEATS: Mapping[Profile, Mapping[float, int]] = {  # as the caption has it for α = .1, as the code for α = .01
    "quick": {0.1: 2, 0.01: 1},
    "paper": {0.1: 10, 0.01: 5},
}


def _nets(profile: Profile) -> list[dict[str, float]]:
    return [
        {"p": p, "alpha": alpha, "repeat": repeat}
        for p in (1.0, 3.0)
        for alpha, repeats in REPEATS[profile].items()
        for repeat in range(1, repeats + 1)
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
    found = trained(SIX_FOUR[profile]._replace(alpha=alpha), p, seed * REPEATS[profile][0.1] + repeat - 1)
    test = found.test(200)
    radius = curve(bracket(found.net, test.rows(), test.y, tol=1e-2)).median_radius.upper
    return Measured({"median radius": radius})


@experiment(over={"loss": ("squared", "exp", "logistic")})
def scale_of_losses(profile: Profile, seed: int, loss: str) -> Measured:
    """sup |f - F^(3)| and inf_c sup |c f - F^(3)| after training with each loss to 1e-3."""
    mixture, data, net = untrained(sizes.LOSSES[profile], 3.0, seed)
    F = CentreClassifier(mixture.centres, mixture.labels, 3.0)
    f = flow(net, data, loss=loss, until=Until(loss=1e-3)).net
    assert isinstance(f, PolyReLUNet)
    best, plain = dist(f, F, seed=seed), dist(f, F, c=1.0, seed=seed)
    return Measured({"distance without c": plain.value, "distance with the best c": best.value, "the best c": best.c})


@experiment(over={"start": ("small start", "robust start")})
def not_every_net(profile: Profile, seed: int, start: str) -> Measured:
    """x - y z, |z| = 3 sqrt(d/k), on a ReLU net with biases after the flow of the logistic loss to 1e-6."""
    size = sizes.KKT[profile]
    dim, k = size.dim, size.positive + size.negative
    mixture = OrthonormalMixture(dim, size.positive, size.negative, 1.0, scale="sqrt_dim", dtype=torch.float64)
    data, test = mixture.sample(size.samples, seed=seed), mixture.sample(size.points, seed=TEST_SEED + seed)
    seen = with_ones(data)  # hidden biases
    if start == "small start":
        net = PolyReLUNet(dim + 1, size.width, 1.0, init="balanced", scale=1e-4, seed=seed, dtype=torch.float64)
    else:
        net = PolyReLUNet(dim + 1, k, 1.0, init="zeros", dtype=torch.float64)
        net.weight.data = torch.cat([4 * mixture.centres / dim, torch.full((k, 1), -2.0, dtype=torch.float64)], dim=1)
        net.output.data = 5 * mixture.labels[None]
    run = flow(net, seen, loss="logistic", until=Until(loss=1e-6))
    assert isinstance(run.net, PolyReLUNet)
    z = 3 * math.sqrt(dim / k) * (mixture.labels @ mixture.directions) / math.sqrt(k)
    moved = with_ones(Dataset(test.rows() - test.y[:, None] * z, test.y))
    with torch.no_grad():
        broken = moved.y * run.net(moved.rows()) <= 0
    values = {
        "share broken by one z of length 3√(d/k)": float(broken.double().mean()),
        "log10 of the loss": run.log10_loss,
        "KKT residual": kkt(run.net, seen).stationarity,
    }
    return Measured(values)


RADII = (0.05, 0.1)
TASKS = {"ten digits": "", "parity": "parity"}
ROBUST = "robust accuracy by APGD-CE in l∞"


def _robust(head: Head, data: Dataset, seed: int) -> dict[Key, float]:
    """Robust accuracy on all of the images under the published attack."""
    return {Quantity(ROBUST, radius=r): published_accuracy(head, data, "l∞", r, seed) for r in RADII}


def _one_split(profile: Profile) -> str:
    if profile == "quick":
        return "The 8 × 8 digits come in one piece, without validation and test split; the published size has both."
    return needs_mnist(profile)


@experiment(over={"p": (1, 4)}, needs=_one_split)
def validation_split(profile: Profile, seed: int, p: int) -> Measured:
    """One net on the 10 000 images of the validation split and on the 10 000 of the test split."""
    head = digit_nets.trained(profile, float(p), seed)

    def measured(data: Dataset) -> dict[Key, float]:
        return {"accuracy": accuracy(head.net, data), **_robust(head, data, seed)}

    splits = {"validation split": measured(head.test), "test split": measured(read("mnist:test"))}
    validation, unseen = splits.values()
    splits["validation minus test"] = {key: value - unseen[key] for key, value in validation.items()}
    return Measured(
        {located(key, {"split": split}): value for split, found in splits.items() for key, value in found.items()}
    )


def _apart(values: Values) -> dict[Quantity, float]:
    parity, digits = (values.along("radius", ROBUST, task=task) for task in ("parity", "ten digits"))
    return {Quantity("parity minus ten digits", radius=r): parity[r] - digits[r] for r in RADII}


@experiment(over={"task": tuple(TASKS)}, combine=_apart, needs=needs_mnist)
def parity_or_digits(profile: Profile, seed: int, task: str) -> Measured:
    """p = 1 on either task, under the published attack."""
    head = digit_nets.trained(profile, 1.0, seed, TASKS[task])
    return Measured(_robust(head, head.test, seed))
