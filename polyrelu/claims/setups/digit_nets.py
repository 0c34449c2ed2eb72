"""Nets of handwritten digits, and their robust accuracy from three sides (Min & Vidal, ICML 2024: Table 1, Fig. 3).

    paper  MNIST: 50 000 images to train on, 500 neurons, Adam 1e-3, batches of 1000, 51 epochs; the first 1000 of the
           10 000 validation images are attacked, in the box [0, 1]                                (Min & Vidal 2024)
    quick  1300 of the bundled 8 x 8 digits, 64 neurons, Adam 1e-2, batches of 130, 100 epochs; 100 of the other 497 are
           attacked, without a box

Robust accuracy at a radius:  certified <= true <= strongest attack <= published attack.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, final

import torch
from torch import Tensor, nn

from polyrelu.bias import feature_stable_rank
from polyrelu.claims import Key, Profile, Quantity
from polyrelu.claims.quantity import Scalar
from polyrelu.data import Dataset, read
from polyrelu.nets import PolyReLUNet
from polyrelu.robust import bracket, certified_radius, check_bounds
from polyrelu.robust.attacks import APGD, CROSS_ENTROPY, RandomStart, SparseAPGD, strongest
from polyrelu.train import published_head

RECIPES: dict[Profile, dict[str, Any]] = {
    "quick": {"width": 64, "epochs": 100, "rate": 1e-2, "batch": 130},
    "paper": {"width": 500, "epochs": 51, "rate": 1e-3, "batch": 1000},
}
ATTACKED: dict[Profile, int] = {"quick": 100, "paper": 1000}
BOX: dict[Profile, tuple[float, float] | None] = {"quick": None, "paper": (0.0, 1.0)}
FOLLOWED = 10_000  # training images whose accuracy and features are looked at after every epoch
APGD_STEPS: dict[Profile, int] = {"quick": 40, "paper": 100}  # AutoAttack takes 100
NORMS = {"l∞": math.inf, "l2": 2.0, "l1": 1.0}


@final
@dataclass(eq=False)
class EpochCurves:
    """Accuracies and |H|_F^2 / |H|_2^2 of the features H, at the start and after every epoch."""

    train: Dataset
    test: Dataset
    train_accuracy: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    rank: list[float] = field(default_factory=list)

    def __call__(self, epoch: int, net: nn.Module) -> None:
        """Look at the net as it is."""
        self.train_accuracy.append(accuracy(net, self.train))
        self.accuracy.append(accuracy(net, self.test))
        self.rank.append(feature_stable_rank(net, self.train))

    def lines(self) -> dict[str, list[float]]:
        """What is drawn."""
        return {"accuracy": self.accuracy, "train accuracy": self.train_accuracy, "rank": self.rank}


@final
@dataclass(frozen=True, eq=False)
class Head:
    """A trained net, the rows it learned from, those it did not see, which of these are attacked, and its epochs."""

    net: PolyReLUNet
    train: Dataset
    test: Dataset
    attacked: Dataset
    epochs: EpochCurves
    steps: int  # of APGD
    box: tuple[float, float] | None  # what an attack may not leave


def images(profile: Profile, seed: int, labels: str = "") -> tuple[Dataset, Dataset]:
    """Images to train on and to test; ``labels`` is "" for ten digits or a relabelling such as "parity"."""
    tail = f":{labels}" if labels else ""
    if profile == "paper":
        return read(f"mnist{tail}"), read(f"mnist:validation{tail}")
    digits = read(f"digits{tail}")
    order = torch.randperm(len(digits), generator=torch.Generator().manual_seed(seed))
    return digits.subset(order[:1300]), digits.subset(order[1300:])


@lru_cache(maxsize=2)
def trained(profile: Profile, p: float, seed: int, labels: str = "") -> Head:
    """The net of the published recipe, followed from epoch to epoch."""
    train, test = images(profile, seed, labels)
    epochs = EpochCurves(train.subset(slice(FOLLOWED)), test)
    net = published_head(train, p, seed=seed, each_epoch=epochs, **RECIPES[profile]).net
    assert isinstance(net, PolyReLUNet)
    return Head(net, train, test, test.subset(slice(ATTACKED[profile])), epochs, APGD_STEPS[profile], BOX[profile])


def accuracy(net: nn.Module, data: Dataset) -> float:
    """Share of rows classified rightly."""
    right = 0
    with torch.no_grad():
        for start, rows in data.blocks():
            logits, y = net(rows), data.y[start : start + len(rows)]
            right += int((logits * y > 0).sum() if data.binary else (logits.argmax(dim=1) == y).sum())
    return right / len(data)


def published_attack(head: Head, data: Dataset, norm: str, radius: float, seed: int) -> Tensor:
    """Which rows AutoAttack's first attack breaks: APGD on the cross-entropy from a random start (l1: five), (n,)."""
    sparse, dense = SparseAPGD(steps=head.steps), APGD(steps=head.steps, loss=CROSS_ENTROPY, starts=(RandomStart(),))
    attack = sparse if norm == "l1" else dense
    return attack(head.net, data.rows(), data.y, radius=radius, norm=NORMS[norm], bounds=head.box, seed=seed).success


