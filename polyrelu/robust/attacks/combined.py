"""Attacks made of others: from one kind to the other, and the strongest at one radius."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from polyrelu.checks import checked
from polyrelu.robust.attacks.contract import Attack, Box, MinimalAttack, RadiusAttack
from polyrelu.robust.attacks.starts import Anchor
from polyrelu.robust.attacks.table import ATTACKS, STRONGEST
from polyrelu.robust.attacks.task import AttackTask, BestFound, first_crossing, shrink
from polyrelu.robust.core.attack_result import AttackResult
from polyrelu.robust.core.margin import Score, check_points
from polyrelu.robust.core.norms import check_norm
from polyrelu.robust.core.pool import LabelledRows, PoolSource, check_pool


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

    @property
    def needs_other_class(self) -> bool:
        """If the attack does."""
        return self.attack.needs_other_class

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """Those of the attack."""
        return self.attack.anchors(task)


@final
@dataclass(frozen=True)
class MinimalFromRadius(Adapter, MinimalAttack):
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
class RadiusFromMinimal(Adapter, RadiusAttack):
    """Does the shortest answer of ``attack`` fit into the ball?"""

    attack: MinimalAttack

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """The minimal attack without a ball, pulled back to the boundary."""
        free = replace(task, radius=None, best=BestFound.none(task.X))
        self.attack.search(free, Z)
        shrink(free, 24)
        task.margin(free.best.Z)


@checked
def strongest(
    net: Score,
    X: Tensor,
    y: Tensor,
    radius: float | Tensor,
    *,
    norm: float | str = 2,
    bounds: Box | None = None,
    pool: PoolSource | None = None,
    seed: int = 0,
) -> AttackResult:
    """Is there a wrong point within ``radius`` of each row of X (n, D)? Asks the attacks of `STRONGEST` in turn.

    Each sees the points that those before it did not break.

    Parameters
    ----------
    net : any module, (n, D) -> (n,) with y = +1/-1, or (n, C) with y = 0..C-1; in ``eval`` mode
    radius : a number >= 0 or one per point
    norm, bounds : 1, 2 or inf; the box (low, high) that x + perturbation must respect, or None
    pool : rows and labels to start from (a `polyrelu.data.Dataset`), best the training set; None takes X and y
    """
    X, y = check_points(net, X, y)
    pool = LabelledRows(X, y) if pool is None else pool
    check_pool(pool, X, y)
    pool = LabelledRows(pool.rows().to(X), pool.y.to(y))  # read once
    radius = torch.as_tensor(radius, dtype=torch.float64)
    radius = radius.expand(len(X)) if radius.ndim == 0 else radius
    norm, alone = check_norm(norm), len(set(pool.y.tolist())) == 1
    perturbation, evaluations = torch.zeros_like(X), 0
    size = torch.full((len(X),), torch.inf, dtype=torch.float64, device=X.device)
    for name, norms in STRONGEST.items():
        attack, left = ATTACKS[name], size.isinf().nonzero()[:, 0]
        if not len(left):
            break
        if norm not in norms or (alone and attack.needs_other_class):
            continue
        if isinstance(attack, MinimalAttack):
            attack = RadiusFromMinimal(attack)
        assert isinstance(attack, RadiusAttack)
        more = attack(net, X[left], y[left], radius=radius[left], norm=norm, bounds=bounds, pool=pool, seed=seed)
        perturbation[left], size[left], evaluations = more.perturbation, more.radius, evaluations + more.evaluations
    return AttackResult(perturbation, size, evaluations)
