r"""A radius for each point of a trained head in milliseconds: the quadratic bound in few dimensions (l2).

    margin(x + d) >= q(d) = c + <g, d> + <d, M d>,   |d| <= rho,   M = sum_j K_j u_j u_j^T + kappa I

Few directions count in M. With an orthonormal basis E of the Krylov space of g and M, M E = E T + beta v e_m^T
(Lanczos 1950), d = E y + z and F the Frobenius norm of what M is outside of E,

    q(d) >= c + |g| y_1 + <y, T y> - 2 beta |y_m| |z| - F |z|^2 + kappa |d|^2,   F^2 = |M|_F^2 - 2 |M E|_F^2 + |T|_F^2,

a quadratic in m + 1 numbers, whose least value on the ball the S-procedure gives (derived). M is neither formed nor
factored: |M|_F^2 = sum_ij K_i K_j <u_i, u_j>^2, and a bound costs m products with the neurons. Where parabolas touch is
the mean of where the quadratics before were least (fictitious play, Brown 1951), begun along the step of an attack: on
heads trained on embeddings radii are up to a third longer than those of `quadratic_radius`, four times as fast.

Any basis and any touching points prove. How far E is from orthonormal and M E from what T says is measured, and counted
with the rounding: see `_krylov_quadratic`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from polyrelu.nets import PolyReLUNet
from polyrelu.robust.certify.contract import Job, Tier
from polyrelu.robust.certify.quadratic import (
    LEAST_PROVEN_MARGIN,
    OPPOSITE_TOUCH,
    OWN_TOUCH,
    ParabolaCertificate,
    QuadraticRows,
    SpanCoordinates,
    least_on_ball,
    rows_of,
)
from polyrelu.robust.core.arithmetic import REAL, Arithmetic
from polyrelu.robust.core.scaled_net import RivalMargins, ScaledNet, gamma

PREACTIVATIONS = 2_000_000  # pre-activations of points and rivals held at a time
SEARCH_DIMENSIONS = 6  # of the Krylov space of a bound, while the radius is searched
PROOF_DIMENSIONS = 16  # of the Krylov space of the last bound, which is to be tighter
NEAREST_ROUNDS = 16  # steps of the search against the rival that the attack leads to
OTHER_ROUNDS = 4  # steps of the search against each other rival, if it limits the radius at all
FIRST_RADIUS = 0.85  # where a search begins, in units of the radius of the attack
FIRST_OPPOSITE_TOUCH = 0.3  # where parabolas of opposite neurons touch at first, in units of the attack's step
TRIED_PARTS = (0.998, 0.99, 0.975, 0.95, 0.9, 0.8, 0.6, 0.4)  # of the radius searched: the first that is proven counts
ZERO_RESIDUAL = 1e-12  # |M v| outside of the basis, in units of |M|, that is rounding and adds no dimension


@final
@dataclass(frozen=True)
class Krylov(ParabolaCertificate):
    """The quadratic bound in few dimensions, searched from where an attack ended."""

    scope = replace(ParabolaCertificate.scope, tier=Tier.ONE_BALL, right_points_only=True, takes_rivals=True)

    def radius(self, job: Job) -> Tensor:
        """Against all other logits, or against ``job.rivals``."""
        assert isinstance(job.net, PolyReLUNet)
        step = torch.zeros_like(job.X) if job.perturbation is None else job.perturbation
        if job.rivals is None:
            return krylov_radius(job.net, job.X, job.y, step, job.arithmetic)
        return krylov_radius_against(job.net, job.X, job.y, job.rivals, step, job.arithmetic)


def krylov_radius(net: PolyReLUNet, X: Tensor, y: Tensor, step: Tensor, arithmetic: Arithmetic = REAL) -> Tensor:
    """A proven l2 radius of each point, (n,) float64, the least over rivals.

    Parameters
    ----------
    net : float64, p = 1 or p >= 2, one logit or several
    X, y : points (n, D) that the net is right about, with labels as its margin wants them
    step : (n, D) perturbations that break the net, or nearly; they decide speed and tightness only
    arithmetic : what the radii hold for
    """
    logits = torch.arange(net.outputs).expand(len(X), -1)
    rivals = torch.ones_like(logits, dtype=torch.bool) if net.outputs == 1 else logits != y[:, None]
    return krylov_radius_against(net, X, y, rivals, step, arithmetic)


def krylov_radius_against(
    net: PolyReLUNet, X: Tensor, own: Tensor, rivals: Tensor, step: Tensor, arithmetic: Arithmetic = REAL
) -> Tensor:
    """The radius within which logit ``own`` (n,) of each point exceeds all its ``rivals`` (n, C), bool; else as above.

    For one logit ``own`` is the label, +1 or -1.
    """
    scaled = ScaledNet.from_net(net, arithmetic)
    frame = SpanCoordinates.from_net(scaled)
    radius = torch.zeros(len(X), dtype=torch.float64)
    most = max(1, PREACTIVATIONS // (len(frame.B) * int(rivals.sum(dim=1).amax())))
    for here in torch.split(torch.arange(len(X)), most):
        point, rival = rivals[here].nonzero(as_tuple=True)
        pairs = _pairs(scaled, own[here][point], rival)
        with torch.no_grad():
            logits = net(X[here] + step[here]).view(len(here), -1).nan_to_num()  # steps may lead to where it overflows
            logits = logits.masked_fill(~rivals[here], -torch.inf)
        nearest = rival == logits.argmax(dim=1)[point]
        radius[here] = _least(scaled, frame, X[here], step[here], pairs, point, nearest)
    return radius


def _pairs(net: ScaledNet, own: Tensor, rival: Tensor) -> RivalMargins:
    """`ScaledNet.pairs`, each different pair once."""
    if len(net.output) == 1:
        keys, place = torch.unique(own, return_inverse=True)
        return net.pairs(keys, torch.zeros_like(keys, dtype=torch.long)).only(place)
    keys, place = torch.unique(own * len(net.output) + rival, return_inverse=True)
    return net.pairs(keys // len(net.output), keys % len(net.output)).only(place)


def _least(
    net: ScaledNet,
    frame: SpanCoordinates,
    X: Tensor,
    step: Tensor,
    pairs: RivalMargins,
    point: Tensor,
    nearest: Tensor,
) -> Tensor:
    """The radii of some points; ``pairs`` and ``point`` (R,) a row a rival, ``nearest`` to whom the step leads."""
    placed = net.place(X, 2.0)
    rows = rows_of(net, frame, X, placed, pairs, point)
    first, size = rows.only(nearest), torch.linalg.vector_norm(step, dim=1)
    value, steep = first.tangent()
    far = torch.where(size > 0, size / placed.scale, value / steep.clamp(min=1e-300)).clamp(max=1e100)
    shift = (step / torch.where(size > 0, size, 1.0)[:, None]) @ net.U.T
    radius = _search(first, far, shift, torch.full_like(far, torch.inf), NEAREST_ROUNDS)
    if not bool(nearest.all()):
        far, limit = (~nearest).nonzero()[:, 0], radius[point[~nearest]]
        others = rows.only(far)
        value, start, _ = _bound(others, limit, torch.zeros_like(others.T), SEARCH_DIMENSIONS)
        left = (~(value > LEAST_PROVEN_MARGIN)).nonzero()[:, 0]  # the others hold as far as the nearest
        if len(left):
            some = others.only(left), limit[left] / FIRST_RADIUS, start[left], limit[left], OTHER_ROUNDS
            radius = radius.scatter_reduce(0, point[far[left]], _search(*some), "amin")
    return net.radius_of(radius / (1 + frame.spare), placed, 2.0)


def _search(rows: QuadraticRows, far: Tensor, shift: Tensor, limit: Tensor, rounds: int) -> Tensor:
    """The largest radius proven for each row, up to ``limit``; an attack ended ``far`` (R,) along ``shift`` (R, h)."""
    rho, touch = torch.minimum(FIRST_RADIUS * far, limit), torch.where(rows.A > 0, 1.0, FIRST_OPPOSITE_TOUCH) * shift
    for k in range(rounds):
        value, least, weight = _bound(rows, rho, touch, SEARCH_DIMENSIONS)
        touch = touch + (least - touch) / (k + 2)
        change = value / (4 * weight * rho.square()).clamp(min=1e-300)
        rho = torch.minimum(rho * (1 + change.clamp(-0.1, 0.1)), limit)
    proven, left = torch.zeros_like(rho), torch.arange(len(rho))
    for part in TRIED_PARTS:
        trial = torch.where(rho[left] < limit[left], part * rho[left], rho[left])
        holds = _bound(rows.only(left), trial, touch[left], PROOF_DIMENSIONS)[0] > LEAST_PROVEN_MARGIN
        proven[left[holds]] = trial[holds]
        left = left[~holds]
        if not len(left):
            break
        limit = torch.full_like(limit, torch.inf)
    return proven


def _bound(rows: QuadraticRows, rho: Tensor, touch: Tensor, most: int) -> tuple[Tensor, Tensor, Tensor]:
    """What the margin is at least on each ball (R,); where, as shifts (R, h) a unit of radius; and lambda."""
    constant, g, H, basis = _krylov_quadratic(rows, rho, touch, most)
    value, y, weight = _ball(constant, g, H, rho)
    moved = torch.einsum("irk,ri->rk", basis, y[:, :-1])
    return value, moved[:, :-1] @ rows.frame.B.T / rho[:, None], weight


def _krylov_quadratic(
    rows: QuadraticRows, rho: Tensor, touch: Tensor, most: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """constant + <g, y> + <y, H y> below the margin, and the basis (m, R, k + 1) of all y but the last number.

    In ``most`` dimensions and one more, for all the rest; |y| <= rho.

    With E orthonormal up to ``skew`` and M E = E T + beta v e_m^T up to ``miss`` (Frobenius norms), an orthonormal
    basis skew away from E has its T, beta and F within miss + 8 skew |M| of these: that, times rho^2, is taken off.
    """
    B = rows.frame.B
    at = rho[:, None] * torch.where(rows.A > 0, touch / OWN_TOUCH, touch / OPPOSITE_TOUCH)
    constant, inner, side, K, curve = rows.below(rho, at)
    g = torch.cat([inner, side[:, None]], dim=1)
    unit = gamma(64 * (len(B) + B.shape[1] + 64))
    squares = rows.frame.squares
    whole, total = ((K @ squares) * K).sum(dim=1), ((K.abs() @ squares) * K.abs()).sum(dim=1)
    frobenius = (whole.clamp(min=0) + unit * total).sqrt() + 1e-150  # squares below 1e-300 underflow
    long = torch.linalg.vector_norm(g, dim=1)
    basis, products, diagonal, off = [g / long.clamp(min=1e-300)[:, None]], [], [], []
    for _ in range(min(most, g.shape[1])):
        v = basis[-1]
        w = torch.cat([((v[:, :-1] @ B.T) * K) @ B, torch.zeros_like(v[:, :1])], dim=1)
        products.append(w)
        diagonal.append((w * v).sum(dim=1))
        for _ in range(2):
            E = torch.stack(basis)
            w = w - torch.einsum("irk,ir->rk", E, torch.einsum("irk,rk->ir", E, w))
        length = torch.linalg.vector_norm(w, dim=1)
        length = torch.where(length > ZERO_RESIDUAL * frobenius, length, 0.0)
        off.append(length)
        basis.append(torch.where(length[:, None] > 0, w / length.clamp(min=1e-300)[:, None], 0.0))
    m = len(diagonal)
    T, between = torch.diag_embed(torch.stack(diagonal, dim=1)), torch.stack(off, dim=1)
    T = torch.nn.functional.pad(T, (0, 1, 0, 1))
    T = T + torch.diag_embed(between, offset=1) + torch.diag_embed(between, offset=-1)  # the last couples to the rest
    E, W = torch.stack(basis), torch.stack(products)
    gram = torch.einsum("irk,jrk->rij", E, E)
    alive = torch.diag_embed((gram.diagonal(dim1=1, dim2=2) > 0.5).to(gram))
    skew = torch.linalg.matrix_norm(gram - alive) + unit
    miss = (W - torch.einsum("jrk,rji->irk", E, T[:, :, :m])).square().sum(dim=(0, 2)).sqrt()
    inside = T[:, :m, :m].square().sum(dim=(1, 2))
    rest = whole - 2 * W.square().sum(dim=(0, 2)) + inside
    T[:, m, m] = -(rest.clamp(min=0) + (16 * skew * frobenius + 4 * miss) * frobenius + 8 * unit * total).sqrt()
    T.diagonal(dim1=1, dim2=2).add_(curve[:, None])
    wrong = 2 * miss + 16 * skew * frobenius + unit * (total.sqrt() + curve.abs())
    constant = constant - wrong * rho.square() - 4 * (unit + skew) * long * rho
    return constant, torch.nn.functional.pad(long[:, None], (0, m)), T, E[:m]


def _ball(constant: Tensor, g: Tensor, H: Tensor, rho: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The least value on each ball, proven as in `certify.quadratic` from a factoring of H + lambda I; y; lambda."""
    finite = H.isfinite().all(dim=2).all(dim=1) & constant.isfinite()
    H = torch.where(finite[:, None, None], H, torch.eye(H.shape[1], dtype=H.dtype))
    values, vectors = torch.linalg.eigh(H)
    start = torch.einsum("rji,rj->ri", vectors, g) / 2
    low = (-values[:, 0]).clamp(min=0)
    high = low + torch.linalg.vector_norm(start, dim=1) / rho
    for _ in range(30):
        middle = (low + high) / 2
        outside = (start / (values + middle[:, None]).clamp(min=1e-300)).square().sum(dim=1) > rho.square()
        low, high = torch.where(outside, middle, low), torch.where(outside, high, middle)
    size = values.abs().amax(dim=1) + high
    delta = gamma(64 * H.shape[1] ** 2) * size + 1e-300
    weight = high + 1e-9 * size
    value, y, _, factored = least_on_ball(constant, g, H, rho, torch.where(finite, weight, 0.0), delta)
    return torch.where(factored & finite, value, -torch.inf), y, weight
