"""Adam over rows that come in portions: what is kept of it between two portions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from polyrelu.nets import PolyReLUNet
from polyrelu.train.descent import adam, gradient_of


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
