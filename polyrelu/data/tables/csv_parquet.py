"""Rows of columns: .csv in chunks, so that a large one need not fit in memory, and .parquet."""

from __future__ import annotations

import csv
import importlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyrelu.arrays import ALWAYS_UNPACKED, MOST_EXPANSION
from polyrelu.data.tables.columns import (
    LABELS,
    InputSchema,
    Layout,
    Table,
    is_number_text,
    label_column,
    lay_out,
    names_rows,
)
from polyrelu.errors import InputError, require

CELLS = 2**20  # numbers in a chunk
LOOK = 1000  # rows that decide which columns are text


def csv_tables(path: Path, label: str | None, fine: str | None, takes: InputSchema | None) -> Iterator[Table]:
    """The rows of a table of text, so many at a time; the header is optional, blank lines are skipped."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            lines = (line for line in file if line.strip())
            first = next(lines, "")
            require(bool(first), "data", path, "rows of numbers, the file is empty")
            cells = [cell.strip() for cell in next(csv.reader([first]))]
            headed = _is_header(cells, label)
            size = max(1, CELLS // len(cells))
            rows = list(islice(lines, size)) if headed else [first, *islice(lines, size - 1)]
            require(bool(rows), "data", path, "rows of numbers below its header")
            look = [[cell.strip() for cell in row] for row in csv.reader(rows[:LOOK]) if len(row) == len(cells)]
            columns = list(zip(*look, strict=True)) if look else [()] * len(cells)
            filled = [[cell for cell in column if cell] for column in columns]
            text = {i for i, column in enumerate(filled) if column and not any(map(is_number_text, column))}
            layout = lay_out(
                path, cells, headed=headed, text=text, distinct=lambda i: names_rows(columns[i]), label=label,
                fine=fine, takes=takes,
            )  # fmt: skip
            start = 0
            while rows:
                yield _parse(rows, start, layout)
                start += len(rows)
                rows = list(islice(lines, size))
    except UnicodeDecodeError:
        raise InputError(f"data={path}: expected a text file in UTF-8.") from None


def csv_table(path: Path, label: str | None, fine: str | None, takes: InputSchema | None) -> Table:
    """All rows of it at once."""
    parts = list(csv_tables(path, label, fine, takes))
    y, sub = (
        None if getattr(parts[0], name) is None else np.concatenate([getattr(part, name) for part in parts])
        for name in ("y", "fine")
    )
    return replace(parts[0], X=np.concatenate([part.X for part in parts]), y=y, fine=sub)


def parquet(path: Path, label: str | None, fine: str | None, takes: InputSchema | None) -> Table:
    """All rows of a .parquet file; a column of equally long lists of numbers counts as so many columns."""
    try:
        reader: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InputError(
            f"data={path}: expected pyarrow, which reads .parquet; pip install pyarrow, or write it as .npz or .csv."
        ) from None
    _require_dense(path, reader.ParquetFile(path).metadata)
    table = reader.read_table(path)
    names: list[str] = []
    columns: list[NDArray[Any]] = []
    for place, name in enumerate(str(name) for name in table.column_names):
        column = np.asarray(table.column(place).to_numpy())
        parts = _vectors(column, name, path)
        names += [name] if parts is None else [f"{name}_{i}" for i in range(parts.shape[1])]
        columns += [column] if parts is None else list(parts.T)
    require(bool(columns) and len(columns[0]) > 0, "data", path, "rows of numbers, the table is empty")
    text = {i for i, column in enumerate(columns) if _is_text(column)}
    layout = lay_out(
        path, names, headed=True, text=text, distinct=lambda i: names_rows(columns[i].tolist()), label=label, fine=fine,
        takes=takes,
    )  # fmt: skip
    for i in layout.features:
        if columns[i].dtype.kind not in "iufb":
            cells = (columns[i].astype(str) if columns[i].dtype.kind in "mM" else columns[i]).tolist()  # times are none
            row = next((row for row, cell in enumerate(cells) if not isinstance(cell, (int, float))), 0)
            raise layout.bad(row, i, cells[row])
    X = np.stack([columns[i] for i in layout.features], axis=1)
    y, sub = (
        None if i is None else label_column(columns[i], i in text, layout, i) for i in (layout.label, layout.fine)
    )
    return layout.table(X, y, sub)


def _require_dense(path: Path, metadata: Any) -> None:
    """Refuse a table that is announced, or packed, to be far larger than its file, as `polyrelu.arrays` does."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    numbers = sum(group.column(i).num_values for group in groups for i in range(metadata.num_columns))
    if numbers * 8 > max(ALWAYS_UNPACKED, MOST_EXPANSION * path.stat().st_size):
        raise InputError(
            f"data={path}: {path.stat().st_size:,} bytes that unpack to {numbers:,} numbers: expected at most "
            f"{MOST_EXPANSION} times the size of the file; write it without compression if it is yours."
        )


def _is_header(first: Sequence[str], label: str | None) -> bool:
    """A line with a label's name in it, without any number, or with the numbers 0, 1, 2, ... that pandas gives."""
    numbers = [cell for cell in first if is_number_text(cell)]
    named = any(cell.lower() in LABELS for cell in first) or (label in first and label not in numbers)
    counted = len(numbers) > 2 and numbers == [str(i) for i in range(len(numbers))]
    return named or not numbers or counted


def _parse(rows: list[str], start: int, layout: Layout) -> Table:
    for row, line in enumerate(rows):
        if line.count(",") + 1 != layout.columns and len(cells := next(csv.reader([line]))) != layout.columns:
            raise InputError(
                f"data={layout.path}: data row {start + row + 1} has {len(cells)} columns: expected {layout.columns} "
                "columns in every row, as in the first line."
            )
    try:
        X = _load(rows, np.float64, layout.features)
    except (ValueError, UserWarning) as error:
        for row, cells in enumerate(csv.reader(rows)):
            for column in layout.features:
                if not is_number_text(cells[column]):
                    raise layout.bad(start + row, column, cells[column].strip()) from None
        raise InputError(f"data={layout.path}: expected rows of numbers with commas between them ({error}).") from None
    y, fine = (
        None if i is None else label_column(_load(rows, np.str_, (i,))[:, 0], i in layout.text, layout, i, start)
        for i in (layout.label, layout.fine)
    )
    return layout.table(X, y, fine)


def _load(rows: list[str], kind: type, columns: Sequence[int]) -> NDArray[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return np.loadtxt(rows, kind, delimiter=",", quotechar='"', comments=None, ndmin=2, usecols=columns)


def _vectors(column: NDArray[Any], name: str, path: Path) -> NDArray[Any] | None:
    """A column of lists as a matrix, or None if it is no such column."""
    if column.dtype.kind != "O" or not len(column) or not isinstance(column[0], (np.ndarray, list)):
        return None
    lengths = [len(one) if isinstance(one, (np.ndarray, list)) else -1 for one in column]
    odd = next((row for row, length in enumerate(lengths) if length != lengths[0]), None)
    if odd is not None:
        found = "nothing" if lengths[odd] < 0 else f"{lengths[odd]} numbers"
        raise InputError(
            f"data={path}: data row {odd + 1}, column {name}: expected {lengths[0]} numbers, as in the first row, "
            f"found {found}."
        )
    return np.stack([np.asarray(one) for one in column])


def _is_text(column: NDArray[Any]) -> bool:
    if column.dtype.kind in "US":
        return True
    cells = [cell for cell in column[:LOOK].tolist() if cell is not None] if column.dtype.kind == "O" else []
    return bool(cells) and not any(isinstance(cell, (int, float)) or is_number_text(str(cell)) for cell in cells)
