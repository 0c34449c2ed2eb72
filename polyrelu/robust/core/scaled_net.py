r"""A PolyReLUNet as certificates see it: unit directions, coefficients in logs, points of length 1, rounding counted.

    margin_c(z) = sum_j A_cj relu(<u_j, z>)^p + beta_c,   A_cj = (V_yj - V_cj) |w_j|,   z = x - centre,  |u_j| = 1

Signs do not change when coefficients are divided by the largest of them, or when z is divided by a length: every row
of A has the largest entry 1 and |z| <= 1, so that nothing of importance under- or overflows, whatever the net. What
still does (coefficients and powers below DUST) is counted as if it had that size, against the proof.

Everything holds in real arithmetic for the stored weights, and with ``arithmetic`` for the net as executed (see
`robust.core.arithmetic`): float64 inside, every number is rounded to the safe side by gamma_n = n u / (1 - n u),
u = 2^-53, with n a generous count of the operations behind it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from polyrelu.nets import PolyReLUNet
from polyrelu.robust.core.arithmetic import REAL, Arithmetic, Execution
from polyrelu.robust.core.norms import dual, lengths

UNIT = 2.0**-53
DUST = 1e-290  # coefficients and powers below this may have underflowed; they are counted as if they had this size
LEAST_RADIUS = 1e-300  # shorter radii are not told from 0
HUGE = 1e250  # own constants are cut to this
FAINT_ROW = 1e-10  # margins whose largest coefficient is below this are scaled in logs
LEAST_LOG = -700.0  # exp of less is not told from 0


def gamma(n: float) -> float:
    """n u / (1 - n u): the relative error of n roundings in float64 (Higham 2002, section 3.1)."""
    return n * UNIT / (1 - n * UNIT)


LOG_EPS = gamma(8 * 800)  # of e^log a for any number a > 0 of float64, beside ``log_eps``


class SpanBasis(NamedTuple):
    """U = B Q up to rounding, Q (k, D) nearly orthonormal: what is off is measured, not assumed.

    off : |Q Q^T - 1| in the Frobenius norm; rest (h,) : |u_j - b_j Q|; both as float64 computes them
    """

    B: Tensor
    Q: Tensor
    off: Tensor
    rest: Tensor


def span_basis(U: Tensor) -> SpanBasis:
    """Coordinates of the rows of U (h, D), h <= D, in a basis of a space that holds their span; O(h^2 D)."""
    Q = torch.linalg.qr(U.T).Q.T.contiguous()
    B = U @ Q.T
    off = torch.linalg.matrix_norm(Q @ Q.T - torch.eye(len(U), dtype=U.dtype, device=U.device))
    return SpanBasis(B, Q, off, lengths(U - B @ Q, 2.0))


class RivalMargins(NamedTuple):
    """Margins, a row for each rival c, divided by ``size`` (c,): A (c, h) with largest entry 1, beta (c,) = b_y - b_c.

    ``number`` (c,) : the classes
    """

    A: Tensor
    beta: Tensor
    size: Tensor
    number: Tensor

    def only(self, keep: Tensor) -> RivalMargins:
        """The rows named by ``keep``, which may name one several times."""
        return RivalMargins(*(part[keep] for part in self))


class ScaledPoints(NamedTuple):
    """Points z = x - centre divided by a scale of their own, so that no power overflows.

    T (n, h) : <u_j, z>; length (n,) : |z|_2, 1 or less; pull (n,) : |z|_dual / |z|_2; scale (n,) : the divisor
    blur (n,) : how far computed pre-activations, ours and those of the executed net, are from the true ones at z
    """

    T: Tensor
    length: Tensor
    pull: Tensor
    scale: Tensor
    blur: Tensor


@final
@dataclass(frozen=True, eq=False)
class ScaledNet:
    """f_c(x) = sum_j output_cj rate_j relu(<u_j, x - centre>)^p [/ |x - centre|^(p-1)] + bias_c, times one constant.

    U (h, D) unit rows; output (C, h), the stored numbers times a power of 2 in each column, so that differences of
    classes are as exact as stored, but for what underflows beside the largest of the column; rate (h,) in [0, 1]; bias
    and stored (C, h), the output itself, without the constant, log_weight (h,) what belongs to stored as log_rate does
    to output. All float64. The constant e^-log_unit makes the largest coefficient about 1: it changes no decision.
    ``eps`` is the relative error of everything derived from these tensors by sums over D or h and a few powers,
    ``log_eps`` that of rate and bias, which come out of sums of four logarithms and an exponential; ``run`` what
    execution adds.
    """

    p: float
    U: Tensor
    output: Tensor
    rate: Tensor
    log_rate: Tensor
    stored: Tensor
    log_weight: Tensor
    bias: Tensor
    centre: Tensor
    normalised: bool
    log_unit: float
    eps: float
    log_eps: float
    run: Execution

    @staticmethod
    def from_net(net: PolyReLUNet, arithmetic: Arithmetic = REAL) -> ScaledNet:
        """The neurons of ``net`` as they are now."""
        W, stored = net.weight.detach().double(), net.output.detach().double()
        largest, exponent = W.abs().amax(dim=1), torch.frexp(stored.abs().amax(dim=0)).exponent
        W = W / torch.where(largest > 0, largest, 1.0)[:, None]
        norm = lengths(W, 2.0)
        output = torch.from_numpy(np.ldexp(stored.cpu().numpy(), -exponent.cpu().numpy())).to(stored)
        live = (largest > 0) & stored.any(dim=0)
        parts = largest.log(), norm.log(), 2 * net.log_scale, math.log(2) * exponent.double()
        logs = torch.where(live, sum(parts), -torch.inf)
        top = float(logs.amax()) if bool(live.any()) else 0.0
        h, D = W.shape
        centre = torch.zeros_like(W[0]) if net.centre is None else net.centre.double()
        bias = torch.zeros_like(output[:, 0]) if net.bias is None else net.bias.detach().double()
        rounded = [*(part[live] for part in (*parts, logs)), bias[bias != 0].abs().log(), logs.new_tensor([top])]
        digits = torch.cat(rounded).abs().amax()  # before the point: what logarithms have fewer of behind it
        mass = float((output.abs() * (logs - top).exp()).sum(dim=1).amax())
        return ScaledNet(
            p=net.p,
            U=W / torch.where(norm > 0, norm, 1.0)[:, None],
            output=output,
            rate=(logs - top).exp(),
            log_rate=logs - top,
            stored=stored,
            log_weight=torch.where(live, sum(parts[:3]), -torch.inf) - top,
            bias=bias,
            centre=centre,
            normalised=net.normalise_input and net.p > 1,
            log_unit=top,
            eps=gamma(4 * (D + h) + 2000 + 32 * float(digits)),
            log_eps=gamma(8 * float(digits) + 16),
            run=_execution(net, arithmetic, top, mass, centre),
        )

    def in_units(self, difference: Tensor, log_size: Tensor | float = 0.0) -> Tensor:
        """A bias, or a difference of biases, in units of the largest coefficient and of e^log_size."""
        scaled = difference.sign() * (difference.abs().log() - self.log_unit - log_size).exp()
        return torch.where(difference == 0, 0.0, scaled)

    def wide(self, norm: float) -> float:
        """sup |d|_2 / |d|_norm."""
        return math.sqrt(self.U.shape[1]) if norm == math.inf else 1.0

    def blur_rate(self, norm: float) -> float:
        """How much ``blur`` grows with every unit of |d|."""
        return self.run.blur * self.wide(norm)

    def rivals(self, label: float) -> RivalMargins:
        """The margins of ``label``; for one logit (+1 or -1) the only rival is 0."""
        if len(self.output) == 1:
            one = self.output.new_tensor([label])
            return self.pairs(one, torch.zeros(1, dtype=torch.int64, device=one.device))
        y = int(label)
        others = torch.tensor([c for c in range(len(self.output)) if c != y], device=self.output.device)
        return self.pairs(torch.full_like(others, y), others)

    def pairs(self, own: Tensor, rival: Tensor) -> RivalMargins:
        """The margins of logit ``own`` (R,) over logit ``rival`` (R,); for one logit ``own`` is the label, +1 or -1."""
        change, beta = _differences(self.output, own, rival), _differences(self.bias, own, rival)
        A = change * self.rate
        log_size = torch.zeros_like(beta)
        faint = (A.abs().amax(dim=1) < FAINT_ROW).nonzero()[:, 0]
        if len(faint):  # the classes differ in light neurons only, some of which have underflowed beside the others
            stored = _differences(self.stored, own[faint], rival[faint])
            logs = self._logs(change[faint], stored)
            top = logs.amax(dim=1)
            log_size[faint] = torch.where(top.isfinite(), top, 0.0)
            exact = stored.sign() * (logs - log_size[faint, None]).exp()
            A[faint] = exact - LOG_EPS * exact.abs()
        beta = self.in_units(beta, log_size)
        if self.run.relative:
            A, beta = self._executed(A, beta, log_size, faint, own, rival)
        size = A.abs().amax(dim=1)
        size = torch.where(size > 0, size, 1.0)
        beta = torch.where(beta.isnan(), -torch.inf, beta / size)
        return RivalMargins(A / size[:, None], beta.clamp(max=HUGE), size * log_size.clamp(min=LEAST_LOG).exp(), rival)

    def _logs(self, output: Tensor, stored: Tensor) -> Tensor:
        """log |coefficient| of numbers in the scale of ``output``; from ``stored`` ones where they underflow."""
        return torch.where(
            output.abs() > DUST, output.abs().log() + self.log_rate, stored.abs().log() + self.log_weight
        )

    def _executed(
        self, A: Tensor, beta: Tensor, log_size: Tensor, faint: Tensor, own: Tensor, rival: Tensor
    ) -> tuple[Tensor, Tensor]:
        """A and beta, less what execution may take off them; beta is -inf where that is more than float64 holds."""
        mass, constant = _masses(self.output, own, rival), _masses(self.bias, own, rival)
        share = mass * self.rate
        if len(faint):
            logs = self._logs(mass[faint], _masses(self.stored, own[faint], rival[faint]))
            share[faint] = (logs - log_size[faint, None]).exp() * (1 + LOG_EPS)
        A = A - self.run.relative * share - 2 * self.run.coefficient * (-log_size).exp()[:, None]
        beta = beta - self.run.relative * self.in_units(constant, log_size)
        lost = ~A.isfinite().all(dim=1) | (log_size < LEAST_LOG)
        return torch.where(A.isfinite(), A, -1.0), torch.where(lost, -torch.inf, beta)

    def place(self, X: Tensor, norm: float) -> ScaledPoints:
        """``X`` (n, D) as the neurons see it."""
        Z = X.detach().double() - self.centre
        largest = Z.abs().amax(dim=1, keepdim=True)
        inner = Z / torch.where(largest > 0, largest, 1.0)
        size = lengths(inner, 2.0)
        length = size * largest[:, 0]
        scale = length
        if not self.normalised:  # a bias has a length too
            scale = scale.clamp(min=2 * float(self.in_units(self.bias).abs().amax().clamp(max=HUGE)) ** (1 / self.p))
        scale = torch.where(scale > 0, scale, 1.0)
        pull = lengths(inner, dual(norm)) / size.clamp(min=1)
        length = length / scale
        blur = gamma(4 * (self.U.shape[1] + 16)) + self.run.blur * length + self.run.shifted / scale
        return ScaledPoints((Z / scale[:, None]) @ self.U.T, length, pull, scale, blur)

    def scaled_bias(self, beta: Tensor, size: Tensor, scale: Tensor) -> Tensor:
        """beta (n, c) of points divided by ``scale`` (n,), less what underflow in the executed net may take.

        ``beta`` and ``size`` are (c,) or (n, c). With input normalisation |z|^(p-1) is still missing.
        """
        scale = scale[:, None]
        if not self.normalised:
            return (beta - self.run.spare / size) / scale.pow(self.p)
        return beta / scale - self.run.spare * (4 + 1 / scale) / size

    def constants(self, beta: Tensor, size: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        """Own and opposite constants (n, c) of `scaled_bias`; still without |z|^(p-1)."""
        scaled = self.scaled_bias(beta, size, scale)
        return scaled.clamp(min=0, max=HUGE) * (1 - self.eps), (-scaled).clamp(min=0) * (1 + self.eps)

    def worst(self, placed: ScaledPoints, rho: Tensor, norm: float) -> tuple[Tensor, Tensor]:
        """|z + d|^(p-1) at its least and at its most over |d| <= rho (n, c): what a bias counts when normalised.

        |z + d| >= <z, z + d>/|z| >= |z| - rho |z|_dual/|z|, and |d|_2 <= rho, times sqrt(D) for l-infinity.
        """
        length, pull, more = placed.length[:, None], placed.pull[:, None], 1 + self.eps
        low = (length / more - rho * pull * more).clamp(min=0)
        high = (length + rho * self.wide(norm)) * more
        return low.pow(self.p - 1) / more, high.pow(self.p - 1) * more

    def radius_of(self, rho: Tensor, placed: ScaledPoints, norm: float) -> Tensor:
        """Radii ``rho`` (n,) of placed points as radii of the points themselves; infinite ones only where rho is."""
        radius = (rho * placed.scale).clamp(max=torch.finfo(rho.dtype).max)
        return self.rounded_down(torch.where(rho.isinf(), rho, radius), placed.length * placed.scale, norm)

    def rounded_down(self, radius: Tensor, length: Tensor, norm: float) -> Tensor:
        """Radii of points at this ``length`` |z| (n,), rounded down, and cut where the executed net may overflow.

        NaN, from numbers that overflowed here, and radii that are hardly there prove nothing.
        """
        more = 1 + self.eps
        radius = radius / more
        if self.run.relative:
            longest = self.run.longest / more - length
            if self.normalised:  # `scaled_bias` counts |z + d| <= 4 |z|
                longest = torch.minimum(longest, 3 * length / more)
            radius = torch.minimum(radius, longest / (self.wide(norm) * more))
        return torch.where(radius > LEAST_RADIUS, radius, 0.0)


def _execution(net: PolyReLUNet, arithmetic: Arithmetic, top: float, mass: float, centre: Tensor) -> Execution:
    """What ``arithmetic`` adds; e^``top``: the largest coefficient, ``mass``: the largest sum of them for one logit."""
    if arithmetic is REAL:
        return Execution()
    p, h, D, least, room = net.p, net.width, net.dim, arithmetic.least, arithmetic.most / 16
    alike = arithmetic.unit <= UNIT  # lengths are computed in float64: no better than the rest, or as if exactly
    rounded = not alike and float(torch.tensor(p, dtype=torch.float32)) != p
    unit = math.exp(min(-LEAST_LOG, -top))  # 1 of the stored net, in units of its largest coefficient
    weight = max(mass / unit, float(net.bias.detach().abs().amax()) if net.bias is not None else 0.0)
    norms = lengths(net.weight.detach().double(), 2.0)
    stored = norms[norms > 0] if bool((norms > 0).any()) else norms.new_ones(1)
    short, long = float(stored.amin()), max(1.0, float(stored.amax()))
    # v_j |w_j| is computed first, in float64, and multiplied by e^(2 log_scale_j): so is what it lost
    first = float((net.output.detach().double().abs().amax(dim=0) * norms).amax())
    grown = float((2 * net.log_scale).exp().amax()) if alike else 0.0
    good = short > (math.sqrt(D * least / UNIT) if alike else 1e3 * least) and max(weight, long, first) < room
    good = good and top > LEAST_LOG and math.isfinite(grown)
    if not good:
        longest = 0.0
    elif net.normalise_input and p > 1:
        longest = min(room / max(1.0, weight), room / long, math.sqrt(room) if alike else room)
    else:
        longest = min((room / max(1.0, weight)) ** (1 / p), room / long)
    lost = 4 * (D + 4) * least * (1 + 1 / short) if good else math.inf
    return Execution(
        relative=arithmetic.gamma(h + 6 * p + 32 + 90 * p * rounded + (D + 8) * alike),
        coefficient=least * unit * (1 + grown),
        blur=arithmetic.gamma(D + 12 + (D + 8) * alike) + lost,
        shifted=2 * arithmetic.unit * float(lengths(centre, 2.0)) * (1 + 1e-9) + lost,
        spare=4 * least * (2 * mass + (h + 8) * unit),
        longest=longest,
    )


def _differences(logits: Tensor, own: Tensor, rival: Tensor) -> Tensor:
    """Rows, or numbers, ``own`` less ``rival``: before any product, so that the error is relative.

    For one logit ``own`` is the label, +1 or -1.
    """
    if len(logits) > 1:
        return logits[own] - logits[rival]
    sign = own.to(logits)
    return sign * logits if logits.ndim == 1 else sign[:, None] * logits


def _masses(logits: Tensor, own: Tensor, rival: Tensor) -> Tensor:
    """Sums of their absolute values."""
    size = logits.abs()
    return size[own] + size[rival] if len(size) > 1 else size.expand(len(own), *size.shape[1:])
