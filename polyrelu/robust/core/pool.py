"""The points an attack may look at besides the one it attacks: samples, class means, centres."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, final

import numpy as np
import torch
from torch import Tensor

from polyrelu.errors import require

MOST = 4096  # rows per class among which spread-out samples are sought


class PoolSource(Protocol):
    """What ``pool`` must offer; a `polyrelu.data.Dataset` does. ``cluster`` and ``centres`` are used if not None."""

    @property
    def y(self) -> Tensor: ...  # noqa: D102
    @property
    def cluster(self) -> Tensor | None: ...  # noqa: D102
    @property
    def centres(self) -> Tensor | None: ...  # noqa: D102
    def rows(self) -> Tensor: ...  # noqa: D102


@final
@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows X (N, D) in memory with labels y (N,); the centres (K, D) of their clusters, with labels (K,), if known."""

    X: Tensor
    y: Tensor
    centres: Tensor | None = None
    labels: Tensor | None = None
    cluster: None = None

    def rows(self) -> Tensor:
        """All of them."""
        return self.X

    @cached_property
    def means(self) -> dict[float, Tensor]:
        """The mean row of each class present, by label."""
        return {label: self.X[self.y == label].mean(dim=0) for label in sorted(set(self.y.tolist()))}

    @cached_property
    def samples(self) -> dict[tuple[float, int, int], tuple[Tensor, Tensor]]:
        """Answers of `against`, found once."""
        return {}

    def nearest(self, X: Tensor, label: float) -> Tensor:
        """For each row of X (n, D) the row of class ``label`` nearest to it in l2, among the first `MOST`."""
        rows = self.X[(self.y == label).nonzero()[:MOST, 0]]
        return rows[(rows.square().sum(dim=1) - 2 * X @ rows.T).argmin(dim=1)]

    def against(self, label: float, count: int, seed: int) -> tuple[Tensor, Tensor]:
        """``count`` rows of other classes and the mean of each other class, (k, D), with their labels (k,).

        The rows are taken farthest-first from a random one (Gonzalez, 1985), so that the other classes' hidden
        clusters are all met when there are no more than ``count`` of them.
        """
        key = (label, count, seed)
        if key not in self.samples:
            others = (self.y != label).nonzero()[:, 0]
            message = f"rows of a class other than {label:g}, to start from; give a pool that has some"
            require(len(others) > 0, "pool", f"{len(self.y)} rows, all of class {label:g}", message)
            draw = np.random.default_rng([seed, len(others)])
            some = others[torch.from_numpy(draw.permutation(len(others))[:MOST]).to(others.device)]
            chosen = some[spread_out(self.X[some], count)]
            means = {c: mean for c, mean in self.means.items() if c != label}
            labels = torch.cat([self.y[chosen], torch.tensor(list(means)).to(self.y)])
            self.samples[key] = torch.cat([self.X[chosen], torch.stack(list(means.values()))]), labels
        return self.samples[key]


def spread_out(X: Tensor, count: int) -> Tensor:
    """Numbers of up to ``count`` different rows: the first, then always the one farthest from those taken."""
    taken = [0] if count else []
    distance = torch.linalg.vector_norm(X - X[0], dim=1)
    while len(taken) < count and bool(distance.max() > 0):
        taken.append(int(distance.argmax()))
        distance = torch.minimum(distance, torch.linalg.vector_norm(X - X[taken[-1]], dim=1))
    return torch.tensor(taken, dtype=torch.int64, device=X.device)


def check_pool(source: PoolSource, X: Tensor, y: Tensor) -> None:
    """Rows and labels as (X, y) have them, or an InputError."""
    columns = getattr(source, "dim", None) or source.rows().shape[1]  # a Dataset need not read its rows for that
    labels = set(source.y.tolist())
    require(columns == X.shape[1], "pool", f"{columns} columns", f"{X.shape[1]}, as many as X")
    binary = y.is_floating_point()
    good = labels <= {1, -1} if binary else not source.y.is_floating_point()
    require(good, "pool.y", sorted(labels)[:5], "+1/-1" if binary else "classes 0, 1, 2, ..., as in y")


def pool_of(source: PoolSource | None, X: Tensor, y: Tensor) -> LabelledRows:
    """``source`` in the dtype and with the kind of labels of (X, y); X and y themselves where there is none."""
    if source is None:
        return LabelledRows(X, y)
    check_pool(source, X, y)
    rows, labels = source.rows().to(X), source.y.to(y)
    if isinstance(source, LabelledRows) and source.centres is not None and source.labels is not None:
        return LabelledRows(rows, labels, source.centres.to(X), source.labels.to(y))
    if source.centres is None or source.cluster is None:
        return LabelledRows(rows, labels)
    cluster = source.cluster.to(X.device)
    seen = torch.tensor(
        sorted(set(cluster.tolist())), device=X.device
    )  # a centre is labelled by the first row of its cluster
    first = torch.stack([(cluster == k).int().argmax() for k in seen])
    return LabelledRows(rows, labels, source.centres.to(X)[seen], labels[first])
