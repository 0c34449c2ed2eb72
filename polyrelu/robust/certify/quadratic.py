r"""A radius for nets whose neurons did not collapse (l2): the margin above a quadratic on a whole ball.

    margin(z + d) = sum_j a_j relu(t_j + e_j)^p + beta |z + d|^(p-1),   t_j = <u_j, z>,  e_j = <u_j, d>,  |e_j| <= rho

relu^p has a rising second derivative (p >= 2), so on |e| <= rho it lies below the parabola that touches it at e_0 and
meets it at rho, and above the one that touches it at e_0 and meets it at -rho. p = 1 has only 0 <= relu(t) - c t, any c
in [0, 1], below, and above the parabolas k s^2 + s/2 + 1/(16 k), s = t + e, which touch it at +-1/(4k). Hence

    margin(z + d) >= c + <g, d> + <d, M d>,     M = sum_j a_j k_j u_j u_j^T + kappa I,

kappa from the curvature of the bias (0 unless inputs are normalised). The least value of a quadratic on a ball has no
duality gap (S-procedure, Yakubovich 1971; derived for these nets): for every lambda with M + lambda I > 0

    min_{|d| <= rho}  >=  c - <g, (M + lambda I)^-1 g>/4 - lambda rho^2   > 0   proves rho.

Neurons are bounded together, where chords bound each at its own worst d: on 500 neurons that saw MNIST the radii are
half as long again as those of `linear`, and within about a tenth of what attacks find. A bound costs k^2 h for M and
k^3/3 for each lambda, k = min(h, D). Any parabolas, any lambda and any d prove: what is claimed is the value at d minus
|gradient|^2/(4 delta), delta what is left of M + lambda I for rounding; for the rest, and for the arithmetic, see
`scaled_net`. A bound counts only above LEAST_PROVEN_MARGIN, far above all that may have underflowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import torch
from torch import Tensor

from polyrelu.checks import check_fields, checked
from polyrelu.errors import require
from polyrelu.nets import PolyReLUNet, relu_power
from polyrelu.robust.certify.contract import Certificate, Job, Scope, Tier
from polyrelu.robust.core.arithmetic import REAL, Arithmetic
from polyrelu.robust.core.scaled_net import RivalMargins, ScaledNet, ScaledPoints, gamma, span_basis

MATRIX_ENTRIES = 4_000_000  # numbers in the matrices M held at a time
LAMBDAS_TRIED = 4  # for each bound; each costs a Cholesky factor
RADII_TRIED = 8  # at most, for each point and rival
OWN_TOUCH, OPPOSITE_TOUCH = 1.0, 0.3  # where parabolas of own and opposite terms touch: units of the worst point's step
LEAST_TOUCH = 0.25  # p = 1: parabolas touch no nearer to the kink than this, in units of rho
LEAST_PROVEN_MARGIN = 1e-120  # in units of the largest coefficient and of |x - centre|; less may be underflow
MOST_TOUCH = 0.8  # p >= 2: parabolas touch no farther out than this, in units of rho: they meet relu^p again at +-rho


@checked
def quadratic_radius(
    net: PolyReLUNet,
    X: Tensor,
    y: Tensor,
    *,
    tol: float = 0.01,
    limit: float = math.inf,
    arithmetic: Arithmetic | str = REAL,
) -> Tensor:
    """A proven l2 radius of each point, (n,) float64, the least over rivals; 0 for misclassified points.

    Parameters
    ----------
    net : p = 1 or p >= 2; X, y, arithmetic : as in `Certificate`
    tol : the search for the largest radius that this bound proves ends within about this part of it
    limit : the radius wanted; nothing beyond it is tried, which saves half of the time
    """
    return Quadratic(tol)(net, X, y, limit=limit, arithmetic=arithmetic)


class ParabolaCertificate(Certificate):
    """What rests on parabolas that touch relu^p from below and from above: there are none for 1 < p < 2."""

    # the S-procedure needs a Euclidean ball
    scope = Scope(norms=(2.0,), powers="1 or at least 2; linear_radius takes any p")

    @final
    def takes_power(self, p: float) -> bool:
        """p = 1 or p >= 2."""
        return p == 1 or p >= 2


@final
@dataclass(frozen=True)
class Quadratic(ParabolaCertificate):
    """One quadratic below the margin on each ball. ``tol`` : the search ends within about this part of the radius."""

    tol: float = 0.01
    scope = replace(ParabolaCertificate.scope, tier=Tier.QUADRATIC)

    def __post_init__(self) -> None:
        """Check the setting."""
        check_fields(self)
        require(0 < self.tol < 1, "tol", self.tol, "a number between 0 and 1, such as .01")

    def radius(self, job: Job) -> Tensor:
        """The nearest rival is searched, the others need only hold there."""
        assert isinstance(job.net, PolyReLUNet)
        scaled = ScaledNet.from_net(job.net, job.arithmetic)
        frame = SpanCoordinates.from_net(scaled)
        radius = torch.zeros(len(job), dtype=torch.float64, device=job.X.device)
        size = max(1, MATRIX_ENTRIES // frame.B.shape[1] ** 2)
        for label in sorted(set(job.y.tolist())):
            rivals = scaled.rivals(label)
            for points in torch.split((job.y == label).nonzero()[:, 0], size):
                radius[points] = _least(scaled, frame, job.X[points], rivals, self.tol, job.limit)
        return radius


@final
@dataclass(frozen=True, eq=False)
class SpanCoordinates:
    """U = B Q up to rounding: coordinates B (h, k) of the neurons in an orthonormal basis Q (k, D) of their span.

    ``spare`` >= |u_j - b_j Q| for every neuron, and |Q| <= 1 + spare: measured, not assumed.
    """

    B: Tensor
    Q: Tensor
    spare: float

    @cached_property
    def squares(self) -> Tensor:
        """(h, h): <b_i, b_j>^2."""
        return (self.B @ self.B.T).square()

    @staticmethod
    def from_net(net: ScaledNet) -> SpanCoordinates:
        """The whole space if the neurons may span it."""
        h, D = net.U.shape
        if h >= D:
            return SpanCoordinates(net.U, torch.eye(D, dtype=net.U.dtype, device=net.U.device), 0.0)
        B, Q, off, rest = span_basis(net.U)
        return SpanCoordinates(B, Q, float(off + rest.amax()) + h * gamma(4 * D))


@final
@dataclass(frozen=True, eq=False)
class QuadraticRows:
    """One row for each point and rival, the point scaled to length 1 if its input is normalised.

    T, A (R, h) pre-activations and coefficients; beta (R,); inner (R, k) the point in the frame, outer (R,) the length
    of the rest; length (R,); blur (R,) how far pre-activations may be from the true ones at the point
    """

    net: ScaledNet
    frame: SpanCoordinates
    T: Tensor
    A: Tensor
    beta: Tensor
    inner: Tensor
    outer: Tensor
    length: Tensor
    blur: Tensor

    def only(self, keep: Tensor) -> QuadraticRows:
        """The rows named by ``keep``."""
        parts = (self.T, self.A, self.beta, self.inner, self.outer, self.length, self.blur)
        return QuadraticRows(self.net, self.frame, *(part[keep] for part in parts))

    def tangent(self) -> tuple[Tensor, Tensor]:
        """The margin and the length of its gradient at the points themselves (R,); no part of a proof."""
        constant, along, _ = self._bias(torch.zeros_like(self.beta))
        g = (self.A * _slope(self.T, self.net.p)) @ self.frame.B + along[:, None] * self.inner
        value = (self.A * relu_power(self.T, self.net.p)).sum(dim=1) + constant
        return value, (g.square().sum(dim=1) + (along * self.outer).square()).sqrt()

    def below(self, rho: Tensor, touch: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """constant, g, side, K, curve of a quadratic below the margin, less rounding, on balls of radius ``rho`` (R,):

        constant + <g, d> + side o + <d, M d> + curve o^2, M = B^T diag(K) B + curve I, d (R, k) in the frame, o (R,)
        along what the point has outside of it. Its parabolas touch by ``touch`` (R, h).
        """
        net = self.net
        value, slope, bend = self._parabolas(rho[:, None], touch)
        constant, along, curve = self._bias(rho)
        blur = self.blur + rho * net.blur_rate(2.0)
        high, top = self.T.abs() + 2 * (rho + blur)[:, None], self.T + ((rho + blur) * (1 + 1e-6))[:, None]
        size = (self.A.abs() * relu_power(high, net.p)).sum(dim=1) + 4 * self.beta.abs()
        steep = (self.A.abs() * relu_power(top, net.p - 1)).sum(dim=1)
        rounding = 256 * net.p * net.eps * size * (1 + rho).pow(net.p)
        rounding = rounding + 1.01 * net.p * steep * (blur + self.frame.spare * rho)
        constant = constant + (self.A * value).sum(dim=1) - rounding
        g = (self.A * slope) @ self.frame.B + along[:, None] * self.inner
        return constant, g, along * self.outer, self.A * bend, curve

    def bound(self, rho: Tensor, touch: Tensor, at: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """A lower bound of the margin on each ball, where its quadratic is least as shifts e (R, h), and lambda.

        ``rho`` and ``touch`` as in `below`, ``at`` the first lambda. The maximum over lambda by the steps of More and
        Sorensen (1983), each value claimed only with its residual.
        """
        B = self.frame.B
        constant, g, side, K, curve = self.below(rho, touch)
        M = (B.T * K[:, None, :]) @ B
        M.diagonal(dim1=1, dim2=2).add_(curve[:, None])
        least = gamma(64 * (len(B) + 8)) * (K.abs().sum(dim=1) + curve.abs()) + 1e-300
        long = (g.square().sum(dim=1) + side.square()).sqrt()
        best, shift, kept = torch.full_like(rho, -torch.inf), torch.zeros_like(self.T), at
        floor, safe = (-curve).clamp(min=0), torch.full_like(rho, torch.inf)
        growth = torch.where(at.isnan(), 2.0, 1.25)
        at = torch.where(at.isnan(), long / (2 * rho) + floor, at).maximum(floor + 2 * least)
        for _ in range(LAMBDAS_TRIED):
            delta = least + gamma(4 * (M.shape[1] + 2)) * M.shape[1] * at  # of forming and of factoring
            more = at + 2 * delta
            aside = -side / (2 * (curve + more))
            value, d, L, factored = least_on_ball(constant, g, M, rho, at, delta, side * aside / 2)
            good = factored & (curve + at > 0)
            better = good & (value > best)
            best, kept = torch.where(better, value, best), torch.where(better, at, kept)
            shift = torch.where(better[:, None], d @ B.T, shift)
            far = (d.square().sum(dim=1) + aside.square()).sqrt()
            w = torch.linalg.solve_triangular(L, d[:, :, None], upper=False)[:, :, 0]
            steep = w.square().sum(dim=1) + aside.square() / (curve + more)
            step = at + far.square() / steep.clamp(min=1e-300) * (far - rho) / rho
            safe = torch.where(good, torch.minimum(safe, at), safe)
            floor = torch.where(good, floor, torch.maximum(floor, at))
            other = torch.where(safe.isfinite(), (floor + safe) / 2, growth * at)
            at = torch.where(good & (step > floor), step, other)
        return best, shift, kept

    def _bias(self, rho: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """beta |z + d|^s >= constant + along <z, d> + curve |d|^2 on the ball, s = p - 1; else beta."""
        zero = torch.zeros_like(self.beta)
        if not self.net.normalised:
            return self.beta, zero, zero
        s, length = self.net.p - 1, self.length
        tangent = length.pow(s - 2) * s / 2  # of u^(s/2), u = |z + d|^2, which is convex for s >= 2 and else concave
        taylor = (length + rho).pow(s - 2) * s * (s - 1) / 2  # the other way: second derivatives at their extreme
        curve = torch.where((self.beta > 0) == (s >= 2), tangent, taylor)
        return self.beta * length.pow(s), self.beta * s * length.pow(s - 2), self.beta * curve

    def _parabolas(self, rho: Tensor, touch: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """value + slope e + bend e^2 below own and above opposite terms for |e| <= rho, each (R, h)."""
        p, own = self.net.p, self.A > 0
        if p == 1:
            size = self.T.abs()
            bend = 1 / (4 * torch.maximum(size, LEAST_TOUCH * rho))
            value, slope = bend * self.T.square() + self.T / 2 + 1 / (16 * bend), 2 * bend * self.T + 0.5
            far = 2 * size > rho  # the parabola that touches at t itself and meets relu at the end of the interval
            on = (self.T > 0).to(self.T)
            value, slope = torch.where(far, self.T.relu(), value), torch.where(far, on, slope)
            bend = torch.where(far, ((rho - size) / rho.square()).clamp(min=0), bend)
            share = (self.T + touch > 0).to(self.T)
            return (
                torch.where(own, share * self.T, value),
                torch.where(own, share, slope),
                torch.where(own, 0.0, bend),
            )
        at = torch.where(own, OWN_TOUCH, OPPOSITE_TOUCH) * touch
        at = torch.minimum(torch.maximum(at, -MOST_TOUCH * rho), MOST_TOUCH * rho)
        end = torch.where(own, -rho, rho) - at
        value, slope = relu_power(self.T + at, p), _slope(self.T + at, p)
        bend = (relu_power(self.T + at + end, p) - value - slope * end) / end.square()
        return value - slope * at + bend * at.square(), slope - 2 * bend * at, bend


def least_on_ball(
    constant: Tensor, g: Tensor, M: Tensor, rho: Tensor, weight: Tensor, delta: Tensor, rest: Tensor | float = 0.0
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A value below constant + <g, d> + <d, M d> + ``rest`` on |d| <= rho, d near the least, L, and where they hold.

    N = M + lambda I = L L^T (R, k, k), ``weight`` is lambda, ``delta`` what rounding may take off N in forming and in
    factoring it. Nothing holds where N has no factor.
    """
    N = M.clone()
    N.diagonal(dim1=1, dim2=2).add_(weight[:, None])
    L, info = torch.linalg.cholesky_ex(N)
    factored = info == 0
    L = torch.where(factored[:, None, None], L, torch.eye(L.shape[1], dtype=L.dtype, device=L.device))
    d = -torch.cholesky_solve(g[:, :, None], L)[:, :, 0] / 2
    more = weight + 2 * delta
    Nd = torch.einsum("rij,rj->ri", M, d) + more[:, None] * d
    wrong = ((g + 2 * Nd) / (2 * delta.sqrt())[:, None]).square().sum(dim=1)
    value = constant + (g * d).sum(dim=1) + (d * Nd).sum(dim=1) + rest - more * rho.square() - wrong
    return value, d, L, factored


