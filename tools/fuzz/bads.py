"""Bad values: other types, odd dtypes and layouts, empty, extreme and not finite, and things that only look right.

Sizes are either small or far beyond any memory: in between, a number of rows or neurons is a wish like any other.
"""

from __future__ import annotations

import copy
import dataclasses
import decimal
import fractions
import importlib
import math
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import polyrelu

Random = np.random.Generator
NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 2, 3, 2**63, 10**15, 10**30, -(10**30), 10**400, 0.0, -0.0, 0.5, 1.5, -2.5, 1e-320, 5e-324, 1e-30, 1e30,
    1e308, -1e308, math.nan, math.inf, -math.inf, 1j, complex(math.nan, 1), True, False,
    decimal.Decimal("1.5"), decimal.Decimal("NaN"), fractions.Fraction(1, 3), np.float64(0.3), np.float16(2),
    np.int8(3),
    np.uint64(2**64 - 1), np.bool_(True), np.longdouble("1e400"), np.datetime64("2020-01-01"), np.str_("x"),
)  # fmt: skip


class Raises:
    """An object that cannot be looked at."""

    def __getattr__(self, name: str) -> Any:
        """No attribute."""
        raise RuntimeError(name)

    def __str__(self) -> str:
        """No text."""
        raise KeyError("no text")

    def __len__(self) -> int:
        """No length."""
        raise MemoryError


OBJECTS: tuple[Callable[[], Any], ...] = (
    lambda: None, lambda: "", lambda: "a", lambda: "2", lambda: "nan", lambda: "auto", lambda: "a\0b",
    lambda: "\ud800",
    lambda: "x" * 5000, lambda: b"bytes", list, lambda: [1, 2], lambda: [1.5], lambda: ["a"], lambda: [[]],
    lambda: [[1, 2], [3]], lambda: [None], lambda: (), lambda: (1,), lambda: (1, 2), lambda: (math.nan, math.inf),
    dict, lambda: {"a": 1}, lambda: {1: [2]}, set, lambda: {1, 2}, object, lambda: int, lambda: (lambda *_: None),
    lambda: range(3), lambda: iter([1, 2]), lambda: slice(1, 2), lambda: Ellipsis, lambda: NotImplemented,
    lambda: Path(), lambda: Path("net.safetensors"), lambda: Path("nothing/there"), lambda: date(2020, 1, 1),
    lambda: torch.float16, lambda: torch.int32, lambda: np.float32, lambda: torch.device("cpu"), lambda: math,
    lambda: ValueError("x"), lambda: memoryview(b"ab"), lambda: bytearray(b"ab"),
    Raises, lambda: [Raises()],
)  # fmt: skip
ARRAYS: tuple[Callable[[np.ndarray[Any, Any]], Any], ...] = (
    lambda a: a, lambda a: a.tolist(), lambda a: a.astype(np.float16), lambda a: a.astype(">f8"),
    lambda a: a.astype(np.longdouble), lambda a: a.astype(np.complex128), lambda a: a.astype(np.int32),
    lambda a: a > 0, lambda a: a.astype(object), lambda a: a.astype(str), lambda a: a.astype("S8"),
    lambda a: np.full(a.shape, None), lambda a: np.full(a.shape, "2020-01-01", "M8[D]"),
    lambda a: np.zeros(a.shape, [("x", "f4"), ("y", "i4")]), lambda a: np.zeros(a.shape, "V3"),
    lambda a: np.full_like(a, np.nan), lambda a: np.full_like(a, np.inf), lambda a: a[:0], lambda a: a[..., :0],
    lambda a: a[None], lambda a: a.ravel(), lambda a: a.T, lambda a: a[::-1], lambda a: np.asfortranarray(a),
    lambda a: np.ma.masked_array(a, a > 0), lambda a: np.zeros(()), lambda a: np.array(["a", "b"]),
    lambda a: a * 1e30,
    lambda a: np.matrix(a.reshape(len(a), -1)), lambda a: a.astype(np.uint8), lambda a: a.astype("m8[s]"),
)  # fmt: skip
TENSORS: tuple[Callable[[torch.Tensor], Any], ...] = (
    lambda t: t.numpy(), lambda t: t.tolist(), lambda t: t.double(), lambda t: t.half(), lambda t: t.bfloat16(),
    lambda t: t.to(torch.complex64), lambda t: t.long(), lambda t: t.bool(), lambda t: t.to(torch.uint8),
    lambda t: t.to(torch.float8_e4m3fn), lambda t: t.clone().requires_grad_(t.is_floating_point()),
    lambda t: t.to_sparse(), lambda t: t.reshape(len(t), -1).to_sparse_csr(), lambda t: t.to("meta"),
    lambda t: torch.quantize_per_tensor(t.float(), 0.1, 0, torch.qint8), lambda t: torch.tensor(1.0),
    lambda t: t[None], lambda t: t[None, None], lambda t: t.flatten(), lambda t: t[:0], lambda t: t[..., :0],
    lambda t: t.mT if t.ndim > 1 else t, lambda t: t[:1], lambda t: t[:1].expand(*t.shape),
    lambda t: torch.full_like(t, math.nan, dtype=torch.float32),
    lambda t: torch.full_like(t, math.inf, dtype=torch.float32),
    lambda t: torch.zeros_like(t), lambda t: t * 1e30, lambda t: t * 1e-30, lambda t: t * 0 + 7, lambda t: -t,
    lambda t: nn.Parameter(t.float()), lambda t: torch.nested.nested_tensor([t]), lambda t: t.new_zeros(3, 2),
    lambda t: t.conj() if t.is_complex() else t.to(torch.complex128).conj(),
    lambda t: t.new_empty(0), lambda t: list(t), lambda t: tuple(t.tolist()), lambda t: t.to(torch.int8),
    lambda t: t.double() * 1e300,
)  # fmt: skip


