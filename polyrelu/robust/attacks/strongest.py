"""The strongest attack here at one radius: cheap searches first, then costlier ones on the points that are left.

On two-layer nets trained on MNIST the first search, four steps towards one rival, finds all but a few of the points
that APGD-CE, APGD-T and FAB-T find together; the others are there for those few, and for nets with more bends. Two of
them begin at data of the other classes: where neurons are silent at x, as those of the other centres are for p > 2,
the gradient at x knows nothing of them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from polyrelu.checks import checked
from polyrelu.robust.attacks.apgd import APGD
from polyrelu.robust.attacks.contract import Box, RadiusAttack
from polyrelu.robust.attacks.pgd import FrankWolfe
from polyrelu.robust.attacks.starts import LikeliestRivals, Nearest, Towards, Zero
from polyrelu.robust.core.margin import Score, check_points
from polyrelu.robust.core.norms import check_norm
from polyrelu.robust.core.pool import LabelledRows, PoolSource, check_pool
from polyrelu.robust.core.result import AttackResult


def cascade(norm: float) -> tuple[RadiusAttack, ...]:
    """The searches in turn; Auto-PGD last, as the better one at kinks, but not for l1, where it moves single pixels."""
    three = (LikeliestRivals(3),)
    last = FrankWolfe(steps=40, starts=three) if norm == 1 else APGD(steps=60, starts=three)
    return (
        FrankWolfe(steps=4, starts=(LikeliestRivals(1),)),
        FrankWolfe(steps=6, starts=(Zero(),)),
        FrankWolfe(steps=10, starts=(Nearest(),)),
        last,
        FrankWolfe(steps=6, starts=(Towards(4),)),
    )


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
    """Is there a wrong point within ``radius`` of each row of X (n, D)? Every search targets margins f_y - f_c.

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
    first, *others = cascade(check_norm(norm))
    found = first(net, X, y, radius=radius, norm=norm, bounds=bounds, pool=pool, seed=seed)
    perturbation, size, evaluations = found.perturbation, found.radius, found.evaluations
    for attack in others if len(set(pool.y.tolist())) > 1 else others[:-1]:
        left = size.isinf().nonzero()[:, 0]
        if not len(left):
            break
        more = attack(net, X[left], y[left], radius=radius[left], norm=norm, bounds=bounds, pool=pool, seed=seed)
        perturbation[left], size[left], evaluations = more.perturbation, more.radius, evaluations + more.evaluations
    return AttackResult(perturbation, size, evaluations)
