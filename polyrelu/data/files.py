"""People's own files as they are: rows and labels out of .npz, .npy, .csv, .parquet and .safetensors.

Reading never runs code: pickles are refused everywhere. What a file holds is turned into numbers as exactly as they are
stored (whole numbers become floats that hold them, a table of text becomes float64); scaling is left to people.
"""

from __future__ import annotations

import csv
import importlib
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from polyrelu.data.dataset import Dataset
from polyrelu.errors import InputError, require

LABELS = ("y", "label")  # names of a label column, in whatever case; without them it is the last one
ADVICE = "expected +1/-1, or classes numbered 0, 1, ..., C-1"
DAMAGED = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    zipfile.BadZipFile,
    zlib.error,
    csv.Error,
    SafetensorError,
    RuntimeError,
)
Parts = Mapping[str, Any]


def read_file(path: Path) -> Dataset:
    """The set in a file, read by how its name ends; every complaint names the file."""
    suffix = path.suffix.lower()
    require(suffix in READERS, "data", path, f"a file that ends in {', '.join(READERS)}")
    require(not path.is_dir(), "data", path, "a file, this is a folder")
    require(path.is_file(), "data", path, "an existing file")
    try:
        parts = READERS[suffix](path)
    except InputError:
        raise
    except DAMAGED as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        if "pickle" in reason:  # numpy's advice is to allow pickles, which is what nobody should do here
            reason = "it holds Python objects, or no numbers at all"
        raise InputError(
            f"data={path}: expected a whole {suffix} file; it is cut short or foreign ({reason})."
        ) from None
    try:
        y = as_label_numbers(parts["y"])
        return Dataset(as_floats(parts["X"]), y, parts.get("cluster"), parts.get("centres"), name=path.name)
    except InputError as error:
        raise InputError(f"data={path}: {error}") from None


def as_floats(X: Any) -> Any:
    """Whole numbers and booleans as floats that hold them exactly; everything else as it is."""
    if isinstance(X, torch.Tensor):
        small = X.element_size() <= 2
        return X if X.is_floating_point() else X.to(torch.float32 if small else torch.float64)
    if X.dtype.kind in "iub":
        return X.astype(np.float32 if X.dtype.itemsize <= 2 else np.float64)
    return X


def as_label_numbers(y: Any) -> Any:
    """+1/-1, or int64 classes that begin at 0 (whole floats, as tables hold them, included); no other set of labels.

    Guessing would hide mistakes: {1, 2} may be classes counted from one or a set without its class 0.
    """
    array: NDArray[Any] = y.numpy() if isinstance(y, torch.Tensor) else np.asarray(y)
    if array.dtype.kind in "USO":
        shown = ", ".join(sorted({str(label) for label in array.ravel()[:1000]})[:3])
        raise InputError(
            f"labels are text ({shown}, ...): {ADVICE}; number them, as np.unique(y, return_inverse=True)[1] does."
        )
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.dtype.kind not in "iufb" or array.ndim != 1 or not array.size:
        return array  # a shape or type that Dataset describes better
    require(bool(np.isfinite(array).all()), "y", "NaN or infinity", "a label in every row")
    found = np.unique(array)
    if found.tolist() in ([-1, 1], [1], [-1]):
        return array.astype(np.float64)
    shown = ", ".join(f"{label:g}" for label in found[:4].tolist()) + (", ..." if len(found) > 4 else "")
    if not (found == np.floor(found)).all():
        raise InputError(f"labels {shown}: {ADVICE}, these are not whole numbers.")
    if found[0] < 0:
        raise InputError(f"labels {shown}: {ADVICE}; renumber them.")
    if found[0] > 0:
        raise InputError(f"labels {shown}: {ADVICE}; subtract {found[0]:g}, or add rows of the classes below it.")
    return array.astype(np.int64)


def label_file(path: Path) -> Path:
    """Where the labels of ``path`` are: a name that ends in X has y instead, any other gets ``_y`` added.

    X.npy and y.npy, train_X.npy and train_y.npy, embeddings.npy and embeddings_y.npy.
    """
    stem = path.stem[:-1] + "y" if path.stem.endswith("X") else path.stem + "_y"
    return path.with_name(stem + path.suffix)


def _npz(path: Path) -> Parts:
    with path.open("rb") as file:  # numpy would leave a damaged one open
        stored = np.load(file, allow_pickle=False)
        if not isinstance(stored, np.lib.npyio.NpzFile):
            raise InputError(f"data={path}: expected an .npz archive, this is a single array; name it .npy.")
        return _named({name: stored[name] for name in _wanted(stored.files)}, path, stored.files)