def _slope(T: Tensor, p: float) -> Tensor:
    """p relu(t)^(p-1)."""
    return (T > 0).to(T) if p == 1 else p * relu_power(T, p - 1)


def rows_of(
    net: ScaledNet, frame: SpanCoordinates, X: Tensor, placed: ScaledPoints, rivals: RivalMargins, point: Tensor
) -> QuadraticRows:
    """The margins of ``rivals`` (R rows), each at the point of this number (R,)."""
    inner = ((X.double() - net.centre) / placed.scale[:, None]) @ frame.Q.T
    outer = (placed.length.square() - inner.square().sum(dim=1) + 64 * net.eps).clamp(min=0).sqrt()
    beta = net.scaled_bias(rivals.beta[:, None], rivals.size[:, None], placed.scale[point])[:, 0]
    parts = placed.T[point], rivals.A, beta, inner[point], outer[point], placed.length[point], placed.blur[point]
    return QuadraticRows(net, frame, *parts)


def _least(net: ScaledNet, frame: SpanCoordinates, X: Tensor, rivals: RivalMargins, tol: float, limit: float) -> Tensor:
    """The radii of some points of one label: the nearest rival is searched, the others need only hold there."""
    n, c = len(X), len(rivals.A)
    point, rival = torch.arange(n).repeat_interleave(c), torch.arange(c).repeat(n)
    placed = net.place(X, 2.0)
    rows = rows_of(net, frame, X, placed, rivals.only(rival), point)
    value, steep = rows.tangent()
    order = (value / steep.clamp(min=1e-300)).view(n, c).argsort(dim=1)
    radius = limit / placed.scale * (1 + 4 * net.eps) * (1 + 2 * frame.spare)
    for rival in order.T:
        mine = torch.arange(n) * c + rival
        radius = _search(rows.only(mine), value[mine], steep[mine], radius, tol)
    return net.radius_of(radius / (1 + frame.spare), placed, 2.0)