def published_accuracy(head: Head, data: Dataset, norm: str, radius: float, seed: int) -> float:
    """Share of rows that the published attack leaves."""
    return 1 - float(published_attack(head, data, norm, radius, seed).double().mean())


@final
@dataclass(frozen=True, eq=False)
class RobustAccuracy:
    """Robust accuracy in one norm; each side has one number for each radius."""

    norm: str
    radii: tuple[float, ...]
    sides: Mapping[str, list[float]]  # what APGD-CE leaves, what the strongest attack leaves, what is certified
    proven: Tensor  # (n,) the certified radius of each row

    def values(self, radii: Sequence[Scalar] = ()) -> dict[Key, float]:
        """What is judged; ``radii``: how they are written, by default as they are."""
        return {
            Quantity("robust accuracy", side=side, norm=self.norm, radius=radius): share
            for side, shares in self.sides.items()
            for radius, share in zip(radii or self.radii, shares, strict=True)
        }

    def lines(self, radii: Sequence[float] = ()) -> dict[str, Sequence[float]]:
        """What is drawn."""
        return {"radii": radii or self.radii, **self.sides}


def robust_accuracy(head: Head, norm: str, radii: Sequence[float], seed: int) -> RobustAccuracy:
    """What the published attack leaves, what the strongest one leaves and what is certified.

    What is proven to hold is left out of the strongest attack, and what the published attack broke counts for both.
    """
    X, y = head.attacked.rows(), head.attacked.y
    published = [published_attack(head, head.attacked, norm, r, seed) for r in radii]
    proven = certified_radius(head.net, X, y, NORMS[norm])
    unproven = (~published[0] & (proven <= max(radii))).nonzero()[:, 0]
    if norm == "l2" and len(unproven):  # a proof that takes longer, for those it may save
        tighter = bracket(head.net, X[unproven], y[unproven], widest=0)
        proven[unproven] = torch.maximum(proven[unproven], tighter.lower)
    sides: dict[str, list[float]] = {"APGD-CE": [], "strongest attack": [], "certified": []}
    for r, broken in zip(radii, published, strict=True):
        check_bounds(proven, torch.where(broken, r, torch.inf).double())
        by_any, left = broken.clone(), (~broken & (proven <= r)).nonzero()[:, 0]
        if len(left):
            by_any[left] = strongest(
                head.net, X[left], y[left], r, norm=NORMS[norm], bounds=head.box, pool=head.train, seed=seed
            ).success
        for shares, robust in zip(sides.values(), (~broken, ~by_any, proven > r), strict=True):
            shares.append(float(robust.double().mean()))
    return RobustAccuracy(norm, tuple(radii), sides, proven)
