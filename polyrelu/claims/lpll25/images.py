"""Ten labels or two, on images: which net is harder to fool, and heads on its features (Li et al. 2025, Figs 2 and 3).

    two labels           log P(+)/P(-), the net's one logit
    ten labels  (odds)   log sum_{c in +} e^f_c - log sum_{c in -} e^f_c = log P(+)/P(-)
                (sum)    sum_{c in +} f_c - sum_{c in -} f_c            (the read-out of Li et al. and of the rerun)
    PGD                  40 steps from a random point of the ball, pixels in [0, 1], up the net's own loss
                         (cross-entropy of ten classes, or of two) or down the read-out

Any other class lowers the own loss of the ten-class net, also one of the right half: an attack that climbs it does not
look for what is counted.

Heads of 30 neurons on frozen features (Fig. 2c,d):
    two labels           f(x) = (1/15) sum_r relu(<w_+r, x> + b_+r) - (1/15) sum_r relu(<w_-r, x> + b_-r)
                         groups of 3 in order
    ten labels           f_i(x) = (1/3) sum_r relu(<w_ir, x>), one group a class
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from polyrelu.claims import Key, Measured, Profile, Quantity, Values, experiment
from polyrelu.claims.lpll25 import sizes
from polyrelu.claims.lpll25.image_nets import embedding, halved, needs, pictures, trained
from polyrelu.claims.lpll25.pgd import pgd
from polyrelu.claims.lpll25.sizes import (
    CLEAN,
    LOGIT_READ_OUT,
    ODDS_READ_OUT,
    OWN_LOSS_PGD,
    READ_OUT_PGD,
    STRONGEST,
    SUM_READ_OUT,
    TEN_LABELS,
    TWO_LABELS,
    ImageTask,
)
from polyrelu.data import Dataset
from polyrelu.nets import FixedOutputNet, GroupedNet
from polyrelu.robust.attacks import strongest
from polyrelu.train import descend

Score = Callable[[Tensor], Tensor]
NETS = {"net": (TWO_LABELS, TEN_LABELS)}
DIGITS: Mapping[Profile, int] = {"quick": 3, "paper": 1}
RESNETS: Mapping[Profile, int] = {"quick": 1, "paper": 3}
GROUP, CLASSES = 3, 10
SCALE, RATE, UPDATES = 1e-2, 0.1, 300  # full gradient descent; the paper's are not known, the rerun's rate was .01


def _gains(values: Values) -> dict[Key, float]:
    """Accuracy with ten labels minus accuracy with two, and by how much PGD on the own loss overstates the former."""
    found: dict[Key, float] = {}
    for key, value in values.items():
        place: dict[str, Any] = dict(key.where) if isinstance(key, Quantity) and key.name == "accuracy" else {}
        if place.pop("net", None) != TEN_LABELS:
            continue
        attack = OWN_LOSS_PGD if place["attack"] == READ_OUT_PGD else place["attack"]
        other = Quantity("accuracy", **{**place, "attack": attack, "net": TWO_LABELS, "readout": LOGIT_READ_OUT})
        if other in values:
            found[Quantity("gain by ten labels", **place)] = value - values[other]
        if place.pop("attack") == STRONGEST:
            own = values[Quantity("accuracy", attack=OWN_LOSS_PGD, net=TEN_LABELS, **place)]
            found[Quantity("overstated by PGD on the own loss of ten labels", **place)] = own - value
    return found


@experiment(over=NETS, repeats=DIGITS, combine=_gains, needs=lambda profile: needs(sizes.PARITY[profile]))
def parity(profile: Profile, seed: int, net: str) -> Measured:
    """Odd or even digits."""
    return robustness(sizes.PARITY[profile], seed, net)[0]


@experiment(over=NETS, repeats=DIGITS, combine=_gains, needs=lambda profile: needs(sizes.HALVES[profile]))
def halves(profile: Profile, seed: int, net: str) -> Measured:
    """First five classes or last five; and heads on the features of the net with ten labels."""
    task = sizes.HALVES[profile]
    found, extractor = robustness(task, seed, net)
    if net == TWO_LABELS:
        return found
    cosines = {labels: head(extractor, task, labels, seed) for labels in (TWO_LABELS, TEN_LABELS)}
    drawn = {labels: matrix.tolist() for labels, matrix in cosines.items()}
    return Measured({**found.values, **patterns(cosines)}, {**found.data, "cosines": drawn})


@experiment(over=NETS, repeats=RESNETS, combine=_gains, needs=lambda profile: needs(sizes.MNIST))
def mnist(profile: Profile, seed: int, net: str) -> Measured:
    """A small ResNet, odd or even digits: 20 000 weights instead of 11 million, a minute or two."""
    return robustness(sizes.MNIST, seed, net)[0]


@experiment(over=NETS, repeats=RESNETS, combine=_gains, needs=lambda profile: needs(sizes.CIFAR10))
def cifar10(profile: Profile, seed: int, net: str) -> Measured:
    """A small ResNet, first five classes or last five."""
    return robustness(sizes.CIFAR10, seed, net)[0]


def robustness(task: ImageTask, seed: int, labels: str) -> tuple[Measured, nn.Module]:
    """Accuracy, clean and under every attack, of a net trained with ten labels or with two; and the net."""
    train, test = pictures(task, seed)
    (coarse, signs), (target, _) = halved(train, task), halved(test, task)
    net = trained(task, coarse if labels == TWO_LABELS else train, seed)
    X, y = test.rows(), target.y

    def own(Z: Tensor) -> Tensor:
        if labels == TWO_LABELS:
            return functional.softplus(-y * net(Z))
        return functional.cross_entropy(net(Z), test.y, reduction="none")

    scores: dict[str, Score] = {LOGIT_READ_OUT: net} if labels == TWO_LABELS else read_outs(net, signs)
    drawn = {"images": task.images, "radii": task.radii, "radius": task.radius}
    return Measured(accuracies(task, scores, own, X, y, seed), drawn), net


def read_outs(net: nn.Module, signs: Tensor) -> dict[str, Score]:
    """One logit made of ten, both ways; ``signs`` +1 or -1 for every class."""

    def odds(X: Tensor) -> Tensor:
        logits: Tensor = net(X)
        return logits[:, signs > 0].logsumexp(dim=1) - logits[:, signs < 0].logsumexp(dim=1)

    def summed(X: Tensor) -> Tensor:
        logits: Tensor = net(X)
        return logits @ signs

    return {ODDS_READ_OUT: odds, SUM_READ_OUT: summed}


def accuracies(
    task: ImageTask, scores: Mapping[str, Score], own: Score, X: Tensor, y: Tensor, seed: int
) -> dict[Key, float]:
    """Share of the points where a score has the sign of y, for every score and attack.

    What PGD breaks at the radius of the strongest attack counts as broken by that attack too.
    """

    def right(score: Score, Z: Tensor) -> Tensor:
        with torch.no_grad():
            return y * score(Z) > 0

    found: dict[Key, Tensor] = {
        Quantity("accuracy", attack=CLEAN, readout=readout): right(score, X) for readout, score in scores.items()
    }
    for r in task.radii:
        Z = climb(own, X, r, seed)
        for readout, score in scores.items():
            holding = found[Quantity("accuracy", attack=OWN_LOSS_PGD, radius=r, readout=readout)] = right(score, Z)
            if len(scores) > 1:
                left = right(score, climb(lambda Z, score=score: -y * score(Z), X, r, seed))  # type: ignore[misc]
                found[Quantity("accuracy", attack=READ_OUT_PGD, radius=r, readout=readout)] = left
                holding = holding & left
            if r == task.radius:
                broken = strongest(score, X, y, r, bounds=(0.0, 1.0), seed=seed).success
                found[Quantity("accuracy", attack=STRONGEST, radius=r, readout=readout)] = holding & ~broken
    return {key: float(one.double().mean()) for key, one in found.items()}


def climb(loss: Score, X: Tensor, radius: float, seed: int) -> Tensor:
    """Where PGD on ``loss``, one number a point, ends from a random point of the ball."""
    source = torch.Generator().manual_seed(seed)
    way = functional.normalize(torch.randn(X.shape, generator=source, dtype=X.dtype))
    start = (X + radius * torch.rand(len(X), 1, generator=source, dtype=X.dtype) * way).clamp(0, 1)
    return pgd(loss, X, radius, start=start, bounds=(0, 1))


def head(net: nn.Module, task: ImageTask, labels: str, seed: int) -> Tensor:
    """cos(mean feature of class i, mean weight of the neurons of group j), [10, 10], after training with ``labels``."""
    fine = pictures(task, seed)[0]
    with torch.no_grad():
        features = torch.cat([embedding(net, rows) for _, rows in fine.blocks()])
    features = features / features.square().mean().sqrt()  # one rate for every extractor
    dim, width = features.shape[1], GROUP * CLASSES // 2
    if labels == TWO_LABELS:
        start, data = FixedOutputNet(dim, width, scale=SCALE, seed=seed), Dataset(features, halved(fine, task)[0].y)
        run = descend(start, data, loss="logistic", rate=RATE, steps=UPDATES, every=UPDATES)
    else:
        groups, data = GroupedNet(dim, CLASSES, GROUP, scale=SCALE, seed=seed), Dataset(features, fine.y)
        run = descend(groups, data, loss="cross_entropy", rate=RATE, steps=UPDATES, every=UPDATES)
    means = torch.stack([features[fine.y == c].mean(dim=0) for c in range(CLASSES)])
    weight = run.net.get_parameter("weight").detach().reshape(CLASSES, GROUP, dim).mean(dim=1)
    return functional.normalize(means) @ functional.normalize(weight).T


def patterns(cosines: Mapping[str, Tensor]) -> dict[Key, float]:
    """Block means of the head with two labels, the diagonal against the rest with ten."""
    first, number = torch.arange(CLASSES) < CLASSES // 2, torch.arange(CLASSES)
    two, ten, own, same = cosines[TWO_LABELS], cosines[TEN_LABELS], first[:, None] == first, number[:, None] == number
    found = {
        TWO_LABELS: {
            "mean cosine to its own five": float(two[own].mean()),
            "mean cosine to the other five": float(two[~own].mean()),
            "own minus other": float(two[own].mean() - two[~own].mean()),
        },
        TEN_LABELS: {
            "mean cosine to its own class": float(ten[same].mean()),
            "mean cosine to other classes": float(ten[~same].mean()),
            "own minus other": float(ten[same].mean() - ten[~same].mean()),
            "groups nearest to their own class": float((ten.argmax(dim=0) == number).sum()),
        },
    }
    return {
        Quantity(name, head=f"head with {labels}"): value
        for labels, values in found.items()
        for name, value in values.items()
    }
