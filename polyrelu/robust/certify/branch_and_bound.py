r"""Exact l2 radii of PolyReLUNets by branch and bound over the opposite class only.

    r(x) = min |d| : P(x + d) <= N(x + d)      own terms P and opposite terms N, both convex for p >= 1

P never needs branching. A node bounds N^(q/p) by weights on relu(t_j)^q, slopes and a constant (see `relaxation`):

- root: N^(q/p) <= sum_j (b_j relu(t_j)^p)^(q/p), q = min(p, 2): equal for p <= 2, and for p > 2 where one term leads;
- leaders (p > 2): where b_g^(1/p) t_g is the largest, the others count q/p times, (1 + x^p)^(q/p) <= 1 + (q/p) x^q, or
  less where the ratios x are known to be small or nearly fixed: nearly exact for separated centres;
- boxes lo_j <= t_j <= hi_j: for p > 2 N itself, bent upwards only where the ball leaves too little curvature, or
  chords; for p <= 2 signs, and chords.

All nodes of all points are solved together, worst first. A point is done when its bound is within ``tol`` of the radius
found by the attack; budgets in nodes or seconds return the best bound so far. The reduction's mistake and rounding,
ours and that of the executed net if asked for, are part of the constants.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import torch
from torch import Tensor

from polyrelu.nets import PolyReLUNet
from polyrelu.robust.attacks.convex_concave import lifted_perturbations
from polyrelu.robust.attacks.nearest_boundary import nearest_boundary_points, project_on_linearised
from polyrelu.robust.certify.contract import Budget, Certificate, Job, Scope, Tier, silent
from polyrelu.robust.certify.lipschitz import LipschitzConstants
from polyrelu.robust.certify.root_relaxation import Ball, boxed
from polyrelu.robust.core.reduced_net import ReducedNet, ReducedRows, single_threaded
from polyrelu.robust.core.relaxation import Relaxation, overstated

WORK = 8e6  # numbers a batch of Hessians may hold
FAINT = 1e-100  # own terms below this at the point, beside a largest coefficient of 1: nothing is proven
LEADERS = 200  # nodes a row may spend on leaders


class Certified(NamedTuple):
    """Proven radius of each point (n,), the nodes it took, and for each row the point its bound hangs on (R, k)."""

    lower: Tensor
    nodes: Tensor
    z: Tensor


@final
@dataclass(frozen=True)
class BranchAndBound(Certificate):
    """Any p >= 1, l2: the whole ball first, then leaders and boxes, as far as the budget goes."""

    # the reduction to few coordinates keeps Euclidean lengths only, and rows of wrong points have no own terms
    scope = Scope(Tier.BRANCHING, norms=(2.0,), right_points_only=True)

    def radius(self, job: Job) -> Tensor:
        """In the ball that the convex-concave attack leaves."""
        net, X, y = job.net, job.X, job.y
        assert isinstance(net, PolyReLUNet)
        reduced = ReducedNet.from_net(net, job.tol, job.arithmetic) if job.reduced is None else job.reduced
        if reduced.groups == 0:
            return LipschitzConstants.from_net(net, job.norm, job.arithmetic).radius(X, y)
        rows = reduced.rows(X, y)
        near = nearest_boundary_points(reduced, rows)
        upper = lifted_perturbations(net, reduced, X, y, rows, near).radius
        found = certify(reduced, X, y, rows, near.z, upper, tol=job.tol, budget=job.budget, done=job.progress)
        return found.lower


@single_threaded()
def certify(
    net: ReducedNet,
    X: Tensor,
    y: Tensor,
    rows: ReducedRows,
    z: Tensor,
    upper: Tensor,
    *,
    tol: float,
    budget: Budget,
    done: Callable[[int], None] = silent,
) -> Certified:
    """A proven lower bound of the radius of each point, at most the radius ``upper`` (n,) found for it.

    ``z`` (R, k) are the attack's points, where the search starts; they decide speed and tightness only. ``done`` is
    told now and then how many points are done; one under way counts by its share of ``budget.nodes``.
    """
    clock = _Clock(budget, len(X))
    rows = rows.scaled(net)
    scale, length = rows.scale[rows.first], rows.length[rows.first]
    ball = Ball(net, y, upper / scale, rows, z / rows.scale[:, None])
    upper = upper / scale
    target = torch.minimum(upper / (1 + tol), ball.reach)[rows.point] * net.stretch
    best = _root(ball, target)
    done(len(X) - len(torch.unique(rows.point[best < target])))
    tree = Boxes.whole(ball, best, target)
    if net.p > 2 and not clock.over:
        led = tree.row[tree.bound < best[tree.row]]
        near = led[best[led] > 0.9 * target[led]]
        near = near[ball.can_lead(near).sum(1) <= clock.left]
        best[near] = torch.maximum(best[near], _leaders(ball, near, target, clock.left))
    best = _split(ball, tree, best, target, clock, done)
    best = torch.where(ball.value + ball.part.own_constant > FAINT, best, 0.0)
    least = torch.full((len(X),), torch.inf, dtype=torch.float64).scatter_reduce(0, rows.point, best, "amin")
    lower = torch.minimum(ball.reach, least / net.stretch) * scale
    return Certified(net.whole.rounded_down(lower, length * scale, 2.0), ball.nodes, ball.z * rows.scale[:, None])


class _Clock:
    """Whether the budget of a call is spent."""

    def __init__(self, budget: Budget, points: int) -> None:
        self.nodes = budget.nodes
        self.end = None if budget.seconds is None else time.monotonic() + budget.seconds * points

    @property
    def left(self) -> int:
        """Nodes one stage may spend on a row."""
        return LEADERS if self.nodes is None else min(LEADERS, self.nodes)

    @property
    def over(self) -> bool:
        return self.nodes == 0 or (self.end is not None and time.monotonic() >= self.end)


def _batches(ball: Ball, count: int) -> list[Tensor]:
    size = max(32, int(WORK / (ball.net.C.shape[1] + 2) ** 2))
    return list(torch.split(torch.arange(count), size)) if count else []


def _root(ball: Ball, target: Tensor) -> Tensor:
    """The whole ball as one node."""
    p = ball.net.p
    q = min(p, 2.0)
    best = torch.zeros(len(target), dtype=torch.float64)
    for row in _batches(ball, len(target)):
        weight = ball.part.opposite[row].pow(q / p)
        leaf = ball.relax(row, weight, None, ball.constant(row, q / p), q)
        got = ball.solve(row, leaf, ball.z[row], target[row])
        best[row], ball.z[row] = got.bound, got.z if p <= 2 else ball.z[row]
    return best


class LeaderNodes(NamedTuple):
    """Nodes "direction lead is the largest opposite term of this row, the others' ratios to it within bounds"."""

    row: Tensor
    lead: Tensor
    least: Tensor
    most: Tensor


def _leaders(ball: Ball, place: Tensor, target: Tensor, most: int) -> Tensor:
    """The least bound over all leaders of each row, those that fall short divided once more; p > 2.

    A row whose parts would be more than ``most`` is not divided.
    """
    at, lead = ball.can_lead(place).nonzero(as_tuple=True)
    row = place[at]
    led = LeaderNodes(row, lead, *ball.ratios(row, lead))
    bound = _leader_bounds(ball, led, target)
    short = bound < target[row]
    parts_of = torch.zeros(len(place), dtype=torch.long).index_add(0, at, short.long() * ball.net.groups)
    short = (short & (parts_of[at] <= most)).nonzero()[:, 0]
    if len(short):
        parent, parts = _divide(LeaderNodes(*(part[short] for part in led)))
        again = _leader_bounds(ball, parts, target)
        least = torch.full((len(short),), torch.inf, dtype=torch.float64).scatter_reduce(0, parent, again, "amin")
        bound[short] = torch.maximum(bound[short], least)
    best = torch.full((len(place),), torch.inf, dtype=torch.float64).scatter_reduce(0, at, bound, "amin")
    idle = (ball.floor[place] <= 0).nonzero()[:, 0]  # N may be 0, and then nobody leads
    for here in _batches(ball, len(idle)):
        row = place[idle[here]]
        nothing = torch.zeros_like(ball.part.opposite[row])
        leaf = ball.relax(row, nothing, None, ball.slack[row].pow(1 / ball.net.p), 1.0)
        got = ball.solve(row, leaf, ball.z[row], target[row])
        best[idle[here]] = torch.minimum(best[idle[here]], got.bound)
    return best


def _divide(led: LeaderNodes, ratio: float = 0.25) -> tuple[Tensor, LeaderNodes]:
    """All other ratios small, or one of them not: together they cover the node. Returns each part's parent."""
    small = led._replace(most=torch.where(led.least < ratio, led.most.clamp(max=ratio), led.most))
    other = torch.ones_like(led.most, dtype=torch.bool).scatter(1, led.lead[:, None], False)
    parent, j = (other & (led.most > ratio) & (led.least < ratio)).nonzero(as_tuple=True)
    large = LeaderNodes(*(part[parent] for part in led))
    large = large._replace(least=large.least.scatter(1, j[:, None], ratio))
    everyone = torch.arange(len(led.row))
    return torch.cat([everyone, parent]), LeaderNodes(*(torch.cat(pair) for pair in zip(small, large, strict=True)))


