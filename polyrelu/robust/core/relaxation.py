r"""One leaf of branch and bound: a convex relaxation, solved well enough, bounded rigorously.

The points that break a PolyReLUNet satisfy P(z) <= N(z), own and opposite terms, both sums of c_j relu(t_j)^p with
t = C z. For 1 <= q <= p the q/p-th power of both sides keeps P convex (the q-th power of a p-norm), and a leaf gives
weights, slopes and a constant with N^(q/p) <= sum_j W_j relu(t_j)^q + sum_j L_j t_j + c. For every lambda >= 0,

    r^2/2 >= min_z  |z - s|^2/2 + lambda ( P(z)^(q/p) - sum_j W_j h_j(t_j) - <L, t> - c )                          (*)

where h_j >= relu^q is the smallest majorant of curvature at most K_j = share_j / (lambda W_j). For q < 2 it is

    h(t) = 0 (t < -e),   K (t + e)^2 / 2 (-e <= t <= b),   t^q (t > b),   b = (q^2/(2K))^(1/(2-q)),   e = b (2/q - 1).

sum_j share_j c_j c_j^T <= (1 - MU) I makes (*) strongly convex, so any z proves value(z) - |gradient|^2/(2 MU): the
solver's accuracy affects tightness, never soundness. q = 2 needs no smoothing but lambda W_j <= share_j / 2; q = 1 is
safe where the opposite pre-activations at x are negative; q just below 2 is nearly exact for separated centres. q > 2
has no majorant of bounded curvature but on boxes t_j <= hi_j: there q = p, and h_j is that of `box_terms`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import NamedTuple, final

import torch
from torch import Tensor

MU = 1e-4  # strong convexity that (*) keeps: no majorant may use it up
ROUNDING = 2.0**-52


@final
@dataclass(frozen=True)
class Relaxation:
    """A batch of leaves over one set of directions; rows are leaves.

    C (m, k) directions; s (B, k) the points; own (B, m) >= 0 and own_constant (B,) make P; weight, slope (B, m) and
    constant (B,) bound N^(q/p); share (B, m); q (B, 1), all of it 2 or all of it below, or p on boxes low, high (B, m).
    """

    C: Tensor
    p: float
    q: Tensor
    s: Tensor
    own: Tensor
    own_constant: Tensor
    weight: Tensor
    slope: Tensor
    constant: Tensor
    share: Tensor
    low: Tensor | None = None
    high: Tensor | None = None

    def rows(self, keep: Tensor) -> Relaxation:
        """The leaves named by ``keep``."""
        parts = (self.q, self.s, self.own, self.own_constant, self.weight, self.slope, self.constant, self.share)
        boxes = (None if box is None else box[keep] for box in (self.low, self.high))
        return Relaxation(self.C, self.p, *(part[keep] for part in parts), *boxes)

    def width(self) -> Tensor:
        """(B, 1): how far the kink of relu is smoothed; p = 1 is straightened afterwards and can afford more."""
        length: Tensor = torch.linalg.vector_norm(self.s, dim=1, keepdim=True)
        return (1e-3 if self.p == 1 else 1e-4) * length.clamp(min=1e-30)

    def modulus(self) -> Tensor:
        """(B,): strong convexity of (*): 1 where no opposite term needs a majorant, else MU."""
        return torch.where((self.weight > 0).any(dim=1), MU, 1.0)

    def smooth(self) -> Tensor:
        """(B,): the constant that joins the p-norm, a part of P at the point itself; more for the kink of q = 1."""
        size = (self.own * (self.s @ self.C.T).clamp(min=0).pow(self.p)).sum(1) + self.own_constant
        return torch.where(self.q[:, 0] == 1, 1e-4**self.p if self.p > 1 else 0.0, 1e-18) * size + 1e-290

    def straightened(self, z: Tensor) -> Relaxation:
        """q = 1: P^(1/p) replaced by a linear function below it, the slope of the smoothed one at z.

        P^(1/p) is the largest of sum_j v_j t_j + v_0 over a convex set of v >= 0, and that slope is one of them.
        """
        first, constant = own_slope(self, z @ self.C.T)
        return replace(
            self,
            own=torch.zeros_like(self.own),
            own_constant=torch.zeros_like(self.own_constant),
            slope=self.slope - first,
            constant=self.constant - constant,
        )


class Terms(NamedTuple):
    """Value and derivatives in the pre-activations of P^(q/p) and of the majorant, and d(lambda h)/d lambda.

    ``each`` (B, m) is the majorant's value by direction, without the linear part.
    """

    value: Tensor
    first: Tensor
    second: Tensor
    by_lambda: Tensor
    rank_one: Tensor | None = None
    vector: Tensor | None = None
    each: Tensor | None = None


def own_terms(leaf: Relaxation, T: Tensor) -> Terms:
    """P^(q/p) slightly smoothed from below, so that it has derivatives everywhere.

    For p < 2 relu(t) is replaced by t^2/(2w) on [0, w] and t - w/2 beyond, and a small constant joins the p-norm: both
    keep it convex and below.
    """
    q, p = leaf.q[:, 0], leaf.p
    on, up, bend = T.clamp(min=0), torch.ones_like(T), torch.zeros_like(T)
    if p < 2:
        w = leaf.width()
        inside = on < w
        up, bend = torch.where(inside, on / w, 1.0), torch.where(inside & (on > 0), 1 / w, 0.0)
        on = torch.where(inside, on * on / (2 * w), on - w / 2)
    power = on if p == 1 else on.pow(p)
    smooth = leaf.smooth()
    S = (leaf.own * power).sum(1) + leaf.own_constant + smooth
    F = S.pow(q / p)
    slope = (q * F / S)[:, None]
    some = torch.where(on > 0, on, 1.0)
    vector = leaf.own * torch.where(on > 0, power / some, 0.0) * up
    second = leaf.own * torch.where(on > 0, (p - 1) * power / some.square() * up.square() + power / some * bend, 0.0)
    if p == 1:
        vector, second = leaf.own * up * (T > 0), leaf.own * bend
    value = F - smooth.pow(q / p)
    rank_one = None if bool((leaf.q == p).all()) else slope[:, 0] * (q - p) / S
    return Terms(value, slope * vector, slope * second, value, rank_one, vector)


def own_slope(leaf: Relaxation, T: Tensor) -> tuple[Tensor, Tensor]:
    """q = 1: slopes (B, m) and constant (B,) of a linear function below P^(1/p), touching it nearly at T."""
    terms = own_terms(leaf, T)
    total = (terms.value + leaf.smooth().pow(1 / leaf.p)).pow(leaf.p)
    constant = leaf.own_constant * total.pow(1 / leaf.p - 1) * (1 - 1e-12)
    return terms.first * (1 - 1e-12), constant


def opposite_terms(leaf: Relaxation, T: Tensor, lam: Tensor) -> Terms:
    """The majorant of N^(q/p) without its constant."""
    if leaf.low is not None and leaf.high is not None:
        return box_terms(leaf, T, lam, leaf.low, leaf.high)
    linear = leaf.slope * T
    if bool((leaf.q == 2).all()):
        on = T.clamp(min=0)
        each = leaf.weight * on * on
        value = (each + linear).sum(1)
        return Terms(value, 2 * leaf.weight * on + leaf.slope, 2 * leaf.weight * (on > 0), value, each=each)
    q = leaf.q
    weighted = leaf.weight > 0
    W = torch.where(weighted, leaf.weight, 1.0)
    K = torch.where(weighted, leaf.share, 1.0) / (lam[:, None] * W)
    b = (q * q / (2 * K)).pow(1 / (2 - q)).clamp(max=1e100)
    e = b * (2 / q - 1)
    far, near = weighted & (T >= b), weighted & (T > -e) & (T < b)
    t, shifted = torch.where(far, T, 1.0), torch.where(near, T + e, 0.0)
    power = torch.where(far, t.pow(q), 0.0)
    value = W * (power + K * shifted.square() / 2)
    first = W * (torch.where(far, q * power / t, 0.0) + K * shifted)
    second = W * (torch.where(far, q * (q - 1) * power / t.square(), 0.0) + torch.where(near, K, 0.0))
    by_lambda = W * (power + K * shifted * e / (2 - q))
    return Terms((value + linear).sum(1), first + leaf.slope, second, (by_lambda + linear).sum(1), each=value)


def box_terms(leaf: Relaxation, T: Tensor, lam: Tensor, low: Tensor, high: Tensor) -> Terms:
    """The majorant of N itself on boxes, p > 2: relu(t)^p up to a, then curvature K through (high, high^p).

    a is where the tangent parabola of curvature K meets high^p: (1 - x^p - p x^(p-1) (1 - x)) / (1 - x)^2 = k/2 for
    x = a/high, k = K high^(2-p), whose left side rises from 1 to p (p-1)/2; a = high when K covers relu(t)^p
    everywhere, a = low when it would be left of the box, and a < 0 (a parabola from 0) when k < 2.
    """
    p = leaf.p
    weighted = (leaf.weight > 0) & (high > 0)
    W, hi = torch.where(weighted, leaf.weight, 1.0), torch.where(weighted, high, 1.0)
    K = torch.where(weighted, leaf.share, 1.0) / (lam[:, None] * W)
    half = K * hi.pow(2 - p) / 2
    covered = half >= p * (p - 1) / 2
    a = torch.where(half < 1, hi - hi * half.clamp(min=1e-300).rsqrt(), hi * _tangent_ratio(half, p))
    chord = (low > 0) & (a < low) & ~covered
    a = torch.where(covered, hi, torch.where(chord, low, a))
    v = a.clamp(min=0).pow(p)
    gap = torch.where(covered, 1.0, (hi - a).clamp(min=1e-12 * hi))
    bend = torch.where(covered, p * (p - 1) * hi.pow(p - 2), K)
    tangent = p * a.clamp(min=0).pow(p - 1)
    start = torch.where(chord, (hi.pow(p) - v) / gap - K * gap / 2, tangent)
    zone = weighted & ((T > a) | chord)
    far = weighted & ~zone & (T > 0)
    t = torch.where(far, T, 1.0)
    power = torch.where(far, t.pow(p), 0.0)
    u, w = torch.where(zone, T - a, 0.0), torch.where(zone, T - hi, 0.0)
    value = W * (power + torch.where(zone, v + start * u + bend * u * u / 2, 0.0))
    first = W * (p * power / t + torch.where(zone, start + bend * u, 0.0))
    second = W * (p * (p - 1) * power / t.square() + torch.where(zone, bend, 0.0))
    by_lambda = value - W * torch.where(covered, 0.0, K * u * w / 2)
    linear = leaf.slope * T
    return Terms((value + linear).sum(1), first + leaf.slope, second, (by_lambda + linear).sum(1), each=value)


def _tangent_ratio(half: Tensor, p: float) -> Tensor:
    """The x in [0, 1] with (1 - x^p - p x^(p-1) (1 - x)) / (1 - x)^2 = half, or a little below it."""
    if p == 3:
        return ((half - 1) / 2).clamp(0, 1)
    if p == 4:
        return (((3 * half - 2).clamp(min=0).sqrt() - 1) / 3).clamp(0, 1)
    low, high = torch.zeros_like(half), torch.ones_like(half)

    def excess(x: Tensor) -> Tensor:
        return 1 - x.pow(p) - p * x.pow(p - 1) * (1 - x) - half * (1 - x).square()

    for _ in range(10):
        x = (low + high) / 2
        small = excess(x) <= 0
        low, high = torch.where(small, x, low), torch.where(small, high, x)
    x = (low + high) / 2
    for _ in range(4):
        slope = (1 - x) * (2 * half - p * (p - 1) * x.pow(p - 2))
        x = torch.where(slope.abs() > 1e-12, x - excess(x) / slope, x)
        x = torch.minimum(torch.maximum(x, low), high)
    below = torch.maximum(low, x * (1 - 1e-9))
    return torch.where(excess(x) <= 0, x, torch.where(excess(below) <= 0, below, low))


def overstated(leaf: Relaxation, z: Tensor, lam: Tensor) -> Tensor:
    """(B, m): by how much each direction's majorant exceeds W_j relu(t_j)^q at z; what branching can win."""
    T = z @ leaf.C.T
    each = opposite_terms(leaf, T, lam).each
    return torch.zeros_like(T) if each is None else each - leaf.weight * T.clamp(min=0).pow(leaf.q)


