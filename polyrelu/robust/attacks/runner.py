"""The machinery behind both calls: the door, the batches, and the last honest look."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol, final

import torch
from torch import Tensor, nn

from polyrelu.checks import check_fields, seed_number, whole_numbers
from polyrelu.errors import require
from polyrelu.robust.attacks.line_search import shrink
from polyrelu.robust.attacks.starts import Anchor
from polyrelu.robust.attacks.task import BestFound, CountedScore, Task
from polyrelu.robust.core.margin import Score, check_points
from polyrelu.robust.core.norms import lengths
from polyrelu.robust.core.pool import Labelled, pool_of
from polyrelu.robust.core.result import AttackResult, AttackStatus

AT_ONCE = 2**22  # numbers in one block of rows when no batch is given


class AttackSteps(Protocol):
    """The part of an attack that is its own."""

    @property
    def targeted(self) -> bool:
        """See `Attack`."""

    @property
    def exact(self) -> bool:
        """See `Attack`."""

    def anchors(self, task: Task) -> Iterator[Anchor]:
        """See `Attack`."""

    def search(self, task: Task, Z: Tensor) -> None:
        """See `Attack`."""


@final
@dataclass(frozen=True)
class AttackArguments:
    """The arguments both calls share, checked."""

    norm: float
    bounds: tuple[float, float] | None
    pool: Labelled | None
    seed: int
    batch: int | None

    def __post_init__(self) -> None:
        """Check what can be checked without the points."""
        seed_number("seed", self.seed)
        if self.batch is not None:
            whole_numbers(batch=self.batch)
        if self.bounds is not None:
            check_fields(self)
            good = self.bounds[0] < self.bounds[1]
            require(good, "bounds", self.bounds, "(low, high) with low < high, or None for no box")

    def task(self, score: Score, X: Tensor, y: Tensor, radius: float | Tensor | None) -> Task:
        """All points as one task, or an InputError that says what is wrong with them."""
        _check_mode(score)
        X, y = check_points(score, X, y)
        X = X.detach()
        if self.bounds is not None:
            out = (X.clamp(*self.bounds) != X).nonzero()
            if len(out):
                i, j = out[0].tolist()
                require(False, f"X[{i}, {j}]", f"{X[i, j]:g}", f"a number inside bounds={self.bounds}, or bounds=None")
        if radius is not None:
            radius = _check_radius(radius, X)
        with torch.no_grad():
            logits = score(X[:1])
        classes = 2 if logits.ndim == 1 else logits.shape[1]
        rows = torch.arange(len(X), device=X.device)
        pool = pool_of(self.pool, X, y)
        counted = CountedScore(score)
        return Task(counted, X, y, rows, y, self.norm, self.bounds, pool, self.seed, classes, radius, BestFound.none(X))


def run(attack: AttackSteps, task: Task, batch: int | None) -> AttackResult:
    """Attack the points that are right, a block at a time."""
    n, dim = task.X.shape
    perturbation = torch.zeros_like(task.X)
    size = torch.full((n,), torch.inf, dtype=torch.float64, device=task.X.device)
    right = []
    for block in _blocks(task.rows, batch or max(1, AT_ONCE // dim)):
        part = task.take(block)
        margin = part.margin(part.X)
        strange = block[margin.isnan()].tolist()
        require(not strange, "score(X)", f"NaN in row {strange[:1]}", "numbers")
        right.append(block[margin > 0])
    rows = torch.cat(right)
    wrong = torch.ones(n, dtype=torch.bool, device=rows.device).index_fill(0, rows, False)
    size[wrong] = 0
    if len(rows):
        starts = len(_starts(attack, task.take(rows[:1])))
        for block in _blocks(rows, batch or max(1, AT_ONCE // (dim * starts))):
            perturbation[block], size[block] = _attack(attack, task.take(block))
    status = tuple(_status(w, s) for w, s in zip(wrong.tolist(), size.tolist(), strict=True))
    return AttackResult(perturbation, size, size.isfinite(), status, task.score.rows)


def _blocks(rows: Tensor, most: int) -> Iterator[Tensor]:
    return (rows[begin : begin + most] for begin in range(0, len(rows), most))


def _status(wrong: bool, size: float) -> AttackStatus:
    if wrong:
        return AttackStatus.ALREADY_WRONG
    return AttackStatus.BROKEN if math.isfinite(size) else AttackStatus.HELD


def _starts(attack: AttackSteps, task: Task) -> list[tuple[Tensor, Tensor]]:
    """Every anchor with a class to aim at; one that leads nowhere in particular is tried for each if need be."""
    starts = []
    for Z, target in attack.anchors(task):
        turns = range(1, task.classes if attack.targeted else 2)
        aims = [(task.y + turn) % task.classes for turn in turns] if target is None else [target]
        starts += [(Z, aim) for aim in aims]
    return starts


def _attack(attack: AttackSteps, task: Task) -> tuple[Tensor, Tensor]:
    """Perturbations and sizes of one block: all starts at once, the best of each point, the last look."""
    starts = _starts(attack, task)
    here = torch.arange(len(task.X), device=task.X.device)
    many = replace(task.take(here.repeat(len(starts))), target=torch.cat([target for _, target in starts]))
    attack.search(many, torch.cat([Z for Z, _ in starts]))
    loose = task.radius is None and not attack.exact
    if loose:
        shrink(many, 12)
    if len(starts) == 1:
        chosen = replace(task, best=many.best)
    else:
        size, winner = many.best.size.view(len(starts), -1).min(dim=0)
        chosen = replace(task, best=BestFound(many.best.Z[winner * len(here) + here], size))
    if loose:
        shrink(chosen, 40)
    return _settle(chosen, attack.exact)


def _settle(task: Task, exact: bool) -> tuple[Tensor, Tensor]:
    """The perturbations d themselves, broken at x + d as anyone can check, and the sizes of (x + d) - x.

    A point found within rounding of the boundary may be right again at x + d, or in another batch: answers of
    minimal attacks are made 64 rounding errors longer, and any that fails is pushed out while that is allowed.
    """
    step, eps = task.best.Z - task.X, torch.finfo(task.X.dtype).eps
    perturbation, size = torch.zeros_like(step), torch.full_like(task.best.size, torch.inf)
    found = task.best.size.isfinite()
    if exact:  # seen broken at exactly x + d, beyond the boundary already
        same = found & (task.X + step == task.best.Z).all(dim=1)
        if bool(same.all()):
            return step, lengths(task.best.Z.double() - task.X.double(), task.norm)
        perturbation, size = torch.where(same[:, None], step, 0.0), torch.where(same, task.best.size, torch.inf)
        found &= ~same
    left = found.nonzero()[:, 0]
    for power in (*(() if task.radius is None else (-torch.inf,)), *range(2 if exact else 6, 18)):
        if not len(left):
            break
        few = task.take(left)
        d = step[left] * (1 + 2.0**power * eps)
        if task.bounds is not None:
            d = (few.X + d).clamp(*task.bounds) - few.X
            for _ in range(2):  # x + d may still round out of the box
                d = torch.where((few.X + d).clamp(*task.bounds) == few.X + d, d, d.nextafter(torch.zeros_like(d)))
        few.margin(few.X + d)
        good = few.best.size.isfinite()
        perturbation[left[good]], size[left[good]] = d[good], few.best.size[good]
        left = left[~good]
    honest = lengths((task.X + perturbation).double() - task.X.double(), task.norm)
    return perturbation, torch.where(size.isfinite(), honest, torch.inf)


def _check_mode(score: Score) -> None:
    """Dropout and batch normalisation in training mode make a score that is not a function of the point."""
    restless = (nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd)
    parts = score.modules() if isinstance(score, nn.Module) else ()
    name = next((type(part).__name__ for part in parts if isinstance(part, restless) and part.training), None)
    require(name is None, "score", f"a net with {name} in training mode", "a net after .eval()")


def _check_radius(radius: float | Tensor, X: Tensor) -> Tensor:
    given = torch.as_tensor(radius, device=X.device).double()
    require(given.shape in ((), (len(X),)), "radius.shape", tuple(given.shape), f"one number, or ({len(X)},)")
    good = bool(((given >= 0) & given.isfinite()).all())
    require(good, "radius", radius if given.ndim == 0 else "a tensor with others", "finite numbers >= 0")
    return given.expand(len(X)).contiguous()