def _leader_bounds(ball: Ball, led: LeaderNodes, target: Tensor) -> Tensor:
    """A bound for each node, trying exponents from just below 2 downwards; lower ones suit x behind the leader."""
    net, p = ball.net, ball.net.p
    bound = torch.zeros(len(led.row), dtype=torch.float64)
    for here in _batches(ball, len(led.row)):
        row, lead, least, most = (part[here] for part in led)
        part, s, c = ball.part[row], ball.rows.s[row], net.C[lead]
        start = project_on_linearised(net, s, part, part.opposite.gather(1, lead[:, None]).pow(1 / p) * c)
        behind = (-(s * c).sum(1)).clamp(min=0) / (start * c).sum(1).clamp(min=1e-12)
        todo = torch.arange(len(here))
        for highest in (1.97, 1.9, 1.75):
            some = row[todo]
            q = (2 / (1 + 4 * behind[todo, None])).clamp(1.3, highest)
            weight = leader_weights(lead[todo], least[todo], most[todo], p, q) * part.opposite[todo].pow(q / p)
            leaf = ball.relax(some, weight, None, ball.constant(some, q[:, 0] / p), q)
            got = ball.solve(some, leaf, start[todo], target[some]).bound
            bound[here[todo]] = torch.maximum(bound[here[todo]], got)
            todo = todo[bound[here[todo]] < target[some]]
            if not len(todo):
                break
    return bound


