"""The rows of every update of a descent: all of them, or shuffled batches, from memory or from blocks of a file.

Rows that are not in memory are shuffled within random handfuls of blocks, HELD rows at a time, so that labels in order
of class do no harm; every batch but the last of a pass is full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from polyrelu.data import BLOCK, Dataset
from polyrelu.errors import require
from polyrelu.train.descent.backward import Parts

HELD = 32 * BLOCK


class Batches:
    """Passes over ``data`` in batches (None: all rows at once), in ``dtype``, rows as ``prepare`` makes them.

    ``weights`` (n,) of the samples or None; see `mean_one`.
    """

    def __init__(
        self,
        data: Dataset,
        dtype: torch.dtype,
        batch: int | None,
        prepare: Callable[[Tensor], Tensor],
        weights: Tensor | None = None,
    ) -> None:
        self.data, self.dtype, self.prepare = data, dtype, prepare
        self.batch = None if batch is None else min(batch, len(data))
        self.y = data.y.to(dtype) if data.binary else data.y
        self.log_weight = None if weights is None else mean_one(weights, len(data)).log().to(data.y.device, dtype)
        self.X = prepare(data.X.to(dtype)) if isinstance(data.X, Tensor) else None
        self.starts = range(0, len(data), BLOCK)

    def __call__(self, generator: torch.Generator) -> Iterator[tuple[Parts, int]]:
        """For every update of a pass its rows, labels and log weights in parts, and the number of rows."""
        n = len(self.data)
        if self.batch is None:
            yield (self.block(start) for start in self.starts), n
        elif self.X is not None:
            buffer = self.X.new_empty(self.batch, *self.X.shape[1:])
            for index in torch.split(torch.randperm(n, generator=generator).to(self.X.device), self.batch):
                x = torch.index_select(self.X, 0, index, out=buffer[: len(index)])
                yield [(x, *self.labels(index))], len(index)
        else:
            order = torch.randperm(len(self.starts), generator=generator).tolist()
            held: tuple[Tensor, ...] | None = None
            while order or held is not None:
                some, order = order[: HELD // BLOCK], order[HELD // BLOCK :]
                parts = [*([] if held is None else [held]), *(self.block(self.starts[k]) for k in some)]
                whole = [torch.cat(part) for part in zip(*parts, strict=True)]
                shuffled = torch.randperm(len(whole[0]), generator=generator).to(whole[0].device)
                last, held = len(shuffled) - len(shuffled) % self.batch if order else len(shuffled), None
                for index in torch.split(shuffled[:last], self.batch):
                    yield [tuple(part[index] for part in whole)], len(index)
                if last < len(shuffled):
                    held = tuple(part[shuffled[last:]] for part in whole)

    def block(self, start: int) -> tuple[Tensor, ...]:
        """The rows from ``start`` on as the gradient takes them, with labels and log weights."""
        stop = min(start + BLOCK, len(self.data))
        if self.X is not None:
            return self.X[start:stop], *self.labels(slice(start, stop))
        return self.prepare(self.data.rows(start, stop).to(self.dtype)), *self.labels(slice(start, stop))

    def labels(self, rows: slice | Tensor) -> tuple[Tensor, ...]:
        """Labels of some rows and, where samples are weighted, the logs of their weights."""
        return (self.y[rows],) if self.log_weight is None else (self.y[rows], self.log_weight[rows])


def mean_one(weights: Tensor, n: int) -> Tensor:
    """Weights of n samples with mean 1, in float64; finite, >= 0 and not all 0."""
    weights = torch.as_tensor(weights).detach().double()
    require(tuple(weights.shape) == (n,), "weights.shape", tuple(weights.shape), f"({n},), one for each row")
    good = bool((weights >= 0).all() & weights.isfinite().all() & weights.any())
    require(good, "weights", f"{float(weights.min()):g} to {float(weights.max()):g}", "numbers >= 0, not all of them 0")
    return weights / weights.mean()
