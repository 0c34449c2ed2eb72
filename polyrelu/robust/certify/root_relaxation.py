r"""The rows of a certification, one per point and rival class: what holds in the whole ball, before any branching."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from polyrelu.robust.attacks.nearest_boundary import ClassTerms, class_terms
from polyrelu.robust.core.reduced_net import ReducedNet, ReducedRows
from polyrelu.robust.core.relaxation import MU, Relaxation, Solution, solve


class Ball:
    """All ``rows``, scaled, in the ball of radius ``reach`` (n,) around their points, beyond which nothing is claimed.

    part : own and opposite coefficients, and the own constant
    slack : what the reduction, rounding and an opposite bias may add to N

    With normalised inputs a bias counts |z|^(p-1), an own one at its least in the ball, an opposite one at |x|: where
    P - N - b |z|^(p-1) <= slack, the same holds at t z for all t in [0, 1], and if |z| > |x|, the t z with |t z| = |x|
    is nearer to x. So the nearest break is no farther from the centre than x.

    floor : N is at least this wherever the net breaks
    z (R, k) : points to start from
    nodes (n,) : leaves solved so far, by point
    """

    def __init__(self, net: ReducedNet, y: Tensor, upper: Tensor, rows: ReducedRows, z: Tensor) -> None:
        self.net, self.rows = net, rows
        self.z = torch.where(z.isfinite(), z, rows.s)  # an attack that overflowed
        self.reach = torch.where(upper.isfinite(), upper, 2 * rows.length[rows.first] + 1)
        R = self.reach[rows.point]
        part, less, more = class_terms(net, rows), 1 - net.whole.eps, 1 + net.whole.eps
        own, other = part.own_constant, part.opposite_constant
        if net.normalised and net.p > 1:
            near, far = (rows.length * less - R * more).clamp(min=0), rows.length * more
            own = rows.beta.clamp(min=0) * near.pow(net.p - 1)
            other = (-rows.beta).clamp(min=0) * far.pow(net.p - 1)
        self.part = ClassTerms(part.own, part.opposite, own * less, other * more)
        self.slack = net.slack(y, rows, self.reach) + self.part.opposite_constant
        self.floor = self._least_own(R)
        self.share = self._shares()
        self.nodes = torch.zeros(len(upper), dtype=torch.long)

    def _least_own(self, R: Tensor) -> Tensor:
        """N + slack >= P, and P^(1/p) falls at most by its Lipschitz constant times R."""
        p, part = self.net.p, self.part
        pre = (self.rows.s @ self.net.C.T).clamp(min=0)
        pattern, which = torch.unique(part.own, dim=0, return_inverse=True)
        gain = pattern.pow(2 / p)
        if p < 2:  # a p-norm is at most the sum
            gain = gain.sqrt() * gain.sqrt().sum(1, keepdim=True)
        lipschitz = largest(self.net.C, gain).sqrt()[which]
        self.value = (part.own * pre.pow(p)).sum(1)
        least = (self.value.pow(1 / p) - lipschitz * R).clamp(min=0).pow(p)
        return ((least + part.own_constant) * (1 - 1e-12) - self.slack).clamp(min=0)

    def _shares(self) -> Tensor:
        """share_j = w_j / sum_i |<c_i, c_j>| w_i, scaled until sum_j share_j c_j c_j^T <= (1 - MU) I."""
        C = self.net.C
        pattern, which = torch.unique(self.part.opposite, dim=0, return_inverse=True)
        weight = pattern.pow(min(1.0, 1.5 / self.net.p))
        share = weight / (weight @ (C @ C.T).abs()).clamp(min=1e-300)
        fitting: Tensor = share * ((1 - MU) / largest(C, share))[:, None]
        return fitting[which]

    def relax(
        self, row: Tensor, weight: Tensor, slope: Tensor | None, constant: Tensor, q: Tensor | float
    ) -> Relaxation:
        """The leaf of these rows with this majorant of N^(q/p)."""
        part, s = self.part[row], self.rows.s[row]
        slope = torch.zeros_like(weight) if slope is None else slope
        q = q if isinstance(q, Tensor) else torch.full((len(row), 1), q, dtype=torch.float64)
        share = self.share[row]
        return Relaxation(self.net.C, self.net.p, q, s, part.own, part.own_constant, weight, slope, constant, share)

    def solve(self, row: Tensor, leaf: Relaxation, z: Tensor, target: Tensor) -> Solution:
        """Solve from the multiplier that fits z; q = 2 limits lambda, q = 1 is solved again with P made linear."""
        self.nodes.index_add_(0, self.rows.point[row], torch.ones_like(row))
        steep = torch.maximum(_steepness(leaf, z), 0.05 * _steepness(leaf, leaf.s)).clamp(min=1e-300)
        lam = (torch.linalg.vector_norm(z - leaf.s, dim=1) / steep).nan_to_num(1.0).clamp(1e-12, 1e12)
        q = leaf.q
        most = (1 - MU) / (2 * largest(leaf.C, leaf.weight)) if bool((q == 2).all()) else None
        got = solve(leaf, z, lam, target, most=most)
        if bool((q > 1).any()):
            return got
        again = solve(leaf.straightened(got.z), got.z, got.lam, target)
        return Solution(torch.maximum(got.bound, again.bound), again.z, again.lam)

    def constant(self, row: Tensor, power: Tensor | float) -> Tensor:
        """What the slack e adds, power <= 1: (N + e)^power <= N^power + this, as N >= floor."""
        e, floor = self.slack[row], self.floor[row].clamp(min=1e-300)
        return torch.minimum(e.pow(power), power * e * floor.pow(power - 1))

    def least_leader(self, row: Tensor) -> Tensor:
        """The largest b_g^(1/p) t_g is at least this, because N >= floor."""
        count = (self.part.opposite[row] > 0).sum(1).clamp(min=1)
        return (self.floor[row] / count).pow(1 / self.net.p) * (1 - 1e-12)

    def boxes(self, row: Tensor) -> tuple[Tensor, Tensor]:
        """Where the pre-activations can be within the ball."""
        centre = self.rows.s[row] @ self.net.C.T
        swing = self.reach[self.rows.point[row], None] * torch.linalg.vector_norm(self.net.C, dim=1)
        swing = swing * (1 + 1e-12) + 1e-12 * self.rows.length[row, None]
        return centre - swing, centre + swing

    def can_lead(self, row: Tensor) -> Tensor:
        """(rows, m): may direction g be the largest opposite term somewhere in the ball?"""
        opposite = self.part.opposite[row]
        highest = opposite.pow(1 / self.net.p) * self.boxes(row)[1]
        return (opposite > 0) & (highest > 0) & (highest >= self.least_leader(row)[:, None])

    def ratios(self, row: Tensor, lead: Tensor) -> tuple[Tensor, Tensor]:
        """Bounds of (b_j^(1/p) t_j) / (b_g^(1/p) t_g) in the ball where g leads: nearly fixed for parallel directions.

        t_j = a t_g + <e, z>, a the projection of c_j on c_g, and |<e, z> - <e, s>| <= |e| R.
        """
        C, s, p = self.net.C, self.rows.s[row], self.net.p
        root = self.part.opposite[row].pow(1 / p)
        strength = root.gather(1, lead[:, None])
        smallest = (self.least_leader(row)[:, None] / strength).clamp(min=1e-300)  # of t_g
        square = C.square().sum(1)
        along = (C @ C.T)[lead] / square[lead, None]
        e_s = s @ C.T - along * (s * C[lead]).sum(1, keepdim=True)
        e = (square - along.square() * square[lead, None]).clamp(min=0).sqrt() * (1 + 1e-9) + 1e-7
        swing = e * self.reach[self.rows.point[row], None] + 1e-12 * self.rows.length[row, None]
        highest = along + ((e_s + swing) / smallest).clamp(min=0)
        lowest = along + ((e_s - swing) / smallest).clamp(max=0)
        return (root / strength * lowest).clamp(0, 1), (root / strength * highest).clamp(0, 1)


def _steepness(leaf: Relaxation, z: Tensor) -> Tensor:
    """|gradient of P^(q/p) - sum_j W_j relu(t_j)^q - <L, t>| at z."""
    p, q = leaf.p, leaf.q
    T = z @ leaf.C.T
    on = T.clamp(min=0)
    own = ((leaf.own * on.pow(p)).sum(1) + leaf.own_constant).clamp(min=1e-300)
    first = q * own[:, None].pow(q / p - 1) * leaf.own * on.pow(p - 1) * (T > 0)
    first = first - leaf.weight * q * on.pow(q - 1) * (T > 0) - leaf.slope
    steep: Tensor = torch.linalg.vector_norm(first @ leaf.C, dim=1)
    return steep.nan_to_num(0.0)


def boxed(ball: Ball, row: Tensor, low: Tensor, high: Tensor) -> Relaxation:
    """p > 2: N itself on boxes of pre-activations; shares follow the curvature each direction may need."""
    weight = ball.part.opposite[row] * (high > 0)
    need = weight * high.clamp(min=0).pow(ball.net.p - 2)
    share = need * ((1 - MU) / largest(ball.net.C, need))[:, None]
    leaf = ball.relax(row, weight, None, ball.slack[row], ball.net.p)
    return replace(leaf, share=share, low=low, high=high)


def largest(C: Tensor, weight: Tensor) -> Tensor:
    """Largest eigenvalue of sum_j w_j c_j c_j^T for each row of weights, rounded up; never 0."""
    k = C.shape[1]
    products = (C[:, :, None] * C[:, None, :]).reshape(-1, k * k)
    size = max(1, int(2e7 / (k * k)))
    rows = [torch.linalg.eigvalsh((w @ products).view(-1, k, k))[:, -1] for w in torch.split(weight, size)]
    return (torch.cat(rows) * (1 + 1e-9)).clamp(min=1e-300) if rows else weight.sum(1)
