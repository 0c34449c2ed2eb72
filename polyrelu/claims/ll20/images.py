"""A CNN trained far beyond a loss of zero (Lyu & Li, ICLR 2020, Section 6 and Table of the talk; E5-E9 and E23).

    margin = min_n (f_y(x_n) - max_{c != y} f_c(x_n)) / prod_i |w_i|       (layer by layer)
    loss-based rate  eta = a / L(previous epoch):  a 2^(1/5) after an epoch that lowered L, else undone and a / 2^(1/10)

The published nets, model-1 to model-5, are one run at five losses. At quick size the gradient flow, of which the
loss-based rate is a discretisation, passes the same five losses with a small CNN of the same build on three of the
8 x 8 digits. At paper size the published CNN is trained on MNIST as published, to model-3: 107 of the 10,000 epochs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from polyrelu.bias import layers, margin_history, margins
from polyrelu.claims import Key, Measured, Profile, Quantity, Values, experiment
from polyrelu.claims.ll20 import sizes
from polyrelu.claims.setups.digit_nets import accuracy
from polyrelu.claims.setups.requirements import needs_mnist
from polyrelu.data import Dataset, read
from polyrelu.nets import SmallCNN
from polyrelu.robust.attacks import BoundaryWalk
from polyrelu.train import Until, descend, flow

CLASSES, TRAINED, EPOCHS = 3, 60, 800
LONGEST = 160  # epochs at paper size, should the loss fall more slowly than published


def images(seed: int) -> tuple[Dataset, Dataset]:
    """Sixty of the digits 0, 1 and 2 to train on, and the other 477."""
    digits = read("digits")
    rows = (digits.y < CLASSES).nonzero()[:, 0]
    rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))]
    return digits.subset(rows[:TRAINED]), digits.subset(rows[TRAINED:])


def small_cnn(seed: int) -> nn.Module:
    """conv8 5x5, pool, conv16 3x3, pool, fc32, fc3: a quarter of the published channels, bias in the first layer only.

    He-normal weights, zero bias; degree 4.
    """
    net = nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 8, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding="same", bias=False), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(64, 32, bias=False), nn.ReLU(),
        nn.Linear(32, CLASSES, bias=False),
    )  # fmt: skip
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in net.parameters():
            std = math.sqrt(2 / math.prod(weight.shape[1:])) if weight.ndim > 1 else 0.0
            weight.copy_(std * torch.randn(weight.shape, generator=source))
    return net


def _ratio(values: Values) -> dict[str, float]:
    margin = values.along("rate", "margin")
    return {"margin, loss-based over constant": margin["loss-based rate"] / margin["constant rate"]}


def _long(profile: Profile) -> str:
    if profile == "quick":
        return ""
    return (
        "needs 10,000 epochs of the published CNN on MNIST for each rate; one epoch takes two to four minutes "
        "of one core, so about three weeks. E7-E9 run the first 107."
    )


@experiment(over={"rate": tuple(sizes.RATES)}, combine=_ratio, needs=_long)
def rates(profile: Profile, seed: int, rate: str) -> Measured:
    """E5, E6, E23: as many epochs with a constant and with the loss-based rate (a batch holds all sixty images)."""
    train, _ = images(seed)
    run = descend(
        small_cnn(seed), train, loss="cross_entropy", rate=sizes.RATES[rate], loss_based=rate == "loss-based rate",
        steps=EPOCHS, every=5, until=Until(log10_loss=-10_000),
    )  # fmt: skip
    along, epochs = margin_history(run, layers(run.net, train.rows())), run.history.clock
    half = int(np.abs(epochs - EPOCHS / 2).argmin())
    values = {
        "margin": margins(run.net, train, "cross_entropy").product,
        "log10 of the loss": run.log10_loss,
        "decades of loss won in the second half": float(along.log10_loss[half] - along.log10_loss[-1]),
        "margin over all weights, end over half-way": float(along.normalised[-1] / along.normalised[half]),
    }
    lines = {"epochs": epochs, "log10 loss": along.log10_loss, "normalised": along.normalised}
    return Measured(values, {"rate": rate} | {name: line.tolist() for name, line in lines.items()})


@experiment(needs=needs_mnist)
def models(profile: Profile, seed: int) -> Measured:
    """E7-E9: margin, l2 radii of training images (box [0, 1]) and test accuracy at the published losses."""
    train, test = images(seed) if profile == "quick" else (read("mnist-full"), read("mnist-full:test"))
    levels = sizes.LOG10_LOSSES[: sizes.REACHED[profile]]
    until = Until(log10_loss=levels[-1])
    if profile == "quick":
        run = flow(small_cnn(seed), train, loss="cross_entropy", until=until, checkpoints=levels)
    else:  # batches of 100, no momentum, loss-based rate from a = .1
        run = descend(
            SmallCNN(bias="first", seed=seed), train, method="sgd", batch=100, loss="cross_entropy", rate=0.1,
            loss_based=True, steps=LONGEST * math.ceil(len(train) / 100), until=until, checkpoints=levels, seed=seed,
        )  # fmt: skip
    reached = {level: run.checkpoints[level] for level in levels if level in run.checkpoints}
    attacked = sizes.ATTACKED[profile]
    attack, X, y = BoundaryWalk(steps=12), train.rows(0, attacked), train.y[:attacked]
    margin, radii, right = [], [], []
    for net in reached.values():
        margin.append(margins(net, train, "cross_entropy").product)
        radii.append(attack(net, X, y, bounds=(0.0, 1.0), pool=train).radius)
        right.append(accuracy(net, test))
    drawn = {
        "profile": profile,
        "log10 loss": list(reached),
        "margin": margin,
        "radii": [one.tolist() for one in radii],
        "test accuracy": right,
        "passes": run.evaluations,
    }
    return Measured(_compared(margin, [float(one.mean()) for one in radii], right), drawn)


def _compared(margin: Sequence[float], radius: Sequence[float], right: Sequence[float]) -> dict[Key, float]:
    """Margins, mean radii and test accuracies of model-1, model-2, ..., and each over that of an earlier model."""
    last = len(margin)
    values: dict[Key, float] = {Quantity("margin", model=k): one for k, one in enumerate(margin, 1)}
    values |= {Quantity("mean radius", model=k): radius[k - 1] for k in (1, last)}
    for k, j in (*sizes.NEIGHBOURS, *sizes.AGAINST_FIRST):
        if k <= last:
            values[Quantity("growth of the mean radius", model=k, since=j)] = radius[k - 1] / radius[j - 1]
    for k, j in sizes.NEIGHBOURS:
        if k <= last:
            values[Quantity("growth of the margin", model=k, since=j)] = margin[k - 1] / margin[j - 1]
    return values | {
        Quantity("test accuracy", model=1): right[0],
        "largest change of the test accuracy": max(right) - min(right),
    }
