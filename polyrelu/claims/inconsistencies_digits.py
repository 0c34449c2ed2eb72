"""Contradictions about the images: which split was the test set (I8), and which task a curve shows (I19)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from polyrelu.claims.claim import Claim, Standing, Verdict, at_most, near
from polyrelu.claims.experiment import Experiment, Measured
from polyrelu.claims.profile import Profile
from polyrelu.claims.setups.digit_nets import Head, accuracy, needs_mnist, published_attack, trained
from polyrelu.data import read

CURVE = {0.05: 0.511, 0.1: 0.041}  # p = 1, read off
TASKS = {"ten digits": "", "parity": "parity"}


def _held(head: Head, profile: Profile, radius: float, seed: int) -> float:
    """Robust accuracy in l-infinity under the published attack."""
    return 1 - float(published_attack(head, profile, radius, math.inf, seed, everyone=True).double().mean())


def validation_split(profile: Profile, seed: int, p: int) -> Measured:
    """One net on the 10 000 images of the validation split and on the 10 000 of the test split."""
    head = trained(profile, float(p), seed)
    test = dataclasses.replace(head, held=read("mnist:test"))
    pairs = {"accuracy": (accuracy(head.net, head.held), accuracy(test.net, test.held))}
    pairs |= {f"APGD-CE at l∞ {r:g}": (_held(head, profile, r, seed), _held(test, profile, r, seed)) for r in CURVE}
    values = {}
    for what, (validation, unseen) in pairs.items():
        values[f"{what}, validation split, p = {p}"] = validation
        values[f"{what}, test split, p = {p}"] = unseen
        values[f"{what}, validation minus test, p = {p}"] = validation - unseen
    return Measured(values)


def parity_or_digits(profile: Profile, seed: int, task: str) -> Measured:
    """p = 1 on either task, under the published attack."""
    head = trained(profile, 1.0, seed, TASKS[task])
    return Measured({f"APGD-CE at l∞ {r:g}, p = 1, {task}": _held(head, profile, r, seed) for r in CURVE})


def _one_split(profile: Profile) -> str:
    if profile == "quick":
        return "The 8 × 8 digits come in one piece, without validation and test split; the published size has both."
    return needs_mnist(profile)


def _apart(values: Mapping[str, float]) -> dict[str, float]:
    return {
        f"parity minus ten digits at l∞ {r:g}": values[f"APGD-CE at l∞ {r:g}, p = 1, parity"]
        - values[f"APGD-CE at l∞ {r:g}, p = 1, ten digits"]
        for r in CURVE
    }


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="I8",
        sentence="What the MNIST experiments call the test set is the 10 000-image validation split.",
        paper="MV24",
        where="code, against the text",
        standing=Standing.PRINTED,
        published="test accuracy .980 to .982",
        settings={
            "quick": "Nothing to run at this size.",
            "paper": "MNIST, p = 1 and 4, published recipe; accuracy of all 10 000 images of either split, and APGD-CE "
            "at l∞ .05 and .1 on them.",
        },
        experiment=Experiment(validation_split, parts=lambda profile: [{"p": p} for p in (1, 4)], needs=_one_split),
        checks=tuple(
            near(f"{what}, validation minus test, p = {p}", 0.0, tolerance)
            for p in (1, 4)
            for what, tolerance in (("accuracy", 0.005), *((f"APGD-CE at l∞ {r:g}", 0.03) for r in CURVE))
        ),
        reason="It does not matter: the same nets do as well on the images that nobody looked at.",
        expects={"quick": Verdict.NOT_RUN, "paper": Verdict.REPRODUCED},
    ),
    Claim(
        id="I19",
        sentence="The caption of the robust-accuracy curve says parity, its values are those of the ten-digit table.",
        paper="MV24",
        where="Fig. 3d, against Table 1",
        standing=Standing.SECONDARY,
        published="p = 1: .511 at l∞ .05, .041 at .1",
        settings={
            "quick": "8 × 8 digits, p = 1, both tasks; APGD-CE at l∞ .05 and .1 on all 497 images held out.",
            "paper": "MNIST, p = 1, both tasks by the published recipe; APGD-CE at l∞ .05 and .1 on all "
            "10 000 validation images.",
        },
        experiment=Experiment(
            parity_or_digits,
            parts=lambda profile: [{"task": task} for task in TASKS],
            combine=_apart,
            needs=needs_mnist,
        ),
        checks={
            "quick": tuple(near(f"parity minus ten digits at l∞ {r:g}", 0.0, 0.02) for r in CURVE),
            "paper": tuple(near(f"APGD-CE at l∞ {r:g}, p = 1, parity", share, 0.03) for r, share in CURVE.items()),
        },
        why={
            "quick": (at_most("parity minus ten digits at l∞ 0.05", -0.02),),
            "paper": tuple(near(f"APGD-CE at l∞ {r:g}, p = 1, ten digits", share, 0.03) for r, share in CURVE.items()),
        },
        reason="The curve is that of the ten digits; parity gives other values.",
        expects=Verdict.ARTEFACT,
    ),
)