def _search(rows: QuadraticRows, value: Tensor, steep: Tensor, limit: Tensor, tol: float) -> Tensor:
    """The largest radius proven for each row, at most ``limit``, which is tried first where it is finite.

    Next, by the secant between the last success and the last failure, or the parabola through margin and slope at the
    point while nothing failed. The worst point of one bound tells the next where to touch, so that the first failure,
    of parabolas that touch at the point itself, does not count.
    """
    low, high, above, below = torch.zeros_like(limit), torch.full_like(limit, torch.inf), value.clone(), value.clone()
    rho = torch.where(limit.isfinite(), limit, value / steep.clamp(min=1e-300))
    touch, weight, old = torch.zeros_like(rows.T), torch.full_like(limit, torch.nan), torch.ones_like(limit)
    left = (value > LEAST_PROVEN_MARGIN).nonzero()[:, 0]
    for _ in range(RADII_TRIED):
        if not len(left):
            break
        here, most, margin, slope, cold = rho[left], limit[left], value[left], steep[left], weight[left].isnan()
        at, shift, factor = rows.only(left).bound(here, touch[left] * (here / old[left])[:, None], weight[left])
        holds, fails = at > LEAST_PROVEN_MARGIN, (at <= LEAST_PROVEN_MARGIN) & ~cold
        low[left], above[left] = torch.where(holds, here, low[left]), torch.where(holds, at, above[left])
        high[left], below[left] = torch.where(fails, here, high[left]), torch.where(fails, at, below[left])
        touch[left], weight[left], old[left] = shift, factor, here
        bend = (at - margin + slope * here) / here.square()
        root = 2 * margin / (slope + (slope.square() - 4 * bend * margin).clamp(min=0).sqrt())
        secant = low[left] + (high[left] - low[left]) * above[left] / (above[left] - below[left])
        known = (high[left] > low[left]) & high[left].isfinite() & below[left].isfinite()
        following = torch.where(known, secant, torch.where(at.isfinite(), root.clamp(max=1.3 * here), here / 2))
        following = torch.where(cold & ~holds & (at > -margin / 4), here / (1 - tol / 4), following) * (1 - tol / 4)
        rho[left] = torch.minimum(following, most)
        left = left[(low[left] < most) & (rho[left] > low[left] * (1 + tol / 2))]
    return low
