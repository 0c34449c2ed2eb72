"""Adam for a head: the best weights on held-out rows, and rows that come in portions.

    f(x) = sum_j v_j relu(<x - c, w_j>)^p / (|w_j| |x - c|)^(p-1) [+ b],   c the weighted mean of the rows

Adam sees the rows as if their root mean square distance s from c were 1 (`head_init`, `descent.adam`): X multiplied by
a number gives the same predictions, and the net, hence every radius, is in the unit of X.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from torch import Tensor, nn

from polyrelu.data import Dataset
from polyrelu.nets import PolyReLUNet
from polyrelu.train import Trajectory, log_add, loss_slopes
from polyrelu.train.descent import adam, gradient_of, logit_columns, mean_one_weights


class HeldOut:
    """Looks at held-out rows every so many epochs; keeps the weights with the least loss on them, from the start on."""

    def __init__(self, data: Dataset, weights: Tensor, patience: int, every: int) -> None:
        self.data, self.weights, self.patience, self.every = data, weights, patience, every
        self.least, self.epoch = math.inf, 0
        self.best: dict[str, Tensor] = {}

    def __call__(self, epoch: int, net: nn.Module) -> bool:
        """Whether the loss has not fallen for ``patience`` looks."""
        if epoch % self.every:
            return False
        log_loss = held_out_loss(net, self.data, self.weights)
        if not self.best or log_loss < self.least:
            self.least, self.epoch, self.best = log_loss, epoch, copy.deepcopy(net.state_dict())
        return epoch >= self.epoch + self.patience * self.every

    def kept(self, run: Trajectory) -> Trajectory:
        """A run that was looked at, with those weights."""
        run.net.load_state_dict(self.best)
        return replace(run, counts={**run.counts, "epoch_kept": float(self.epoch)})


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
    dtype, total, share = next(net.parameters()).dtype, -math.inf, mean_one_weights(weights, len(data)).log()
    for start, x in data.blocks():
        y = data.y[start : start + len(x)]
        loss = loss_slopes(
            "cross_entropy", logit_columns(net, x.to(dtype)), y.to(dtype) if data.binary else y
        ).log_loss.double()
        total = log_add(total, float((loss + share[start : start + len(x)].to(loss.device)).logsumexp(0)))
    return total - math.log(len(data))


@final
@dataclass(frozen=True, eq=False)
class AdamState:
    """Length that counts as 1 (see `descend.adam`), seed, portions seen, and Adam's moments if any."""

    unit: float
    seed: int
    portions: int = 0
    moments: dict[str, Any] | None = None

    def epoch(
        self, net: PolyReLUNet, X: Tensor, y: Tensor, weights: Tensor | None, batch: int, rate: float
    ) -> AdamState:
        """One pass over the rows X in shuffled batches changes ``net``; gives what is kept for the next.

        y as in `Dataset`, but any class may be missing; the gradient is sum_i weight_i grad l_i / rows of the batch.
        """
        optimiser, gradient = adam(net, rate, self.unit), gradient_of(net, "cross_entropy")
        if self.moments is not None:
            optimiser.load_state_dict(self.moments)
            for group in optimiser.param_groups:
                group["lr"] = rate * group["share"]
        labels = [y.to(net.dtype) if net.outputs == 1 else y]
        labels += [] if weights is None else [weights.log().to(net.dtype)]
        source = torch.Generator().manual_seed(self.seed + self.portions)
        for index in torch.split(torch.randperm(len(X), generator=source).to(X.device), batch):
            x = gradient.rows(X[index].to(net.weight))
            gradient([(x, *(part[index].to(x.device) for part in labels))], len(index), 0.0)
            optimiser.step()
        return AdamState(self.unit, self.seed, self.portions + 1, optimiser.state_dict())


def portion_location(X: Tensor, weights: Tensor | None = None, centre: Tensor | None = None) -> tuple[Tensor, float]:
    """Weighted mean of the rows in float64, or ``centre``, and the root mean square distance from it (1 if it is 0)."""
    X = X.double()
    share = torch.ones_like(X[:, 0]) if weights is None else weights.double()
    share = share / share.sum()
    centre = share @ X if centre is None else centre.to(X)
    return centre, math.sqrt(float(share @ (X - centre).square().sum(1))) or 1.0
