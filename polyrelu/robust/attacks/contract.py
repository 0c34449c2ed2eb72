"""The two kinds of attack, the call they share, and what those that descend a loss have in common.

An attack's own file says where to begin (`anchors`) and how to step (`search`). The call, which no attack overrides,
owns the rest: validation of the arguments, points already wrong, batches, starts and targets, the best so far, ball
and box, and the final verification of x + perturbation with the score itself, in the dtype of x.

To add an attack: its file with a final frozen dataclass, a row of `polyrelu.robust.attacks.ATTACKS`, and a row of the
table in tests/robust/attacks/test_attacks.py, which refuses attacks that are in one table only. `strongest` tries those
that are named in `polyrelu.robust.attacks.STRONGEST` too.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import final

import torch
from torch import Tensor, nn

from polyrelu.checks import check_fields, checked, seed_number, whole_number
from polyrelu.errors import require
from polyrelu.robust.attacks.starts import Anchor, OtherClassStart, Start, ZeroStart
from polyrelu.robust.attacks.task import TARGETED, AttackTask, BestFound, CountedScore, Loss, shrink
from polyrelu.robust.core.attack_result import AttackResult
from polyrelu.robust.core.margin import Score, check_points
from polyrelu.robust.core.norms import check_norm, lengths
from polyrelu.robust.core.pool import PoolSource, pool_of

NUMBERS_AT_ONCE = 2**22  # in one block of rows when no batch is given

Box = tuple[float, float]


class Attack(ABC):
    """What both kinds have in common: subclass `RadiusAttack` or `MinimalAttack`, as a final frozen dataclass."""

    def __post_init__(self) -> None:
        """Check the settings: they are what their annotations say, and whole numbers are >= 1."""
        check_fields(self, least=1)

    @property
    def norms(self) -> tuple[float, ...]:
        """The norms the attack is made for."""
        return (1.0, 2.0, math.inf)

    @property
    def targeted(self) -> bool:
        """Whether starts that lead to no class in particular are repeated for every other class."""
        return False

    @property
    def needs_other_class(self) -> bool:
        """Whether it cannot begin with a pool of one class alone."""
        return False

    @property
    def exact(self) -> bool:
        """Whether what is found lies on the boundary already, and need not be pulled back to it."""
        return False

    @abstractmethod
    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """Starting points, one for each row of ``task.X``, any number of times."""

    @abstractmethod
    def search(self, task: AttackTask, Z: Tensor) -> None:
        """Search from the rows of Z. Nothing is returned: ``task.margin`` and ``task.slope`` keep the best they see.

        Rows are independent of each other: each is one point from one start, and ``task.X`` repeats accordingly.
        """

    def _norm(self, norm: float | str) -> float:
        value, known = check_norm(norm), " or ".join(f"{one:g}" for one in self.norms)
        require(value in self.norms, "norm", norm, f"{known} for {type(self).__name__}")
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
        pool: PoolSource | None = None,
        seed: int = 0,
        batch: int | None = None,
    ) -> AttackResult:
        """Attack every row of X (n, D) with labels y (n,); see `MinimalAttack` for the arguments.

        radius : a number >= 0 or one per point (n,); no answer is longer, and 0 breaks only what is already wrong
        """
        task = attack_task(score, X, y, norm=self._norm(norm), bounds=bounds, pool=pool, seed=seed, radius=radius)
        return _run(self, task, batch)


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
        pool: PoolSource | None = None,
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
        return _run(self, attack_task(score, X, y, norm=self._norm(norm), bounds=bounds, pool=pool, seed=seed), batch)


def attack_task(
    score: Score,
    X: Tensor,
    y: Tensor,
    *,
    norm: float,
    bounds: Box | None = None,
    pool: PoolSource | None = None,
    seed: int = 0,
    radius: float | Tensor | None = None,
) -> AttackTask:
    """All points as one task, or an InputError that says what is wrong with the arguments."""
    seed_number("seed", seed)
    if bounds is not None:
        require(bounds[0] < bounds[1], "bounds", bounds, "(low, high) with low < high, or None for no box")
    _check_mode(score)
    X, y = check_points(score, X, y)
    X = X.detach()
    if bounds is not None:
        out = (X.clamp(*bounds) != X).nonzero()
        if len(out):
            i, j = out[0].tolist()
            require(False, f"X[{i}, {j}]", f"{X[i, j]:g}", f"a number inside bounds={bounds}, or bounds=None")
    with torch.no_grad():
        logits = score(X[:1])
    return AttackTask(
        score=CountedScore(score),
        X=X,
        y=y,
        rows=torch.arange(len(X), device=X.device),
        target=y,
        norm=norm,
        bounds=bounds,
        pool=pool_of(pool, X, y),
        seed=seed,
        classes=2 if logits.ndim == 1 else logits.shape[1],
        radius=None if radius is None else _check_radius(radius, X),
        best=BestFound.none(X),
    )


def _run(attack: Attack, task: AttackTask, batch: int | None) -> AttackResult:
    """Attack the points that are right, a block at a time."""
    if batch is not None:
        whole_number("batch", batch)
    n, dim = task.X.shape
    perturbation = torch.zeros_like(task.X)
    size = torch.full((n,), torch.inf, dtype=torch.float64, device=task.X.device)
    right = []
    for block in torch.split(task.rows, batch or max(1, NUMBERS_AT_ONCE // dim)):
        part = task.take(block)
        margin = part.margin(part.X)
        undefined = block[margin.isnan()].tolist()
        require(not undefined, "score(X)", f"NaN in row {undefined[:1]}", "numbers")
        right.append(block[margin > 0])
    rows = torch.cat(right)
    wrong = torch.ones(n, dtype=torch.bool, device=rows.device).index_fill(0, rows, False)
    size[wrong] = 0
    if len(rows):
        starts = len(_starts(attack, task.take(rows[:1])))
        for block in torch.split(rows, batch or max(1, NUMBERS_AT_ONCE // (dim * starts))):
            perturbation[block], size[block] = _attack_block(attack, task.take(block))
    return AttackResult(perturbation, size, task.score.rows)


def _starts(attack: Attack, task: AttackTask) -> list[tuple[Tensor, Tensor]]:
    """Every starting point with a target class; one without is repeated for each other class if ``targeted``."""
    starts = []
    for Z, target in attack.anchors(task):
        offsets = range(1, task.classes if attack.targeted else 2)
        targets = [(task.y + offset) % task.classes for offset in offsets] if target is None else [target]
        starts += [(Z, target) for target in targets]
    return starts


def _attack_block(attack: Attack, task: AttackTask) -> tuple[Tensor, Tensor]:
    """Perturbations and sizes of one block: all starts at once, the best of each point, the final verification."""
    starts = _starts(attack, task)
    here = torch.arange(len(task.X), device=task.X.device)
    many = replace(task.take(here.repeat(len(starts))), target=torch.cat([target for _, target in starts]))
    attack.search(many, torch.cat([Z for Z, _ in starts]))
    to_shrink = task.radius is None and not attack.exact
    if to_shrink:
        shrink(many, 12)
    if len(starts) == 1:
        chosen = replace(task, best=many.best)
    else:
        size, winner = many.best.size.view(len(starts), -1).min(dim=0)
        chosen = replace(task, best=BestFound(many.best.Z[winner * len(here) + here], size))
    if to_shrink:
        shrink(chosen, 40)
    return _verify(chosen, attack.exact)


def _verify(task: AttackTask, exact: bool) -> tuple[Tensor, Tensor]:
    """The perturbations d, each verified to be misclassified at x + d, and the sizes of (x + d) - x.

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
        part = task.take(left)
        d = step[left] * (1 + 2.0**power * eps)
        if task.bounds is not None:
            d = (part.X + d).clamp(*task.bounds) - part.X
            for _ in range(2):  # x + d may still round out of the box
                d = torch.where((part.X + d).clamp(*task.bounds) == part.X + d, d, d.nextafter(torch.zeros_like(d)))
        part.margin(part.X + d)
        good = part.best.size.isfinite()
        perturbation[left[good]], size[left[good]] = d[good], part.best.size[good]
        left = left[~good]
    true_size = lengths((task.X + perturbation).double() - task.X.double(), task.norm)
    return perturbation, torch.where(size.isfinite(), true_size, torch.inf)


