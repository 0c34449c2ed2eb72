"""Rows without holding them all: the contract of a row source, and the sources a ``Dataset`` can have.

A tensor (n, D), a memory-mapped numpy array (converted block by block), or anything with shape, dtype and [a:b].
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch

from polyrelu.checks import dense
from polyrelu.errors import InputError, require

BLOCK = 1024
"""Rows per block wherever data are streamed."""

_TORCH_TYPE = {2: torch.float16, 4: torch.float32, 8: torch.float64}


@runtime_checkable
class RowSource(Protocol):
    """``source[a:b]`` gives rows a..b-1 as a tensor (b-a, D) of ``source.dtype``, the same each time it is asked.

    A source that cannot hold NaN or infinity may say so with an attribute ``known_finite = True``; a ``Dataset`` then
    does not read it through once to check.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, D)."""

    @property
    def dtype(self) -> torch.dtype:
        """A floating torch type."""

    def __getitem__(self, rows: slice, /) -> torch.Tensor:
        """One block of rows."""


Rows = torch.Tensor | RowSource


@final
@dataclass(frozen=True, eq=False)
class MappedRows:
    """A memory-mapped array as a row source; only the rows asked for are read, copied and turned into a tensor."""

    array: npt.NDArray[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, D)."""
        return self.array.shape

    @property
    def dtype(self) -> torch.dtype:
        """The array's own precision."""
        return _TORCH_TYPE[self.array.dtype.itemsize]

    def __getitem__(self, rows: slice, /) -> torch.Tensor:
        """Copy one block out of the file, in the machine's byte order."""
        return torch.from_numpy(self.array[rows].astype(self.array.dtype.newbyteorder("="), order="C", subok=False))


@final
@dataclass(frozen=True, eq=False)
class CastRows:
    """Another source's rows in another dtype, or on another device."""

    source: RowSource
    dtype: torch.dtype
    device: torch.device | str | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, D)."""
        return self.source.shape

    @property
    def known_finite(self) -> bool:
        """A finite number stays finite in a type that reaches at least as far."""
        wider = torch.finfo(self.dtype).max >= torch.finfo(self.source.dtype).max
        return wider and bool(getattr(self.source, "known_finite", False))

    def __getitem__(self, rows: slice, /) -> torch.Tensor:
        """Convert one block."""
        return self.source[rows].to(device=self.device, dtype=self.dtype)


def as_row_source(X: object) -> Rows:
    """The tensor or row source behind whatever was handed in: 2-D, non-empty and floating, or an ``InputError``."""
    if isinstance(X, np.ndarray):
        kind = X.dtype.kind == "f" and X.dtype.itemsize in _TORCH_TYPE
        require(kind, "X", f"{X.dtype} array", "floating numbers (float32 or float64); convert with X.astype(...)")
        if is_memory_mapped(X):
            X = MappedRows(X)
        else:  # the same memory where torch can use it, a copy if it is read-only, of foreign byte order or odd strides
            X = torch.from_numpy(np.require(X, X.dtype.newbyteorder("="), ["C", "W"]))
    if not isinstance(X, (torch.Tensor, RowSource)):
        raise InputError(f"X={type(X).__name__}: expected a tensor, a numpy array or a row source.")
    floating = isinstance(X.dtype, torch.dtype) and X.dtype.is_floating_point
    require(floating, "X", f"{X.dtype} rows", "floating numbers (float32 or float64); convert with X.float()")
    if isinstance(X, torch.Tensor):
        dense("X", X, "rows")
    shape = tuple(X.shape)
    require(len(shape) == 2 and min(shape) > 0, "X", f"shape {shape}", "shape (n, D), at least one row and one column")
    return X


def read_rows(X: Rows, start: int, stop: int) -> torch.Tensor:
    """Rows start..stop-1; a source that returns something else than it promised is an error."""
    block = X[start:stop]
    promised = ((stop - start, X.shape[1]), X.dtype)
    given = (tuple(block.shape), block.dtype)
    require(given == promised, f"X[{start}:{stop}]", f"shape {given[0]} {given[1]}", f"{promised[0]} {promised[1]}")
    return block


def check_finite(X: Rows) -> None:
    """Stream through X once; name the first NaN or infinity by row and column."""
    if getattr(X, "known_finite", False):
        return
    for start in range(0, X.shape[0], BLOCK):
        block = read_rows(X, start, min(start + BLOCK, X.shape[0]))
        finite = torch.isfinite(block)
        if not finite.all():
            row, column = (~finite).nonzero()[0].tolist()
            require(False, f"X[{start + row}, {column}]", float(block[row, column]), "a finite number")


def gather(X: Rows, index: torch.Tensor) -> torch.Tensor:
    """X[index] as a tensor, reading each block of a row source at most once."""
    whole = not (index.is_floating_point() or index.is_complex() or index.dtype == torch.bool) and index.ndim == 1
    inside = whole and len(index) > 0 and int(index.min()) >= 0 and int(index.max()) < X.shape[0]
    require(inside, "index", f"{index.dtype} {tuple(index.shape)}", f"row numbers from 0 to {X.shape[0] - 1}")
    index = index.long()
    if isinstance(X, torch.Tensor):
        return X[index.to(X.device)]
    ordered, place = index.sort()
    edges = torch.searchsorted(ordered, torch.arange(0, X.shape[0] + BLOCK, BLOCK)).tolist()
    picked: torch.Tensor | None = None
    for number, (low, high) in enumerate(pairwise(edges)):
        if low == high:
            continue
        start = number * BLOCK
        block = read_rows(X, start, min(start + BLOCK, X.shape[0]))
        if picked is None:
            picked = block.new_empty(len(index), X.shape[1])
        picked[place[low:high]] = block[ordered[low:high] - start]
    assert picked is not None, "index must not be empty"
    return picked


def is_memory_mapped(array: object) -> bool:
    """Is the array, or the array it is a view of, a file?"""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and array.base is not None:
            return True
        array = array.base
    return False
