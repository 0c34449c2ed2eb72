"""Named arrays: rows, labels and sub-classes out of .npz, .npy and .safetensors. Pickles are refused everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open

from polyrelu.arrays import is_npy, map_npy, open_npz, read_npy
from polyrelu.data.tables.columns import LABELS, InputSchema, Table, as_whole_numbers
from polyrelu.errors import InputError, require
from polyrelu.files import is_file

ROWS = ("X", "x", "embeddings", "embedding", "features", "data", "inputs", "arr_0")
EXTRA = ("cluster", "centres")  # the hidden structure that a Dataset keeps


def label_file(path: Path) -> Path:
    """Where the labels of ``path`` are: a name that ends in X has y instead, any other gets ``_y`` added.

    X.npy and y.npy, train_X.npy and train_y.npy, embeddings.npy and embeddings_y.npy.
    """
    stem = path.stem[:-1] + "y" if path.stem.endswith("X") else path.stem + "_y"
    return path.with_name(stem + path.suffix)


def npz(path: Path, label: str | None, fine: str | None, takes: InputSchema | None) -> Table:
    """The table in an .npz; ``label`` and ``fine`` are names that must be there, those that a head knows need not."""
    if is_npy(path):
        raise InputError(f"data={path}: expected an .npz archive, this is a single array; name it .npy.")
    with open_npz(path) as stored:
        return _select_arrays(stored.names, stored.__getitem__, path, label, fine, takes)


def safetensors(path: Path, label: str | None, fine: str | None, takes: InputSchema | None) -> Table:
    """The same out of a .safetensors file; a saved net is refused."""
    with safe_open(path, framework="pt") as file:
        if (file.metadata() or {}).get("format") == "polyrelu-net":
            raise InputError(f"data={path}: expected data, this is a net; the order is NET, then DATA.")

        def array(name: str) -> NDArray[Any]:
            tensor: torch.Tensor = file.get_tensor(name)
            plain: NDArray[Any] = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
            return plain

        return _select_arrays(list(file.keys()), array, path, label, fine, takes)


def npy(path: Path, label: str | None, fine: str | None, takes: InputSchema | None) -> Table:
    """Rows stay in the file and are read by blocks; labels come from the file beside it, or the one that is named."""
    found, notes, beside = {"X": map_npy(path)}, [], label_file(path)
    for part, option, given in (("y", "label", label), ("fine", "fine", fine)):
        if given:
            files = [file for file in (Path(given), path.parent / given) if is_file(file)]
            require(bool(files), option, given, f"an .npy file, here or beside {path.name}")
            found[part] = read_npy(files[0])
    if not label and beside.is_file():
        found["y"] = read_npy(beside)
        notes.append(f"Labels are those in {beside.name}.")
    return _table(path, found, notes, None, takes)


def _select_arrays(
    names: Sequence[str],
    array: Callable[[str], NDArray[Any]],
    path: Path,
    label: str | None,
    fine: str | None,
    takes: InputSchema | None,
) -> Table:
    """X by its usual names; y by the name given or its usual ones; only what is wanted is read."""
    if takes is not None and takes.label in names:
        label = label or takes.label
    holds = f"it holds {', '.join(names) or 'nothing'}"
    for option, given in (("label", label), ("fine", fine)):
        require(given is None or given in names, option, given, f"the name of an array in {path.name}, {holds}")
    rows = next((name for name in ROWS if name in names and name not in (label, fine)), None)
    require(rows is not None, "data", path, f"X (n, D) and y (n,) inside, {holds}")
    assert rows is not None
    lowered = {name.lower(): name for name in reversed(names) if name not in (rows, fine)}
    y = label or next((lowered[name] for name in LABELS if name in lowered), None)
    found = {"X": array(rows)}
    if y is not None:
        found["y"] = array(y)
    if fine is not None:
        found["fine"] = array(fine)
    found |= {name: array(name) for name in EXTRA if name in names}
    notes = [] if rows in "Xx" else [f"Rows are the array {rows!r}."]
    if y not in (None, "y") and label is None:
        notes.append(f"Labels are the array {y!r}.")
    return _table(path, found, notes, y, takes)


def _table(
    path: Path, parts: Mapping[str, NDArray[Any]], notes: list[str], label: str | None, takes: InputSchema | None
) -> Table:
    X = parts["X"]
    if "cluster" in parts:
        good = parts["cluster"].shape == X.shape[:1]
        require(good, "data", path, f"a cluster for each row of X, {X.shape[:1]}, not {parts['cluster'].shape}")
    y, fine = (None if name not in parts else _label_array(parts[name]) for name in ("y", "fine"))
    if takes is not None and X.ndim == 2 and X.shape[1] != takes.count:
        raise InputError(f"data={path}: has {X.shape[1]} columns, but the head takes {takes.count}.")
    extra = {name: parts[name] for name in EXTRA if name in parts}
    return Table(X, y, fine, None, label, path.name, tuple(notes), extra)


def _label_array(values: NDArray[Any]) -> NDArray[Any]:
    """Labels of an archive: (n, 1) is (n,), bytes are text, whole floats are whole numbers."""
    values = values.reshape(1) if values.ndim == 0 else values
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.dtype.kind == "S":
        return np.char.decode(values, "utf-8")
    if values.dtype.kind == "f" and bool(np.isfinite(values).all()):
        return as_whole_numbers(values)
    return values
