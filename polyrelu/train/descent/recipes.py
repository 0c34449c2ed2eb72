"""Training recipes as published, for any data.

    f(x) = sum_j v_j relu(<x - c, w_j>)^p / (|w_j| |x - c|)^(p-1) + b,   c the mean of the training inputs

trained by Adam on shuffled batches of the mean cross-entropy (Min & Vidal, ICML 2024, the MNIST and Caltech-256
heads): 500 neurons, rate 1e-3, batches of 1000, 51 epochs.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from polyrelu.checks import checked
from polyrelu.data import Dataset
from polyrelu.errors import require
from polyrelu.nets import PolyReLUNet
from polyrelu.progress import Progress
from polyrelu.train.descent.descend import EachEpoch, descend
from polyrelu.train.stopping import Until
from polyrelu.train.trajectory import Trajectory


@checked
def published_head(
    data: Dataset,
    p: float,
    *,
    width: int = 500,
    epochs: int = 51,
    rate: float = 1e-3,
    batch: int = 1000,
    seed: int = 0,
    each_epoch: EachEpoch | None = None,
    progress: Progress | None = None,
) -> Trajectory:
    """The published net for real data, trained as published; any real p >= 1.

    First layer uniform +-sqrt(6/width), output layer and bias as PyTorch draws them. One logit and the logistic loss
    for labels +-1, otherwise one logit per class. Weights and the order of the rows both come from ``seed``.

    Parameters
    ----------
    each_epoch : called with 0 and the net at the start, and with k and the net after epoch k
    """
    for name, value in (("epochs", epochs), ("batch", batch)):
        require(value >= 1, name, value, "a whole number >= 1")
    outputs = 1 if data.binary else data.classes
    net = PolyReLUNet(
        data.dim,
        width,
        p,
        outputs,
        init="kaiming",
        seed=seed,
        centre=mean_row(data),
        bias=True,
        normalise_input=True,
        dtype=data.dtype,
    )
    loss = "logistic" if data.binary else "cross_entropy"
    return adam_epochs(
        net, data, epochs=epochs, rate=rate, batch=batch, seed=seed, loss=loss, each_epoch=each_epoch, progress=progress
    )


def adam_epochs(
    net: nn.Module,
    data: Dataset,
    *,
    epochs: int,
    rate: float,
    batch: int,
    seed: int,
    loss: str = "cross_entropy",
    each_epoch: EachEpoch | None = None,
    progress: Progress | None = None,
    weights: Tensor | None = None,
    unit: float = 1.0,
) -> Trajectory:
    """So many passes of Adam over shuffled batches, whatever the loss becomes; the arguments are those of `descend`."""
    return descend(
        net,
        data,
        method="adam",
        rate=rate,
        loss=loss,
        until=Until(log10_loss=-1e6),  # never
        steps=epochs * math.ceil(len(data) / batch),
        batch=batch,
        every=epochs,
        seed=seed,
        each_epoch=each_epoch,
        progress=progress,
        weights=weights,
        unit=unit,
    )


def mean_row(data: Dataset) -> Tensor:
    """Mean of the rows, summed in float64 block by block."""
    total = torch.zeros(data.dim, dtype=torch.float64)
    for _, rows in data.blocks():
        total += rows.double().sum(0)
    return (total / len(data)).to(data.dtype)
