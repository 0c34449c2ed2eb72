"""The two kinds of attack, and the call they share.

An attack's own file says where to begin (`anchors`) and how to step (`search`). The call nobody rewrites owns the
rest: checks at the door, points already wrong, batches, starts and targets, the best so far, ball and box, and the
last honest look at x + perturbation with the score itself, in the dtype of x.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import final

from torch import Tensor

from polyrelu.checks import checked
from polyrelu.errors import require
from polyrelu.robust.attacks.runner import AttackArguments, run
from polyrelu.robust.attacks.starts import Anchor
from polyrelu.robust.attacks.task import Task
from polyrelu.robust.core.margin import Score
from polyrelu.robust.core.norms import check_norm
from polyrelu.robust.core.pool import Labelled
from polyrelu.robust.core.result import AttackResult

Box = tuple[float, float]


class Attack(ABC):
    """What both kinds have in common: subclass `RadiusAttack` or `MinimalAttack`, as a final frozen dataclass."""

    @property
    def norms(self) -> tuple[float, ...]:
        """The norms the attack is made for."""
        return (1.0, 2.0, math.inf)

    @property
    def targeted(self) -> bool:
        """Whether starts that lead to no class in particular are repeated for every other class."""
        return False

    @property
    def exact(self) -> bool:
        """Whether what is found lies on the boundary already, and need not be pulled back to it."""
        return False

    @abstractmethod
    def anchors(self, task: Task) -> Iterator[Anchor]:
        """Points to start from, one for each row of ``task.X``, any number of times."""

    @abstractmethod
    def search(self, task: Task, Z: Tensor) -> None:
        """Walk from the rows of Z. Nothing is returned: whatever ``task.margin`` or ``task.slope`` sees is remembered.

        Rows are independent of each other: each is one point from one start, and ``task.X`` repeats accordingly.
        """

    def _norm(self, norm: float | str) -> float:
        value = check_norm(norm)
        require(
            value in self.norms, "norm", norm, f"{' or '.join(f'{n:g}' for n in self.norms)} for {type(self).__name__}"
        )
        return value


class RadiusAttack(Attack):
    """Is there a wrong point within a given radius? ``task.inside`` and ``task.project`` keep to it."""

    @final
    @checked
    def __call__(
        self,
        score: Score,
        X: Tensor,
        y: Tensor,
        *,
        radius: float | Tensor,
        norm: float | str = 2.0,
        bounds: Box | None = None,
        pool: Labelled | None = None,
        seed: int = 0,
        batch: int | None = None,
    ) -> AttackResult:
        """Attack every row of X (n, D) with labels y (n,); see `MinimalAttack` for the arguments.

        radius : a number >= 0 or one per point (n,); no answer is longer, and 0 breaks only what is already wrong
        """
        door = AttackArguments(self._norm(norm), bounds, pool, seed, batch)
        return run(self, door.task(score, X, y, radius), door.batch)


class MinimalAttack(Attack):
    """How near is the nearest wrong point? The best point of every start is pulled back to the boundary afterwards."""

    @final
    @checked
    def __call__(
        self,
        score: Score,
        X: Tensor,
        y: Tensor,
        *,
        norm: float | str = 2.0,
        bounds: Box | None = None,
        pool: Labelled | None = None,
        seed: int = 0,
        batch: int | None = None,
    ) -> AttackResult:
        """Attack every row of X (n, D) with labels y (n,): +1/-1 for one logit, 0..C-1 for C logits.

        score : (n, D) -> (n,) or (n, C); any ``torch.nn.Module``, in ``eval`` mode if it has one
        norm : 1, 2 or inf
        bounds : (low, high) that x + perturbation must respect; None is no box
        pool : rows and labels (a `polyrelu.data.Dataset`) for starts, means and directions; None takes X and y
        seed, batch : the same seed gives the same answer whatever ``batch``, the number of points at a time
        """
        door = AttackArguments(self._norm(norm), bounds, pool, seed, batch)
        return run(self, door.task(score, X, y, None), door.batch)
