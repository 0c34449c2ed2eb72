"""Tables in files: rows, labels of any kind and names of columns; what was guessed is noted.

.npz, .safetensors   arrays by their usual names: X, embeddings, features, ... and y, label, target, ...
.npy                 rows that stay in the file; labels beside it (X.npy and y.npy, NAME.npy and NAME_y.npy)
.csv, .parquet       columns: the label by its name, else by a usual one, else the last; the others are numbers

Reading never runs code: pickles are refused everywhere.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from polyrelu.arrays import DAMAGED, OBJECTS, map_npy
from polyrelu.checks import checked
from polyrelu.data.rows import BLOCK
from polyrelu.data.tables import archives, csv_parquet
from polyrelu.data.tables.columns import InputSchema, Table
from polyrelu.errors import InputError, require
from polyrelu.files import exists, is_file

READERS = {
    ".npz": archives.npz,
    ".npy": archives.npy,
    ".csv": csv_parquet.csv_table,
    ".parquet": csv_parquet.parquet,
    ".safetensors": archives.safetensors,
}
TABLE_SUFFIXES = tuple(READERS)


def read_table_file(
    path: str | Path, *, label: str | None = None, fine: str | None = None, takes: InputSchema | None = None
) -> Table:
    """The table in a file, checked: numbers in every cell, a label in every row; errors name the column and row.

    Parameters
    ----------
    label, fine : column or array with the labels and with the sub-classes (a file, for .npy); without a header, a
        column is called by its number, counted from 1
    takes : what a fitted head takes; labels need not be there then
    """
    table = open_table(path, label=label, fine=fine, takes=takes)
    X = as_floats(table.X)
    checked = replace(table, X=X)
    alike = _check(checked, str(path))
    if alike and takes is None:
        shown = ", ".join(checked.column(i) for i in alike[:5]) + ", ..." * (len(alike) > 5)
        notes = f"{len(alike)} of {X.shape[1]} columns hold the same number in every row: {shown}."
        checked = replace(checked, notes=(*checked.notes, notes))
    return checked


@checked
def read_table_blocks(
    path: str | Path,
    *,
    label: str | None = None,
    fine: str | None = None,
    takes: InputSchema | None = None,
    size: int = 8 * BLOCK,
) -> Iterator[Table]:
    """The same, some rows at a time: .csv and .npy are never in memory as a whole."""
    path, start = Path(path), 0
    if path.suffix.lower() == ".csv":
        _require_file(path)
        with _errors_name_the_file(path):
            for table in csv_parquet.csv_tables(path, label, fine, takes):
                _check(table, str(path), start)
                yield table
                start += len(table)
        return
    table = open_table(path, label=label, fine=fine, takes=takes)
    _check_shapes(table, str(path))
    for start in range(0, len(table), size):
        block = table.take(slice(start, start + size))
        if isinstance(table.X, np.memmap):  # mapped anew, so that pages that were read do not stay in memory
            block = replace(block, X=np.array(map_npy(path)[start : start + size]))
        block = replace(block, X=as_floats(block.X))
        _check(block, str(path), start)
        yield block


def open_table(
    path: str | Path, *, label: str | None = None, fine: str | None = None, takes: InputSchema | None = None
) -> Table:
    """The table in a file by how its name ends, numbers unchecked; every complaint names the file."""
    path = Path(path)
    _require_file(path)
    with _errors_name_the_file(path):
        return READERS[path.suffix.lower()](path, label, fine, takes)


def _require_file(path: Path) -> None:
    require(path.suffix.lower() in TABLE_SUFFIXES, "data", path, f"a file that ends in {', '.join(TABLE_SUFFIXES)}")
    require(not exists(path) or not path.is_dir(), "data", path, "a file, this is a folder")
    require(is_file(path), "data", path, "an existing file")


def as_floats(X: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers and booleans as floats that hold them exactly; everything else as it is."""
    return X.astype(np.float32 if X.dtype.itemsize <= 2 else np.float64) if X.dtype.kind in "iub" else X


def _check_shapes(table: Table, path: str) -> None:
    """Numbers, and one label for each row."""
    X = table.X
    plain = X.dtype.kind in "iubf" and X.dtype.itemsize <= 8
    require(plain, "data", path, f"numbers in X, of 64 bits at most, it holds {X.dtype}")
    good = X.ndim == 2 and min(X.shape) > 0
    require(good, "data", path, f"X of shape (n, D), at least one row and one column, it is {X.shape}")
    for name, part in (("y", table.y), ("fine", table.fine)):
        if part is not None:
            good = part.shape == (len(X),)
            require(good, "data", path, f"one label per row of X, shape ({len(X)},), {name} is {part.shape}")
            require(part.dtype.kind in "iufbU", "data", path, f"numbers or text in {name}, it holds {part.dtype}")


def _check(table: Table, path: str, start: int = 0) -> list[int]:
    """Every number is finite and every row has a label, or an error; returns the columns that never change."""
    _check_shapes(table, path)
    X = table.X
    for name, part in (("y", table.y), ("fine", table.fine)):
        if part is None:
            continue
        missing = np.char.strip(part) == "" if part.dtype.kind == "U" else ~np.isfinite(part)
        if missing.any():
            row = start + int(np.argmax(missing)) + 1
            raise InputError(f"data={path}: data row {row}: expected a label in every row, {name} has none there.")
    low, high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
    for begin in range(0, len(X), BLOCK):
        block = np.asarray(X[begin : begin + BLOCK])
        if not (finite := np.isfinite(block)).all():
            row, column = np.argwhere(~finite)[0].tolist()
            place = f"data row {start + begin + row + 1}, column {table.column(column)}"
            raise InputError(f"data={path}: {place}: expected a number, found {float(block[row, column]):g}.")
        low, high = np.minimum(low, block.min(0)), np.maximum(high, block.max(0))
    same: list[int] = np.flatnonzero(low == high).tolist()
    return same


@contextmanager
def _errors_name_the_file(path: Path) -> Iterator[None]:
    """Whatever a damaged file raises becomes one InputError that names it."""
    try:
        yield
    except InputError:
        raise
    except (*DAMAGED, csv.Error, SafetensorError) as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        if reason.startswith(OBJECTS):
            raise InputError(
                f"data={path}: rows or labels are {OBJECTS}, which may be code and are not read: expected numbers or "
                "text; y.astype(str) makes text of labels."
            ) from None
        raise InputError(
            f"data={path}: expected a whole {path.suffix.lower()} file; it is cut short or foreign ({reason})."
        ) from None
