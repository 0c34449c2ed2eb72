"""Attacks of AutoAttack (Croce & Hein 2020; the package pyautoattack) as functions that return our `AttackResult`.

The package clamps to [0, 1] in float32 and says nothing. Here each point sits at (1/2, ..., 1/2) of a box of its own:
attacks of fixed radius get eps = .15 of it (l1 starts at 3 eps), FAB a half-width of 8 units, so that no perturbation
of interest reaches a wall. Its targeted DLR loss needs four logits; one logit or few classes are filled up with classes
at a constant -100 (the clean margin is 1), which are never offered as targets. With two real logits that loss is then
the margin itself, up to a factor.

A run of `attack_single_run` is one start towards one target on all rows; the loops over restarts and targets in the
package's `perturb` only drop the rows already broken, which rows with coordinates of their own cannot follow.
"""

from __future__ import annotations

import importlib
import math
import warnings
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from polyrelu.errors import InputError
from polyrelu.robust.core.margin import Score
from polyrelu.robust.core.result import AttackResult
from polyrelu.robust.crosscheck.problem import WIDE, Problem, seeded

NAMES = {1.0: "L1", 2.0: "L2", math.inf: "Linf"}
EPS = 0.15
TARGETS = 9  # as in the standard version


def library() -> SimpleNamespace:
    """The package's attack classes, or an InputError that says how to get them."""
    try:
        pgd = importlib.import_module("pyautoattack.autopgd_base")
        fab = importlib.import_module("pyautoattack.fab_pt")
    except ImportError as error:
        raise InputError(f'pyautoattack cannot be imported ({error}): pip install "polyrelu[crosscheck]"') from error
    return SimpleNamespace(APGD=pgd.APGDAttack, TargetedAPGD=pgd.APGDAttack_targeted, FAB=fab.FABAttack_PT)


def apgd_ce(
    score: Score, X: Tensor, y: Tensor, *, norm: float | str = 2.0, seed: int = 0, steps: int = 100, rounds: int = 10
) -> AttackResult:
    """Auto-PGD on the cross-entropy, one random start; ``rounds`` radii a point."""
    problem, attacks = Problem(score, X, y, norm), library()

    def attempt(radius: Tensor, run: int) -> Tensor:
        return _apgd(attacks.APGD, problem, radius, seed + run, steps, loss="ce")

    return problem.result(problem.smallest(attempt, rounds) if len(problem) else problem.x)


def apgd_t(
    score: Score, X: Tensor, y: Tensor, *, norm: float | str = 2.0, seed: int = 0, steps: int = 100, rounds: int = 10
) -> AttackResult:
    """Auto-PGD on the targeted DLR loss, every other class (the 9 likeliest); ``rounds`` radii a point."""
    problem, attacks = Problem(score, X, y, norm), library()

    def attempt(radius: Tensor, run: int) -> Tensor:
        best = torch.zeros_like(problem.x)
        for rank in range(min(problem.classes - 1, TARGETS)):
            d = _apgd(attacks.TargetedAPGD, problem, radius, seed + run, steps, target=problem.targets[:, rank])
            flips, _ = problem.check(best)
            best = torch.where(flips[:, None], best, d)
        return best

    return problem.result(problem.smallest(attempt, rounds) if len(problem) else problem.x)


def fab(
    score: Score, X: Tensor, y: Tensor, *, norm: float | str = 2.0, seed: int = 0, steps: int = 100
) -> AttackResult:
    """Fast adaptive boundary attack (Croce & Hein 2020), minimal, one start at the point."""
    problem, attacks = Problem(score, X, y, norm), library()
    return problem.result(_fab(attacks, problem, seed, steps) if len(problem) else problem.x)


def fab_t(
    score: Score, X: Tensor, y: Tensor, *, norm: float | str = 2.0, seed: int = 0, steps: int = 100
) -> AttackResult:
    """FAB towards every other class (the 9 likeliest) in turn, minimal; the smallest counts."""
    problem, attacks = Problem(score, X, y, norm), library()
    best = torch.zeros_like(problem.x)
    smallest = torch.full((len(problem),), torch.inf, dtype=torch.float64, device=problem.X.device)
    for rank in range(min(problem.classes - 1, TARGETS) if len(problem) else 0):
        d = _fab(attacks, problem, seed, steps, rank)
        flips, size = problem.check(d)
        better = flips & (size < smallest)
        best, smallest = torch.where(better[:, None], d, best), torch.where(better, size, smallest)
    return problem.result(best)


def _box(problem: Problem) -> Tensor:
    """Every row at the middle of its box; as an image, which is all that the package was made for."""
    return torch.full((len(problem), 1, 1, problem.x.shape[1]), 0.5, dtype=torch.float32, device=problem.X.device)


def _back(u: Tensor, unit: Tensor) -> Tensor:
    return (u.detach().flatten(1) - 0.5).to(unit.dtype) * unit[:, None]


def _apgd(
    kind: Any, problem: Problem, radius: Tensor, seed: int, steps: int, *, target: Tensor | None = None, **options: str
) -> Tensor:
    logits = problem.classes if target is None else max(problem.classes, 4)
    unit, u = radius / EPS, _box(problem)
    model = problem.model(unit, centre=0.5, logits=logits)
    attack = kind(model, n_iter=steps, norm=NAMES[problem.norm], eps=EPS, seed=seed, device=u.device, **options)
    attack.init_hyperparam(u)
    attack.y_target = target
    labels = problem.labels(logits)
    with seeded(seed, u.device), warnings.catch_warnings():
        # Rows where the net is flat are what the honest check is for.
        warnings.filterwarnings("ignore", message="there are .* points with zero gradient")
        if problem.norm == 1.0:  # three radii, the package's own way in l1
            thirds = [math.ceil(0.3 * steps), math.ceil(0.3 * steps)]
            _, _, _, found = attack.decr_eps_pgd(
                u, labels, [3 * EPS, 2 * EPS, EPS], [*thirds, max(steps - sum(thirds), 1)]
            )
        else:
            _, _, _, found = attack.attack_single_run(u, labels)
    return _back(found, unit)


def _fab(attacks: SimpleNamespace, problem: Problem, seed: int, steps: int, rank: int | None = None) -> Tensor:
    unit, u = 2 * WIDE * problem.unit, _box(problem)
    attack = attacks.FAB(
        problem.model(unit, centre=0.5), norm=NAMES[problem.norm], n_iter=steps, eps=EPS, seed=seed, device=u.device
    )
    attack.target_class = None if rank is None else rank + 2  # counted from the largest logit, the own one being 1
    with seeded(seed, u.device):
        found = attack.attack_single_run(u, problem.labels(), use_rand_start=False, is_targeted=rank is not None)
    return _back(found, unit)
