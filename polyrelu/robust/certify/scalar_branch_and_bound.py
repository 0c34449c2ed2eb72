r"""The scalar problem behind the radius of F^(p), p not 1 or 2, solved to the end by branch and bound.

Own coordinates a_i (the largest is 1), opposite ones b_j; one of the latter, ``free``, is the unknown u = w^(1/p):

    min_w  (u - b)^2/2 + V(w),    V(w) = min { |t - a|^2/2 + |u' - b'|^2/2 : sum t_i^p - sum u'_j^p <= w }

With the multiplier lam the others satisfy t + lam p t^(p-1) = a and u' - lam p u'^(p-1) = b', each on the branch where
the Lagrangian is convex; there w falls with lam, so V is convex with V' = -lam. (u - b)^2/2 = u^2/2 - b u + b^2/2 is a
convex plus a concave function of w. Between two values of w the convex part lies above its tangents, the concave one
above its chord: a lower bound whose error is of second order, so halving closes the gap. Every point visited is
feasible, hence rounding can only loosen the result, by the relative tolerance below.

The curve is followed by s = t_1, the largest own coordinate: lam = (1 - s)/(p s^(p-1)). In t = s rho the equations
are s rho + (1-s) rho^(p-1) = a and s ups - (1-s) ups^(p-1) = b': nothing overflows for any p, and s = 0 is allowed.
Newton's method solves them from the side where convexity makes it monotone: no safeguard is needed, any p will do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

TOLERANCE = 1e-13  # of r^2, relative
ROUNDING = 2e-15  # of r, relative to |a|
HALVINGS = 60


class Problems(NamedTuple):
    """One row per problem: own ``a`` >= 0, other opposite ``b`` with those that move ``on``, ``free`` itself."""

    a: Tensor
    b: Tensor
    on: Tensor
    free: Tensor

    def pick(self, index: Tensor) -> Problems:
        """Some of the problems."""
        return Problems(*(part[index] for part in self))


class Node(NamedTuple):
    """A point of the curve for each problem: w = (s height)^p, the others' cost V, and whether it exists."""

    s: Tensor
    height: Tensor
    V: Tensor
    exists: Tensor

    def pick(self, index: Tensor) -> Node:
        """The nodes of some problems."""
        return Node(*(part[index] for part in self))


def least_cost(problems: Problems, p: float) -> Tensor:
    """min (u - b)^2/2 + V(w) for each problem; inf where no u >= max(b, 0) meets the others."""
    best = torch.full_like(problems.free, torch.inf)
    low, high = _domain(problems, p)
    row = (low <= high).nonzero()[:, 0]
    left, right = _node(problems.pick(row), low[row], p), _node(problems.pick(row), high[row], p)
    for _ in range(HALVINGS):
        if not len(row):
            break
        own = problems.pick(row)
        for node in (left, right):
            best.scatter_reduce_(0, row, _cost(own, node), "amin")
        least = best[row]
        slack = TOLERANCE * least + ROUNDING * least.sqrt() * own.a.norm(dim=1)
        keep = (_bound(own, left, right, p) < least - slack) & (right.s - left.s > ROUNDING)
        row, own, left, right = row[keep], own.pick(keep), left.pick(keep), right.pick(keep)
        middle = _node(own, (left.s + right.s) / 2, p)
        row = row.repeat(2)
        left = Node(*(torch.cat(parts) for parts in zip(left, middle, strict=True)))
        right = Node(*(torch.cat(parts) for parts in zip(middle, right, strict=True)))
    return best


def _cost(problems: Problems, node: Node) -> Tensor:
    cost = (node.s * node.height - problems.free).square() / 2 + node.V
    return torch.where(node.exists, cost, torch.inf)


def _bound(problems: Problems, left: Node, right: Node, p: float) -> Tensor:
    """Lower bound of the cost between two nodes, in z = w/w_right from q = w_left/w_right to 1.

    From each node a line: the slope of the cost there, corrected by chord minus tangent for the concave parts C z^k.
    All differences are taken so that rounding is relative to 1 - q and to the cost, not to |a|^2.
    """
    u0, u1 = left.s * left.height, right.s * right.height
    q = (u0 / torch.where(u1 > 0, u1, 1.0)).pow(p).clamp(max=1.0)
    e = 1 - q
    two = q > 1e-100  # from w = 0, where the slope is -inf, there is no line
    q = torch.where(two, q, 1.0)
    slope0, slope1 = _slope(problems, left, p) / q, _slope(problems, right, p)
    concave = [(1 / p, torch.where(problems.free < 0, -problems.free * u1, 0.0))]
    if p > 2:
        concave.append((2 / p, u1.square() / 2))
    for k, C in concave:
        chord = torch.where(e > 0, -torch.expm1(k * torch.log1p(-e)) / torch.where(e > 0, e, 1.0), k)
        slope0 = slope0 + C * (chord - k * q.pow(k - 1))
        slope1 = slope1 + C * (chord - k)
    cost0, cost1 = _cost(problems, left), _cost(problems, right)
    bend = slope1 - slope0
    x, y = cost1 - cost0 - e * slope0, cost0 - cost1 + e * slope1  # over bend: 1 - z and z - q where the lines cross
    x, y = ((part / torch.where(bend > 0, bend, 1.0)).clamp(min=0).minimum(e) for part in (x, y))
    crossing = torch.where(x < y, cost1 - x * slope1, cost0 + y * slope0)
    inside = torch.where(two, torch.where(bend > 0, crossing, torch.inf), cost1 - e * slope1)
    return inside.minimum(cost0).minimum(cost1)


def _slope(problems: Problems, node: Node, p: float) -> Tensor:
    """w d/dw of the cost: u (u - b)/p - lam w."""
    u = node.s * node.height
    return (u * (u - problems.free) - node.s * (1 - node.s) * node.height.pow(p)) / p


