"""The polar field of a mean loss, streamed over blocks of rows: two GEMMs and a few passes in cache.

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

import torch
from torch import Tensor

from polyrelu.data import BLOCK
from polyrelu.train.descent.backward import relu_powers
from polyrelu.train.gradient_flow.polar_state import PolarState, Slope, tangent
from polyrelu.train.losses import class_margins, in_loss_time, log_add, pull


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
            correct += count_correct(f if self.biased else shape, y)
            margin = min(margin, float(class_margins(f, y).min()))
            log_loss, log_size, direction = pull(self.loss, f, y)
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


def count_correct(f: Tensor, y: Tensor) -> int:
    """How many rows are on the right side: y f > 0, or the own logit strictly the largest."""
    if f.shape[1] == 1:
        return int((y * f[:, 0] > 0).sum())
    own = f.gather(1, y[:, None])
    return int(((f >= own).sum(1) == 1).sum())