class Solution(NamedTuple):
    """Proven radius of each leaf, and the point and multiplier that prove it."""

    bound: Tensor
    z: Tensor
    lam: Tensor


def solve(
    leaf: Relaxation, z: Tensor, lam: Tensor, target: Tensor, *, most: Tensor | None = None, steps: int = 60
) -> Solution:
    """Maximise (*) over lambda and minimise it over z by damped Newton steps; leaves that reach ``target`` stop early.

    ``most`` bounds lambda (needed for q = 2). Every evaluation is itself a proof; the best one is returned.
    """
    count, (m, k) = len(z), leaf.C.shape
    products = (leaf.C[:, :, None] * leaf.C[:, None, :]).reshape(m, k * k)
    best = Solution(z.new_zeros(count), z.clone(), lam.clone())
    if most is not None:
        lam = torch.minimum(lam, most)
    state = _NewtonSearch.start(leaf, z, lam, most)
    open_ = torch.arange(count, device=z.device)
    for _ in range(steps):
        state.advance(products)
        better = state.bound > best.bound[open_]
        chosen = open_[better]
        best.bound[chosen], best.z[chosen], best.lam[chosen] = (
            state.bound[better],
            state.z[better],
            state.proof_lam[better],
        )
        going = (best.bound[open_] < target[open_]) & ~state.settled
        if not bool(going.any()):
            break
        if int(going.sum()) < 0.8 * len(going):
            open_, state = open_[going], state.rows(going)
    return best


