r"""A radius for every point of any PolyReLUNet in microseconds: the margin's root is Lipschitz.

    margin(z) = P(z) - N(z),  P = sum_own a_j relu(<u_j, z>)^p,  N likewise,   pi_P = P^(1/p),  pi_N = N^(1/p)
    r >= ( pi_P(z) - pi_N(z) ) / L,    L = sup_{|d| <= 1}  G(d),   G(d) = |relu(-A_P d)|_p + |relu(A_N d)|_p

pi_P and pi_N are p-norms of vectors of relus, relu(t + e) >= relu(t) - relu(-e) and relu(t + e) <= relu(t) + relu(e):
so pi_P falls and pi_N rises at most by their part of G(d), by the triangle inequality (derived).
A bias is one more, constant, entry of the own or of the opposite vector and leaves L alone. With input normalisation it
counts |z|^(p-1) times, which is taken at its worst in the ball being proven: the largest radius is found by bisection.

L depends on the net only. `steepest_falls` bounds it from above, for l2 without regard to how a direction is split
between neurons; for orthonormal centres it is exact for F and, with p >= 2, for F^(p): L = sqrt(K) and sqrt(2).

Rounding, and the arithmetic a radius holds for: see `polyrelu.robust.core.scaled_net`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from polyrelu.checks import checked
from polyrelu.nets import PolyReLUNet, relu_power
from polyrelu.robust.certify.contract import Certificate, Job
from polyrelu.robust.core.arithmetic import REAL, Arithmetic
from polyrelu.robust.core.norms import check_norm, lengths
from polyrelu.robust.core.scaled_net import DUST, RivalMargins, ScaledNet, gamma

BLOCK = 4_000_000  # entries of a Gram matrix held at a time
CHUNK = 2_000_000  # entries of X converted to float64 at a time
RADIUS_HALVINGS = 45  # of the interval that holds the radius, where no formula gives it: to 3e-14 of its length
EXACT_EIGENVALUES = 256  # rows of a matrix up to which eigenvalues that only choose a bound are computed, not estimated
LIGHT_SHARES = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6)  # p > 2: shares of sum |a| that the neurons set aside may have


@final
@dataclass(frozen=True, eq=False)
class LipschitzConstants:
    """r >= (pi_P - pi_N)/L with L[y, c] ready: one forward pass a point, and O(1) for each rival.

    Holds a copy of what it needs; a net that is trained on needs a new one. ``falls`` (C, C) is L, (1, 1) for one
    logit: exchanging y and c, like the sign of one logit, only turns d round.
    """

    net: ScaledNet
    norm: float
    falls: Tensor

    @staticmethod
    def from_net(net: PolyReLUNet, norm: float | str = 2, arithmetic: Arithmetic = REAL) -> LipschitzConstants:
        """The constants of ``net`` for perturbations measured in ``norm``: 1, 2 or inf."""
        norm, scaled = check_norm(norm), ScaledNet.from_net(net, arithmetic)
        C = len(scaled.output)
        if C == 1:
            both = [steepest_falls(scaled, scaled.rivals(label).A, norm) for label in (1.0, -1.0)]
            return LipschitzConstants(scaled, norm, torch.maximum(*both)[None])
        y, c = torch.triu_indices(C, C, 1)
        falls = torch.zeros(C, C, dtype=torch.float64, device=scaled.U.device)
        falls[y, c] = steepest_falls(scaled, scaled.pairs(y, c).A, norm)
        falls[c, y] = steepest_falls(scaled, scaled.pairs(c, y).A, norm) if scaled.run.relative else falls[y, c]
        return LipschitzConstants(scaled, norm, falls)

    def radius(self, X: Tensor, y: Tensor) -> Tensor:
        """Proven radius of each row of ``X`` (n, D), float64; ``y`` (n,) as the net's margin wants it."""
        radius = torch.empty(len(X), dtype=torch.float64, device=X.device)
        size = max(1, CHUNK // max(X.shape[1], len(self.net.U)))
        for label in sorted(set(y.tolist())):
            rivals = self.net.rivals(label)
            falls = self.falls[int(label) if len(self.falls) > 1 else 0, rivals.number]
            for rows in torch.split((y == label).nonzero()[:, 0], size):
                radius[rows] = self._chunk(X[rows], rivals, falls)
        return radius

    def _chunk(self, X: Tensor, rivals: RivalMargins, falls: Tensor) -> Tensor:
        net = self.net
        p, more = net.p, 1 + net.eps
        placed = net.place(X, self.norm)
        own, opposite = rivals.A.clamp(min=0), (-rivals.A).clamp(min=0)
        hidden = relu_power(placed.T, p)
        P, N = hidden @ own.T, hidden @ opposite.T
        plus, minus = net.constants(rivals.beta, rivals.size, placed.scale)
        dust = (len(net.U) * DUST) ** (1 / p)
        mass = (own.sum(1).pow(1 / p) + opposite.sum(1).pow(1 / p)) * more
        unsure = placed.blur[:, None] * mass + 2 * dust
        falls = falls + net.blur_rate(self.norm) * mass

        def gap(plus: Tensor, minus: Tensor) -> Tensor:
            left: Tensor = (P + plus).pow(1 / p) / more - (N + minus).pow(1 / p) * more - unsure
            return left

        def still(rho: Tensor) -> Tensor:
            low, high = net.worst(placed, rho, self.norm)
            return gap(plus * low, minus * high)

        zero = torch.zeros_like(P)
        if not net.normalised or not bool((plus + minus).any()):
            rho = gap(plus, minus).clamp(min=0) / falls / more
        else:
            rho, beyond = zero, still(zero).clamp(min=0) / falls / more
            for _ in range(RADIUS_HALVINGS):
                middle = (rho + beyond) / 2
                holds = still(middle) > falls * middle * more
                rho, beyond = torch.where(holds, middle, rho), torch.where(holds, beyond, middle)
        return net.radius_of(rho.nan_to_num(nan=0.0, posinf=torch.inf).amin(dim=1), placed, self.norm)


@final
@dataclass(frozen=True)
class RootLipschitz(Certificate):
    """(pi_P(x) - pi_N(x)) / L: any p >= 1, every norm."""

    def radius(self, job: Job) -> Tensor:
        """One forward pass a point after the constant L."""
        assert isinstance(job.net, PolyReLUNet)
        return LipschitzConstants.from_net(job.net, job.norm, job.arithmetic).radius(job.X, job.y)


@checked
def root_lipschitz_radius(
    net: PolyReLUNet, X: Tensor, y: Tensor, norm: float | str = 2, *, arithmetic: Arithmetic | str = REAL
) -> Tensor:
    """(pi_P(x) - pi_N(x)) / L, the least over rival classes: a proven radius of each point, (n,) float64.

    See the module for the derivation; misclassified points have radius 0. One forward pass a point after the constant
    L, which takes about as long as an eigenvalue problem of size min(h, D) for each pair of classes: for many calls
    with one net keep ``LipschitzConstants.from_net(net, norm)`` and call its ``radius``.

    Parameters
    ----------
    net, X, y, norm, arithmetic : as in `Certificate`

    Examples
    --------
    >>> net = CentreClassifier(torch.eye(10), torch.tensor([1.0] * 6 + [-1.0] * 4), p=3).as_polyrelu_net()
    >>> root_lipschitz_radius(net, torch.eye(10)[:1], torch.ones(1))      # the true one is sqrt(2)/2
    tensor([0.7071], dtype=torch.float64)
    """
    return RootLipschitz()(net, X, y, norm=norm, arithmetic=arithmetic)


def steepest_falls(net: ScaledNet, A: Tensor, norm: float) -> Tensor:
    r"""Upper bounds of L = sup_{|d|_norm <= 1} G(d) for each row a (m, h) of signed coefficients, rounded up.

    G is sublinear. l1: the largest of the 2 D values G(+-e_k), exactly. l-infinity: the least of sum_k max G(+-e_k),
    (sum_j a_j |u_j|_1^p)^(1/p) over own and opposite terms, and sqrt(D) times the l2 bound. l2: see `_falls_l2`.
    """
    p, more = net.p, 1 + net.eps
    size = A.abs().amax(dim=1)
    size = torch.where(size > 0, size, 1.0)
    A = A / size[:, None]  # squares of coefficients must not underflow: G of s a is s^(1/p) times that of a
    own, opposite = A.clamp(min=0), (-A).clamp(min=0)
    dust = 2 * (len(net.U) * DUST) ** (1 / p)
    wide = net.wide(norm)
    straight = wide * _falls_l2(net, A) if norm != 1 else A.new_full((len(A),), torch.inf)
    falls: Tensor = straight * more + wide * dust
    if norm != 2:
        ends = torch.maximum(*vertices(net, A)) * more * more
        alone = lengths(net.U, 1.0).pow(p)
        sides = ((own @ alone).pow(1 / p) + (opposite @ alone).pow(1 / p)) * more * more
        corners = ends.amax(dim=1) if norm == 1 else torch.minimum(ends.sum(dim=1) * more, sides)
        falls = torch.minimum(falls, corners + (1 if norm == 1 else net.U.shape[1]) * dust)
    return falls * size.pow(1 / p) * more


def vertices(net: ScaledNet, A: Tensor) -> tuple[Tensor, Tensor]:
    """G(e_k) and G(-e_k) for each row of coefficients and each coordinate, (m, D) each."""
    p, own, opposite = net.p, A.clamp(min=0), (-A).clamp(min=0)
    up, down = relu_power(net.U, p), relu_power(-net.U, p)
    ahead = (own @ down).pow(1 / p) + (opposite @ up).pow(1 / p)
    back = (own @ up).pow(1 / p) + (opposite @ down).pow(1 / p)
    return ahead, back


def _falls_l2(net: ScaledNet, A: Tensor) -> Tensor:
    r"""l2 bounds of L; |.|_q below are norms of the pre-activations t = U d, weighted by |a_j|, P and N their sides.

    p = 1   L^2 <= sum_ij |a_i a_j| (sgn_i sgn_j <u_i, u_j>)_+, exact for F; and relu(t) = (t + |t|)/2 gives
            L <= |sum_j a_j u_j|/2 + sqrt(sum |a_j| lmax(sum_j |a_j| u_j u_j^T))/2
    p = 2   (x + y)^2 <= (1 + c) x^2 + (1 + 1/c) y^2 for every c > 0:
            L^2 <= lmax(M_P (1 + c) + M_N (1 + 1/c)),   M = sum_j |a_j| u_j u_j^T
    1<p<2   |t|_p <= |t|_1^s |t|_2^(1-s), s = 2/p - 1 (Littlewood), and Hoelder for the two sides:
            L_p <= L_1^s L_2^(1-s); or |t|_p <= (sum_j |a_j|)^(s/2) |t|_2 on each side, then as for p = 2
    p > 2   a p-norm is at most the 2-norm, of the entries |a_j|^(1/p) t_j: as for p = 2 with |a_j|^(2/p); or
            |t|_p <= |t|_2^(2/p) |t|_inf^(1-2/p), and Hoelder with weights k for the two sides:
            L <= (k L_2)^(2/p) (k' L_inf)^(1-2/p),  k' = k^(-2/(p-2)) on each side,  L_inf from |k'_P u_i - k'_N u_j|
    """
    p = net.p
    if p == 2:
        return torch.stack([_joint(net, a.clamp(min=0), (-a).clamp(min=0)) for a in A])
    if p < 2:
        s = 2 / p - 1
        first = torch.minimum(_correlated(net, A), _halved(net, A))
        if p == 1:
            return first
        bounds = []
        for a, one in zip(A, first, strict=True):
            own, opposite = a.clamp(min=0), (-a).clamp(min=0)
            mean = _joint(net, own * own.sum().pow(s), opposite * opposite.sum().pow(s))
            bounds.append(torch.minimum(mean, one.pow(s) * _joint(net, own, opposite).pow(1 - s)))
        return torch.stack(bounds)
    bounds = []
    for a, light, least in zip(A, *_separation(net, A), strict=True):
        own, opposite = a.clamp(min=0), (-a).clamp(min=0)
        plain = _joint(net, own.pow(2 / p), opposite.pow(2 / p))
        bounds.append(torch.minimum(plain, _between(net, own, opposite, light, least)))
    return torch.stack(bounds)


def _between(net: ScaledNet, own: Tensor, opposite: Tensor, light: Tensor, least: Tensor) -> Tensor:
    """p > 2: L_2^(2/p) L_inf^(1-2/p), the light neurons' own p-norms added; the least over what counts as light."""
    p = net.p
    k = [_typical(net, side).pow(-(p - 2) / (2 * p)) for side in (own, opposite)]
    second = _joint(net, own * k[0].square(), opposite * k[1].square())
    x, y = (w.pow(-2 / (p - 2)) * side.any() for w, side in zip(k, (own, opposite), strict=True))
    squared = x * x + y * y - 2 * x * y * least.clamp(max=1) + 4 * net.eps * (x + y).square()
    far = torch.where(least.isfinite(), squared.sqrt(), 0.0).maximum(torch.maximum(x, y))
    rest = (light * (1 + net.eps)).pow(1 / p) * 2
    bound: Tensor = (second.pow(2 / p) * far.pow(1 - 2 / p) * (1 + net.eps) + rest).amin()
    return bound


def _separation(net: ScaledNet, A: Tensor) -> tuple[Tensor, Tensor]:
    """For each row of ``A`` and share in LIGHT_SHARES: the weight of the neurons set aside, and the least <u_i, u_j>.

    Over own i and opposite j that are kept; inf where one side is empty.
    """
    h, size = len(net.U), A.abs()
    ordered = size.sort(dim=1)
    total = ordered.values.cumsum(dim=1)
    shares = torch.tensor(LIGHT_SHARES, dtype=A.dtype, device=A.device)
    count = (total[:, None, :] <= shares[:, None] * total[:, -1:, None]).sum(dim=2)  # (m, shares), lightest first
    light = torch.where(count > 0, total.gather(1, (count - 1).clamp(min=0)), 0.0)
    rank = torch.empty_like(ordered.indices)
    rank.scatter_(1, ordered.indices, torch.arange(h, device=A.device).expand_as(rank))
    least = torch.full_like(light, torch.inf)
    for rows in torch.split(torch.arange(h, device=A.device), max(1, BLOCK // h)):
        products = net.U[rows] @ net.U.T
        for m, a in enumerate(A):
            for k, first in enumerate(count[m].tolist()):
                if k and first == int(count[m, k - 1]):
                    least[m, k] = least[m, k - 1]
                    continue
                heavy = rank[m] >= first
                part = products[(heavy & (a > 0))[rows]][:, heavy & (a < 0)]
                if part.numel():
                    least[m, k] = torch.minimum(least[m, k], part.amin())
    return light, least


def _correlated(net: ScaledNet, A: Tensor) -> Tensor:
    """p = 1: sqrt(sum_ij (a_i a_j <u_i, u_j>)_+); sup |sum_S a_j u_j| over sets S of neurons is at most that."""
    total = A.new_zeros(len(A))
    h = len(net.U)
    for rows in torch.split(torch.arange(h, device=A.device), max(1, BLOCK // h)):
        products = net.U[rows] @ net.U.T
        for m, a in enumerate(A):
            total[m] += (products * a[rows, None] * a).clamp(min=0).sum()
    return (total + net.eps * A.abs().sum(dim=1).square()).sqrt()


def _halved(net: ScaledNet, A: Tensor) -> Tensor:
    """p = 1: |sum_j a_j u_j|/2 + sqrt(sum_j |a_j| lmax(sum_j |a_j| u_j u_j^T))/2."""
    sums = A.abs().sum(dim=1)
    straight = lengths(A @ net.U, 2.0) + net.eps * sums
    return (straight + (sums * torch.stack([_top(net, a) for a in A.abs()])).sqrt()) / 2


def _joint(net: ScaledNet, own: Tensor, opposite: Tensor) -> Tensor:
    """sqrt(lmax(M_P (1 + c) + M_N (1 + 1/c))) >= sup |d| = 1 of sqrt(d M_P d) + sqrt(d M_N d), for the best c of three.

    c = lmax_N/lmax_P is the best where the sides are orthogonal, its root never worse than the sum of both maxima.
    """
    if not bool(own.any()) or not bool(opposite.any()):
        return _top(net, own + opposite).sqrt()
    ratio = float(_typical(net, opposite) / _typical(net, own))
    trials = [own * (1 + c) + opposite * (1 + 1 / c) for c in {1.0, ratio, math.sqrt(ratio)}]
    best = min(trials, key=lambda weight: float(_typical(net, weight))) if len(trials) > 1 else trials[0]
    return _top(net, best).sqrt()


def _matrix(net: ScaledNet, weight: Tensor) -> Tensor:
    """The smaller of sum_j w_j u_j u_j^T and the Gram matrix of sqrt(w_j) u_j: the same largest eigenvalue."""
    rows = weight.sqrt()[:, None] * net.U
    rows = rows[weight > 0]
    return rows @ rows.T if len(rows) <= rows.shape[1] else rows.T @ rows


def _top(net: ScaledNet, weight: Tensor) -> Tensor:
    """lmax(sum_j w_j u_j u_j^T), w >= 0, rounded up by the backward error of forming and decomposing it.

    Both are at most a modest multiple of n u times the trace, which is sum_j w_j.
    """
    matrix = _matrix(net, weight)
    if not len(matrix):
        return weight.new_zeros(())
    largest: Tensor = torch.linalg.eigvalsh(matrix)[-1]
    return largest + (net.eps + gamma(32 * len(matrix))) * weight.sum()


def _typical(net: ScaledNet, weight: Tensor) -> Tensor:
    """About lmax(sum_j w_j u_j u_j^T), > 0: a power iteration where the matrix is large. Never part of a proof."""
    if not bool(weight.any()):
        return weight.new_ones(())
    if min(net.U.shape) <= EXACT_EIGENVALUES:
        largest: Tensor = torch.linalg.eigvalsh(_matrix(net, weight))[-1]
        return largest
    v = torch.randn(net.U.shape[1], generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(weight)
    for _ in range(10):
        v = (weight * (net.U @ v)) @ net.U
        length = lengths(v, 2.0)
        v = v / length
    return length
