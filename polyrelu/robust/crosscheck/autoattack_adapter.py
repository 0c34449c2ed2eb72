"""The FAB attack of AutoAttack (Croce & Hein 2020; the package pyautoattack) as a function with our `AttackResult`.

The package clamps to [0, 1] in float32 and says nothing. Here each point sits at (1/2, ..., 1/2) of a box of its own
with a half-width of 8 units, so that no perturbation of interest reaches its edge.

`attack_single_run` is one start on all rows; the loops over restarts in the package's `perturb` only drop the rows
already broken, which rows with coordinates of their own cannot follow.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import torch
from torch import Tensor

from polyrelu.errors import InputError
from polyrelu.robust.core import AttackResult, Score
from polyrelu.robust.crosscheck.rescaled_points import HALF_WIDTH, RescaledPoints, seeded

NORM_NAMES = {1.0: "L1", 2.0: "L2", math.inf: "Linf"}
FIRST_EPS = 0.15  # radius of the package's random starts, of which none is taken


def library() -> Any:
    """The package's module of FAB, or an InputError that says how to get it."""
    try:
        return importlib.import_module("pyautoattack.fab_pt")
    except ImportError as error:
        raise InputError(f'pyautoattack cannot be imported ({error}): pip install "polyrelu[crosscheck]"') from error


def fab(
    score: Score, X: Tensor, y: Tensor, *, norm: float | str = 2.0, seed: int = 0, steps: int = 100
) -> AttackResult:
    """Fast adaptive boundary attack (Croce & Hein 2020), minimal, one start at the point."""
    points, module = RescaledPoints(score, X, y, norm), library()
    if not len(points):
        return points.result(points.x)
    unit = 2 * HALF_WIDTH * points.unit
    # every row at the middle of its box; as an image, which is all that the package was made for
    u = torch.full((len(points), 1, 1, points.x.shape[1]), 0.5, dtype=torch.float32, device=points.X.device)
    model = points.model(unit, centre=0.5)
    attack = module.FABAttack_PT(
        model, norm=NORM_NAMES[points.norm], n_iter=steps, eps=FIRST_EPS, seed=seed, device=u.device
    )
    attack.target_class = None
    with seeded(seed, u.device):
        found = attack.attack_single_run(u, points.labels(), use_rand_start=False, is_targeted=False)
    return points.result((found.detach().flatten(1) - 0.5).to(unit.dtype) * unit[:, None])