def _node(problems: Problems, s: Tensor, p: float) -> Node:
    """The point of the curve at ``s`` for each problem."""
    S = s[:, None]
    rho = own_root(problems.a, S, p)
    total = rho.pow(p).sum(dim=1)
    cap = total.pow(1 / p)[:, None]
    if p > 2:
        moving = problems.on & (problems.b > 0)
        ups, exists = lower_root(torch.where(moving, problems.b, 0.0), S, p), _branches_exist(problems, s, p)
    else:
        moving = problems.on
        ups, found = upper_root(problems.b, S, cap, p)
        exists = (found | ~moving).all(dim=1)
    ups = torch.where(moving, ups, 0.0)
    rest = total - ups.pow(p).sum(dim=1)
    costs = (
        (problems.a - S * rho).square().sum(dim=1),
        torch.where(moving, S * ups - problems.b, 0.0).square().sum(dim=1),
    )
    return Node(s, rest.clamp(min=0).pow(1 / p), (costs[0] + costs[1]) / 2, exists & (rest >= 0))


def _branches_exist(problems: Problems, s: Tensor, p: float) -> Tensor:
    """Whether the value at the turn, s ups (p-2)/(p-1), is beyond b for every coordinate that moves."""
    S = s[:, None]
    turn = ((S.log() * (p - 1) - (1 - S).log() - math.log(p - 1)) / (p - 2)).exp() * ((p - 2) / (p - 1))
    b, moving = problems.b, problems.on & ((problems.b > 0) if p > 2 else (problems.b < 0))
    return (((turn >= b) if p > 2 else (turn <= b)) | ~moving).all(dim=1)


def _domain(problems: Problems, p: float) -> tuple[Tensor, Tensor]:
    """[low, high] in s where the others' branches exist and u >= max(b, 0); low > high where that is empty."""
    zero, one = torch.zeros_like(problems.free), torch.ones_like(problems.free)
    floor = problems.free.clamp(min=0)

    def good(s: Tensor) -> Tensor:
        node = _node(problems, s, p)
        return node.exists & (s * node.height >= floor)

    # the branches exist from some s on for p > 2, up to some s for p < 2; the rest holds from some s on
    start, stop = (one, zero) if p > 2 else (zero, one)
    end = _furthest(lambda s: _branches_exist(problems, s, p), start, stop)
    low, high = (end, one) if p > 2 else (zero, end)
    low = _furthest(good, high, low)
    return torch.where(good(high), low, one + 1), high


def _furthest(good: Callable[[Tensor], Tensor], inside: Tensor, outside: Tensor) -> Tensor:
    """The good point nearest to ``outside``, by halving; ``inside`` is good."""
    inside = torch.where(good(outside), outside, inside)
    for _ in range(32):  # an optimum so near an end has slope 0 there, to first order
        middle = (inside + outside) / 2
        passed = good(middle)
        inside, outside = torch.where(passed, middle, inside), torch.where(passed, outside, middle)
    return inside


def _newton(z: Tensor, step: Callable[[Tensor], Tensor]) -> Tensor:
    """z <- step(z) until it stands still; monotone by convexity from the starts used here."""
    for _ in range(100):
        last, z = z, step(z)
        if bool(((z - last).abs() <= 4e-16 * z.abs()).all()):
            break
    return z


def own_root(a: Tensor, S: Tensor, p: float) -> Tensor:
    """rho >= 0 with s rho + (1-s) rho^(p-1) = a; convex in rho for p > 2, in rho^(p-1) for p < 2: from the right."""
    k = p - 1 if p > 2 else 1 / (p - 1)
    A = torch.where(a > 0, a, 1.0)
    one, other = (S, 1 - S) if p > 2 else (1 - S, S)  # one z + other z^k = a

    def step(z: Tensor) -> Tensor:
        power = z.pow(k - 1)
        return ((A + (k - 1) * other * power * z) / (one + k * other * power)).minimum(z)

    z = _newton((A / one).minimum((A / other).pow(1 / k)), step)
    return torch.where(a > 0, z if p > 2 else z.pow(k), 0.0)


def lower_root(b: Tensor, S: Tensor, p: float) -> Tensor:
    """p > 2: the smaller root of s ups - (1-s) ups^(p-1) = b, b > 0; concave: from the left, up to the turn."""
    k, turn = p - 1, _turn(S, p)

    def step(z: Tensor) -> Tensor:
        power = (1 - S) * z.pow(k - 1)
        slope = S - k * power
        return torch.where(slope > 0, (b - (k - 1) * power * z) / slope, turn).minimum(turn).maximum(z)

    return _newton(torch.where(b > 0, b / S, 0.0).minimum(turn), step)


def upper_root(b: Tensor, S: Tensor, cap: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """p < 2: the larger root of s ups - (1-s) ups^(p-1) = b, and whether it is <= ``cap``; convex: from the right."""
    k, turn = p - 1, _turn(S, p)
    found = (cap >= turn) & (S * cap - (1 - S) * cap.pow(k) >= b)

    def step(z: Tensor) -> Tensor:
        power = (1 - S) * z.pow(k - 1)
        slope = S - k * power
        return torch.where(slope > 0, (b + (1 - k) * power * z) / slope, turn).maximum(turn).minimum(z)

    return _newton(torch.where(found, cap, 1.0), lambda z: torch.where(found, step(z), z)), found


def _turn(S: Tensor, p: float) -> Tensor:
    """(s/((1-s)(p-1)))^(1/(p-2)), where s ups - (1-s) ups^(p-1) turns: its maximum for p > 2, its minimum below."""
    return ((S.log() - (1 - S).log() - math.log(p - 1)) / (p - 2)).exp()
