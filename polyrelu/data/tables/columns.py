"""Tables, and which column of one is what: features, label, sub-class, or left out; what was guessed is noted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from polyrelu.data.dataset import split_rows
from polyrelu.errors import InputError, require

LABELS = ("y", "label", "labels", "target", "targets", "class", "classes", "arr_1")  # in whatever case
IDS = ("", "id", "index", "row", "unnamed: 0")  # names of a column that numbers the rows; pandas writes the last
FEWEST = 10  # rows below which different texts may still be classes


@final
@dataclass(frozen=True, eq=False)
class Table:
    """What a file holds, as it is: nothing is scaled, no label is renumbered.

    X : (n, D) numbers; a memory-mapped .npy stays in its file
    y, fine : (n,) labels and sub-classes as int64, float64, bool or text; None where there are none
    features, label : names of the columns of X and of the labels, None if the file has no names
    notes : sentences on what was guessed or left out
    extra : ``cluster`` and ``centres`` of an archive that holds them
    """

    X: NDArray[Any]
    y: NDArray[Any] | None = None
    fine: NDArray[Any] | None = None
    features: tuple[str, ...] | None = None
    label: str | None = None
    name: str = "data"
    notes: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: Any) -> Table:
        """The rows with these numbers, or of this slice, in that order."""
        y, fine = (None if part is None else part[rows] for part in (self.y, self.fine))
        extra = {name: part[rows] if name == "cluster" else part for name, part in self.extra.items()}
        return replace(self, X=self.X[rows], y=y, fine=fine, extra=extra)

    def part(self, name: str) -> Table:
        """A random four fifths (``train``) or the rest (``test``), the same as those of FILE:train and FILE:test."""
        return replace(self.take(split_rows(len(self), name, self.name).numpy()), name=f"{self.name}:{name}")

    def column(self, number: int) -> str:
        """What messages call a column of X."""
        return f"number {number + 1}" if self.features is None else self.features[number]


@final
@dataclass(frozen=True)
class InputSchema:
    """What a fitted head takes: so many columns, their names if they had any, and the name or number of the labels."""

    count: int
    names: tuple[str, ...] | None = None
    label: str | None = None

    @classmethod
    def from_json(cls, about: Mapping[str, Any], path: object, count: int) -> InputSchema:
        """What a head's file ``path`` says of it: ``features`` and ``label``, null if they had no names."""
        names, label = about.get("features"), about.get("label")
        listed = isinstance(names, list) and len(names) == count and all(isinstance(one, str) for one in names)
        require(names is None or listed, "path", path, f"{count} names of columns, or none")
        require(label is None or isinstance(label, str), "path", path, "a text as the name of the labels")
        return cls(count, None if names is None else tuple(names), label)

    def numbered(self, columns: int) -> bool:
        """Is the label a number, of a table without a header, and is there a column more than the head takes?"""
        return self.names is None and self.label is not None and self.label.isdecimal() and columns > self.count


@final
@dataclass(frozen=True)
class Layout:
    """Places of the columns in a row; ``names`` is None for a table without a header."""

    path: Path
    columns: int
    names: tuple[str, ...] | None
    features: tuple[int, ...]
    label: int | None
    fine: int | None
    text: frozenset[int]
    notes: tuple[str, ...]

    def name(self, column: int) -> str:
        """What messages call a column."""
        return f"number {column + 1}" if self.names is None else self.names[column]

    def bad(self, row: int, column: int, cell: object, wanted: str = "a number") -> InputError:
        """The error that names a cell; ``row`` counts from 0."""
        place = f"data row {row + 1}, column {self.name(column)}"
        return InputError(f"data={self.path}: {place}: expected {wanted}, found {cell!r:.60}.")

    def table(self, X: NDArray[Any], y: NDArray[Any] | None, fine: NDArray[Any] | None) -> Table:
        """Rows of these columns."""
        features = None if self.names is None else tuple(self.names[i] for i in self.features)
        label = None
        if self.label is not None:
            label = str(self.label + 1) if self.names is None else self.names[self.label]
        return Table(X, y, fine, features, label, self.path.name, self.notes)


