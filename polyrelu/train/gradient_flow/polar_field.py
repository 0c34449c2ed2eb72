"""Gradient flow in polar coordinates: its state, and its field streamed over blocks of rows.

    w_j = r_j u_j,  v_j = s_j q_j,  |u_j| = |q_j| = 1,  kappa_j = log(r_j + s_j)

    r' = s a,  s' = r a,  a = <q, A>   =>   (r + s)' = (r + s) a,   (s - r)(s + r) = const

so one number per neuron, ``kappa``, carries both norms for a balanced start and for any other, and the
conserved ``|v_j|^2 - |w_j|^2`` holds to rounding by construction. With delta = (s - r)/(s + r):

    delta(t) = delta_0 exp(-2 (kappa - kappa_0)),   r = e^kappa (1 - delta)/2,   s = e^kappa (1 + delta)/2

``s`` is signed: a neuron that starts with |v_j| < |w_j| may carry v_j through zero (signs are conserved only from
|v_j| >= |w_j| on). A small start is a number added to kappa: 1e-7 or 1e-300, nothing underflows. The field:

    z_ij = relu(<x_i, u_j>),   f(x_i) = sum_j r_j s_j q_j z_ij^p + b,   g_i = -dl/df(x_i)
    V_j  = sum_i <q_j, g_i> z_ij^(p-1) x_i,   A_j = sum_i g_i z_ij^p,   <q_j, A_j> = <u_j, V_j>

    kappa_j' = <u_j, V_j>,  u_j' = (s_j/r_j) p P_u V_j,  q_j' = (r_j/s_j) P_q A_j,  b' = sum_i g_i

(Min & Vidal 2024 in polar coordinates.) The floor of one evaluation is ``X U^T`` and ``(g Z^(p-1))^T X``,
4 n h D flops; for one logit the growth rate comes out of the second for nothing. Rows are always taken in
blocks of 1024 from row 0, so no result depends on where the data are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from polyrelu.data import BLOCK
from polyrelu.nets import Polar
from polyrelu.train.descent.mean_gradient import relu_powers
from polyrelu.train.losses import class_margins, in_loss_time, log_add, loss_slopes


@dataclass(frozen=True)
class ConservedBalance:
    """Constants of motion of each neuron: kappa_0 and delta_0 (float64), 1 +- delta_0 kept without cancellation."""

    kappa: Tensor
    delta: Tensor
    plus: Tensor
    minus: Tensor

    @classmethod
    def from_norms(cls, log_r: Tensor, log_s: Tensor) -> ConservedBalance:
        """From the logs of the two norms."""
        ratio = log_s - log_r
        plus, minus = 2 * torch.sigmoid(ratio), 2 * torch.sigmoid(-ratio)
        return cls(torch.logaddexp(log_r, log_s), torch.tanh(ratio / 2), plus, minus)

    @classmethod
    def balanced(cls, kappa: Tensor) -> ConservedBalance:
        """Balanced neurons, r = s."""
        one = torch.ones_like(kappa)
        return cls(kappa, torch.zeros_like(kappa), one, one)

    def halves(self, kappa: Tensor) -> tuple[Tensor, Tensor]:
        """``1 - delta`` and ``1 + delta`` at a later ``kappa``: r and s in units of e^kappa / 2."""
        shift = self.delta * torch.expm1(-2 * (kappa - self.kappa))
        return torch.maximum(self.minus - shift, self.minus.clamp(max=1e-12)), self.plus + shift

    def ratio(self, kappa: Tensor) -> Tensor:
        """``s / r``, signed."""
        minus, plus = self.halves(kappa)
        return plus / minus

    def log_contribution(self, kappa: Tensor) -> Tensor:
        """``log |r s|``."""
        minus, plus = self.halves(kappa)
        return 2 * kappa + (minus * plus.abs()).log() - math.log(4)

    def log_square(self, kappa: Tensor) -> Tensor:
        """``log(r^2 + s^2)``."""
        minus, plus = self.halves(kappa)
        return 2 * kappa + (minus.square() + plus.square()).log() - math.log(4)

    def offset(self, kappa: Tensor) -> Tensor:
        """``|delta|`` at a later ``kappa``: how far from balanced."""
        return self.delta.abs() * torch.exp(-2 * (kappa - self.kappa))

    def __getitem__(self, index: Tensor) -> ConservedBalance:
        return ConservedBalance(self.kappa[index], self.delta[index], self.plus[index], self.minus[index])


@dataclass(frozen=True)
class Slope:
    """Time derivative of a PolarState (per unit of its clock), with the loss seen on the way."""

    u: Tensor
    q: Tensor
    kappa: Tensor
    bias: Tensor
    log_loss: float
    log_rate: float  # log d tau / dt: log L in loss time, 0 in ordinary time
    accuracy: float
    margin: float  # the smallest

    def __getitem__(self, index: Tensor) -> Slope:
        return replace(self, u=self.u[index], q=self.q[index], kappa=self.kappa[index])


@dataclass(frozen=True)
class PolarState:
    """Directions u (h, D), output directions q (h, C), kappa (h,) float64, output bias (C,), the balance, and the
    share of all neurons that each row stands for (more than one once they are merged, see merging.py)."""

    u: Tensor
    q: Tensor
    kappa: Tensor
    bias: Tensor
    balance: ConservedBalance
    share: Tensor

    @classmethod
    def from_polar(cls, polar: Polar, bias: Tensor) -> PolarState:
        """The state of a network at its weights."""
        balance = ConservedBalance.from_norms(polar.log_r, polar.log_s)
        return cls(polar.u, polar.q, balance.kappa, bias, balance, torch.full_like(balance.kappa, 1 / polar.width))

    def polar(self) -> Polar:
        """Back to directions and log norms; a sign that s has taken on goes to q."""
        minus, plus = self.balance.halves(self.kappa)
        half = self.kappa - math.log(2)
        q = self.q * torch.where(plus < 0, -1.0, 1.0).to(self.q.dtype)[:, None]
        return Polar(self.u, q, half + minus.log(), half + plus.abs().log())

    def log_contribution(self) -> Tensor:
        """``log |r_j s_j|``, float64."""
        return self.balance.log_contribution(self.kappa)

    def importance(self) -> Tensor:
        """Weights of the error norm: half for the population of neurons, half by share of contribution."""
        return 0.5 * (self.share + torch.softmax(self.log_contribution(), 0))

    def __getitem__(self, index: Tensor) -> PolarState:
        parts = {name: getattr(self, name)[index] for name in ("u", "q", "kappa", "balance", "share")}
        return replace(self, **parts)


def unit(x: Tensor) -> Tensor:
    """Rows divided by their norms."""
    norm: Tensor = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    return x / norm


def tangent(x: Tensor, u: Tensor) -> Tensor:
    """Rows of x with their component along the unit rows of u removed."""
    return x - (x * u).sum(1, keepdim=True) * u


def error_size(importance: Tensor, u: Tensor, q: Tensor, kappa: Tensor, bias: Tensor) -> float:
    """Root of the weighted mean over neurons of |du|^2 + |dq|^2 + dkappa^2 (radians and relative norms)."""
    squares = u.square().sum(1).double() + q.square().sum(1).double() + kappa.square()
    return math.sqrt(float(importance @ squares) + float(bias.double().square().sum()))


def distance(a: PolarState, b: PolarState) -> float:
    """Size of the difference of two states, weighted by the importance of a's neurons."""
    return error_size(a.importance(), a.u - b.u, a.q - b.q, a.kappa - b.kappa, a.bias - b.bias)


