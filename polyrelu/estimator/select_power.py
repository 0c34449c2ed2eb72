"""The power p by cross-validated certified accuracy: how much of the held-out rows is proven to hold at one radius."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
import torch
from torch import Tensor

from polyrelu.data import Dataset
from polyrelu.errors import require
from polyrelu.nets import Net, as_float64
from polyrelu.robust import margin_of, proven_at_radius

POWERS = (1.0, 2.0, 3.0, 4.0)
FOLDS = 3
ROWS = 6000  # looked at in all, drawn at random
POINTS = 100  # certified in each fold


class Part(Protocol):
    """Rows to train on and labels to answer; `polyrelu.estimator.head_training.head_data.TrainingSet` is one."""

    data: Dataset
    y: Tensor
    weights: Tensor | None

    @property
    def groups(self) -> Tensor: ...  # noqa: D102
    def subset(self, rows: Tensor) -> Part: ...  # noqa: D102


@final
@dataclass(frozen=True, eq=False)
class Choice:
    """``p`` with the largest mean certified accuracy at ``radius``; what every power reached is in ``results``."""

    p: float
    radius: float
    results: dict[str, Any]


def choose_power(
    train: Callable[[Any, float], Net],
    problem: Any,
    centre: Tensor,
    fraction: float,
    *,
    powers: Sequence[float] = POWERS,
    seed: int = 0,
) -> Choice:
    """Train on two thirds of the rows, certify up to 100 of the others (`proven_at_radius`), three times for each p.

    ``fraction``: the radius in units of the median distance of the rows from ``centre``. Of two powers that prove as
    much the more accurate one is taken, then the smaller one. At most 6000 rows, drawn at random, are looked at.
    """
    source = torch.Generator().manual_seed(seed)
    if problem.weights is not None and not bool(problem.weights.all()):  # rows without weight are as if not there
        problem = problem.subset(problem.weights.nonzero()[:, 0])
    if len(problem.data) > ROWS:
        problem = problem.subset(_first(problem.groups, ROWS, source))
    lengths = torch.cat([torch.linalg.vector_norm(x.double() - centre, dim=1) for _, x in problem.data.blocks()])
    radius = fraction * float(lengths.median())
    fold = _folds(problem.groups, source)
    enough = f"a number, or {FOLDS} rows at least in some class, so that rows can be held out"
    require(bool((fold >= 0).any()), "p", "'auto'", enough)
    certified, accuracy = np.zeros((len(powers), FOLDS)), np.zeros((len(powers), FOLDS))
    for k in range(FOLDS):
        kept, aside = ((which).nonzero()[:, 0] for which in (fold != k, fold == k))
        aside = aside[torch.randperm(len(aside), generator=source).to(aside.device)[:POINTS]]
        X, y = problem.data.gather(aside).double().cpu(), problem.y[aside].cpu()
        y = y.double() if y.is_floating_point() else y
        weights = torch.ones(len(aside)) if problem.weights is None else problem.weights[aside].cpu()
        for i, p in enumerate(powers):
            net = as_float64(train(problem.subset(kept), p)).cpu()
            with torch.no_grad():
                right = margin_of(net(X), y) > 0
            accuracy[i, k] = _mean(right, weights)
            certified[i, k] = _mean(proven_at_radius(net, X, y, radius, seed=seed), weights)
    order = sorted(range(len(powers)), key=lambda i: (-certified[i].mean(), -accuracy[i].mean(), powers[i]))
    results = {"param_p": np.array(powers), "rank_test_certified": np.argsort(order) + 1}
    for name, table in (("certified", certified), ("accuracy", accuracy)):
        results |= {f"split{k}_test_{name}": table[:, k] for k in range(FOLDS)}
        results |= {f"mean_test_{name}": table.mean(axis=1), f"std_test_{name}": table.std(axis=1)}
    return Choice(float(powers[order[0]]), radius, results)


def _folds(groups: Tensor, source: torch.Generator) -> Tensor:
    """The fold in which each row is held out, evenly within every group; -1 (never) in groups of one or two rows."""
    fold = torch.full_like(groups, -1)
    for group in sorted(set(groups.tolist())):
        rows = (groups == group).nonzero()[:, 0]
        turn = torch.randperm(len(rows), generator=source).to(fold) % FOLDS
        fold[rows] = turn if len(rows) >= FOLDS else -1
    return fold


def _first(groups: Tensor, rows: int, source: torch.Generator) -> Tensor:
    """About ``rows`` row numbers, the same share of every group and at least one row of each."""
    chosen = []
    for group in sorted(set(groups.tolist())):
        mine = (groups == group).nonzero()[:, 0]
        some = max(1, round(rows * len(mine) / len(groups)))
        chosen.append(mine[torch.randperm(len(mine), generator=source).to(mine.device)[:some]])
    return torch.cat(chosen).sort().values


def _mean(flags: Tensor, weights: Tensor) -> float:
    return float((flags * weights.double()).sum() / weights.double().sum())
