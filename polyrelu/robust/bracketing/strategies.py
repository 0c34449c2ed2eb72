"""Both bounds of some points: attack and certificate, each tried again with what the other has found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import torch
from torch import Tensor, nn

from polyrelu.nets import PolyReLUNet
from polyrelu.robust.attacks import (
    Anchor,
    BoundaryWalk,
    Perturbations,
    Random,
    Start,
    Task,
    Towards,
    Zero,
    lifted_perturbations,
    likeliest_rivals,
    nearest_boundary_points,
)
from polyrelu.robust.bracketing.fallback_search import descend, seek
from polyrelu.robust.certify.branch_and_bound import Budget, certify
from polyrelu.robust.certify.krylov import quick_radius
from polyrelu.robust.certify.linear import certified_radius
from polyrelu.robust.core.arithmetic import Arithmetic
from polyrelu.robust.core.norms import lengths
from polyrelu.robust.core.pool import Labelled
from polyrelu.robust.core.reduced_net import Rows, Shallow

Tell = Callable[[int], None]  # how many points are done
Walk = Callable[[Tensor], Perturbations]  # the general attack on some of the points
Prove = Callable[[nn.Module, Tensor, Tensor, float, Tensor, Arithmetic], Tensor]  # net, X, y, norm, an attack's steps

FEW = 60  # directions up to which branch and bound takes milliseconds a point
WIDE = 200  # directions beyond which it takes minutes a point
WALK = 20_000  # weights up to which the general attack is worth its time beside ours
AGAIN, AGAIN_NODES = 4, 10  # rounds and nodes for points whose bounds did not meet; for small budgets half of them
LOOKS = 5_000_000  # weights times points of a walk between two reports
STARTS, STEPS = 3, 8  # of the attacks on neurons that did not collapse: for each rival, and along the boundary
RIVALS = 3  # classes attacked for each point, if there are more
POINTS = 2000  # at a time: a thousand neurons and inputs fit in memory many times


class Found(NamedTuple):
    """Both bounds for some points, before anything is said about them."""

    lower: Tensor
    upper: Tensor
    perturbation: Tensor
    nodes: Tensor

    @staticmethod
    def nothing(X: Tensor) -> Found:
        """Radius 0 everywhere."""
        n, zero = len(X), torch.zeros(len(X), dtype=torch.float64)
        return Found(zero, zero.clone(), torch.zeros_like(X), torch.zeros(n, dtype=torch.long))

    def put(self, points: Tensor, some: Found) -> None:
        """Take over ``some``, whose rows are these ``points``."""
        for whole, part in zip(self, some, strict=True):
            whole[points] = part


def shallow_bounds(
    net: PolyReLUNet,
    shallow: Shallow,
    X: Tensor,
    y: Tensor,
    right: Tensor,
    tol: float,
    budget: Budget,
    arithmetic: Arithmetic,
    pool: Labelled,
    seed: int,
    tell: Tell,
) -> Found:
    """Attack and certificate in the reduced coordinates, some thousand points at a time."""
    found, done = Found.nothing(X), int(len(X) - right.sum())
    for here in torch.split(right.nonzero()[:, 0], POINTS):

        def walk(far: Tensor, here: Tensor = here) -> Perturbations:
            return general_walk(net, X[here[far]], y[here[far]], 2.0, pool, seed)

        def more(count: int, done: int = done) -> None:
            tell(done + count)

        found.put(here, _both(net, shallow, X[here], y[here], tol, budget, arithmetic, walk, more))
        done += len(here)
        tell(done)
    return found


def _both(
    net: PolyReLUNet,
    shallow: Shallow,
    X: Tensor,
    y: Tensor,
    tol: float,
    budget: Budget,
    arithmetic: Arithmetic,
    walk: Walk,
    tell: Tell,
) -> Found:
    """The convex-concave attack, branch and bound; then what is left of the budget for bounds that do not meet."""
    if shallow.groups == 0:  # all neurons vanish in float64, beside a bias that decides
        lower, upper = (
            certified_radius(net, X, y, arithmetic=arithmetic),
            torch.full((len(X),), torch.inf, dtype=torch.float64),
        )
        return Found(lower, upper, torch.zeros_like(X), torch.zeros(len(X), dtype=torch.long))
    rows = shallow.rows(X, y)
    near = nearest_boundary_points(shallow, rows)
    broken = lifted_perturbations(net, shallow, X, y, rows, near)
    lost = broken.radius.isinf().nonzero()[:, 0]
    if len(lost):
        broken.improve(lost, walk(lost))
        seek(net, shallow, X, y, rows, broken)
    most, end = budget.nodes, None if budget.seconds is None else time.monotonic() + budget.seconds * len(X)
    few = AGAIN_NODES if most is None else min(AGAIN_NODES, max(1, most // 8))  # nodes of another round
    first = budget if most is None else replace(budget, nodes=most - min(AGAIN * few, most // 2))
    proof = certify(shallow, X, y, rows, near.z, broken.radius, tol=tol, budget=first, done=tell)
    lower, nodes = proof.lower, proof.nodes
    short = (lower * (1 + tol) < broken.radius).nonzero()[:, 0]
    if len(short):
        mine, some = rows.of(short)
        broken.improve(short, descend(net, shallow, X[short], y[short], some, proof.z[mine]))
    far = (lower * (1 + max(tol, 0.02)) < broken.radius).nonzero()[:, 0]
    walked = far[~torch.isin(far, lost)]
    if shallow.U.numel() > WALK or most == 0:
        walked = walked[_unseen(shallow, X, y, rows)[walked]]
    if len(walked):
        broken.improve(walked, walk(walked))
    for _ in range(AGAIN):
        far = far[lower[far] * (1 + max(tol, 0.02)) < broken.radius[far]]
        if most is not None:
            far = far[nodes[far] + few <= most]
        left = None if end is None else max(0.0, end - time.monotonic())
        if not len(far) or left == 0:
            break
        little = Budget(few, None if left is None else left / len(far))
        mine, some = rows.of(far)
        upper = broken.radius[far]
        ball = torch.where(lower[far] > upper / 64, (lower[far] * upper).sqrt(), upper / 8)  # a smaller one to prove
        ball = torch.where(ball.isfinite(), ball, 2 * lower[far] + lengths(X[far], 2.0) / 8)
        smaller = certify(shallow, X[far], y[far], some, near.z[mine], ball, tol=tol, budget=little)
        gained = smaller.lower > 1.01 * lower[far]
        lower[far], nodes[far] = torch.maximum(lower[far], smaller.lower), nodes[far] + smaller.nodes
        far = far[gained]
    short = (lower * (1 + tol) < broken.radius).nonzero()[:, 0]
    if len(short):  # the cheap proofs may be the better ones there
        lower[short] = torch.maximum(lower[short], certified_radius(net, X[short], y[short], arithmetic=arithmetic))
    short = short[(lower[short] * (1 + tol) < broken.radius[short]) & broken.radius[short].isfinite()]
    if len(short) and shallow.groups > FEW and (net.p == 1 or net.p >= 2):
        quick = quick_radius(net, X[short], y[short], broken.perturbation[short], arithmetic)
        lower[short] = torch.maximum(lower[short], quick)
    return Found(lower, broken.radius, broken.perturbation, nodes)


def _unseen(shallow: Shallow, X: Tensor, y: Tensor, rows: Rows) -> Tensor:
    """(n,) bool: points whose margin the reduction may blur by half, and so cannot lead an attack on them.

    Beside one huge neuron all faint ones fall into few groups, but where the huge one is silent they decide alone.
    """
    zero = torch.zeros(len(X), dtype=torch.float64)
    blur = zero.scatter_reduce(0, rows.point, shallow.slack(y, rows, zero), "amax")
    margin = shallow.ray(X, y, rows, torch.zeros(len(X), len(shallow.Q), dtype=torch.float64)).margin(zero)
    if shallow.normalised:
        margin = margin * lengths(X - shallow.centre, 2.0).pow(shallow.p - 1)
    return blur >= margin / 2


def quick_bounds(
    net: PolyReLUNet,
    shallow: Shallow,
    X: Tensor,
    y: Tensor,
    right: Tensor,
    arithmetic: Arithmetic,
    pool: Labelled,
    seed: int,
    tell: Tell,
) -> Found:
    """Without branching, for neurons that did not collapse: the convex-concave attack above, `quick_radius` below."""
    found, done = Found.nothing(X), int(len(X) - right.sum())
    blind = shallow.normalised and shallow.p > 1 and bool(shallow.bias.any())  # that attack does not see such a bias
    for here in torch.split(right.nonzero()[:, 0], POINTS // 10):
        points, labels = X[here], y[here]
        rows = likeliest_rivals(shallow, shallow.rows(points, labels), RIVALS)
        broken = lifted_perturbations(
            net, shallow, points, labels, rows, nearest_boundary_points(shallow, rows, STARTS)
        )
        lost = broken.radius.isinf().nonzero()[:, 0]
        if len(lost):
            broken.improve(lost, general_walk(net, points[lost], labels[lost], 2.0, pool, seed))
        if blind:
            broken.improve(torch.arange(len(here)), walk_on(net, points, labels, broken.perturbation))
        lower = certificate(net, points, labels, 2.0, broken.perturbation, arithmetic)
        lost = broken.radius.isinf().nonzero()[:, 0]
        if len(lost):
            proof = certified_radius(net, points[lost], labels[lost], arithmetic=arithmetic)
            lower[lost] = torch.maximum(lower[lost], proof)
        found.put(here, Found(lower, broken.radius, broken.perturbation, found.nodes[here]))
        done += len(here)
        tell(done)
    return found


def certificate(net: nn.Module, X: Tensor, y: Tensor, norm: float, step: Tensor, arithmetic: Arithmetic) -> Tensor:
    """The best radius of a PolyReLUNet without branching, ``step`` from an attack; nothing, 0, for other modules."""
    if not isinstance(net, PolyReLUNet):
        return torch.zeros(len(X), dtype=torch.float64)
    if norm == 2 and (net.p == 1 or net.p >= 2):
        return quick_radius(net, X, y, step, arithmetic)
    return certified_radius(net, X, y, norm, arithmetic=arithmetic)


def general_bounds(
    net: nn.Module,
    X: Tensor,
    y: Tensor,
    right: Tensor,
    norm: float,
    arithmetic: Arithmetic,
    pool: Labelled,
    seed: int,
    tell: Tell,
    prove: Prove = certificate,
) -> Found:
    """The boundary walk above, ``prove`` below, some points at a time."""
    found, weights = Found.nothing(X), sum(weight.numel() for weight in net.parameters())
    done = int(len(X) - right.sum())
    for here in torch.split(right.nonzero()[:, 0], max(25, LOOKS // max(1, weights))):
        broken = general_walk(net, X[here], y[here], norm, pool, seed)
        found.lower[here] = prove(net, X[here], y[here], norm, broken.perturbation, arithmetic)
        found.upper[here], found.perturbation[here] = broken.radius, broken.perturbation
        done += len(here)
        tell(done)
    return found


def general_walk(net: nn.Module, X: Tensor, y: Tensor, norm: float, pool: Labelled, seed: int) -> Perturbations:
    """The general minimal attack; with one class alone there is nothing to walk towards."""
    alone = len(set(pool.y.tolist())) == 1
    starts = (Zero(), Random(8)) if alone else (Zero(), Random(2), Towards())
    walk = BoundaryWalk(steps=20, starts=starts)
    found = walk(net, X, y, norm=norm, pool=pool, seed=seed)
    return Perturbations(found.perturbation.double(), found.radius.double())


def walk_on(net: nn.Module, X: Tensor, y: Tensor, step: Tensor) -> Perturbations:
    """A short walk along the boundary from x + 1.02 ``step``, where another attack ended."""
    Z = X + 1.02 * step
    with torch.no_grad():
        logits = net(Z)
    target = -y if logits.ndim == 1 else logits.scatter(1, y[:, None], -torch.inf).argmax(dim=1)
    found = BoundaryWalk(steps=STEPS, starts=(_There(Z, target),))(net, X, y)
    return Perturbations(found.perturbation, found.radius)


@final
@dataclass(frozen=True, eq=False)
class _There(Start):
    """Known points (n, D), and the classes (n,) they lead to."""

    Z: Tensor
    target: Tensor

    def anchors(self, task: Task) -> Iterator[Anchor]:
        """Once."""
        yield self.Z[task.rows], self.target[task.rows]
