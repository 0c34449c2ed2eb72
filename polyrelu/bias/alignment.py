"""What the neurons of a net point at, which of them dominate it, and the field that turns them (Min & Vidal 2024).

    x^(p)(w) = sum_{i: <x_i, w> > 0} y_i p cos^(p-1)(x_i, w) x_i,   d/dt w/|w| = sign(v) P_w x^(p)(w)

With x~ = x |x|^(1/p - 1) this is sum_i y_i p relu(<x~_i, u>)^(p-1) x~_i, u = w/|w|: the gradient of the potential
G(u) = sum_i y_i relu(<x~_i, u>)^p = <u, x^(p)(u)>/p, which neurons with v > 0 climb and the others descend. The
printed cosine is exact for a net with ``normalise_input``; without it the net has <x_i, u> where the print has the
cosine, which is the same formula with x~ = x. ``preprocess=net.preprocess`` gives the field of that net either way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from polyrelu.checks import checked, checked_output, finite_number
from polyrelu.data import Dataset
from polyrelu.errors import require
from polyrelu.nets import PolyReLUNet, unit_rows
from polyrelu.train import ReferenceDirections
from polyrelu.train.descent import relu_powers

Preprocess = Callable[[Tensor], Tensor]

DOMINANT_SHARE = 0.99  # of sum_j |v_j| |w_j|, which the dominant neurons have
ALIGNED_COSINE = 0.95  # cosine above which a neuron points at a centre or an average


def dominant_neurons(log_contribution: NDArray[np.floating], share: float = DOMINANT_SHARE) -> NDArray[np.intp]:
    """The fewest neurons whose contributions |v_j| |w_j| add up to ``share`` of all, largest first; O(h log h).

    Computed from the logs relative to the largest, so a net of size 1e-300 has dominant neurons too.
    """
    logs = np.asarray(log_contribution, dtype=np.float64)
    if not logs.size or not np.isfinite(logs.max()):
        return np.empty(0, dtype=np.intp)
    order = np.argsort(-logs, kind="stable")
    total = np.cumsum(np.exp(logs[order] - logs.max()))
    return order[: int(np.searchsorted(total, share * total[-1])) + 1]


def weighted_quantiles(
    values: NDArray[np.floating], weights: NDArray[np.floating], levels: tuple[float, ...]
) -> NDArray[np.float64]:
    """Quantiles over the columns of ``values`` (T, h), neuron j counting as ``weights[j]``; (T, levels).

    The smallest value below which (and at which) a fraction ``level`` of the weight lies.
    """
    order = np.argsort(values, axis=1)
    ordered = np.take_along_axis(values, order, axis=1).astype(np.float64)
    below = np.cumsum(weights[order], axis=1)
    below /= below[:, -1:]
    columns = [(below < level - 1e-12).sum(axis=1).clip(max=values.shape[1] - 1) for level in levels]
    return np.take_along_axis(ordered, np.stack(columns, axis=1), axis=1)


@final
@dataclass(frozen=True, eq=False)
class Alignment:
    """cos(w_j, mu_k) (h, K) and cos(w_j, average of class c) (h, C), [+1, -1] for binary labels; float64.

    ``centres`` is None where the data have no known centres. A zero neuron has cosine 0 to everything and
    log-contribution -inf.
    """

    centres: Tensor | None
    averages: Tensor
    log_contributions: Tensor

    @property
    def contributions(self) -> Tensor:
        """|v_j| |w_j|, 0 or inf beyond the range of a float."""
        return self.log_contributions.exp()

    @cached_property
    def dominant(self) -> Tensor:
        """The fewest neurons with 99 % of sum_j |v_j| |w_j|, largest first; none for a net that is zero."""
        return torch.as_tensor(dominant_neurons(self.log_contributions.cpu().numpy()))

    @cached_property
    def covered(self) -> Tensor | None:
        """Which centres have a dominant neuron within cosine .95, (K,)."""
        return None if self.centres is None else (self.centres[self.dominant] > ALIGNED_COSINE).any(0)

    @cached_property
    def best_centre(self) -> float | None:
        """Median over neurons, each counting as |v_j| |w_j|, of the largest cosine to a centre (B5)."""
        return None if self.centres is None else self._median(self.centres)

    @cached_property
    def best_average(self) -> float | None:
        """The same for the class averages (B4); None for a net that is zero."""
        return self._median(self.averages)

    def _median(self, cosines: Tensor) -> float | None:
        if not len(self.dominant):
            return None
        weights = (self.log_contributions - self.log_contributions.max()).exp()
        return float(weighted_quantiles(cosines.amax(1)[None].cpu().numpy(), weights.cpu().numpy(), (0.5,))[0, 0])


@checked
def alignment(net: PolyReLUNet, data: Dataset) -> Alignment:
    """Cosines of every neuron to sub-class centres and class averages, preprocessed as by the net: O(n D + h D K).

    Its centre c is subtracted from both; ``normalise_input`` changes no direction of a single point, and the class
    average is that of the rows x - c.
    """
    require(net.dim == data.dim, "data.dim", data.dim, f"{net.dim}, the inputs of the net")
    with torch.no_grad():
        u, probes = normalize(net.directions().double()), ReferenceDirections.from_net(net, data)

        def cosines(rows: Tensor) -> Tensor:
            return (u @ normalize(rows.double()).T).clamp(-1, 1)

        centres = None if probes.centres is None else cosines(probes.centres)
        return Alignment(centres, cosines(probes.averages), net.log_contributions())


@final
@dataclass(frozen=True)
class Balance:
    """How far the layers are from |v_j| = |w_j|, at the worst neuron.

    ``log_absolute``: log max_j | |v_j|^2 - |w_j|^2 |, -inf for a balanced net; ``relative``: the largest of
    | |v_j|^2 - |w_j|^2 | / max(|v_j|^2, |w_j|^2), between 0 and 1.
    """

    log_absolute: float
    relative: float

    @property
    def absolute(self) -> float:
        """max_j | |v_j|^2 - |w_j|^2 |; 0 or inf beyond the range of a float."""
        return math.exp(self.log_absolute) if self.log_absolute < 709 else math.inf


@checked
def balance(net: PolyReLUNet) -> Balance:
    """max_j | |v_j|^2 - |w_j|^2 |, which gradient flow conserves for every neuron (Min & Vidal 2025, B20); O(h D).

    From the logs of the norms: exp(2 m) (1 - exp(-2 d)), m the larger log and d their distance.
    """
    with torch.no_grad():
        log_r = unit_rows(net.weight)[1] + net.log_scale + net.log_balance
        log_s = unit_rows(net.output.T)[1] + net.log_scale - net.log_balance
        larger, smaller = torch.maximum(log_r, log_s), torch.minimum(log_r, log_s)
        apart = torch.where(larger > -torch.inf, larger - smaller, 0.0)  # a zero neuron is balanced
        relative = -torch.expm1(-2 * apart)
        return Balance(float((2 * larger + relative.log()).max()), float(relative.max()))


@checked
def alignment_field(
    data: Dataset, W: Tensor, p: float, *, preprocess: Preprocess | None = None, target: int | None = None
) -> Tensor:
    """x^(p)(w_j) = sum_{i: <x_i, w_j> > 0} y_i p cos^(p-1)(x_i, w_j) x_i, (h, D) float64 (Min & Vidal 2024).

    Streamed, O(n h D). ``preprocess``: the net's preprocessing of rows (see above); ``target``: with classes 0..C-1,
    the logit whose field it is, y_i being 1[y_i = target] - 1/C, minus the gradient of the cross-entropy at f = 0.
    """
    fits = W.ndim == 2 and W.shape[1] == data.dim
    require(fits, "W", f"shape {tuple(W.shape)}", f"shape (h, {data.dim}), one row per neuron")
    weight, p = label_weights(data, target), finite_number("p", p, least=1)
    preprocess = preprocess or cosine_preprocess(p)
    return field_sum(data, unit_rows(W)[0], p, preprocess, lambda rows: weight[rows, None])


@checked
def alignment_speed(net: PolyReLUNet, data: Dataset) -> Tensor:
    """sign(v_j) P_{w_j} x^(p)(w_j), (h, D) float64: how the directions of a small net move (Min & Vidal 2024).

    It is d/dt w_j/|w_j| of the flow on the summed loss where f is small, up to the factor (|v_j|/|w_j|) |l'(0)| > 0,
    which is 1 for exp and squared loss and |v_j| = |w_j|. Several logits: the sign becomes the unit vector v_j/|v_j|,
    and y_i the vector e_{y_i} - 1/C. O(n h D).
    """
    outputs = 1 if data.binary else data.classes
    require(net.outputs == outputs, "net.outputs", net.outputs, f"{outputs}, for labels of {data.name!r}")
    u, q = unit_rows(net.weight)[0], unit_rows(net.output.T)[0]
    if data.binary:
        weight = data.y.double()
        field = q * field_sum(data, u, net.p, net.preprocess, lambda rows: weight[rows, None])
    else:
        field = field_sum(data, u, net.p, net.preprocess, lambda rows: q.T[data.y[rows]] - q.mean(1))
    return tangent_part(field, u)


def cosine_preprocess(p: float) -> Preprocess:
    """x |x|^(1/p - 1), with which <x~, u>^(p-1) x~ = cos^(p-1)(x, u) x."""

    def preprocess(X: Tensor) -> Tensor:
        length = torch.linalg.vector_norm(X, dim=1, keepdim=True)
        return X * torch.where(length > 0, length, 1.0).pow(1 / p - 1)

    return preprocess


def label_weights(data: Dataset, target: int | None) -> Tensor:
    """y_i, or 1[y_i = target] - 1/C."""
    if data.binary:
        require(target is None, "target", target, "None for labels +1/-1, which have one field")
        return data.y.double()
    c = -1 if target is None else target
    require(0 <= c < data.classes, "target", target, f"a class 0..{data.classes - 1}: every class has its own field")
    return torch.eq(data.y, c).double() - 1 / data.classes


def field_sum(data: Dataset, u: Tensor, p: float, preprocess: Preprocess, weight: Callable[[slice], Tensor]) -> Tensor:
    """sum_i weight_ij p relu(<x~_i, u_j>)^(p-1) x~_i as rows, in u's dtype; weight(rows) is (b, 1) or (b, h)."""
    total = torch.zeros_like(u)
    for start, block in data.blocks():
        x = checked_output(preprocess, block.to(u.dtype), "preprocess").to(u.dtype)
        require(x.shape == block.shape, "preprocess(X).shape", tuple(x.shape), f"that of X, {tuple(block.shape)}")
        _, low = relu_powers(x @ u.T, p)
        total.addmm_(low.mul_(weight(slice(start, start + len(x)))).T, x)
    return p * total


def tangent_part(field: Tensor, u: Tensor) -> Tensor:
    """P_u field: the part of each row at right angles to the row of u."""
    return field - (field * u).sum(1, keepdim=True) * u