class Answers(nn.Module):
    """A module whose answer is not what a score's should be."""

    def __init__(self, answer: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.answer = answer

    def forward(self, X: torch.Tensor) -> Any:
        """The answer."""
        return self.answer(X)


NETS: tuple[Callable[[Any], Any], ...] = (
    lambda net: nn.Linear(net.dim, 1), lambda net: nn.Linear(net.dim, 3), lambda net: nn.Linear(2, 2),
    lambda net: nn.Identity(), lambda net: nn.Module(), lambda net: nn.Sequential(), lambda net: nn.LazyLinear(2),
    lambda net: Answers(lambda X: None), lambda net: Answers(lambda X: (X, X)), lambda net: Answers(lambda X: 1.0),
    lambda net: Answers(lambda X: X.sum()), lambda net: Answers(lambda X: X[:, :2].long()),
    lambda net: Answers(lambda X: X[:, 0] * math.nan), lambda net: Answers(lambda X: X[:, :0]),
    lambda net: Answers(lambda X: X[None]), lambda net: Answers(lambda X: X[:, 0].detach()),
    lambda net: Answers(lambda X: X[:1, 0]), lambda net: Answers(lambda X: X[:, 0].to(torch.complex64)),
    lambda net: Answers(lambda X: X.numpy()[:, 0]), lambda net: (lambda X: X[:, 0]), lambda net: net.double(),
    lambda net: net.half(), lambda net: net.to("meta"), lambda net: type(net), lambda net: net.state_dict(),
    lambda net: polyrelu.PolyReLUNet(net.dim, 3, 2.0, 3), lambda net: polyrelu.PolyReLUNet(net.dim + 1, 3),
    lambda net: polyrelu.PolyReLUNet(net.dim, 3, 2.0, init="zeros"),
    lambda net: polyrelu.PolyReLUNet(net.dim, 1, 50.0),
    lambda net: polyrelu.PolyReLUNet(net.dim, 3, 2.0, bias=True, normalise_input=True),
    lambda net: polyrelu.PolyReLUNet(net.dim, 3, scale=1e30),
    lambda net: polyrelu.PolyReLUNet(net.dim, 3, scale=1e-40),
    lambda net: polyrelu.nets.MLP(net.dim, 3, 2), lambda net: polyrelu.nets.TanhNet(net.dim, 3, 2),
    lambda net: nn.Sequential(nn.Linear(net.dim, 3), nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Linear(3, 2)),
    lambda net: polyrelu.PolyReLUClassifier(), lambda net: _poisoned(net),
)  # fmt: skip


def _poisoned(net: Any) -> Any:
    with torch.no_grad():
        net.weight[0, 0] = math.nan
    return net


def _data(given: polyrelu.Dataset) -> Iterator[Callable[[], Any]]:
    X, y = given.rows(), given.y
    yield lambda: given.to(torch.float64)
    yield lambda: given.to(torch.float16)
    yield lambda: polyrelu.Dataset(X, (torch.arange(len(X)) % 3))
    yield lambda: polyrelu.Dataset(X, y)
    yield lambda: polyrelu.Dataset(X[:, :2], y)
    yield lambda: polyrelu.Dataset(X * 1e18, y)
    yield lambda: polyrelu.Dataset(X * 1e-30, y)
    yield lambda: polyrelu.Dataset(X * 0, y)
    yield lambda: given.subset([0, 23])
    yield lambda: polyrelu.Dataset(X, torch.where(torch.arange(len(X)) == 0, 9, 0))
    yield lambda: polyrelu.OrthonormalMixture(given.dim, 1, 1, 0.0).sample(40, 0, lazy=True)
    yield lambda: (X, y)
    yield lambda: X
    yield lambda: dataclasses.replace(given, cluster=torch.zeros(len(X), dtype=torch.int64), centres=None)
    yield lambda: polyrelu.Dataset
    yield lambda: _frame(X.numpy())


def _frame(values: Any) -> Any:
    frames: Any = importlib.import_module("pandas")
    return frames.DataFrame(np.asarray(values).reshape(len(values), -1))


def _polars(values: Any) -> Any:
    frames: Any = importlib.import_module("polars")
    return frames.DataFrame(np.ascontiguousarray(values).reshape(len(values), -1))


def _sparse(values: Any) -> Any:
    from scipy import sparse

    return sparse.csr_array(np.asarray(values).reshape(len(values), -1))


def bad(good: Any, source: Random, huge: bool) -> Any:
    """A value that is wrong, or odd, where ``good`` would do; numbers beyond 2^20 only where they ask for no work."""
    near = _near(good)
    for _ in range(20):
        try:
            value = near[source.integers(len(near))]() if near and source.random() < 0.6 else _any(source)
        except (RuntimeError, TypeError, ValueError, NotImplementedError, IndexError, polyrelu.InputError):
            continue  # there is no such variant of this value
        if huge or not _many(value):
            return value
    return None


def _any(source: Random) -> Any:
    if source.random() < 0.5:
        return NUMBERS[source.integers(len(NUMBERS))]
    return OBJECTS[source.integers(len(OBJECTS))]()


def _near(good: Any) -> list[Callable[[], Any]]:
    """What looks like the good value and is not."""
    if isinstance(good, torch.Tensor):
        arrays = [partial(_changed, change, good.detach().numpy()) for change in (*ARRAYS, _frame, _polars, _sparse)]
        return [*(partial(_changed, change, good.detach()) for change in TENSORS), *arrays]
    if isinstance(good, np.ndarray):
        return [partial(_changed, change, good) for change in (*ARRAYS, _frame, _polars, _sparse, torch.from_numpy)]
    if isinstance(good, nn.Module):
        return [partial(_changed, change, good) for change in NETS]
    if isinstance(good, polyrelu.Dataset):
        return list(_data(good))
    if isinstance(good, int | float):
        return [partial(_same, value) for value in NUMBERS]
    return []


def _changed(change: Callable[[Any], Any], good: Any) -> Any:
    return change(copy.deepcopy(good))


def _same(value: Any) -> Any:
    return value


def _many(value: Any) -> bool:
    """Does it ask for more work than a case may take?"""
    try:
        number: Any = value if isinstance(value, int | float | np.number | decimal.Decimal) else 0
        return not bool(abs(number) <= 2**10)
    except (ArithmeticError, TypeError):
        return True
