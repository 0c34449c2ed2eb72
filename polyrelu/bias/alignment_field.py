"""The alignment field, which turns the neurons of a small net (Min & Vidal 2024).

    x^(p)(w) = sum_{i: <x_i, w> > 0} y_i p cos^(p-1)(x_i, w) x_i,   d/dt w/|w| = sign(v) P_w x^(p)(w)

With x~ = x |x|^(1/p - 1) this is sum_i y_i p relu(<x~_i, u>)^(p-1) x~_i, u = w/|w|: the gradient of the potential
G(u) = sum_i y_i relu(<x~_i, u>)^p = <u, x^(p)(u)>/p, which neurons with v > 0 climb and the others descend. The
printed cosine is exact for a net with ``normalise_input``; without it the net has <x_i, u> where the print has the
cosine, which is the same formula with x~ = x. ``preprocess=net.preprocess`` gives the field of that net either way.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from polyrelu.checks import answer, checked, finite_number
from polyrelu.data import Dataset
from polyrelu.errors import require
from polyrelu.nets import PolyReLUNet, unit_rows
from polyrelu.train.descent import relu_powers

Preprocess = Callable[[Tensor], Tensor]


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
    weight = label_weights(data, target)
    return field_sum(
        data,
        unit_rows(W)[0],
        finite_number("p", p, least=1),
        preprocess or cosine_preprocess(p),
        lambda rows: weight[rows, None],
    )


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
        x = answer(preprocess, block.to(u.dtype), "preprocess").to(u.dtype)
        require(x.shape == block.shape, "preprocess(X).shape", tuple(x.shape), f"that of X, {tuple(block.shape)}")
        _, low = relu_powers(x @ u.T, p)
        total.addmm_(low.mul_(weight(slice(start, start + len(x)))).T, x)
    return p * total


def tangent_part(field: Tensor, u: Tensor) -> Tensor:
    """P_u field: the part of each row at right angles to the row of u."""
    return field - (field * u).sum(1, keepdim=True) * u
