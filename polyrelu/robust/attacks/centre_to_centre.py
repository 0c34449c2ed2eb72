"""From the own centre to another: what breaks every classifier at half the distance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from polyrelu.robust.attacks.centre_choice import check_centres, known_centres, ray_ends
from polyrelu.robust.attacks.contract import MinimalAttack
from polyrelu.robust.attacks.line_search import first_crossing
from polyrelu.robust.attacks.starts import Anchor, Towards
from polyrelu.robust.attacks.task import AttackTask


@final
@dataclass(frozen=True, eq=False)
class CentreToCentre(MinimalAttack):
    """x + r (mu_l - mu_k)/|mu_l - mu_k|, mu_k the nearest own centre, every mu_l of another class (Min & Vidal 2024).

    Orthonormal centres: F^(p), p >= 2, breaks at r = sqrt(2)/2 at a centre, and no classifier can hold beyond on all
    of them. Centres come from ``centres`` and ``labels``, else from the clusters of the pool; without either, the way
    is from x to ``others`` rows of other classes and to their means. r is the first crossing on ``samples`` steps.
    """

    centres: Tensor | None = None
    labels: Tensor | None = None
    others: int = 8
    samples: int = 64

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        check_centres(self.centres, self.labels)

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """The ends of the rays, at a distance of ``task.reach``."""
        known = known_centres(task, self.centres, self.labels)
        if known is None:
            for Z, target in Towards(self.others).anchors(task):
                yield ray_ends(task, Z - task.X), target
            return
        foreign = task.y[:, None] != known.labels
        nearest = torch.cdist(task.X, known.rows).masked_fill(foreign, torch.inf).argmin(dim=1)
        for row, label in zip(known.rows, known.labels, strict=True):
            step = torch.where((task.y == label)[:, None], 0.0, row - known.rows[nearest])
            yield ray_ends(task, step), label.expand_as(task.y)

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """Along the rays."""
        first_crossing(task, Z, self.samples, halvings=20)
