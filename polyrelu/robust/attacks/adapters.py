"""From one kind of attack to the other: wrap, do not subclass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from polyrelu.robust.attacks.contract import Attack, MinimalAttack, RadiusAttack
from polyrelu.robust.attacks.starts import Anchor
from polyrelu.robust.attacks.task import AttackTask, BestFound, first_crossing, shrink


class Adapter(Attack):
    """First base of an attack made from another: the norms, targets and starts of ``attack``."""

    attack: Attack

    @property
    def norms(self) -> tuple[float, ...]:
        """Those of the attack."""
        return self.attack.norms

    @property
    def targeted(self) -> bool:
        """As the attack is."""
        return self.attack.targeted

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """Those of the attack."""
        return self.attack.anchors(task)


@final
@dataclass(frozen=True)
class Minimal(Adapter, MinimalAttack):
    """The smallest radius at which ``attack`` succeeds, by bisection, for every point and start by itself.

    The upper end comes from the straight way to the start, or else from the distance to the class means; each success
    brings it down to the length found and on to the boundary. Cost: ``rounds`` attacks.
    """

    attack: RadiusAttack
    rounds: int = 10

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """Bisection between 0 and the shortest known, attacking at the middle."""
        first_crossing(task, Z, samples=16, halvings=4)
        low, widest = torch.zeros_like(task.best.size), task.reach().double()
        for turn in range(self.rounds):
            known = task.best.size.isfinite()
            radius = torch.where(known, (low + task.best.size) / 2, widest / 2**turn)
            self.attack.search(replace(task, radius=radius), Z)  # remembers in the same place
            shrink(task, 4)
            low = torch.where(known & (task.best.size > radius), radius, low)


@final
@dataclass(frozen=True)
class AtRadius(Adapter, RadiusAttack):
    """Does the shortest answer of ``attack`` fit into the ball?"""

    attack: MinimalAttack

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """The minimal attack without a ball, pulled back to the boundary."""
        free = replace(task, radius=None, best=BestFound.none(task.X))
        self.attack.search(free, Z)
        shrink(free, 24)
        task.margin(free.best.Z)
