"""One direction for all points: what breaks a classifier that averages the features of a class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from torch import Tensor

from polyrelu.bias import class_sums, steps_to_classes
from polyrelu.robust.attacks.centre_choice import check_centres, class_means, known_centres, ray_ends
from polyrelu.robust.attacks.contract import MinimalAttack
from polyrelu.robust.attacks.line_search import first_crossing
from polyrelu.robust.attacks.starts import Anchor
from polyrelu.robust.attacks.task import AttackTask


@final
@dataclass(frozen=True, eq=False)
class UniversalDirection(MinimalAttack):
    """x - y r d0,  d0 = sum_k y_k mu_k / sqrt(K): breaks F at r = 1/sqrt(K) at every centre (Min & Vidal 2024).

    Of orthonormal centres mu_k with labels y_k. Centres come from ``centres`` and ``labels``, else from the clusters
    of the pool; without either, d0 is the difference of the class means. For C classes: from the sum (or mean) of the
    own class to that of every other class, the shortest counts. r is the first crossing on ``samples`` steps.
    """

    centres: Tensor | None = None
    labels: Tensor | None = None
    samples: int = 64

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        check_centres(self.centres, self.labels)

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """The ends of the rays, at a distance of ``task.reach``."""
        known = known_centres(task, self.centres, self.labels)
        rows, labels = class_means(task) if known is None else known
        for label, step in steps_to_classes(*class_sums(rows, labels), task.y):
            yield ray_ends(task, step), label.expand_as(task.y)

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """Along the rays."""
        first_crossing(task, Z, self.samples, halvings=20)