def _safetensors(path: Path) -> Parts:
    with safe_open(path, framework="pt") as file:
        names = list(file.keys())
        if (file.metadata() or {}).get("format") == "polyrelu-net":
            raise InputError(f"data={path}: expected data, this is a net; the order is NET, then DATA.")
        return _named({name: file.get_tensor(name) for name in _wanted(names)}, path, names)


def _wanted(names: Sequence[str]) -> list[str]:
    """Of the names in an archive, those of a set; X may be written x."""
    rows = "X" if "X" in names else "x"
    return [name for name in (rows, "y", "cluster", "centres") if name in names]


def _named(parts: dict[str, Any], path: Path, names: Sequence[str]) -> Parts:
    if "x" in parts:
        parts["X"] = parts.pop("x")
    missing = [name for name in ("X", "y") if name not in parts]
    found = ", ".join(names) or "nothing"
    require(not missing, "data", path, f"X (n, D) and y (n,) inside, it holds {found}")
    return parts


def _npy(path: Path) -> Parts:
    """Rows stay in the file and are read by blocks; labels come from the file beside it."""
    labels = label_file(path)
    require(labels.is_file(), "data", path, f"its labels beside it in {labels.name}")
    return {"X": np.load(path, mmap_mode="r", allow_pickle=False), "y": np.load(labels, allow_pickle=False)}


def _csv(path: Path) -> Parts:
    try:
        lines = [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise InputError(f"data={path}: expected a text file in UTF-8.") from None
    require(bool(lines), "data", path, "rows of numbers, the file is empty")
    first = [cell.strip() for cell in next(csv.reader(lines[:1]))]
    headed = any(cell.lower() in LABELS for cell in first) or not any(_number(cell) for cell in first)
    rows = lines[1:] if headed else lines
    require(bool(rows), "data", path, "rows of numbers below its header")
    label = _label_column(first if headed else [], len(first), path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            table = np.loadtxt(rows, delimiter=",", quotechar='"', comments=None, ndmin=2)
    except (ValueError, UserWarning) as error:
        raise InputError(_bad_cell(path, rows, first, headed, label, error)) from None
    require(table.shape[1] == len(first), "data", path, f"{len(first)} columns in every row, as in the first line")
    return {"X": np.delete(table, label, axis=1), "y": table[:, label]}


def _bad_cell(path: Path, rows: list[str], first: list[str], headed: bool, label: int, error: Exception) -> str:
    """What is wrong with a table, by the first place where it is."""
    labels = {row[label] for row in csv.reader(rows) if len(row) == len(first)}
    if labels and not any(_number(text) for text in labels):
        shown = ", ".join(sorted(labels)[:3])
        return f"data={path}: labels are text ({shown}): {ADVICE}; number them in the file."
    for line, row in enumerate(csv.reader(rows), start=1):
        if len(row) != len(first):
            return f"data={path}: data row {line} has {len(row)} columns: expected {len(first)}, as in the first line."
        for column, cell in enumerate(row):
            if not _number(cell):
                name = first[column] if headed else f"number {column + 1}"
                return f"data={path}: data row {line}, column {name}: expected a number, found {cell.strip()!r}."
    return f"data={path}: expected rows of numbers with commas between them ({error})."


def _parquet(path: Path) -> Parts:
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InputError(
            f"data={path}: expected pyarrow, which reads .parquet; pip install pyarrow, or write it as .npz or .csv."
        ) from None
    table = parquet.read_table(path)
    names = [str(name) for name in table.column_names]
    label = _label_column(names, len(names), path)
    columns = [np.asarray(table.column(number).to_numpy()) for number in range(len(names))]
    for name, column in zip(names, columns, strict=True):
        good = column.dtype.kind in "iufb" or name == names[label]
        require(good, "data", path, f"numbers in every column, column {name} holds {column.dtype}")
    return {"X": np.stack(columns[:label] + columns[label + 1 :], axis=1), "y": columns[label]}


def _label_column(names: list[str], count: int, path: Path) -> int:
    """The column called y or label, in whatever case, else the last."""
    require(count > 1, "data", path, "at least one column of numbers and one of labels, separated by commas")
    lowered = [name.lower() for name in names]
    return next((lowered.index(name) for name in LABELS if name in lowered), count - 1)


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


READERS: dict[str, Callable[[Path], Parts]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".csv": _csv,
    ".parquet": _parquet,
    ".safetensors": _safetensors,
}