def leader_weights(lead: Tensor, least: Tensor, most: Tensor, p: float, q: Tensor) -> Tensor:
    """Weights w with (1 + sum_j x_j^p)^(q/p) <= w_g + sum_j w_j x_j^q for ratios least_j <= x_j <= most_j, j != g.

    x^p lies below its chord in x^q, and the concave power below its tangent at S = 1 + sum_j least_j^p.
    """
    at = lead[:, None]
    chord = _chord_slope(least, most, p, q).scatter(1, at, 0.0)
    S = 1 + least.scatter(1, at, 0.0).pow(p).sum(1, keepdim=True)
    below = (most.pow(p) - chord * most.pow(q)).scatter(1, at, 0.0).sum(1, keepdim=True)
    rate = q / p * S.pow(q / p - 1)
    return (rate * chord).scatter(1, at, S.pow(q / p) + rate * (1 + below - S))


def _chord_slope(low: Tensor, high: Tensor, p: float, q: Tensor | float) -> Tensor:
    """The slope of t^p against t^q from ``low`` to ``high``, or the tangent's where both are nearly one; 0 <= low."""
    gap = high.pow(q) - low.pow(q)
    thin = gap <= 1e-9 * high.pow(q)
    slope = (high.pow(p) - low.pow(p)) / torch.where(thin, 1.0, gap)
    return torch.where(thin, p / q * high.clamp(min=1e-300).pow(p - q), slope)


