r"""Nearest breaking points in the reduced coordinates, by convex-concave steps.

    minimise |z - s|  subject to  pi_P(z) <= pi_N(z),   pi_P = P^(1/p), pi_N = N^(1/p)  (p-norms, both convex)

pi_N is replaced by its tangent <zeta, z> (the set shrinks, so what satisfies it breaks the net), and s is projected on
{pi_P <= <zeta, z>} by linearising pi_P, which is exact for p = 1; then the tangent is taken again. Where relu^p is flat
no gradient shows the way, so there is one start for each of the nearest opposite directions, one for their sum, one for
the tangent at s, and one that only switches the own terms off. The principle: Yuille & Rangarajan, 2003.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from torch import Tensor

from polyrelu.robust.core.norms import lengths
from polyrelu.robust.core.reduced_net import ReducedNet, ReducedRows, single_threaded
from polyrelu.robust.core.relaxation import Relaxation, solve

CONVEX_CONCAVE_STEPS = 40  # at most
NEWTON_ROUNDS = 4
KINKS = 60  # directions up to which own kinks are treated; with 500 it took 16 s a point and gained 2e-4
MANY = 200_000  # numbers in an operation, from which two threads are faster than one


@final
@dataclass(frozen=True)
class ClassTerms:
    """Own and opposite terms of each row; constants stand for a bias."""

    own: Tensor
    opposite: Tensor
    own_constant: Tensor
    opposite_constant: Tensor

    def __getitem__(self, keep: Tensor) -> ClassTerms:
        return ClassTerms(self.own[keep], self.opposite[keep], self.own_constant[keep], self.opposite_constant[keep])


def class_terms(net: ReducedNet, rows: ReducedRows) -> ClassTerms:
    """P and N of each row. With input normalisation a bias counts |z|^(p-1) times; here at |z| = |x|."""
    beta = rows.beta * (rows.length.pow(net.p - 1) if net.normalised else 1.0)
    zero = torch.zeros_like(beta)
    own, opposite = rows.coefficient.clamp(min=0), (-rows.coefficient).clamp(min=0)
    return ClassTerms(own, opposite, torch.maximum(beta, zero), torch.maximum(-beta, zero))


def power_root(T: Tensor, weight: Tensor, constant: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """(sum_j c_j relu(t_j)^p + constant)^(1/p) and its gradient in t; 0 where it is 0."""
    on = T.clamp(min=0)
    if p == 1:
        return (weight * on).sum(-1) + constant, weight * (T > 0)
    slope = weight * on.pow(p - 1)
    total = (slope * on).sum(-1) + constant
    safe = total.clamp(min=1e-300)
    value = safe.pow(1 / p) * (total > 0)
    return value, slope * (value / safe)[..., None]


class BoundaryPoints(NamedTuple):
    """For each row the nearest point found, its distance from s and whether it breaks the reduced net."""

    z: Tensor
    radius: Tensor
    breaks: Tensor


def nearest_boundary_points(net: ReducedNet, rows: ReducedRows, starts: int = 8) -> BoundaryPoints:
    """The nearest breaking point of each row over all starts; after a few steps only the best starts go on."""
    small = len(rows) * starts * net.groups < MANY
    scaled = rows.scaled(net)
    found = (single_threaded()(_nearest) if small else _nearest)(net, scaled, starts)
    return BoundaryPoints(found.z * scaled.scale[:, None], found.radius * scaled.scale, found.breaks)


def _nearest(net: ReducedNet, rows: ReducedRows, starts: int) -> BoundaryPoints:
    part = class_terms(net, rows)
    zeta = _tangents(net, rows, part, starts)
    R, S, k = zeta.shape
    place = torch.arange(R).repeat_interleave(S)
    z = _walk(net, rows.s[place], part[place], zeta.reshape(R * S, k), 5, fixed=False)
    if S > 3:
        T = z @ net.C.T
        mine = part[place]
        own = power_root(T, mine.own, mine.own_constant, net.p)[0]
        other = power_root(T, mine.opposite, mine.opposite_constant, net.p)[0]
        steep = lengths(z - rows.s[place], 2.0)
        short = (own - other).clamp(min=0) / own.clamp(min=1e-300)  # not yet broken: as if as far again
        keep = (steep * (1 + short)).view(R, S).topk(3, dim=1, largest=False).indices
        place = torch.arange(R).repeat_interleave(3)
        z = z.view(R, S, k).gather(1, keep[:, :, None].expand(-1, -1, k)).reshape(-1, k)
        S = 3
    tangent = power_root(z @ net.C.T, part.opposite[place], part.opposite_constant[place], net.p)[1] @ net.C
    found = convex_concave_steps(net, rows.s[place], part[place], tangent, z)
    radius = torch.where(found.breaks, found.radius, torch.inf).view(R, S)
    best = radius.argmin(dim=1) + S * torch.arange(R)
    return BoundaryPoints(found.z[best], found.radius[best], found.breaks[best])


def likeliest_rivals(net: ReducedNet, rows: ReducedRows, count: int) -> ReducedRows:
    """The rows of the ``count`` rivals of each point that seem nearest: by margin / |gradient|, a first step."""
    part, T = class_terms(net, rows), rows.s @ net.C.T
    own, up = power_root(T, part.own, part.own_constant, net.p)
    other, down = power_root(T, part.opposite, part.opposite_constant, net.p)
    far = (own - other) / lengths((up - down) @ net.C, 2.0).clamp(min=1e-300)
    n, rivals = len(rows.pre), len(rows) // len(rows.pre)
    best = far.view(n, rivals).topk(min(count, rivals), dim=1, largest=False).indices.sort(dim=1).values
    return rows.only((best + rivals * torch.arange(n)[:, None]).flatten())


def project_on_linearised(net: ReducedNet, s: Tensor, part: ClassTerms, zeta: Tensor, steps: int = 12) -> Tensor:
    """Projection of s on {pi_P(z) <= <zeta, z>}."""
    return _walk(net, s, part, zeta, steps, fixed=True)


def convex_concave_steps(
    net: ReducedNet, s: Tensor, part: ClassTerms, zeta: Tensor, z: Tensor | None = None
) -> BoundaryPoints:
    """Convex-concave steps from the tangents ``zeta`` (at ``z``), then along the ray to where the sign turns."""
    z = _walk(net, s, part, zeta, CONVEX_CONCAVE_STEPS, fixed=False, z=z)
    found = ray_to_boundary(net, s, part, z)
    if net.p < 2 and net.groups <= KINKS:
        _settle_kinks(net, s, part, found)
    return found


def _settle_kinks(net: ReducedNet, s: Tensor, part: ClassTerms, found: BoundaryPoints) -> None:
    """p < 2: own terms that should end at 0 are stepped over to and fro; project there by Newton's method instead."""
    again = _walk(net, s, part, torch.zeros_like(s), 1, fixed=False, z=found.z, tangent=True)
    left = ((again - found.z).abs().amax(dim=1) > 1e-6 * s.abs().amax(dim=1)).nonzero()[:, 0]
    if not len(left):
        return
    s, part, z = s[left], part[left], found.z[left].clone()
    none, one = torch.zeros_like(part.own), torch.ones(len(left), 1, dtype=s.dtype)
    for turn in range(NEWTON_ROUNDS):
        T = z @ net.C.T
        other, slope = power_root(T, part.opposite, part.opposite_constant, net.p)
        level = other - (slope * T).sum(1)
        if turn == NEWTON_ROUNDS // 2 and net.p == 1:  # once with all of them on: some are at a kink, unseen
            slope, level = part.opposite, part.opposite_constant
        leaf = Relaxation(net.C, net.p, one, s, part.own, part.own_constant, none, slope, level, none)
        steep = torch.linalg.vector_norm((power_root(T, part.own, part.own_constant, net.p)[1] - slope) @ net.C, dim=1)
        lam = (lengths(z - s, 2.0) / steep.clamp(min=1e-12)).clamp(1e-9, 1e9)
        never = torch.full_like(lam, torch.inf)
        smooth = solve(leaf, z, lam, never)
        z = solve(leaf.straightened(smooth.z), smooth.z, smooth.lam, never, steps=20).z
        better = ray_to_boundary(net, s, part, z)
        wins = better.breaks & (~found.breaks[left] | (better.radius < found.radius[left]))
        for mine, new in zip(found, better, strict=True):
            mine[left[wins]] = new[wins]


