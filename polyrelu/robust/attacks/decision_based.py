r"""A minimal l2 attack that sees only decisions: nearest neighbours, trees, services somewhere else.

    1. lines from x to the nearest rows that are decided otherwise, and to the means of the other classes: bisection
    2. at the boundary point z the normal v, from decisions at z + delta u_b, u_b random unit vectors:
           v ~ sum_b (s_b - mean s) u_b,   s_b = 1 where the decision is wrong, -1 where it is right
       (HopSkipJump: Chen, Jordan & Wainwright, IEEE S&P 2020); what earlier steps saw counts on, less each time
    3. from z towards x + <z - x, v> v, the point of that plane nearest to x, as far out as z; if that is still wrong,
       bisection towards x. The distance never grows.
    4. coordinates of z - x set to 0 while the decision stays wrong: what trees, flat along most axes, give away.

The walk begins at the end of the shortest line only: with several classes another one's boundary may be nearer.
Every answer was decided otherwise by the model itself. An upper bound on the radius, never a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from polyrelu.checks import checked, whole_numbers
from polyrelu.data import class_numbers
from polyrelu.errors import require
from polyrelu.robust.attacks.contract import MinimalAttack
from polyrelu.robust.attacks.starts import Anchor
from polyrelu.robust.attacks.task import AttackTask, first_crossing, halve
from polyrelu.robust.core.attack_result import AttackResult
from polyrelu.robust.core.norms import lengths, unit
from polyrelu.robust.core.pool import LabelledRows, PoolSource

Predict = Callable[[Any], Any]  # rows (n, D) as numpy -> n labels

LINES, SAMPLES, HALVINGS = 6, 12, 10  # rows to go to; queries along each line, and halvings of the crossing
FINAL_QUERIES = 52  # of the halvings with which the call of every minimal attack moves its best points to the boundary
NORMAL_MEMORY = 0.9  # factor of the earlier estimates in the sum of normals, at each step
PROBE_LENGTH = 0.4  # delta, in units of |z - x|
RESET_SHARES = (0.5, 0.25, 0.12, 0.06)  # of the coordinates, drawn at random and set back to x in a trial
AT_ONCE = 2**23  # numbers in one block of queries


@final
class DecisionScore:
    """A predict function as a score: logit 1 for the class it says, 0 for the others, so margins are 1 or -1.

    predict : rows (n, D), a numpy array of X's dtype -> n labels; whatever is none of ``classes`` counts as one more
    """

    def __init__(self, predict: Predict, classes: Any) -> None:
        self.predict = predict
        self.classes = np.asarray(classes)
        self.place = {name: number for number, name in enumerate(self.classes.tolist())}

    def __call__(self, Z: Tensor) -> Tensor:
        """(n, D) -> (n, C + 1), the last for answers not seen before."""
        return functional.one_hot(self.places(Z), len(self.place) + 1).to(Z)

    def places(self, Z: Tensor) -> Tensor:
        """The place in ``classes`` of what is said about each row, (n,); their number for anything else."""
        said = np.asarray(self.predict(Z.detach().cpu().numpy()))
        require(said.shape == (len(Z),), "predict(X).shape", said.shape, f"({len(Z)},), one label per row")
        return torch.tensor([self.place.get(label, len(self.place)) for label in said.tolist()]).to(Z.device)


@final
@dataclass(frozen=True)
class StraightLines(MinimalAttack):
    """The shortest of the straight lines to the ``count`` nearest rows of other classes and to their means."""

    count: int = LINES
    norms = (2.0,)

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """The rows of the pool, nearest first, then the means; a point without any other class stays where it is."""
        rows, labels = task.pool.X, task.pool.y
        far = torch.cdist(task.X, rows).masked_fill(task.y[:, None] == labels, torch.inf)
        near, order = far.topk(min(self.count, len(rows)), dim=1, largest=False)
        for distance, number in zip(near.T, order.T, strict=True):
            yield torch.where(distance.isfinite()[:, None], rows[number], task.X), None
        for label, mean in task.pool.means.items():
            yield torch.where((task.y != label)[:, None], mean, task.X), None

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """The first crossing of the boundary on each line."""
        first_crossing(task, Z, SAMPLES, HALVINGS)


@final
@dataclass(frozen=True, eq=False)
class DecisionWalk(MinimalAttack):
    """Steps along the boundary by estimated normals, from ``points`` (one for each row attacked) on.

    queries : decisions asked of the model for each point, about; each step spends a fifth more of them on its normal
    """

    points: Tensor
    queries: int = 1000
    norms = (2.0,)

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """What was found before."""
        yield self.points[task.rows], None

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """Normals, steps and coordinates in turn until the queries are spent."""
        X = task.X
        Z = halve(task, Z - X, torch.zeros_like(X[:, 0]), torch.ones_like(X[:, 0]), HALVINGS)
        share, normal = torch.ones_like(X[:, 0]), torch.zeros_like(X)
        left, many, turn = self.queries - HALVINGS - FINAL_QUERIES, 30, 0
        while left >= many // 2:
            many = min(many, left)
            away = lengths(Z - X, 2.0)
            normal = NORMAL_MEMORY * normal + self._normal(task, Z, PROBE_LENGTH * away, many, turn)
            v = unit(normal)
            nearest = X + ((Z - X) * v).sum(dim=1, keepdim=True) * v
            along = unit(Z + share[:, None] * (nearest - Z) - X) * away[:, None] + X
            broken = task.margin(along) <= 0
            nearer = halve(task, along - X, torch.full_like(share, 0.5), torch.ones_like(share), 8)
            share = torch.where(broken, 2 * share, share / 2).clamp(max=1)
            Z = torch.where(broken[:, None], nearer, Z)
            Z = self._fewer(task, Z, turn)
            left -= many + 9 + len(RESET_SHARES)
            many, turn = int(many * 1.2) + 1, turn + 1

    def _normal(self, task: AttackTask, Z: Tensor, delta: Tensor, many: int, turn: int) -> Tensor:
        """sum_b (s_b - mean s) u_b of each row, (n, D), drawn per point whatever the batch."""
        D = Z.shape[1]
        draws = [np.random.default_rng([task.seed, turn, row]).standard_normal((many, D)) for row in task.rows.tolist()]
        U = unit(torch.from_numpy(np.stack(draws)).to(Z))
        asked = (Z[:, None] + delta[:, None, None] * U).flatten(0, 1)
        here = torch.arange(len(Z), device=Z.device).repeat_interleave(many)
        s = -task.take(here).margin(asked).sign().view(len(Z), many)
        return ((s - s.mean(dim=1, keepdim=True))[:, :, None] * U).sum(dim=1)

    def _fewer(self, task: AttackTask, Z: Tensor, turn: int) -> Tensor:
        """Z with random shares (RESET_SHARES) of the coordinates as in x, where that is still broken."""
        for number, part in enumerate(RESET_SHARES):
            keys = ([task.seed, turn, number, row] for row in task.rows.tolist())
            drawn = np.stack([np.random.default_rng(key).random(Z.shape[1]) < part for key in keys])
            trial = torch.where(torch.from_numpy(drawn).to(Z.device), task.X, Z)
            Z = torch.where((task.margin(trial) <= 0)[:, None], trial, Z)
        return Z


@checked
def decision_attack(
    predict: Predict,
    X: Tensor,
    y: Any,
    *,
    classes: Any,
    pool: PoolSource | Tensor | None = None,
    queries: int = 1000,
    seed: int = 0,
) -> AttackResult:
    """The shortest perturbation found for each row of X (n, D) with about ``queries`` decisions a point.

    Parameters
    ----------
    predict : rows (n, D), numpy -> n labels out of ``classes``
    y : the n labels
    pool : rows to draw lines to (a Dataset, or a tensor (N, D)), best the training rows; those count that ``predict``
        puts into another class than y. None takes X
    queries : a point's share of the budget; lines take a tenth or two of a thousand
    """
    whole_numbers(least=200, queries=queries)
    score = DecisionScore(predict, classes)
    X = torch.as_tensor(X)
    labels = class_numbers(y, classes, "y", "one of the classes")
    rows = X if pool is None else pool if isinstance(pool, Tensor) else pool.rows()
    said = LabelledRows(rows.to(X), score.places(rows.to(X)))
    lines = StraightLines()(score, X, labels, pool=said, seed=seed)
    used = lines.evaluations // max(1, len(X))
    walk = DecisionWalk(X + lines.perturbation, max(FINAL_QUERIES + 40, queries - used))
    batch = max(1, AT_ONCE // (X.shape[1] * 200))
    found = walk(score, X, labels, pool=said, seed=seed, batch=batch)
    better = found.radius < lines.radius
    radius = torch.where(better, found.radius, lines.radius)
    perturbation = torch.where(better[:, None], found.perturbation, lines.perturbation)
    return AttackResult(perturbation, radius, lines.evaluations + found.evaluations)