@final
@dataclass(frozen=True)
class Boxes:
    """Nodes: their row, boxes on pre-activations, the bound so far, its point, what splitting a direction may win."""

    row: Tensor
    low: Tensor
    high: Tensor
    bound: Tensor
    z: Tensor
    wins: Tensor

    def __getitem__(self, keep: Tensor) -> Boxes:
        """The nodes named by ``keep``."""
        return Boxes(*(part[keep] for part in vars(self).values()))

    def __add__(self, other: Boxes) -> Boxes:
        """Both."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Boxes(*(torch.cat(pair) for pair in pairs))

    @staticmethod
    def whole(ball: Ball, best: Tensor, target: Tensor) -> Boxes:
        """One node for each row that is short of its target: everything in the ball. For p <= 2 that is the root."""
        row = (best < target).nonzero()[:, 0]
        low, high = ball.boxes(row)
        nodes = Boxes(row, low, high, torch.zeros_like(best[row]), ball.z[row], torch.zeros_like(low))
        return nodes.bounded(ball, target)

    def bounded(self, ball: Ball, target: Tensor) -> Boxes:
        """The same nodes with the best bound known."""
        p = ball.net.p
        bound, z, wins = self.bound.clone(), self.z.clone(), torch.zeros_like(self.low)
        for here in _batches(ball, len(self.row)):
            some = self[here]
            forms = [boxed(ball, some.row, some.low, some.high) if p > 2 else _chords(ball, some, p)]
            if p > 1:
                forms.append(_chords(ball, some, 1.0))
            for number, leaf in enumerate(forms):
                if number and p > 2 and bool((bound[here] > 0.7 * target[some.row]).all()):
                    break
                got = ball.solve(some.row, leaf, some.z, target[some.row])
                better = (got.bound > bound[here]) if number else torch.ones_like(here, dtype=torch.bool)
                where = here[better]
                z[where] = got.z[better]
                wins[where] = (overstated(leaf, got.z, got.lam) + _above(ball, some, leaf, got.z))[better]
                bound[here] = torch.maximum(bound[here], got.bound)
        return Boxes(self.row, self.low, self.high, bound, z, wins)


def _split(ball: Ball, tree: Boxes, best: Tensor, target: Tensor, clock: _Clock, done: Callable[[int], None]) -> Tensor:
    """Split boxes, worst node first, until every row reaches its target or the budget ends; returns row bounds.

    Rows whose leaders came close while the whole box did not are left alone: splitting would be in vain.
    """
    hopeless = (tree.bound < 0.9 * best[tree.row]) & (best[tree.row] > 0.98 * target[tree.row])
    open_ = tree[(best[tree.row] < target[tree.row]) & ~hopeless]
    rows, closed = open_.row, torch.full_like(best, torch.inf)
    each = 2 if ball.net.p == 1 else 4  # nodes spent by cutting one: two halves, each bounded once or twice
    while len(open_.row) and not clock.over:
        order = (open_.bound / target[open_.row]).argsort()
        if clock.nodes is not None:
            point = ball.rows.point[open_.row[order]]
            order = order[each * _rank(point) < clock.nodes - ball.nodes[point]]
        if not len(order):
            break
        point = torch.unique(ball.rows.point[open_.row[order]])
        share = 0 if clock.nodes is None else int((ball.nodes[point] / clock.nodes).clamp(max=1).sum())
        done(len(ball.nodes) - len(point) + share)
        batch = order[: len(_batches(ball, len(order))[0])]
        rest = torch.ones(len(open_.row), dtype=torch.bool)
        rest[batch] = False
        children = _halves(ball, open_[batch]).bounded(ball, target)
        shut = children.bound >= target[children.row]
        closed.scatter_reduce_(0, children.row[shut], children.bound[shut], "amin")
        open_ = open_[rest] + children[~shut]
    ball.z[open_.row] = open_.z
    bound = closed.scatter_reduce(0, open_.row, open_.bound, "amin")
    best[rows] = torch.maximum(best[rows], bound[rows])
    return best


def _rank(point: Tensor) -> Tensor:
    """How many entries before this one name the same point."""
    order = point.argsort(stable=True)
    ordered, rank = point[order], torch.empty_like(point)
    rank[order] = torch.arange(len(point)) - torch.searchsorted(ordered, ordered)
    return rank


def _halves(ball: Ball, nodes: Boxes) -> Boxes:
    """Each node cut in two along the direction whose majorant overstates most, at 0 or at its point."""
    width = (nodes.high - nodes.low) * (ball.part.opposite[nodes.row] > 0)
    j = (nodes.wins + 1e-9 * width).argmax(dim=1, keepdim=True)
    low, high = nodes.low.gather(1, j), nodes.high.gather(1, j)
    at = (nodes.z @ ball.net.C.T).gather(1, j)
    at = torch.minimum(torch.maximum(at, low + 0.15 * (high - low)), high - 0.15 * (high - low))
    at = torch.where((low < 0) & (high > 0), 0.0, at)
    left, right = replace(nodes, high=nodes.high.scatter(1, j, at)), replace(nodes, low=nodes.low.scatter(1, j, at))
    return left + right


def _chords(ball: Ball, nodes: Boxes, q: float) -> Relaxation:
    """N^(q/p) on boxes, q = p for p <= 2 or q = 1 for any p: relu(t)^p lies below its chord in relu(t)^q.

    The power q/p lies below its tangent at S; any S > 0 will do.
    """
    p, row = ball.net.p, nodes.row
    opposite = ball.part.opposite[row] * (nodes.high > 0)
    low, high = nodes.low.clamp(min=0), nodes.high.clamp(min=0)
    steep, power = _chord_slope(low, high, p, q), q / p
    S = (opposite * (nodes.z @ ball.net.C.T).clamp(min=0).pow(p)).sum(1) + ball.slack[row]
    S = torch.maximum(S, 1e-30 * (opposite * high.pow(p)).sum(1)).clamp(min=1e-300)
    rate = power * S.pow(power - 1)
    weight = rate[:, None] * opposite * steep
    shift = (opposite * (high.pow(p) - steep * high.pow(q))).sum(1)
    constant = S.pow(power) * (1 - power) + rate * (ball.slack[row] + shift)
    straight = (nodes.low >= 0) & (q == 1)
    zero = torch.zeros_like(weight)
    return ball.relax(row, torch.where(straight, zero, weight), torch.where(straight, weight, zero), constant, q)


def _above(ball: Ball, nodes: Boxes, leaf: Relaxation, z: Tensor) -> Tensor:
    """(B, m): by how much the chords of `_chords` exceed relu(t)^p at z, in the leaf's units."""
    p, q = leaf.p, leaf.q
    if p > 2 or bool((q == p).all()):
        return torch.zeros_like(nodes.low)
    t = torch.minimum(torch.maximum(z @ leaf.C.T, nodes.low), nodes.high).clamp(min=0)
    low, high = nodes.low.clamp(min=0), nodes.high.clamp(min=0)
    gap = (high.pow(q) - low.pow(q)).clamp(min=1e-300)
    chord = low.pow(p) + (high.pow(p) - low.pow(p)) * (t.pow(q) - low.pow(q)) / gap
    return ball.part.opposite[nodes.row] * (chord - t.pow(p)).clamp(min=0)
