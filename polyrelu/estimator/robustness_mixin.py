"""What a classifier on a net can say about its own robustness: brackets, certified accuracy, attacks."""

from __future__ import annotations

import sys
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from polyrelu.checks import flag
from polyrelu.errors import require
from polyrelu.nets import Net, as_float64
from polyrelu.robust import (
    EXECUTED,
    QUICK_DIRECTIONS,
    Arithmetic,
    AttackResult,
    Bracket,
    BracketStatus,
    Budget,
    LabelledRows,
    altered,
    bounds_at_radius,
    bracket,
    margin_of,
    recheck,
    with_neurons,
)
from polyrelu.robust.attacks import BoundaryWalk, strongest
from polyrelu.robust.core import copied
from polyrelu.robust.external import call_with_feature_names

Pool = tuple[Any, Any]


class RobustnessMixin:
    """Methods for an estimator that has a ``net_``; ``_points(X, y)`` gives rows and labels as that net takes them."""

    if TYPE_CHECKING:
        net_: Any  # a PolyReLUNet or a ReadOut
        classes_: Any

        def _points(self, X: Any, y: Any) -> tuple[Tensor, Tensor]: ...
        def predict(self, X: Any) -> Any: ...  # noqa: D102

    def certify(
        self,
        X: Any,
        y: Any = None,
        *,
        norm: float | str = 2,
        tol: float = 1e-3,
        budget: Budget | None = None,
        pool: Pool | None = None,
        seed: int = 0,
        progress: Any = None,
    ) -> Bracket:
        """lower_i <= radius of point i <= upper_i: proven and found, see `polyrelu.bracket`, whose arguments these are.

        ``lower`` holds for `predict` as executed on the CPU: for every row, in any float type, within it, in any batch
        and on any number of threads. The margin for rounding that it contains is, with unit roundoff u (2^-24 for a
        float32 head, 2^-53 for float64) and D columns, of h neurons: (D + 12) u |x - c| + 2 u |c| for each
        pre-activation and (h + 6 p + 32) u for each term of a logit (float64: D + 8 more), see
        `polyrelu.robust.core.arithmetic`.

        ``y=None`` certifies the predictions; with labels, misclassified points have radius 0. ``pool`` is a pair of
        rows and labels that attacks may start from, best training rows; by default X, y and the neurons. Of a subclass,
        or a head with methods or a net that were replaced, nothing is proven (`integrity.altered`), and
        ``upper`` counts only where `predict` itself changes; ``why`` of the bracket says what was changed.
        """
        net, points, labels, starts = self._scene(X, y, pool)
        found = bracket(
            net,
            points,
            labels,
            norm=norm,
            tol=tol,
            budget=budget,
            widest=QUICK_DIRECTIONS,
            arithmetic=self._arithmetic(),
            pool=starts,
            seed=seed,
            progress=progress,
        )
        why = altered(self)
        return self._unproven(found, points, labels, why) if why else found

    def _unproven(self, found: Bracket, points: Tensor, labels: Tensor, why: str) -> Bracket:
        """``found`` as far as `predict` bears it out: no lower bound, an upper one where the answer changes."""
        said, moved = (
            np.asarray(call_with_feature_names(self, "predict", rows.numpy()))
            for rows in (points, points + found.perturbation)
        )
        codes = (labels > 0).long() if self.net_.outputs == 1 else labels
        wrong, breaks = torch.from_numpy(said != self.classes_[codes.numpy()]), torch.from_numpy(said != moved)
        status = tuple(
            BracketStatus.WRONG if bad else BracketStatus.UNPROVEN if good else BracketStatus.UNBROKEN
            for bad, good in zip(wrong.tolist(), breaks.tolist(), strict=True)
        )
        upper = torch.where(wrong, 0.0, torch.where(breaks, found.upper, torch.inf))
        step = torch.where((upper > 0)[:, None] & breaks[:, None], found.perturbation, 0.0)
        return replace(found, lower=torch.zeros_like(upper), upper=upper, perturbation=step, status=status, why=why)

    def robust_score(
        self, X: Any, y: Any, radius: float, *, attacked: bool = False, pool: Pool | None = None, seed: int = 0
    ) -> Any:
        """Certified accuracy at ``radius`` (l2, unit of X): the share of rows right and proven to stay so within it.

        Proven for `predict` as executed, see `certify`. With ``attacked`` a pair: that, and the share that no attack
        could break. The truth lies between. Where `certify` proves nothing the first is 0, and the second is the share
        of rows that no perturbation found by `certify` breaks.
        """
        if isinstance(radius, Real):
            radius = float(min(radius, sys.float_info.max) if isinstance(radius, int) else radius)
        attacked = flag("attacked", attacked)
        if altered(self):
            require(isinstance(radius, float) and radius >= 0, "radius", radius, "a number >= 0")
            unbroken = self.certify(X, y, pool=pool, seed=seed).upper > radius
            proven = torch.zeros_like(unbroken)
        else:
            net, points, labels, starts = self._scene(X, y, pool)
            proven, unbroken = bounds_at_radius(
                net, points, labels, radius, arithmetic=self._arithmetic(), pool=starts, seed=seed
            )
        certified, attacked_ = (float(share.double().mean()) for share in (proven, unbroken))
        return (certified, attacked_) if attacked else certified

    def attack(
        self, X: Any, y: Any = None, *, radius: float | None = None, pool: Pool | None = None, seed: int = 0
    ) -> AttackResult:
        """Perturbations that change decisions (l2): the shortest found, or any within ``radius``. y as in `certify`.

        ``AttackResult.perturbation`` (n, D) is added to X; its rows were checked with the head as it predicts.
        """
        net, points, labels, starts = self._scene(X, y, pool)
        if radius is None:
            found = BoundaryWalk()(net, points, labels, pool=starts, seed=seed)
        else:
            found = strongest(net, points, labels, radius, pool=starts, seed=seed)
        weight = next(self.net_.parameters())

        def changed(rows: Tensor, Z: Tensor) -> Tensor:
            with torch.no_grad():
                return margin_of(self.net_(Z.to(weight)).cpu().double(), labels[rows]) < 0

        length, step = recheck(changed, points, found.radius, found.perturbation)
        if radius is not None:
            length = torch.where(length <= radius * (1 + 1e-9), length, torch.inf)
        return AttackResult(step * length.isfinite()[:, None], length, found.evaluations)

    def _arithmetic(self) -> Arithmetic:
        """The one `predict` runs in."""
        return EXECUTED[next(self.net_.parameters()).dtype]

    def _scene(self, X: Any, y: Any, pool: Pool | None) -> tuple[Net, Tensor, Tensor, LabelledRows]:
        """The net in float64 on the CPU, where proofs are made; points, labels, and where attacks may start."""
        pair = pool is None or (isinstance(pool, tuple | list) and len(pool) == 2)
        require(pair, "pool", type(pool).__name__, "rows and labels, (X, y)")
        points, labels = self._points(X, y)
        net = as_float64(copied(self.net_)).cpu()
        starts = with_neurons(net, points, labels) if pool is None else LabelledRows(*self._points(*pool))
        return net, points, labels, starts