def _check_mode(score: Score) -> None:
    """Dropout and batch normalisation in training mode make a score that is not a function of the point."""
    changing = (nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd)
    layers = score.modules() if isinstance(score, nn.Module) else ()
    name = next((type(layer).__name__ for layer in layers if isinstance(layer, changing) and layer.training), None)
    require(name is None, "score", f"a net with {name} in training mode", "a net after .eval()")


def _check_radius(radius: float | Tensor, X: Tensor) -> Tensor:
    given = torch.as_tensor(radius, device=X.device).double()
    require(given.shape in ((), (len(X),)), "radius.shape", tuple(given.shape), f"one number, or ({len(X)},)")
    good = bool(((given >= 0) & given.isfinite()).all())
    require(good, "radius", radius if given.ndim == 0 else "a tensor with others", "finite numbers >= 0")
    return given.expand(len(X)).contiguous()


@dataclass(frozen=True)
class GradientAttack(Attack):
    """Descends a loss from several starts: first base of an attack, whose dataclass has these fields too."""

    steps: int = 60
    loss: Loss = TARGETED
    starts: tuple[Start, ...] = (ZeroStart(), OtherClassStart())

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("starts", len(self.starts))

    @property
    def targeted(self) -> bool:
        """As the loss is."""
        return self.loss.targeted

    @property
    def needs_other_class(self) -> bool:
        """If one of its starts does."""
        return any(start.needs_other_class for start in self.starts)

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """Those of the starts."""
        return chain.from_iterable(start.anchors(task) for start in self.starts)
