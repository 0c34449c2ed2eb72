r"""Radii in every norm from one affine lower bound of the margin over a whole ball, and a search for the largest ball.

    margin(z + d) >= sum_own a_j ( c_j t_j - (p - 1) relu(tau_j)^p )
                     - sum_opp |a_j| ( (l_j^p + h_j^p)/2 + k_j (t_j - s_j) )

for t_j = <u_j, z + d>, s_j = <u_j, z>, wherever |d| <= rho. Own terms lie above any tangent, c_j = p relu(tau_j)^(p-1)
(for p = 1 any slope 0 <= c_j <= 1); opposite terms below their chord from l_j to h_j = relu(s_j -+ rho |u_j|_dual), of
slope k_j = (h_j^p - l_j^p)/(2 rho |u_j|_dual). The sum is affine in d, with gradient g = sum_j (+-) |a_j| slope_j u_j:

    min over the ball = value at d = 0 - rho |g|_dual  > 0    proves rho.

(Chords and tangents as in CROWN, Zhang et al., NeurIPS 2018, for relu^p.) Any tangents are sound.

Where opposite neurons start inactive chords are poor. There, in roots, pi_P >= <omega, t> + constant (a tangent of a
p-norm) and pi_N rises at most by G_N(d) = |relu(A_N d)|_p, so that with xi = sum_j omega_j u_j

    r >= ( <omega, s> + constant - pi_N(z) ) / sup_{|d| <= 1} ( G_N(d) - <xi, d> ),

where the supremum is at most sqrt((|xi| + G_N(-xi/|xi|))^2 + sup G_N^2) for l2, by splitting d along xi; the largest of
G_N(+-e_k) -+ xi_k for l1, exactly; and the sum over k of these for l-infinity, or sqrt(D) times the l2 bound.

The best tangents touch where the bound itself is least, so they go there, tau <- tau + step (U(z - rho g*) - tau) with
g* the unit step steepest for g: Frank and Wolfe's method for min P(z + d) - chords(z + d). The best ones are kept. The
radius returned was itself proven, whatever the search did; for rounding and arithmetic see `scaled_net`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from torch import Tensor

from polyrelu.checks import checked, whole_number
from polyrelu.nets import PolyReLUNet, relu_power
from polyrelu.robust.certify.contract import Certificate, Job, Scope, Tier
from polyrelu.robust.certify.lipschitz import LipschitzConstants, steepest_falls, vertices
from polyrelu.robust.core.arithmetic import REAL, Arithmetic
from polyrelu.robust.core.norms import dual, lengths, steepest
from polyrelu.robust.core.scaled_net import DUST, RivalMargins, ScaledNet, ScaledPoints, gamma, span_basis

WORK = 1_000_000  # numbers in the largest table: (points x rivals) by neurons or coordinates
TANGENTS = 3  # choices of tangents for each radius tried


@checked
def linear_radius(
    net: PolyReLUNet,
    X: Tensor,
    y: Tensor,
    norm: float | str = 2,
    steps: int = 30,
    *,
    arithmetic: Arithmetic | str = REAL,
) -> Tensor:
    """The larger of both bounds of this module, the least over rivals: a proven radius of each point, (n,) float64.

    Misclassified points have radius 0. O(h D) for each radius tried and rival class (l2: O(h min(h, D))). For p >= 2
    and l2 `root_lipschitz_radius` is often as good, and branch and bound mostly better; `bracket` takes the largest.

    Parameters
    ----------
    net, X, y, norm, arithmetic : as in `Certificate`
    steps : radii tried for each point and rival
    """
    return Linear(steps)(net, X, y, norm=norm, arithmetic=arithmetic)


@final
@dataclass(frozen=True)
class Linear(Certificate):
    """Tangents and chords: any p >= 1, every norm. ``steps`` : radii tried for each point and rival."""

    steps: int = 30

    def __post_init__(self) -> None:
        """Check the setting."""
        whole_number("steps", self.steps)

    def radius(self, job: Job) -> Tensor:
        """The larger of both bounds of this module."""
        assert isinstance(job.net, PolyReLUNet)
        return _radius(ScaledNet.from_net(job.net, job.arithmetic), job.X, job.y, job.norm, self.steps)


@final
@dataclass(frozen=True)
class LinearOrLipschitz(Certificate):
    """The larger of `Linear` and `RootLipschitz`: any p >= 1, every norm."""

    scope = Scope(Tier.EVERY_NORM)

    def radius(self, job: Job) -> Tensor:
        """Both from the same neurons."""
        assert isinstance(job.net, PolyReLUNet)
        lipschitz = LipschitzConstants.from_net(job.net, job.norm, job.arithmetic)
        linear = _radius(lipschitz.net, job.X, job.y, job.norm, Linear().steps)
        return torch.maximum(lipschitz.radius(job.X, job.y), linear)


def _radius(net: ScaledNet, X: Tensor, y: Tensor, norm: float, steps: int) -> Tensor:
    radius = torch.empty(len(X), dtype=torch.float64, device=X.device)
    labels = sorted(set(y.tolist()))
    which = torch.searchsorted(torch.tensor(labels, dtype=y.dtype, device=y.device), y)
    each = [net.rivals(label) for label in labels]
    rivals, others = RivalMargins(*(torch.cat(parts) for parts in zip(*each, strict=True))), len(each[0].A)
    frame, growth = DualCoordinates.from_net(net, norm), Growth.from_coefficients(net, rivals.A, norm)
    size = max(1, WORK // (others * max(net.U.shape)))
    for rows in torch.split(torch.arange(len(X), device=X.device), size):
        placed = net.place(X[rows], norm)
        pair = (others * which[rows, None] + torch.arange(others, device=X.device)).flatten()
        table = LinearRows.from_points(net, frame, placed, rivals.only(pair))
        best = torch.maximum(_search(table, steps), _rooted(table, growth.only(pair)))
        radius[rows] = net.radius_of(best.view(len(rows), -1).amin(dim=1), placed, norm)
    return radius


@final
@dataclass(frozen=True, eq=False)
class DualCoordinates:
    """Coordinates B (h, k) of the neurons in which the dual norm of sum_j k_j u_j is taken, and what may be missing.

    |sum_j k_j u_j|_dual <= stretch |k B|_dual + sum_j |k_j| spare_j. For l2 and h < D: U = B Q with nearly orthonormal
    rows of Q; how nearly is measured, not assumed. reach (h,) = |u_j|_dual.
    """

    norm: float
    B: Tensor
    stretch: float
    spare: Tensor
    reach: Tensor

    @staticmethod
    def from_net(net: ScaledNet, norm: float) -> DualCoordinates:
        """The coordinates fit for ``norm``."""
        (h, D), U = net.U.shape, net.U
        reach = lengths(U, dual(norm))
        if norm != 2 or 2 * h > D:
            return DualCoordinates(norm, U, 1.0, torch.zeros_like(reach), reach)
        B, _, off, rest = span_basis(U)
        stretch = 1 + float(off) + gamma(4 * D) * h
        spare = rest + gamma(4 * (D + h)) * (1 + lengths(B, 1.0))
        return DualCoordinates(norm, B, stretch, spare, reach)


class Growth(NamedTuple):
    """How fast pi_N can grow, rounded up; one row for each label and rival, or for each point and rival.

    most, most_l2 : sup G_N over the unit ball of the norm asked for, and of l2
    ahead, back : G_N(e_k) and G_N(-e_k) for each coordinate; empty for l2
    """

    most: Tensor
    most_l2: Tensor
    ahead: Tensor
    back: Tensor

    @staticmethod
    def from_coefficients(net: ScaledNet, A: Tensor, norm: float) -> Growth:
        """The constants of coefficients ``A`` (R, h)."""
        opposite = A.clamp(max=0)
        most = steepest_falls(net, opposite, norm)
        most_l2 = steepest_falls(net, opposite, 2.0) if norm == math.inf else most
        ends = vertices(net, opposite) if norm != 2 else (opposite[:, :0], opposite[:, :0])
        return Growth(most, most_l2, *(end * (1 + net.eps) ** 2 for end in ends))

    def only(self, keep: Tensor) -> Growth:
        """The rows named by ``keep``, which may name one several times."""
        return Growth(*(part[keep] for part in self))


@final
@dataclass(frozen=True, eq=False)
class LinearRows:
    """One row for each point and rival: pre-activations T, own and opposite |a_j|, constants; all (R, h) or (R,)."""

    net: ScaledNet
    frame: DualCoordinates
    placed: ScaledPoints
    T: Tensor
    own: Tensor
    opposite: Tensor
    plus: Tensor
    minus: Tensor

    @staticmethod
    def from_points(net: ScaledNet, frame: DualCoordinates, placed: ScaledPoints, rivals: RivalMargins) -> LinearRows:
        """The points ``placed`` against all rivals (R rows), points outermost."""
        placed = ScaledPoints(*(part.repeat_interleave(len(rivals.A) // len(part), dim=0) for part in placed))
        plus, minus = net.constants(rivals.beta[:, None], rivals.size[:, None], placed.scale)
        own, opposite = rivals.A.clamp(min=0), (-rivals.A).clamp(min=0)
        return LinearRows(net, frame, placed, placed.T, own, opposite, plus[:, 0], minus[:, 0])

    def bound(self, rho: Tensor, touch: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """lower, shift, value, steep: the affine bound for balls of radius ``rho`` (R,) with tangents at ``touch``.

        ``touch`` (R, h) are shifts of the pre-activations a unit of radius; for p = 1 the slopes themselves. ``lower``
        (R,) bounds the margin over the ball and is least at such a ``shift`` (R, h); at the point itself the bound is
        ``value`` (R,), the dual norm of its gradient ``steep`` (R,).
        """
        net, frame, p, rho = self.net, self.frame, self.net.p, rho[:, None]
        blur = self.placed.blur[:, None] + rho * net.blur_rate(frame.norm)
        swing = (rho * frame.reach + blur) * (1 + net.eps)
        if p == 1:
            slope, power = touch, torch.zeros_like(touch)
        else:
            tau = (self.T + rho * touch).clamp(min=0)
            power = relu_power(tau, p)
            power = torch.where(power > DUST, power, 0.0)  # the tangent at 0, and no digits lost
            slope = p * power / torch.where(tau > 0, tau, 1.0)
        high, low = relu_power(self.T + swing, p), relu_power(self.T - swing, p)
        chord = (high - low) / (2 * swing)
        plus, minus = self.plus, self.minus
        if net.normalised:
            least, most = net.worst(self.placed, rho, frame.norm)
            plus, minus = plus * least[:, 0], minus * most[:, 0]
        value = (self.own * (slope * self.T - (p - 1) * power) - self.opposite * (high + low) / 2).sum(1) + plus - minus
        K = self.own * slope - self.opposite * chord
        gradient, K = K @ frame.B, K.abs()
        steep = lengths(gradient, dual(frame.norm)) * frame.stretch
        rho, size = rho[:, 0], self.own * (slope * (self.T.abs() + swing) + p * power) + 4 * self.opposite * high
        rounding = net.eps * (size.sum(1) + plus + minus + rho * (steep + K @ frame.reach))
        missing = rho * (K @ frame.spare) + blur[:, 0] * K.sum(1)
        dust = len(net.U) * DUST * (2 + 2 * rho * net.U.shape[1] ** 0.5).pow(p)
        lower = value - rho * steep - 2 * rounding - 1.01 * missing - dust
        return lower, -steepest(gradient, frame.norm) @ frame.B.T, value, steep


def _rooted(rows: LinearRows, growth: Growth) -> Tensor:
    """The second bound of the module: a radius for each row, the best over a few tangents. 0 for a normalised bias."""
    net, p, more = rows.net, rows.net.p, 1 + rows.net.eps
    unfit = (rows.plus + rows.minus > 0) & net.normalised
    if bool(unfit.all()):
        return torch.zeros_like(rows.plus)
    dust = 2 * (len(net.U) * DUST) ** (1 / p)
    share = rows.own.pow(1 / p)
    other = ((rows.opposite * relu_power(rows.T, p)).sum(1) + rows.minus).pow(1 / p) * more
    mass, blur_rate = rows.opposite.sum(1).pow(1 / p) * more, net.blur_rate(rows.frame.norm)
    other = other + rows.placed.blur * mass + dust
    constant = rows.plus.pow(1 / p)
    touch, best = rows.T.clamp(min=0), torch.zeros_like(rows.plus)
    for k in range(TANGENTS):
        if p == 1:
            omega, fixed = share * (touch if k else rows.T > 0), constant
        else:
            entries = torch.cat([share * touch, constant[:, None]], dim=1)
            entries = entries / entries.amax(dim=1, keepdim=True).clamp(min=1e-300)
            power = entries.pow(p - 1)  # of p'-norm |entries|_p^(p-1), p' = p/(p-1)
            power = power / (relu_power(entries, p).sum(1, keepdim=True).pow(1 - 1 / p) * more).clamp(min=1e-300)
            omega, fixed = share * power[:, :-1], constant * power[:, -1]
        sums = omega.sum(1)
        value = (omega * rows.T).sum(1) + fixed / more - other - (rows.placed.blur + 4 * net.eps) * sums - dust
        xi = omega @ rows.frame.B
        rate = _steepest_gap(rows, growth, xi, omega, sums) + dust * net.U.shape[1] + blur_rate * (mass + sums * more)
        best = torch.maximum(best, value / rate / more)
        rho = best if k else (value / rate).clamp(min=0)
        moved = rows.T - rho[:, None] * (steepest(xi, rows.frame.norm) @ rows.frame.B.T)
        end = (moved > 0).to(moved) if p == 1 else moved.clamp(min=0)
        touch = touch + (end - touch) / (k + 1)
    return torch.where(unfit, 0.0, best.nan_to_num(0.0))


def _steepest_gap(rows: LinearRows, growth: Growth, xi: Tensor, omega: Tensor, sums: Tensor) -> Tensor:
    """sup over |d| <= 1 of G_N(d) - <xi, d>, from above; ``xi`` (R, k) in the frame's coordinates."""
    net, frame, p = rows.net, rows.frame, rows.net.p
    more = 1 + net.eps
    missing = omega @ frame.spare + net.eps * (omega @ frame.reach)
    long = (lengths(xi, dual(frame.norm)) * frame.stretch + missing) * more
    rate = long + growth.most
    if frame.norm != 1:
        wide = net.wide(frame.norm)
        short = lengths(xi, 2.0)
        blur = (frame.spare.amax() + frame.stretch - 1 + 4 * net.eps) * (1 + 2 * sums / short)
        along = (xi / short[:, None]) @ frame.B.T
        mass = rows.opposite.sum(1).pow(1 / p) * blur
        falling, rising = (((rows.opposite * relu_power(t, p)).sum(1).pow(1 / p) + mass) for t in (-along, along))
        straight = (short * frame.stretch + missing) * more
        turn = torch.maximum(straight + falling, rising - short / (frame.stretch * more) + missing)
        split = torch.hypot(turn, growth.most_l2 + missing) * wide * more
        rate = torch.where(split < rate, split, rate)  # NaN and inf where xi = 0
    if frame.norm != 2:
        corner = torch.maximum(growth.ahead - xi, growth.back + xi)
        corner = corner.sum(1) if frame.norm == math.inf else corner.amax(1)
        rate = torch.minimum(rate, corner * more + missing)
    return rate * more


