r"""The convex-concave minimal attack (l2) on PolyReLUNets: the strongest here, and the fastest.

    min |d| : P(x + d) <= N(x + d);   linearise N (the set shrinks), project on what is left, repeat

The search runs in the few coordinates in which the net lives (`nearest_boundary`), for all points, rival
classes and starts together; what it finds is lifted to the original space and moved along its ray until the sign of the
net itself turns. Upper bound on the radius, never a proof.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast, final

import torch
from torch import Tensor, nn

from polyrelu.errors import require
from polyrelu.nets import AverageClassifier, CentreClassifier, PolyReLUNet, as_float64
from polyrelu.robust.attacks.contract import MinimalAttack
from polyrelu.robust.attacks.nearest_boundary import BoundaryPoints, nearest_boundary_points
from polyrelu.robust.attacks.starts import Anchor
from polyrelu.robust.attacks.task import AttackTask
from polyrelu.robust.core.margin import margin_of
from polyrelu.robust.core.norms import lengths
from polyrelu.robust.core.reduced_net import Ray, ReducedNet, ReducedRows

LENGTHENINGS = (1e-6, 1e-5, 3e-4, 1e-3, 1e-2, 0.1, 0.4)  # relative, of steps that end before the boundary


@final
@dataclass(frozen=True)
class ConvexConcave(MinimalAttack):
    """Nearest breaking points of PolyReLUNets and of the ideal classifiers that are such nets; l2 only.

    starts : opposite directions tried for each point and rival class, the most promising first
    """

    starts: int = 8
    norms = (2.0,)  # the reduction to few coordinates keeps Euclidean lengths only
    exact = True

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """The points themselves: every start is made inside."""
        yield task.X, None

    def search(self, task: AttackTask, Z: Tensor) -> None:
        """Evaluates what was found in few coordinates, a little beyond the boundary in the dtype of X."""
        X, eps = task.X, torch.finfo(task.X.dtype).eps
        y = task.y.double() if task.y.is_floating_point() else task.y
        shallow = ReducedNet.from_net(as_polyrelu(task.score.score))
        exactly = X.dtype == torch.float64  # else the score's own rounding is all that is left
        rows = shallow.rows(X, y, neurons=exactly)
        step = shortest_steps(rows, nearest_boundary_points(shallow, rows, self.starts))
        if exactly:
            step = step * _turning(shallow.ray(X, y, rows, step))[:, None]
        D = (step @ shallow.Q).to(X.dtype)
        away = torch.full_like(rows.length[: len(X)], torch.inf).scatter_reduce(0, rows.point, rows.length, "amin")
        nearer = (away <= lengths(step, 2.0)).nonzero()[:, 0]
        D[nearer] = shallow.centre.to(X.dtype) - X[nearer]  # no farther than where f = 0
        Z = torch.add(X, D, alpha=1 + 4 * eps)
        Z = X + (Z - X)  # a point that its perturbation gives back exactly
        with torch.no_grad():
            margin = margin_of(task.score(Z), task.y)
            for power in (3, 4, 5, 6, 7, 8, 10, 12):  # beyond the rounding of the score
                left = (margin > 0).nonzero()[:, 0]
                if not len(left):
                    break
                Z[left] = X[left] + (1 + 2.0**power * eps) * D[left]
                Z[left] = X[left] + (Z[left] - X[left])
                margin[left] = margin_of(task.score(Z[left]), task.y[left])
        task.remember(Z, margin)


def as_polyrelu(score: object) -> PolyReLUNet:
    """A float64 copy of the net, ideal classifiers turned into nets; other models are refused."""
    known = isinstance(score, (PolyReLUNet, AverageClassifier, CentreClassifier))
    wanted = "a PolyReLUNet, AverageClassifier or CentreClassifier; BoundaryWalk takes any model"
    require(known, "score", type(score).__name__, wanted)
    copied: Any = as_float64(copy.deepcopy(cast(Any, score)))
    return copied if isinstance(copied, PolyReLUNet) else copied.as_polyrelu_net()


class Perturbations(NamedTuple):
    """A perturbation of each point (n, D) that breaks the net, and its length; inf where there is none."""

    perturbation: Tensor
    radius: Tensor

    def improve(self, points: Tensor, other: Perturbations) -> None:
        """Take over what is shorter in ``other``, whose rows are these ``points``."""
        wins = other.radius < self.radius[points]
        self.radius[points[wins]], self.perturbation[points[wins]] = other.radius[wins], other.perturbation[wins]


def lifted_perturbations(
    net: nn.Module, shallow: ReducedNet, X: Tensor, y: Tensor, rows: ReducedRows, found: BoundaryPoints
) -> Perturbations:
    """The best of each point's rows, in the original space, checked with the float64 ``net`` itself.

    The centre is a breaking point too where the bias alone decides so: always without a bias, for f = 0 there.
    """
    n = len(X)
    step = shortest_steps(rows, found)
    step = step * _turning(shallow.ray(X, y, rows, step))[:, None]
    broken = verified(net, X, y, step @ shallow.Q)
    bias = torch.full((n,), torch.inf, dtype=torch.float64).scatter_reduce(0, rows.point, rows.beta, "amin")
    to_centre = shallow.centre - X
    away = torch.where(bias <= 0, lengths(to_centre, 2.0), torch.inf)
    nearer = (away < broken.radius).nonzero()[:, 0]
    if len(nearer):
        broken.improve(nearer, verified(net, X[nearer], y[nearer], to_centre[nearer]))
    return broken


def shortest_steps(rows: ReducedRows, found: BoundaryPoints) -> Tensor:
    """(n, k): the shortest step of each point that breaks the reduced net; 0 where there is none."""
    n = int(rows.point.max()) + 1
    radius = torch.where(found.breaks, found.radius, torch.inf)
    least = torch.full((n,), torch.inf, dtype=torch.float64).scatter_reduce(0, rows.point, radius, "amin")
    best = torch.zeros(n, dtype=torch.long)
    winner = radius <= least[rows.point]
    best[rows.point[winner]] = winner.nonzero()[:, 0]
    return torch.where(least.isfinite()[:, None], found.z[best] - rows.s[best], 0.0)


def _turning(ray: Ray) -> Tensor:
    """The scale near 1 at which the margin along each ray turns: a secant, or LENGTHENINGS where that fails."""
    one = torch.ones(len(ray), dtype=torch.float64)
    at, ahead = ray.margin(one), ray.margin(one * (1 + 1e-4))
    guess = 1 - 1e-4 * at / torch.where(ahead < at, ahead - at, -torch.inf)
    guess = guess.clamp(0.95, 1.05) * (1 + 2e-8)
    scale = torch.where(at <= 0, 1.0, torch.where(ahead <= 0, 1 + 1e-4, torch.inf))
    scale = torch.where((ray.margin(guess) <= 0) & (guess < scale), guess, scale)
    left = scale.isinf().nonzero()[:, 0]
    for extra in LENGTHENINGS:
        if not len(left):
            break
        few = torch.full((len(left),), 1 + extra, dtype=torch.float64)
        good = ray[left].margin(few) <= 0
        scale[left[good]] = 1 + extra
        left = left[~good]
    return torch.where(scale.isinf(), 1.0, scale)


def verified(net: nn.Module, X: Tensor, y: Tensor, D: Tensor) -> Perturbations:
    """Rows of D that truly break the net, lengthened by at most 1e-8 where rounding needs it; radius inf otherwise."""
    D = D.clone()
    broken = torch.zeros(len(X), dtype=torch.bool)
    for extra in (0.0, 1e-12, 1e-10, 1e-8):
        todo = (~broken).nonzero()[:, 0]
        if not len(todo):
            break
        longer = D[todo] * (1 + extra)
        with torch.no_grad():
            good = margin_of(net(X[todo] + longer), y[todo]) <= 0
        D[todo[good]] = longer[good]
        broken[todo[good]] = True
    radius = torch.where(broken, lengths((X + D) - X, 2.0), torch.inf)
    return Perturbations(torch.where(broken[:, None], D, 0.0), radius)