def _walk(
    net: ReducedNet,
    s: Tensor,
    part: ClassTerms,
    zeta: Tensor,
    steps: int,
    *,
    fixed: bool,
    z: Tensor | None = None,
    tangent: bool = False,
) -> Tensor:
    C, p = net.C, net.p
    z = s if z is None else z
    own, first = power_root(z @ C.T, part.own, part.own_constant, p)
    g_own, level = first @ C, torch.zeros_like(own)
    if tangent:
        other, first = power_root(z @ C.T, part.opposite, part.opposite_constant, p)
        zeta = first @ C
        level = other - (zeta * z).sum(1)
    for step in range(steps):
        way = g_own - zeta
        gap = own - (zeta * z).sum(1) - level + (way * (s - z)).sum(1)
        lam = gap.clamp(min=0) / way.square().sum(1).clamp(min=1e-300)
        new = s - lam[:, None] * way
        if step > steps // 2:
            new = (new + z) / 2  # damped: oscillation between two faces dies out
        moved = (new - z).abs().amax()
        z = new
        T = z @ C.T
        own, first = power_root(T, part.own, part.own_constant, p)
        g_own = first @ C
        if not fixed:
            other, first = power_root(T, part.opposite, part.opposite_constant, p)
            new_zeta = first @ C
            seen = other > 0
            zeta = torch.where(seen[:, None], new_zeta, zeta)
            level = torch.where(seen, other - (new_zeta * z).sum(1), 0.0)
        if bool(moved <= 1e-9 * z.abs().amax()):
            break
    return z


