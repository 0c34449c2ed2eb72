"""Ten digits, and even or odd: robust accuracy, accuracy and stable rank by p (Min & Vidal 2024, Table 1 and Fig. 3).

f(x) = sum_j v_j relu(<x - c, w_j>)^p / (|w_j| |x - c|)^(p-1) + b;   stable rank |H|_F^2 / |H|_2^2 of the features H

And what the images look like, cos_ij = <x_i - m, x_j - m> / (|x_i - m| |x_j - m|), and why features are divided by
|x|^(p-1) (Fig. 3a and code).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from polyrelu.bias import correlation, feature_stable_rank
from polyrelu.claims import Key, Measured, Profile, Quantity, Values, experiment
from polyrelu.claims.mv24 import sizes
from polyrelu.claims.mv24.across_powers import by_power, changes, named, overstated
from polyrelu.claims.setups import digit_nets
from polyrelu.claims.setups.digit_nets import Head, RobustAccuracy
from polyrelu.claims.setups.requirements import needs_mnist
from polyrelu.data import Dataset, read
from polyrelu.nets import PolyReLUNet
from polyrelu.robust import Budget, bracket
from polyrelu.train import Until, descend

BRACKETED, BUDGET = 6, Budget(nodes=30)  # images whose l2 radius is bracketed; no seconds: the same on every machine
ON_ALL_IMAGES = {"l∞": (1, 2, 3, 4), "l2": (1, 4), "l1": (1, 4)}  # p for which all images are attacked, as published
SHOWN = 200  # images in the map of cosines
SCALED_EPOCHS: dict[Profile, int] = {"quick": 30, "paper": 5}  # on scaled images
LATE = 10  # epochs over which the accuracy on parity is averaged


def _curve(head: Head, profile: Profile, seed: int) -> dict[float, float]:
    """What the published attack leaves at each l-infinity radius of the published curve."""
    return {r: digit_nets.published_accuracy(head, head.attacked, "l∞", r, seed) for r in sizes.DIGIT_CURVE[profile]}


def _drawn(head: Head, p: int, found: Sequence[RobustAccuracy], curve: dict[float, float]) -> dict[str, Any]:
    return {
        "p": p,
        "sides": {one.norm: one.lines() for one in found},
        "radii": [*curve],
        "curve": [*curve.values()],
        "proven": sorted(round(r, 5) for r in found[0].proven.tolist()),
        **head.epochs.lines(),
    }


def _of_ten_digits(values: Values) -> dict[Key, float]:
    accuracies = by_power(values)["accuracy"]
    return {
        **changes(values),
        "accuracy, largest minus smallest": max(accuracies) - min(accuracies),
        **{Quantity("most that APGD-CE overstates", norm=norm): most for norm, most in overstated(values).items()},
    }


@experiment(over={"p": sizes.HEAD_POWERS}, combine=_of_ten_digits, needs=needs_mnist)
def ten_digits(profile: Profile, seed: int, p: int) -> Measured:
    """Everything about one net."""
    head = digit_nets.trained(profile, float(p), seed)
    found = [digit_nets.robust_accuracy(head, norm, radii, seed) for norm, radii in sizes.DIGIT_RADII[profile].items()]
    curve = _curve(head, profile, seed)
    few, y = head.attacked.rows(0, BRACKETED), head.attacked.y[:BRACKETED]
    exact = bracket(head.net, few, y, budget=BUDGET, pool=head.train, seed=seed)
    epochs = head.epochs
    values: dict[Key, float] = {key: share for one in found for key, share in one.values().items()}
    values |= {
        "accuracy": epochs.accuracy[-1],
        "accuracy on the training images": epochs.train_accuracy[-1],
        "stable rank at the end": feature_stable_rank(head.net, head.train),
        "stable rank at the start": epochs.rank[0],
        "stable rank after an epoch": epochs.rank[1],
        "stable rank, start over first epoch": epochs.rank[0] / epochs.rank[1],
        "stable rank, end over first epoch": epochs.rank[-1] / epochs.rank[1],
        Quantity("median l2 radius", side="proven"): float(exact.lower.median()),
        Quantity("median l2 radius", side="attacked"): float(exact.upper.median()),
    }
    for norm, radii in sizes.DIGIT_RADII[profile].items():
        if profile == "paper" and p in ON_ALL_IMAGES[norm]:
            for r in radii:
                left = digit_nets.published_accuracy(head, head.test, norm, r, seed)
                values[Quantity("robust accuracy", side="APGD-CE on all images", norm=norm, radius=r)] = left
    values |= {Quantity("robust accuracy", side="APGD-CE", norm="l∞", radius=r): share for r, share in curve.items()}
    about = {"images": "MNIST" if profile == "paper" else "8 × 8 digits"}
    return Measured(values, about | _drawn(head, p, found, curve))


def _of_parity(values: Values) -> dict[Key, float]:
    worst = {named(key, "worst of p > 1 minus p = 1"): min(row[1:]) - row[0] for key, row in by_power(values).items()}
    return changes(values) | worst


@experiment(over={"p": sizes.HEAD_POWERS}, combine=_of_parity, needs=needs_mnist)
def parity(profile: Profile, seed: int, p: int) -> Measured:
    """The same nets with one logit, y = +1 for even digits and -1 for odd ones, in l-infinity."""
    head = digit_nets.trained(profile, float(p), seed, "parity")
    found = digit_nets.robust_accuracy(head, "l∞", sizes.DIGIT_RADII[profile]["l∞"], seed)
    epochs = head.epochs
    values = found.values() | {
        "accuracy": sum(epochs.accuracy[-LATE:]) / LATE,
        "accuracy on the training images": epochs.train_accuracy[-1],
        "stable rank at the end": epochs.rank[-1],
        "stable rank at the start": epochs.rank[0],
    }
    return Measured(values, _drawn(head, p, [found], _curve(head, profile, seed)))


@experiment(needs=needs_mnist)
def cosines(profile: Profile, seed: int) -> Measured:
    """Mean cosine of centred images of one digit and of different digits, and some of them."""
    data = read("digits") if profile == "quick" else digit_nets.images(profile, seed)[0]
    found = correlation(data, most=SHOWN, seed=seed)
    own = found.means.diagonal()
    other = found.means.masked_fill(found.means.isnan(), 0.0).fill_diagonal_(-1.0).amax(dim=1)
    values = {
        "mean cosine within a digit": found.within,
        "mean cosine between digits": found.between,
        "digits nearer to themselves than to any other": float((own > other).sum()),
    }
    drawn = {
        "matrix": [[round(cell, 2) for cell in row] for row in found.matrix.tolist()],
        "group": found.group.tolist(),
        "means": found.means.tolist(),
    }
    return Measured(values, drawn)


@experiment(over={"normalised": (True, False)}, needs=needs_mnist)
def scaled_inputs(profile: Profile, seed: int, normalised: bool) -> Measured:
    """The same training, p = 4, on images of .1, 1 and 10 times the size, with or without division by |x|^3."""
    train, test = digit_nets.images(profile, seed)
    recipe, epochs = digit_nets.RECIPES[profile], SCALED_EPOCHS[profile]
    features, values = list[float](), dict[Key, float]()
    for scale in sizes.SCALES:
        data, scaled_test = (Dataset(scale * part.rows(), part.y) for part in (train, test))
        net = PolyReLUNet(
            data.dim, recipe["width"], 4.0, 10, init="kaiming", seed=seed, centre=data.rows().mean(0), bias=True,
            normalise_input=normalised,
        )  # fmt: skip
        inputs = net.preprocess(data.rows(0, 1000)) @ net.directions().detach().T
        features.append(float(inputs.clamp(min=0).pow(4.0).mean()))
        run = descend(
            net, data, method="adam", rate=recipe["rate"], batch=recipe["batch"], loss="cross_entropy",
            until=Until(log10_loss=-1e6), steps=epochs * math.ceil(len(data) / recipe["batch"]), every=epochs,
            seed=seed,
        )  # fmt: skip
        values[Quantity("accuracy on scaled images", scale=scale)] = digit_nets.accuracy(run.net, scaled_test)
    values["degree of the features in x"] = math.log10(features[-1] / features[0]) / 2
    return Measured(values)
