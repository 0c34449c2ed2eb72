"""The images: which split was the test set, and which task a curve shows."""

from __future__ import annotations

import dataclasses
import math

from polyrelu.claims.experiment import Measured, experiment
from polyrelu.claims.profile import Profile
from polyrelu.claims.quantity import Key, Quantity, Values, located
from polyrelu.claims.setups.digit_nets import Head, accuracy, needs_mnist, published_attack, trained
from polyrelu.data import read

RADII = (0.05, 0.1)
TASKS = {"ten digits": "", "parity": "parity"}
ROBUST = "robust accuracy by APGD-CE in l∞"


def _robust(head: Head, profile: Profile, radius: float, seed: int) -> float:
    """Robust accuracy in l-infinity under the published attack."""
    return 1 - float(published_attack(head, profile, radius, math.inf, seed, everyone=True).double().mean())


def _one_split(profile: Profile) -> str:
    if profile == "quick":
        return "The 8 × 8 digits come in one piece, without validation and test split; the published size has both."
    return needs_mnist(profile)


@experiment(over={"p": (1, 4)}, needs=_one_split)
def validation_split(profile: Profile, seed: int, p: int) -> Measured:
    """One net on the 10 000 images of the validation split and on the 10 000 of the test split."""
    head = trained(profile, float(p), seed)
    test = dataclasses.replace(head, held=read("mnist:test"))

    def measured(on: Head) -> dict[Key, float]:
        robust: dict[Key, float] = {Quantity(ROBUST, radius=r): _robust(on, profile, r, seed) for r in RADII}
        return {"accuracy": accuracy(on.net, on.held), **robust}

    splits = {"validation split": measured(head), "test split": measured(test)}
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
    head = trained(profile, 1.0, seed, TASKS[task])
    return Measured({Quantity(ROBUST, radius=r): _robust(head, profile, r, seed) for r in RADII})