def smoothed_gates(z: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Means of relu and of its step over rows scattered normally by ``noise`` about z (p = 1)."""
    ratio = z / noise[:, None]
    gate = torch.special.ndtr(ratio)
    density = ratio.square_().mul_(-0.5).clamp_(min=-80).exp_().mul_(1 / math.sqrt(2 * math.pi))
    return z.mul_(gate).add_(density.mul_(noise[:, None])), gate


class Field:
    """``field(state) -> Slope`` for the loss ``sum_i weight_i l(f(x_i), y_i)``.

    rows(start, stop) gives preprocessed rows; ``weight`` defaults to 1/n. ``noise`` (p = 1 only) says how far,
    as a standard deviation per direction, the rows that a row stands for lie from it: gates are averaged over it.
    ``biased`` says whether the network has an output bias to train.
    """

    def __init__(
        self,
        rows: Callable[[int, int], Tensor],
        y: Tensor,
        *,
        loss: str,
        p: float,
        weight: Tensor | None = None,
        noise: Tensor | None = None,
        biased: bool = False,
    ) -> None:
        self.rows, self.y, self.loss, self.p, self.biased = rows, y, loss, p, biased
        self.noise = noise if p == 1 else None
        self.log_weight = torch.full((len(y),), -math.log(len(y)), device=y.device) if weight is None else weight.log()
        self.neuron_passes = 0  # neurons evaluated so far

    def inactive(self, u: Tensor) -> Tensor:
        """Which of the rows of u no sample activates; O(n len(u) D)."""
        active = torch.zeros(len(u), dtype=torch.bool, device=u.device)
        for start in range(0, len(self.y), BLOCK):
            active |= (self.rows(start, min(start + BLOCK, len(self.y))) @ u.T > 0).any(0)
        return ~active

    def __call__(self, state: PolarState) -> Slope:
        """Slope, loss and accuracy at ``state``; the scale of every sum is kept apart in log."""
        u, outputs, dtype = state.u, state.q.shape[1], state.u.dtype
        self.neuron_passes += len(u)
        ratio = state.balance.ratio(state.kappa)
        log_c = state.log_contribution()
        top = float(log_c.max())
        share = state.q * ((log_c - top).exp() * ratio.sign()).to(dtype)[:, None]
        height = math.exp(min(top, 700.0))
        need_a = outputs > 1 or self.noise is not None
        V, A = torch.zeros_like(u), torch.zeros_like(state.q)
        b = torch.zeros_like(state.bias)
        reference, loss, correct, margin = -math.inf, -math.inf, 0, math.inf
        buffer = torch.empty(min(BLOCK, len(self.y)), len(u), dtype=dtype, device=u.device)
        for start in range(0, len(self.y), BLOCK):
            stop = min(start + BLOCK, len(self.y))
            x, y = self.rows(start, stop), self.y[start:stop]
            z = torch.mm(x, u.T, out=buffer[: stop - start])
            high, low = relu_powers(z, self.p) if self.noise is None else smoothed_gates(z, self.noise[start:stop])
            shape = high @ share
            f = height * shape + state.bias
            correct += int((class_margins(f if self.biased else shape, y) > 0).all(1).sum())
            margin = min(margin, float(class_margins(f, y).min()))
            log_loss, log_size, direction = loss_slopes(self.loss, f, y)
            log_weight = self.log_weight[start:stop].to(dtype)
            loss = log_add(loss, float((log_loss + log_weight).double().logsumexp(0)))
            log_size = log_size + log_weight
            peak = float(log_size.max())
            if peak > reference + 20 or start == 0:  # a new scale: everything summed so far is tiny beside it
                for total in (V, A, b):
                    total.mul_(math.exp(reference - peak))
                reference = peak
            g = direction * (log_size - reference).exp()[:, None]
            if need_a:
                A.addmm_(high.T, g)
            b += g.sum(0)
            low.mul_(g if outputs == 1 else g @ state.q.T)
            V.addmm_(low.T, x)
        log_rate = loss if in_loss_time(self.loss) else 0.0
        size = math.exp(min(reference - log_rate, 700.0))
        if outputs == 1:
            V *= state.q
        growth = (A * state.q).sum(1) if need_a else (u * V).sum(1)
        return Slope(
            u=tangent(V, u) * (self.p * size * ratio).to(dtype)[:, None],
            q=tangent(A, state.q) * (size / ratio).to(dtype)[:, None] if outputs > 1 else torch.zeros_like(A),
            kappa=growth.double() * size,
            bias=b * size if self.biased else b.zero_(),
            log_loss=loss,
            log_rate=log_rate,
            accuracy=correct / len(self.y),
            margin=margin,
        )
