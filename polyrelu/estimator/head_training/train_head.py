"""A head for anybody's rows: the published training (Min & Vidal, ICML 2024), made independent of the unit of X.

    f(x) = sum_j v_j relu(<x - c, w_j>)^p / (|w_j| |x - c|)^(p-1) [+ b],   c the weighted mean of the rows

Adam sees the rows as if their root mean square distance s from c were 1 (`head_start`, `descent.adam`): X multiplied by
a number gives the same predictions, and the net, hence every radius, is in the unit of X.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from polyrelu.data import Dataset
from polyrelu.errors import require
from polyrelu.estimator.head_training.head_init import STARTS, HeadStart, location
from polyrelu.progress import Progress
from polyrelu.train import Trajectory, Until, flow, log_add, pull
from polyrelu.train.descent import degree, descend, logits, mean_one

NEVER = Until(log10_loss=-1e6)
REACH = 1e9
LARGEST = 307  # decades of a float64
NEAR = 1e-5  # rounding of the rows, as a part of their typical distance from the centre
LOOKS = 100  # looks at the held-out rows in a run, at most one an epoch
Look = Callable[[int, nn.Module], bool | None]


def train_head(
    data: Dataset,
    p: float,
    *,
    width: int = 500,
    epochs: int = 50,
    rate: float = 1e-3,
    batch: int = 200,
    seed: int = 0,
    weights: Tensor | None = None,
    bias: bool = False,
    normalise_input: bool = True,
    init: str = "rows",
    validation: Dataset | None = None,
    validation_weights: Tensor | None = None,
    patience: int = 20,
    each_epoch: Look | None = None,
    progress: Progress | None = None,
) -> Trajectory:
    """Adam on shuffled batches of the weighted mean cross-entropy; one logit for labels +-1, else one for each class.

    Parameters
    ----------
    weights : (n,) weights >= 0 of the samples, or None; only their ratios matter
    init : "rows" or "random", see `polyrelu.estimator.head_training.head_init`
    validation, validation_weights : held-out rows, and theirs as ``weights``; the net with the least loss on them is
        kept, and the run ends when that has not fallen for ``patience`` looks. A look is taken a hundred times in
        ``epochs``, at most once an epoch
    each_epoch : called with 0 and the net at the start, and with k and the net after epoch k; True ends the run
    """
    require(init in STARTS, "init", repr(init), " or ".join(map(repr, STARTS)))
    for name, value in (("epochs", epochs), ("batch", batch), ("patience", patience)):
        require(value >= 1, name, value, "a whole number >= 1")
    start = _start(data, p, width, batch, seed, weights, bias, normalise_input)
    net = start.rows(data, weights) if init == "rows" else start.random()
    held_out = (
        None if validation is None else HeldOut(validation, validation_weights, patience, max(1, epochs // LOOKS))
    )

    def look(epoch: int, net: nn.Module) -> bool:
        told = each_epoch is not None and each_epoch(epoch, net)
        return bool(held_out is not None and held_out(epoch, net)) or bool(told)

    out = descend(
        net,
        data,
        method="adam",
        rate=rate,
        loss="cross_entropy",
        until=NEVER,
        steps=epochs * math.ceil(len(data) / batch),
        batch=batch,
        every=epochs,
        seed=seed,
        each_epoch=look,
        progress=progress,
        weights=weights,
        unit=start.unit,
    )
    if held_out is None:
        return out
    out.net.load_state_dict(held_out.best)
    return replace(out, counts={**out.counts, "epoch_kept": float(held_out.epoch)})


def flow_head(
    data: Dataset,
    p: float,
    *,
    width: int = 200,
    scale: float = 1e-3,
    until: float = 1e-2,
    passes: int = 1000,
    seed: int = 0,
    bias: bool = False,
    normalise_input: bool = True,
    progress: Progress | None = None,
) -> Trajectory:
    """The gradient flow of the mean cross-entropy from a balanced start of size ``scale`` to the loss ``until``.

    Ends with another status than ``Status.LOSS`` where ``passes`` over the data do not suffice.
    """
    net = _start(data, p, width, len(data), seed, None, bias, normalise_input).balanced(scale)
    return flow(net, data, loss="cross_entropy", until=until, max_evaluations=passes, progress=progress)


def _start(
    data: Dataset,
    p: float,
    width: int,
    batch: int,
    seed: int,
    weights: Tensor | None,
    bias: bool,
    normalise_input: bool,
) -> HeadStart:
    """In float64 for float64 rows that fit into one batch, otherwise as `precision` says."""
    centre, unit = location(data, weights)
    power = degree(p, normalise_input)
    good = bool(centre.isfinite().all()) and abs(power * math.log10(unit)) < LARGEST
    said = f"rows whose squares and powers of {power:g} a float holds: scale them to about 1"
    require(good, "X", f"rows of length {unit:.3g} around their mean", said)
    few = data.dtype == torch.float64 and len(data) <= batch
    dtype = torch.float64 if few else precision(centre, unit, power)
    outputs = 1 if data.binary else data.classes
    return HeadStart(p, width, outputs, centre, unit, bias, normalise_input, dtype, seed)


def precision(centre: Tensor, unit: float, degree: float) -> torch.dtype:
    """float32 where unit^degree leaves room for Adam's squares, and x - c is what it is although x is rounded first."""
    near = float(centre.abs().max()) * torch.finfo(torch.float32).eps < NEAR * unit
    return torch.float32 if near and 1 / REACH < unit**degree < REACH else torch.float64


class HeldOut:
    """Looks at held-out rows every so many epochs; keeps the weights with the least loss on them, from the start on."""

    def __init__(self, data: Dataset, weights: Tensor | None, patience: int, every: int) -> None:
        self.data, self.patience, self.every = data, patience, every
        self.weights = torch.ones(len(data)) if weights is None else weights
        self.log_losses: list[float] = []
        self.least, self.epoch = math.inf, 0
        self.best: dict[str, Tensor] = {}

    def __call__(self, epoch: int, net: nn.Module) -> bool:
        """Whether the loss has not fallen for ``patience`` looks."""
        if epoch % self.every:
            return False
        self.log_losses.append(held_out_loss(net, self.data, self.weights))
        if not self.best or self.log_losses[-1] < self.least:
            self.least, self.epoch, self.best = self.log_losses[-1], epoch, copy.deepcopy(net.state_dict())
        return epoch >= self.epoch + self.patience * self.every


def held_out_rows(groups: Tensor, weights: Tensor, share: float, seed: int) -> Tensor:
    """Numbers of rows to set aside: this share of every group, one row at least of those that have two with weight."""
    source, chosen = torch.Generator().manual_seed(seed), []
    for group in sorted(set(groups.tolist())):
        rows = ((groups == group) & (weights > 0)).nonzero()[:, 0]
        some = min(len(rows) - 1, max(1, round(share * len(rows))))
        chosen.append(rows[torch.randperm(len(rows), generator=source).to(rows.device)[: max(0, some)]])
    return torch.cat(chosen)


@torch.no_grad()
def held_out_loss(net: nn.Module, data: Dataset, weights: Tensor) -> float:
    """Log of the weighted mean cross-entropy on ``data``."""
    dtype, total, share = next(net.parameters()).dtype, -math.inf, mean_one(weights, len(data)).log()
    for start, x in data.blocks():
        y = data.y[start : start + len(x)]
        loss = pull("cross_entropy", logits(net, x.to(dtype)), y.to(dtype) if data.binary else y).log_loss.double()
        total = log_add(total, float((loss + share[start : start + len(x)].to(loss.device)).logsumexp(0)))
    return total - math.log(len(data))
