"""Nets of handwritten digits, and how far they hold, seen from three sides (Min & Vidal, ICML 2024: Table 1, Fig. 3).

    paper  MNIST: 50 000 images to train on, 500 neurons, Adam 1e-3, batches of 1000, 51 epochs; the first 1000 of the
           10 000 validation images are attacked, in the box [0, 1]                                (Min & Vidal 2024)
    quick  1300 of the bundled 8 x 8 digits, 64 neurons, Adam 1e-2, batches of 130, 100 epochs; 100 of the other 497 are
           attacked, without a box

Robust accuracy at a radius:  certified <= true <= strongest attack <= published attack.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, final

import torch
from torch import Tensor, nn

from polyrelu.bias import feature_stable_rank
from polyrelu.claims.profile import Profile
from polyrelu.data import Dataset, read
from polyrelu.data.images import cached
from polyrelu.nets import PolyReLUNet
from polyrelu.robust import bracket, certified_radius, check_bounds
from polyrelu.robust.attacks import APGD, CROSS_ENTROPY, Random, SparseAPGD, strongest
from polyrelu.train import published_head

RECIPES: dict[Profile, dict[str, Any]] = {
    "quick": {"width": 64, "epochs": 100, "rate": 1e-2, "batch": 130},
    "paper": {"width": 500, "epochs": 51, "rate": 1e-3, "batch": 1000},
}
ATTACKED: dict[Profile, int] = {"quick": 100, "paper": 1000}
BOX: dict[Profile, tuple[float, float] | None] = {"quick": None, "paper": (0.0, 1.0)}
FOLLOWED = 10_000  # training images whose accuracy and features are looked at after every epoch
STEPS: dict[Profile, int] = {"quick": 40, "paper": 100}  # of APGD; AutoAttack takes 100
NAMES = {math.inf: "l∞", 2.0: "l2", 1.0: "l1"}


def needs_mnist(profile: Profile) -> str:
    """Why the published size cannot be run here, or ""."""
    there = profile == "quick" or cached("mnist") is not None
    return "" if there else "Needs MNIST: polyrelu data fetch mnist."


@final
@dataclass(eq=False)
class Followed:
    """Accuracies and |H|_F^2 / |H|_2^2 of the features H, at the start and after every epoch."""

    train: Dataset
    held: Dataset
    train_accuracy: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    rank: list[float] = field(default_factory=list)

    def __call__(self, epoch: int, net: nn.Module) -> None:
        """Look at the net as it is."""
        self.train_accuracy.append(accuracy(net, self.train))
        self.accuracy.append(accuracy(net, self.held))
        self.rank.append(feature_stable_rank(net, self.train))


@final
@dataclass(frozen=True, eq=False)
class Head:
    """A trained net, the images it learned from, those held out, and its epochs."""

    net: PolyReLUNet
    train: Dataset
    held: Dataset
    epochs: Followed
    box: tuple[float, float] | None  # what an attack may not leave

    def attacked(self, profile: Profile) -> tuple[Tensor, Tensor]:
        """The images that are attacked, and their labels."""
        n = min(ATTACKED[profile], len(self.held))
        return self.held.rows(0, n), self.held.y[:n]


def images(profile: Profile, seed: int, labels: str = "") -> tuple[Dataset, Dataset]:
    """Images to train on and held out; ``labels`` is "" for ten digits or a relabelling such as "parity"."""
    tail = f":{labels}" if labels else ""
    if profile == "paper":
        return read(f"mnist{tail}"), read(f"mnist:validation{tail}")
    digits = read(f"digits{tail}")
    order = torch.randperm(len(digits), generator=torch.Generator().manual_seed(seed))
    return digits.subset(order[:1300]), digits.subset(order[1300:])


@lru_cache(maxsize=2)
def trained(profile: Profile, p: float, seed: int, labels: str = "") -> Head:
    """The net of the published recipe, followed from epoch to epoch."""
    train, held = images(profile, seed, labels)
    epochs = Followed(train.subset(slice(FOLLOWED)), held)
    net = published_head(train, p, seed=seed, each_epoch=epochs, **RECIPES[profile]).net
    assert isinstance(net, PolyReLUNet)
    return Head(net, train, held, epochs, BOX[profile])


def accuracy(net: nn.Module, data: Dataset) -> float:
    """Share of rows classified rightly."""
    right = 0
    with torch.no_grad():
        for start, rows in data.blocks():
            logits, y = net(rows), data.y[start : start + len(rows)]
            right += int((logits * y > 0).sum() if data.binary else (logits.argmax(dim=1) == y).sum())
    return right / len(data)


def published_attack(
    head: Head, profile: Profile, radius: float, norm: float, seed: int, everyone: bool = False
) -> Tensor:
    """Which images AutoAttack's first attack breaks: APGD on the cross-entropy from a random start (l1: five), (n,).

    ``everyone``: all images held out, as published, and not only those attacked otherwise.
    """
    steps = STEPS[profile]
    X, y = (head.held.rows(), head.held.y) if everyone else head.attacked(profile)
    attack = SparseAPGD(steps=steps) if norm == 1 else APGD(steps=steps, loss=CROSS_ENTROPY, starts=(Random(),))
    return attack(head.net, X, y, radius=radius, norm=norm, bounds=head.box, seed=seed).success


@final
@dataclass(frozen=True, eq=False)
class Sides:
    """Robust accuracy in one norm; a list has one number for each radius."""

    norm: float
    radii: tuple[float, ...]
    published: list[float]
    strongest: list[float]
    certified: list[float]
    proven: Tensor  # (n,) the certified radius of each image

    def values(self, p: float) -> dict[str, float]:
        """Named numbers, as "APGD-CE at l∞ 0.05, p = 1"."""
        sides = (("APGD-CE", self.published), ("strongest attack", self.strongest), ("certified", self.certified))
        name = NAMES[self.norm]
        return {
            f"{side} at {name} {r:g}, p = {p:g}": share
            for side, shares in sides
            for r, share in zip(self.radii, shares, strict=True)
        }


def sides(head: Head, profile: Profile, norm: float, radii: Sequence[float], seed: int) -> Sides:
    """Robust accuracy by the published attack, the strongest one and the certificate.

    What is proven to hold is left out of the strongest attack, and what the published attack broke counts for both.
    """
    X, y = head.attacked(profile)
    published = [published_attack(head, profile, r, norm, seed) for r in radii]
    proven = certified_radius(head.net, X, y, norm)
    open_ = (~published[0] & (proven <= max(radii))).nonzero()[:, 0]
    if norm == 2 and len(open_):  # a dearer proof, for those it may save
        dearer = bracket(head.net, X[open_], y[open_], widest=0)
        proven[open_] = torch.maximum(proven[open_], dearer.lower)
    found: tuple[list[float], list[float], list[float]] = ([], [], [])
    for r, broken in zip(radii, published, strict=True):
        check_bounds(proven, torch.where(broken, r, torch.inf).double())
        everyone, left = broken.clone(), (~broken & (proven <= r)).nonzero()[:, 0]
        if len(left):
            more = strongest(head.net, X[left], y[left], r, norm=norm, bounds=head.box, pool=head.train, seed=seed)
            everyone[left] = more.success
        for shares, held in zip(found, (~broken, ~everyone, proven > r), strict=True):
            shares.append(float(held.double().mean()))
    return Sides(norm, tuple(radii), *found, proven)