def _search(rows: LinearRows, steps: int) -> Tensor:
    """The largest radius proven for each row: longer after a success, half the step after a failure.

    The step is not halved after a success, because tangents improve: a radius that failed may hold later.
    """
    touch = (rows.T > 0).to(rows.T) if rows.net.p == 1 else torch.zeros_like(rows.T)
    proven, failed = torch.zeros_like(rows.plus), torch.zeros_like(rows.plus, dtype=torch.bool)
    step = _first(rows, touch)
    for _ in range(steps):
        rho = proven + step
        lower, touch = _tangents(rows, rho, touch)
        holds = lower > 0
        proven = torch.where(holds, rho, proven)
        failed = failed | ~holds
        step = torch.where(holds, torch.where(failed, step, 2 * step), step / 2)
    return proven


def _tangents(rows: LinearRows, rho: Tensor, touch: Tensor) -> tuple[Tensor, Tensor]:
    """The best bound over a few choices of tangents from ``touch`` on, and that choice."""
    best, kept = torch.full_like(rho, -torch.inf), touch
    for k in range(TANGENTS):
        lower, shift, *_ = rows.bound(rho, touch)
        better = lower > best
        best, kept = torch.where(better, lower, best), torch.where(better[:, None], touch, kept)
        if k + 1 < TANGENTS:
            end = (rows.T + rho[:, None] * shift > 0).to(shift) if rows.net.p == 1 else shift
            touch = touch + (end - touch) / (k + 2)
    return best, kept


def _first(rows: LinearRows, touch: Tensor) -> Tensor:
    """A radius to try first: where the tangent of the margin at the point reaches 0; a length of the point if never."""
    _, _, value, steep = rows.bound(torch.zeros_like(rows.plus), touch)
    guess = value / steep
    return torch.where((guess > 0) & (guess < 1e6), guess, 1.0)
