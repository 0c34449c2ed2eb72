"""The one shape of data in the package: rows X, labels y and, where known, clusters and their centres; its splits."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch

from polyrelu.checks import checked, plain_tensor, whole_number
from polyrelu.data import rows as _rows
from polyrelu.data.rows import BLOCK, RowSource
from polyrelu.errors import InputError, require

SPLITS = ("train", "test")


@final
@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """S = {(x_i, y_i), i < n}, x_i in R^D; checked once, when it is made, and never changed.

    Parameters
    ----------
    X : Tensor (n, D), numpy array, or row source
        Finite floating numbers; their dtype and device are those of the set. A memory-mapped array (``np.load`` with
        ``mmap_mode="r"``) and a ``RowSource`` stay where they are and are read block by block; the check that all
        numbers are finite reads them through once. ``rows()`` is the way to get a tensor whatever X is.
    y : Tensor (n,), array or list
        +1/-1 (kept in X's dtype), or classes 0..C-1 of an integer type (kept as int64). Integers 0/1 and booleans are
        two classes 0 and 1 and stay so. At least two classes are present.
    cluster : (n,) integers >= 0, optional
        The hidden sub-class of each row; below K when ``centres`` are given.
    centres : (K, D), optional
        One centre per cluster, in the same units as X.
    name : str
        What reports call the set; recipes put themselves here.
    """

    X: torch.Tensor | RowSource | npt.NDArray[Any]
    y: torch.Tensor
    cluster: torch.Tensor | None = None
    centres: torch.Tensor | None = None
    name: str = "data"

    def __post_init__(self) -> None:
        """Bring every field to its kept form, or say in one line what is wrong with it."""
        X = _rows.as_row_source(self.X)
        n, dim = X.shape
        device = _rows.read_rows(X, 0, 1).device
        checked: dict[str, object] = {"X": X, "y": as_labels(self.y, n, X.dtype, device)}
        if self.centres is not None:
            centres = plain_tensor("centres", self.centres).to(device, X.dtype)
            good = centres.ndim == 2 and centres.shape[0] > 0 and centres.shape[1] == dim
            require(good, "centres", f"shape {tuple(centres.shape)}", f"shape (K, {dim}), as many columns as X")
            require(bool(centres.isfinite().all()), "centres", "NaN or infinity", "finite numbers")
            checked["centres"] = centres
        if self.cluster is not None:
            cluster = as_clusters(self.cluster, n, device)
            if self.centres is not None:
                allowed = f"cluster numbers below {len(centres)}, the number of centres"
                require(int(cluster.max()) < len(centres), "cluster", int(cluster.max()), allowed)
            checked["cluster"] = cluster
        require(isinstance(self.name, str), "name", repr(self.name), "a text")
        _rows.check_finite(X)
        for field, value in checked.items():
            object.__setattr__(self, field, value)

    def __len__(self) -> int:
        return int(self._source.shape[0])

    def __repr__(self) -> str:
        """One line, never the numbers themselves."""
        kind = "" if isinstance(self.X, torch.Tensor) else ", read by blocks"
        return f"Dataset({self.name!r}, n={len(self)}, dim={self.dim}, classes={self.classes}, {self.dtype}{kind})"

    @property
    def dim(self) -> int:
        """Number of columns D."""
        return int(self._source.shape[1])

    @property
    def dtype(self) -> torch.dtype:
        """The floating type of X, and of y if it is +1/-1."""
        return self._source.dtype

    @property
    def binary(self) -> bool:
        """Are the labels +1/-1? (Classes 0/1 are two classes, not ``binary``.)"""
        return self.y.is_floating_point()

    @property
    def classes(self) -> int:
        """Number of classes C: 2 for +1/-1, else the largest class + 1."""
        return 2 if self.binary else int(self.y.max()) + 1

    @checked
    def rows(self, start: int = 0, stop: int | None = None) -> torch.Tensor:
        """Rows start..stop-1 as a tensor; all of them by default (a view, not a copy, when X is a tensor)."""
        n = len(self)
        stop = n if stop is None else stop
        require(0 <= start <= stop <= n, "rows", f"({start}, {stop})", f"0 <= start <= stop <= {n}")
        return _rows.read_rows(self._source, start, stop)

    @checked
    def gather(self, index: torch.Tensor) -> torch.Tensor:
        """The rows with these numbers (at least one), in that order, as a tensor; only they are kept in memory."""
        return _rows.gather(self._source, index)

    @checked
    def blocks(self, size: int = BLOCK) -> Iterator[tuple[int, torch.Tensor]]:
        """(start, rows start..start+size-1) from first to last; the last block may be shorter."""
        whole_number("size", size, 1)
        return ((start, self.rows(start, min(start + size, len(self)))) for start in range(0, len(self), size))

    def class_means(self) -> torch.Tensor:
        """m_c = mean of the rows of class c, (C, D); for +1/-1 the order is [+1, -1].

        Streamed, summed in float64, returned in X's dtype. O(n D) time, O(C D) memory.
        """
        group = (self.y < 0).long() if self.binary else self.y
        present = set(group.tolist())
        absent = next((c for c in range(self.classes) if c not in present), None)
        if absent is not None:
            raise InputError(f"y={self.classes} classes: expected rows of every class, but class {absent} has none.")
        sums = torch.zeros(self.classes, self.dim, dtype=torch.float64, device=self.y.device)
        for start, block in self.blocks():
            sums.index_add_(0, group[start : start + len(block)], block.double())
        return (sums / group.bincount()[:, None]).to(self.dtype)

    def subset(self, index: torch.Tensor | npt.NDArray[Any] | Sequence[int] | slice) -> Dataset:
        """The rows named by numbers (negative ones count from the end), a mask (n,) or a slice, in that order.

        The chosen rows are held in memory, also when X is read by blocks; both classes must be among them.
        """
        n = len(self)
        try:
            wanted = index if isinstance(index, slice) else plain_tensor("index", index).cpu()
            if isinstance(wanted, torch.Tensor) and wanted.dtype == torch.uint8:
                wanted = wanted.long()  # torch would read bytes as a mask
            chosen = torch.arange(n)[wanted]
        except (IndexError, ValueError, TypeError, RuntimeError):
            raise InputError(f"index={index}: expected row numbers below {n}, a mask of {n} rows or a slice.") from None
        require(chosen.ndim == 1 and len(chosen) > 0, "index", index, "at least one row, as a list, mask or slice")
        place = chosen.to(self.y.device)
        return dataclasses.replace(
            self,
            X=self.gather(chosen),
            y=self.y[place],
            cluster=None if self.cluster is None else self.cluster[place],
        )

    def to(self, dtype: torch.dtype | None = None, device: torch.device | str | None = None) -> Dataset:
        """The same set in another floating type or on another device; a row source is converted block by block."""
        dtype = self.dtype if dtype is None else dtype
        good = isinstance(dtype, torch.dtype) and dtype.is_floating_point and dtype.itemsize > 1
        require(good, "dtype", dtype, "a floating torch type such as torch.float64")
        try:
            device = None if device is None else torch.empty(0, device=device).device
        except (RuntimeError, TypeError, ValueError, OverflowError, AssertionError):
            raise InputError(f"device={device}: expected a device of this machine, such as cpu.") from None
        require(device is None or device.type != "meta", "device", device, "a device that holds numbers")
        if isinstance(self.X, torch.Tensor):
            return dataclasses.replace(self, X=self.X.to(device=device, dtype=dtype))
        return dataclasses.replace(self, X=_rows.CastRows(self._source, dtype, device))

    @property
    def _source(self) -> _rows.Rows:
        """X after the check: never an array any more."""
        return self.X  # type: ignore[return-value]


def as_labels(y: object, rows: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Checked labels: ``dtype`` if every value is +1 or -1, int64 if they are whole numbers >= 0 of an integer type.

    Integers 0/1 and booleans stay what they are, two classes 0 and 1; nothing is turned into +1/-1 silently. A class
    below the largest may be absent (small test sets), but two different labels must be present.
    """
    labels = plain_tensor("y", y, "labels")
    require(labels.shape == (rows,), "y", f"shape {tuple(labels.shape)}", f"one label per row of X, shape ({rows},)")
    if labels.dtype == torch.bool:
        labels = labels.long()
    signs = labels.is_floating_point() or bool(labels.min() < 0)
    if signs and bool((wrong := labels.abs() != 1).any()):
        first = int(wrong.nonzero()[0])
        require(False, f"y[{first}]", f"{labels[first].item():g}", "+1 or -1, or classes 0, 1, ... of an integer type")
    if labels.min() == labels.max():
        raise InputError(f"y=one class only, {labels[0].item():g} in all {rows} rows: expected at least two classes.")
    return labels.to(device, dtype if signs else torch.int64)


def class_numbers(labels: Any, classes: Any, name: str, allowed: str) -> torch.Tensor:
    """The place of each label in ``classes``, (n,); one that is none of them is an InputError, which lists them."""
    place = {label: number for number, label in enumerate(np.asarray(classes).tolist())}
    given = np.asarray(labels).tolist()
    unknown = next((label for label in given if label not in place), None)
    require(unknown is None, name, unknown, f"{allowed} {', '.join(map(str, place))}")
    return torch.tensor([place[label] for label in given])


def as_clusters(cluster: object, rows: int, device: torch.device) -> torch.Tensor:
    """Checked cluster numbers: int64, one per row, >= 0."""
    index = plain_tensor("cluster", cluster)
    fits = index.shape == (rows,)
    require(fits, "cluster", f"shape {tuple(index.shape)}", f"one number per row of X, shape ({rows},)")
    integer = not (index.is_floating_point() or index.is_complex() or index.dtype == torch.bool)
    require(integer, "cluster", f"{index.dtype} numbers", "an integer type")
    index = index.to(device, torch.int64)
    require(bool(index.min() >= 0), "cluster", int(index.min()), "cluster numbers >= 0")
    return index


@checked
def split_part(data: Dataset, name: str) -> Dataset:
    """A random four fifths of the rows (``train``) or the rest (``test``), as published (Min & Vidal 2024).

        pi = torch.randperm(n) with seed 0;   test = the last floor(n/5) rows of pi,   train = the others

    These are the rows of ``torch.utils.data.random_split(data, [0.8, 0.2])`` with a generator seeded 0, in that order.
    """
    return dataclasses.replace(data.subset(split_rows(len(data), name, data.name)), name=f"{data.name}:{name}")


def split_rows(count: int, name: str, data: str) -> torch.Tensor:
    """The numbers of those rows, of ``count`` in all; ``data`` is what an error calls the set."""
    require(name in SPLITS, "part", name, "train or test")
    rows = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    test = math.floor(0.2 * count)
    require(test > 0, "data", data, f"five rows or more to set some aside, it has {count}")
    return rows[-test:] if name == "test" else rows[:-test]
