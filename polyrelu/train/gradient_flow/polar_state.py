"""The state of a gradient flow in polar coordinates, and how to move it.

    w_j = r_j u_j,  v_j = s_j q_j,  |u_j| = |q_j| = 1,  kappa_j = log(r_j + s_j)

    r' = s a,  s' = r a,  a = <q, A>   =>   (r + s)' = (r + s) a,   (s - r)(s + r) = const

so one number per neuron, ``kappa``, carries both norms for a balanced start and for any other, and the
conserved ``|v_j|^2 - |w_j|^2`` holds to rounding by construction. With delta = (s - r)/(s + r):

    delta(t) = delta_0 exp(-2 (kappa - kappa_0)),   r = e^kappa (1 - delta)/2,   s = e^kappa (1 + delta)/2

``s`` is signed: a neuron that starts with |v_j| < |w_j| may carry v_j through zero (signs are conserved only from
|v_j| >= |w_j| on). A small start is a number added to kappa: 1e-7 or 1e-300, nothing underflows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from polyrelu.nets import Polar


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
        return replace(
            self,
            u=self.u[index],
            q=self.q[index],
            kappa=self.kappa[index],
            balance=self.balance[index],
            share=self.share[index],
        )


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