def lay_out(
    path: Path,
    names: list[str],
    *,
    headed: bool,
    text: Collection[int],
    distinct: Callable[[int], bool],
    label: str | None,
    fine: str | None,
    takes: InputSchema | None,
) -> Layout:
    """Label by the name given, else by a usual one, else the last column; every other column of numbers is a feature.

    ``text`` are the columns without numbers; one that names the rows (``distinct``) is left out, any other is refused.
    With ``takes`` columns are found by its names, if it and the table have names, and labels need not be there.
    """
    enough = "at least one column of numbers" + " and one of labels, separated by commas" * (takes is None)
    require(len(names) >= (2 if takes is None else 1), "data", path, enough)
    notes: list[str] = []
    if takes is not None and label is None and (takes.label in names if headed else takes.numbered(len(names))):
        label = takes.label
    at_label, at_fine = (_column_of(*given, names, headed, path) for given in (("label", label), ("fine", fine)))
    chosen = _places_of(takes.names, names, path) if takes is not None and takes.names is not None and headed else []
    free = [i for i in range(len(names)) if i not in (at_label, at_fine, *chosen)]
    rows = [i for i in free if headed and names[i].lower() in IDS]
    free = [i for i in free if i not in rows]
    if at_label is None and headed:
        usual = {names[i].lower(): i for i in reversed(free)}
        at_label = next((usual[name] for name in LABELS if name in usual), None)
        notes += [f"Labels are in column {names[at_label]!r}."] if at_label is not None else []
    if at_label is None and free and (takes is None or (not chosen and (free[-1] in text or len(free) > takes.count))):
        at_label = free[-1]
        name = repr(names[at_label]) if headed else f"number {at_label + 1}"
        notes.append(f"Labels are taken from the last column, {name}; --label NAME names another.")
    free = [i for i in free if i != at_label]
    left = rows + [i for i in free if chosen or (i in text and distinct(i))]
    features = chosen or [i for i in free if i not in left]
    if left:
        shown = ", ".join(repr(names[i]) if headed else f"number {i + 1}" for i in left[:5]) + ", ..." * (len(left) > 5)
        why = "the head does not take them" if chosen else "they number or name the rows"
        notes.append(f"Columns left out, for {why}: {shown}.")
    require(bool(features), "data", path, "at least one column of numbers beside the labels")
    twice = next((names[i] for i in features if headed and names.count(names[i]) > 1), None)
    require(twice is None, "data", path, f"a name of its own for every column, {twice!r} is there twice")
    if takes is not None and len(features) != takes.count:
        raise InputError(
            f"data={path}: has {len(features)} columns beside the labels, but the head takes {takes.count}."
        )
    kept = tuple(names) if headed else None
    return Layout(path, len(names), kept, tuple(features), at_label, at_fine, frozenset(text), tuple(notes))


def label_column(cells: NDArray[Any], text: bool, layout: Layout, column: int, first: int = 0) -> NDArray[Any]:
    """A column of labels as whole numbers, numbers or text, all of one kind; ``first`` is the row it begins at."""
    if cells.dtype.kind in "iub":
        return cells
    if cells.dtype.kind in "OUS":
        odd = next(
            (row for row, cell in enumerate(cells) if isinstance(cell, (dict, list, tuple, set, np.ndarray))), None
        )
        if odd is not None:
            raise layout.bad(first + odd, column, cells[odd], "a number or a text as label")
        plain = ["" if cell is None else _text(cell) for cell in cells]
        empty = [cell.lower() in ("", "nan") for cell in plain]
        if any(empty):
            row = empty.index(True)
            raise layout.bad(first + row, column, plain[row], "a label in every row")
        strings = np.array(plain)
        if not text:
            mixed = next((row for row, cell in enumerate(plain) if not is_number_text(cell)), None)
            if mixed is not None:
                raise layout.bad(first + mixed, column, plain[mixed], "a number, as in other rows: labels of one kind")
            return as_whole_numbers(strings)
        mixed = next((row for row, cell in enumerate(plain) if is_number_text(cell)), None)
        if mixed is not None:
            raise layout.bad(first + mixed, column, plain[mixed], "text, as in other rows: labels of one kind")
        return strings
    finite = np.isfinite(cells)
    if not finite.all():
        row = int(np.argmin(finite))
        raise layout.bad(first + row, column, float(cells[row]), "a label in every row")
    return as_whole_numbers(cells)


def _text(cell: Any) -> str:
    return (cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)).strip()


def as_whole_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers as int64, others as float64; ``values`` are numbers, or texts that are."""
    if values.dtype.kind in "iub":
        return values
    try:
        if values.dtype.kind == "U":
            return values.astype(np.int64)  # exact beyond 2^53
    except (ValueError, OverflowError):
        pass
    floats = values.astype(np.float64)
    exact = bool((np.isfinite(floats) & (floats == np.floor(floats)) & (np.abs(floats) < 2**53)).all())
    return floats.astype(np.int64) if exact else floats


def names_rows(cells: Sequence[object]) -> bool:
    """Is a column of text different in every row, and is that no accident?"""
    return len(cells) >= FEWEST and len(set(cells)) == len(cells)


def is_number_text(cell: str) -> bool:
    """Is it a number as Python reads one?"""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _column_of(option: str, given: str | None, names: Sequence[str], headed: bool, path: Path) -> int | None:
    """The column called ``given``; without a header, the column of that number, counted from 1."""
    if given is None:
        return None
    if headed:
        require(given in names, option, given, f"a column of {path.name}, it has {_shortened(names)}")
        return list(names).index(given)
    good = given.isdecimal() and 1 <= int(given) <= len(names)
    require(good, option, given, f"a column number from 1 to {len(names)}: {path.name} has no header")
    return int(given) - 1


def _places_of(wanted: Sequence[str], names: Sequence[str], path: Path) -> list[int]:
    place = {name: i for i, name in reversed(list(enumerate(names)))}
    missing = [name for name in wanted if name not in place]
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    if missing:
        raise InputError(
            f"data={path}: has no column {missing[0]!r}{more}, which the head takes; it has {_shortened(names)}."
        )
    return [place[name] for name in wanted]


def _shortened(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f", ... ({len(names)} in all)" if len(names) > 8 else "")