@dataclass
class _NewtonSearch:
    """Where each leaf's search stands: an accepted point, a trial, and an interval for lambda."""

    leaf: Relaxation
    z: Tensor
    trial: Tensor
    lam: Tensor
    low: Tensor
    high: Tensor
    phi: Tensor  # value at the accepted point; inf after lambda has moved
    bound: Tensor
    proof_lam: Tensor
    settled: Tensor
    most: Tensor

    @staticmethod
    def start(leaf: Relaxation, z: Tensor, lam: Tensor, most: Tensor | None) -> _NewtonSearch:
        inf, zero = torch.full_like(lam, torch.inf), torch.zeros_like(lam)
        most, open_ = inf if most is None else most, torch.zeros_like(lam, dtype=torch.bool)
        return _NewtonSearch(leaf, z, z, lam, zero, most.clone(), inf, zero, lam, open_, most)

    def rows(self, keep: Tensor) -> _NewtonSearch:
        _, *parts = (getattr(self, part.name) for part in fields(self))
        return _NewtonSearch(self.leaf.rows(keep), *(part[keep] for part in parts))

    def _prove(self) -> tuple[Terms, Terms, Tensor, Tensor, Tensor, Tensor]:
        """What the trial points prove: ``bound``, rounding counted, for any z and any 0 <= lambda <= ``most``.

        Returns own and opposite terms, the gradients of G (outward) and of phi, phi, and the size of its terms.
        """
        leaf, lam, z = self.leaf, self.lam, self.trial
        T = z @ leaf.C.T
        own, opposite = own_terms(leaf, T), opposite_terms(leaf, T, lam)
        outward = (own.first - opposite.first) @ leaf.C
        step = z - leaf.s
        gradient = step + lam[:, None] * outward
        half = step.square().sum(1) / 2
        phi = half + lam * (own.value - opposite.value - leaf.constant)
        slack = gradient.square().sum(1) / (2 * leaf.modulus())
        length = torch.linalg.vector_norm(leaf.C, dim=1)
        steep = ((own.first.abs() + opposite.first.abs()) * length).sum(1)  # pre-activations are rounded too
        size = half + lam * (
            own.value.abs()
            + opposite.value.abs()
            + (leaf.slope * T).abs().sum(1)
            + leaf.constant.abs()
            + steep * torch.linalg.vector_norm(z, dim=1)
        )
        proven = phi - slack * (1 + 1e-9) - (T.shape[1] + z.shape[1] + 32) * ROUNDING * size
        bound = (2 * proven.clamp(min=0)).sqrt() * (1 - 4 * ROUNDING)
        proves = phi.isfinite() & (lam >= 0) & (lam <= self.most)
        self.bound, self.proof_lam = torch.where(proves, bound, 0.0), lam
        return own, opposite, outward, gradient, phi, size

    def advance(self, products: Tensor) -> None:
        """Judge the trial points, and make new ones."""
        leaf, lam, z = self.leaf, self.lam, self.trial
        k = z.shape[1]
        own, opposite, outward, gradient, phi, size = self._prove()
        good = phi <= self.phi + 1e-13 * size
        bad = ~good

        H = torch.eye(k, dtype=z.dtype, device=z.device) + lam[:, None, None] * (
            (own.second - opposite.second) @ products
        ).view(-1, k, k)
        if own.rank_one is not None and own.vector is not None:
            v = own.vector @ leaf.C
            H = H + (lam * own.rank_one)[:, None, None] * v[:, :, None] * v[:, None, :]
        H = torch.where(H.isfinite(), H, 0.0)
        H.diagonal(dim1=1, dim2=2).add_(1e-12)
        ways, _ = torch.linalg.solve_ex(H, torch.stack([gradient, outward], dim=2).nan_to_num())
        newton, response = ways.nan_to_num().unbind(dim=2)
        decrement = (gradient * newton).sum(1)
        G = own.value - opposite.by_lambda - leaf.constant
        inner = good & (decrement.abs() <= 1e-4 * phi.abs() + 1e-300)

        self.low = torch.where(inner & (G > 0), torch.maximum(self.low, lam), self.low)
        self.high = torch.where(inner & (G < 0), torch.minimum(self.high, lam), self.high)
        curvature = (outward * response).sum(1).clamp(min=1e-300)
        wanted = lam + (G - (outward * newton).sum(1)) / curvature
        ceiling = torch.where(self.high.isfinite(), self.high, 4 * lam)
        outside = (wanted <= self.low) | (wanted >= ceiling)
        middle = torch.where(self.high.isfinite(), (self.low + ceiling) / 2, ceiling)
        new = torch.where(outside, torch.where(wanted <= self.low, (self.low + lam) / 2, middle), wanted)
        new = torch.minimum(torch.maximum(new, lam / 4), 4 * lam)
        moved = torch.where(inner, new - lam, 0.0)
        gain = (G * moved).abs()
        self.settled = inner & (gain <= 1e-8 * phi.abs()) & (decrement.abs() <= 1e-9 * phi.abs())
        self.z = torch.where(good[:, None], z, self.z)
        self.phi = torch.where(inner, torch.inf, torch.where(good, phi, self.phi))
        newton_trial = z - newton - moved[:, None] * response
        self.trial = torch.where(bad[:, None], (self.z + z) / 2, newton_trial)
        self.lam = lam + moved
