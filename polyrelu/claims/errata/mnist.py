"""The images: which split was the test set, and which task a curve shows."""

from __future__ import annotations

from polyrelu.claims.experiment import Measured, experiment
from polyrelu.claims.profile import Profile
from polyrelu.claims.quantity import Key, Quantity, Values, located
from polyrelu.claims.setups.digit_nets import Head, accuracy, published_accuracy, trained
from polyrelu.claims.setups.needs import needs_mnist
from polyrelu.data import Dataset, read

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
    head = trained(profile, float(p), seed)

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
    head = trained(profile, 1.0, seed, TASKS[task])
    return Measured(_robust(head, head.test, seed))
