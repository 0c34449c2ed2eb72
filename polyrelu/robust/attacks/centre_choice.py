"""Which centres a direction attack may use: given ones, else the pool's."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from polyrelu.errors import require
from polyrelu.robust.attacks.task import AttackTask
from polyrelu.robust.core.norms import lengths


class Centres(NamedTuple):
    """Rows (K, D) and their labels (K,)."""

    rows: Tensor
    labels: Tensor


def check_centres(centres: Tensor | None, labels: Tensor | None) -> None:
    """Both or neither, and of fitting shapes."""
    require((centres is None) == (labels is None), "centres, labels", "only one of them", "both or neither")
    if centres is not None and labels is not None:
        require(centres.ndim == 2 and len(centres) > 1, "centres.shape", tuple(centres.shape), "(K, D), K >= 2")
        require(labels.shape == centres.shape[:1], "labels.shape", tuple(labels.shape), f"({len(centres)},)")


def known_centres(task: AttackTask, centres: Tensor | None, labels: Tensor | None) -> Centres | None:
    """The centres given, else those of the pool's clusters, else None; in the dtype of the points."""
    if centres is None or labels is None:
        centres, labels = task.pool.centres, task.pool.labels
    if centres is None or labels is None:
        return None
    dim = task.X.shape[1]
    require(centres.shape[1] == dim, "centres.shape", tuple(centres.shape), f"(K, {dim}), as many columns as X")
    return Centres(centres.to(task.X), labels.to(task.y))


def ray_ends(task: AttackTask, step: Tensor) -> Tensor:
    """Where the rays from X along ``step`` (n, D) have the length ``task.reach``; X itself for a zero step."""
    size = lengths(step, task.norm)
    return task.X + step * (task.reach() / torch.where(size > 0, size, torch.inf))[:, None]


def class_means(task: AttackTask) -> Centres:
    """The mean of every class in the pool."""
    means = task.pool.means
    require(len(means) > 1, "pool", f"rows of one class, {next(iter(means)):g}", "rows of at least two classes")
    return Centres(torch.stack(list(means.values())), torch.tensor(list(means)).to(task.y))