def ray_to_boundary(net: ReducedNet, s: Tensor, part: ClassTerms, z: Tensor) -> BoundaryPoints:
    """s + c (z - s) with the smallest c near 1 at which the reduced margin is <= 0."""
    way = z - s
    pre, ahead = s @ net.C.T, way @ net.C.T

    def breaks(c: Tensor) -> Tensor:
        on = (pre + c[:, None] * ahead).clamp(min=0)
        gap = (part.own - part.opposite) * (on if net.p == 1 else on.pow(net.p))
        return gap.sum(1) + part.own_constant - part.opposite_constant <= 0

    ladder = (0.3, 0.6, 0.8, 0.9, 0.98, 1 - 1e-3, 1 - 1e-6, 1 + 1e-9, 1 + 1e-6, 1.001, 1.01, 1.03, 1.1, 1.3, 2.0)
    low, high = torch.zeros(len(s), dtype=s.dtype), torch.full((len(s),), torch.inf, dtype=s.dtype)
    for c in ladder:
        here = breaks(torch.full_like(low, c))
        done = high.isfinite()
        high = torch.where(~done & here, c, high)
        low = torch.where(~done & ~here, c, low)
    found = high.isfinite()
    high = torch.where(found, high, 1.0)
    for _ in range(16):
        middle = (low + high) / 2
        here = breaks(middle)
        high, low = torch.where(here, middle, high), torch.where(here, low, middle)
    z = s + high[:, None] * way
    return BoundaryPoints(z, lengths(z - s, 2.0), found)


def _tangents(net: ReducedNet, rows: ReducedRows, part: ClassTerms, starts: int) -> Tensor:
    """First tangents (R, S, k): the most promising single opposite directions, their sum, and the tangent at s."""
    C, p = net.C, net.p
    T = rows.s @ C.T
    own, first = power_root(T, part.own, part.own_constant, p)
    g_own = first @ C
    singles = part.opposite.pow(1 / p) * (part.opposite > 0)  # zeta_g = b_g^(1/p) c_g
    gap = own[:, None] - singles * T
    square = g_own.square().sum(1, keepdim=True) - 2 * singles * (g_own @ C.T) + singles.square() * C.square().sum(1)
    distance = torch.where(part.opposite > 0, gap / square.clamp(min=1e-300).sqrt(), torch.inf)
    count = min(starts, int((part.opposite > 0).sum(1).max())) if len(rows) else 1
    off = torch.zeros(len(rows), 1, C.shape[1], dtype=C.dtype)  # no opposite term at all: switch the own ones off
    if count <= 1:
        return torch.cat([(singles @ C)[:, None], off], dim=1)
    chosen = distance.topk(count, dim=1, largest=False).indices
    single = singles.gather(1, chosen)[:, :, None] * C[chosen]
    together = power_root((part.opposite @ C) @ C.T, part.opposite, part.opposite_constant, p)[1] @ C
    at_s = power_root(T, part.opposite, part.opposite_constant, p)[1] @ C
    return torch.cat([single, together[:, None], at_s[:, None], off], dim=1)
