"""Attacks along directions between centres: from the own centre to another, and one direction for all points.

The centres are given ones, else those of the pool's clusters; without either, rows and class means stand in for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from polyrelu.bias import class_sums, steps_to_classes
from polyrelu.errors import require
from polyrelu.robust.attacks.contract import MinimalAttack
from polyrelu.robust.attacks.starts import Anchor, OtherClassStart
from polyrelu.robust.attacks.task import AttackTask, first_crossing
from polyrelu.robust.core.norms import lengths


@dataclass(frozen=True, eq=False)
class CentreAttack(MinimalAttack):
    """The first crossing on ``samples`` steps along each ray; ``centres`` (K, D), ``labels`` (K,): both or neither."""

    centres: Tensor | None = None
    labels: Tensor | None = None
    samples: int = 64
    needs_other_class = True

    def __post_init__(self) -> None:
        super().__post_init__()
        centres, labels = self.centres, self.labels
        require((centres is None) == (labels is None), "centres, labels", "only one of them", "both or neither")
        if centres is not None and labels is not None:
            require(centres.ndim == 2 and len(centres) > 1, "centres.shape", tuple(centres.shape), "(K, D), K >= 2")
            require(labels.shape == centres.shape[:1], "labels.shape", tuple(labels.shape), f"({len(centres)},)")

    def known(self, task: AttackTask) -> tuple[Tensor, Tensor] | None:
        """The centres given, else those of the pool's clusters, with their labels; None where there are none."""
        centres, labels = self.centres, self.labels
        if centres is None or labels is None:
            centres, labels = task.pool.centres, task.pool.labels
        if centres is None or labels is None:
            return None
        dim = task.X.shape[1]
        require(centres.shape[1] == dim, "centres.shape", tuple(centres.shape), f"(K, {dim}), as many columns as X")
        return centres.to(task.X), labels.to(task.y)

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """The first crossing of the boundary on each ray."""
        first_crossing(task, Z, self.samples, halvings=20)


def ray_ends(task: AttackTask, step: Tensor) -> Tensor:
    """Where the rays from X along ``step`` (n, D) have the length ``task.reach``; X itself for a zero step."""
    size = lengths(step, task.norm)
    return task.X + step * (task.reach() / torch.where(size > 0, size, torch.inf))[:, None]


@final
@dataclass(frozen=True, eq=False)
class CentreToCentre(CentreAttack):
    """x + r (mu_l - mu_k)/|mu_l - mu_k|, mu_k the nearest own centre, every mu_l of another class (Min & Vidal 2024).

    Orthonormal centres: F^(p), p >= 2, breaks at r = sqrt(2)/2 at a centre, and no classifier can hold beyond on all
    of them. Without known centres the way is from x to ``others`` rows of other classes and to their means.
    """

    others: int = 8

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """The ends of the rays, at a distance of ``task.reach``."""
        known = self.known(task)
        if known is None:
            for Z, target in OtherClassStart(self.others).anchors(task):
                yield ray_ends(task, Z - task.X), target
            return
        rows, labels = known
        nearest = torch.cdist(task.X, rows).masked_fill(task.y[:, None] != labels, torch.inf).argmin(dim=1)
        for row, label in zip(rows, labels, strict=True):
            step = torch.where((task.y == label)[:, None], 0.0, row - rows[nearest])
            yield ray_ends(task, step), label.expand_as(task.y)


@final
@dataclass(frozen=True, eq=False)
class UniversalDirection(CentreAttack):
    """x - y r d0,  d0 = sum_k y_k mu_k / sqrt(K): breaks F at r = 1/sqrt(K) at every centre (Min & Vidal 2024).

    Of orthonormal centres mu_k with labels y_k; without known centres d0 is the difference of the class means. For C
    classes: from the sum (or mean) of the own class to that of every other class, the shortest counts.
    """

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """The ends of the rays, at a distance of ``task.reach``."""
        known = self.known(task)
        if known is None:
            means = task.pool.means
            require(len(means) > 1, "pool", f"rows of one class, {next(iter(means)):g}", "rows of at least two classes")
            known = torch.stack(list(means.values())), torch.tensor(list(means)).to(task.y)
        for label, step in steps_to_classes(*class_sums(*known), task.y):
            yield ray_ends(task, step), label.expand_as(task.y)
