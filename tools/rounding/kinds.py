"""Heads where rounding might decide, and points near their boundaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import polyrelu
from polyrelu.nets import PolyReLUNet, ReadOut
from tools.rounding.executed import codes

Array = NDArray[Any]
Draw = Callable[[np.random.Generator, torch.dtype], Any]
DIMS = (2, 20, 100, 500, 2000)


def head_of(net: Any) -> Any:
    """The classifier that has this net; classes are 0, 1, ..."""
    inner = net.net if isinstance(net, ReadOut) else net
    head = polyrelu.PolyReLUClassifier(p=inner.p)
    head.classes_, head.net_, head.p_ = np.arange(max(2, net.outputs)), net, inner.p
    head.n_features_in_, head.n_iter_ = inner.dim, 1
    return head


def net_of(
    weight: Array, output: Array, p: float, dtype: torch.dtype, *, bias: Array | None = None, **more: Any
) -> PolyReLUNet:
    """The net with these w_j (H, D), v_kj (K, H) and b_k, rounded to ``dtype``: the rounded weights are the net."""
    width, dim = weight.shape
    net = PolyReLUNet(dim, width, p, len(output), init="gaussian", dtype=dtype, bias=bias is not None, **more)
    with torch.no_grad():
        net.weight.copy_(torch.from_numpy(weight))
        net.output.copy_(torch.from_numpy(output))
        if bias is not None and net.bias is not None:
            net.bias.copy_(torch.from_numpy(bias))
    return net


def linear_head(source: np.random.Generator, dtype: torch.dtype, dim: int, bias: bool = False) -> Any:
    """f(x) = v <w, x> + b, as relu(<w, x>) - relu(-<w, x>): its radius is known in closed form."""
    weight = source.standard_normal(dim)
    v = float(2.0 ** source.integers(-3, 4))
    b = source.standard_normal(1) if bias else None
    return head_of(net_of(np.stack([weight, -weight]), np.array([[v, -v]]), 1.0, dtype, bias=b))


def _few(
    source: np.random.Generator, dtype: torch.dtype, p: float, *, outputs: int = 1, common: float = 0.0, **more: Any
) -> PolyReLUNet:
    """A few random neurons; ``common`` is added to all logits of a neuron, so that it cancels between classes."""
    dim, width = int(source.choice(DIMS)), int(source.integers(1, 9))
    output = source.standard_normal((outputs, width)) + common * source.standard_normal((1, width))
    bias = None if source.random() < 0.4 else 0.3 * source.standard_normal(outputs)
    if more.pop("far", False):
        more["centre"] = torch.from_numpy(source.standard_normal(dim) * 10.0 ** source.uniform(1, 5))
    return net_of(source.standard_normal((width, dim)) / np.sqrt(dim), output, p, dtype, bias=bias, **more)


def _relu(source: np.random.Generator, dtype: torch.dtype) -> Any:
    return head_of(_few(source, dtype, 1.0))


def _polynomial(source: np.random.Generator, dtype: torch.dtype) -> Any:
    return head_of(_few(source, dtype, float(source.choice([1.5, 2, 3, 4]))))


def _large_power(source: np.random.Generator, dtype: torch.dtype) -> Any:
    return head_of(_few(source, dtype, float(source.choice([10.1, 49.9, 50]))))


def _classes(source: np.random.Generator, dtype: torch.dtype) -> Any:
    return head_of(_few(source, dtype, float(source.choice([1, 2, 3])), outputs=int(source.integers(2, 6))))


def _cancelling(source: np.random.Generator, dtype: torch.dtype) -> Any:
    common = 10.0 ** source.uniform(1, 5)
    net = _few(source, dtype, float(source.choice([1, 2, 3])), outputs=int(source.integers(2, 5)), common=common)
    return head_of(net)


def _normalised(source: np.random.Generator, dtype: torch.dtype) -> Any:
    power = float(source.choice([2, 2.5, 3, 4]))
    return head_of(_few(source, dtype, power, normalise_input=True, far=source.random() < 0.5))


def _far(source: np.random.Generator, dtype: torch.dtype) -> Any:
    return head_of(_few(source, dtype, float(source.choice([1, 2, 3])), far=True))


def _scaled(source: np.random.Generator, dtype: torch.dtype) -> Any:
    """Weights from 1e-8 to 1e8, whole layers at a time."""
    net = _few(source, dtype, float(source.choice([1, 2, 3])))
    with torch.no_grad():
        net.weight.mul_(10.0 ** source.uniform(-8, 8))
        factor = 10.0 ** source.uniform(-8, 8)
        net.output.mul_(factor)
        if net.bias is not None:
            net.bias.mul_(factor)
    return head_of(net)


def _readout(source: np.random.Generator, dtype: torch.dtype) -> Any:
    of = [0, 1, *source.integers(0, int(source.integers(2, 4)), size=int(source.integers(1, 4))).tolist()]
    of = [int(np.searchsorted(np.unique(of), one)) for one in of]
    normalised = bool(source.random() < 0.5)
    net = _few(source, dtype, float(source.choice([1, 2, 3])), outputs=len(of), normalise_input=normalised)
    return head_of(ReadOut(net, of))


def _one_sided(source: np.random.Generator, dtype: torch.dtype) -> Any:
    """No negative weight or bias: one class may hold for every x, however large; without any weight it is proven."""
    net = _few(source, dtype, float(source.choice([1, 2, 3])))
    with torch.no_grad():
        net.output.abs_()
        if source.random() < 0.3:
            net.output.zero_()
        if net.bias is not None:
            net.bias.abs_()
    return head_of(net)


def _fitted(source: np.random.Generator, dtype: torch.dtype) -> Any:
    """What `fit` leaves, on four clusters of two or three classes."""
    dim, classes = int(source.choice([5, 50, 300])), int(source.integers(2, 4))
    centres = source.standard_normal((4, dim)) + source.standard_normal(dim)
    cluster = np.arange(80) % 4
    X = centres[cluster] + 0.1 * source.standard_normal((80, dim))
    X = X.astype(np.float32 if dtype == torch.float32 else np.float64)
    head = polyrelu.PolyReLUClassifier(
        p=float(source.choice([1, 2, 3])), width=int(source.integers(4, 40)), epochs=20, random_state=0
    )
    return head.fit(X, np.minimum(cluster, classes - 1))


KINDS: dict[str, Draw] = {
    "linear": lambda source, dtype: linear_head(source, dtype, int(source.choice(DIMS)), bool(source.random() < 0.5)),
    "relu": _relu,
    "polynomial": _polynomial,
    "large power": _large_power,
    "classes": _classes,
    "cancelling": _cancelling,
    "normalised": _normalised,
    "far from zero": _far,
    "scaled": _scaled,
    "read-out": _readout,
    "one-sided": _one_sided,
    "fitted": _fitted,
}


def points_of(head: Any, source: np.random.Generator, count: int) -> Array:
    """Rows near the boundary (1e-5 of a length, 1e-11 in float64) and anywhere: the nearer, the more rounding can do.

    float32 numbers half of the time, in an array of either type.
    """
    net = head.net_.net if isinstance(head.net_, ReadOut) else head.net_
    centre = np.zeros(net.dim) if net.centre is None else _numpy(net.centre)
    if net.p > 5:  # relu(z)^p counts only near z = 1: mixtures of the neurons
        pool = source.standard_normal((8 * count, net.width)) @ _numpy(net.directions())
        pool += 0.2 / np.sqrt(net.dim) * source.standard_normal(pool.shape)
    else:
        pool = 10.0 ** source.uniform(-1, 1) * source.standard_normal((8 * count, net.dim))
    pool += centre
    code = codes(head, pool)
    rows = []
    for i in range(count):
        other = np.flatnonzero(code != code[i])
        a = pool[i]
        if len(other):
            edge = _edge(head, a, pool[source.choice(other)], code[i])
            a = edge + (a - edge) * 10.0 ** -source.uniform(0, 5 if net.dtype == torch.float32 else 11)
        rows.append(a)
    kind = np.float32 if source.random() < 0.5 else np.float64
    return np.stack(rows).astype(kind)


def _edge(head: Any, a: Array, b: Array, code: int) -> Array:
    """The end, on the side of ``a``, of the stretch in which the decision between a and b changes."""
    for _ in range(50):
        middle = (a + b) / 2
        same = codes(head, middle[None])[0] == code
        a, b = (middle, b) if same else (a, middle)
    return a


def _numpy(tensor: Tensor) -> Array:
    found: Array = tensor.detach().double().numpy()
    return found
