"""Named arrays: rows, labels and sub-classes out of .npz, .npy and .safetensors. Pickles are refused everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from safetensors import safe_open

from polyrelu.arrays import is_npy, map_npy, open_npz, read_npy
from polyrelu.errors import InputError, require
from polyrelu.files import is_file

ROWS = ("X", "x", "embeddings", "embedding", "features", "data", "inputs", "arr_0")
LABELS = ("y", "label", "labels", "target", "targets", "class", "classes", "arr_1")  # in whatever case
EXTRA = ("cluster", "centres")  # the hidden structure that a Dataset keeps
Arrays = Mapping[str, NDArray[Any]]
Found = tuple[Arrays, list[str], str | None]  # arrays, what was guessed, what the labels are called


def label_file(path: Path) -> Path:
    """Where the labels of ``path`` are: a name that ends in X has y instead, any other gets ``_y`` added.

    X.npy and y.npy, train_X.npy and train_y.npy, embeddings.npy and embeddings_y.npy.
    """
    stem = path.stem[:-1] + "y" if path.stem.endswith("X") else path.stem + "_y"
    return path.with_name(stem + path.suffix)


def npz(path: Path, label: str | None, fine: str | None, usual_label: str | None) -> Found:
    """The arrays of a set by the names X, y, fine, cluster, centres, and what was guessed.

    ``label`` and ``fine`` are names that must be there; ``usual_label``, what a head's labels were called, need not.
    """
    if is_npy(path):
        raise InputError(f"data={path}: expected an .npz archive, this is a single array; name it .npy.")
    with open_npz(path) as stored:
        return _select_arrays(stored.names, stored.__getitem__, path, label, fine, usual_label)


def safetensors(path: Path, label: str | None, fine: str | None, usual_label: str | None) -> Found:
    """The same out of a .safetensors file; a saved net is refused."""
    with safe_open(path, framework="pt") as file:
        if (file.metadata() or {}).get("format") == "polyrelu-net":
            raise InputError(f"data={path}: expected data, this is a net; the order is NET, then DATA.")

        def array(name: str) -> NDArray[Any]:
            tensor: torch.Tensor = file.get_tensor(name)
            plain: NDArray[Any] = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
            return plain

        return _select_arrays(list(file.keys()), array, path, label, fine, usual_label)


def npy(path: Path, label: str | None, fine: str | None, usual_label: str | None) -> Found:
    """Rows stay in the file and are read by blocks; labels come from the file beside it, or the one that is named."""
    found = {"X": map_npy(path)}
    notes = []
    for part, given in (("y", label), ("fine", fine)):
        file = _existing_file(path, part, given) if given else label_file(path)
        if given or (part == "y" and file.is_file()):
            found[part] = read_npy(file)
        if part == "y" and not given and file.is_file():
            notes.append(f"Labels are those in {file.name}.")
    return found, notes, None


def _existing_file(path: Path, part: str, given: str) -> Path:
    file = next((file for file in (Path(given), path.parent / given) if is_file(file)), None)
    option = "label" if part == "y" else part
    require(file is not None, option, given, f"an .npy file, here or beside {path.name}")
    assert file is not None
    return file


def _select_arrays(
    names: Sequence[str],
    array: Callable[[str], NDArray[Any]],
    path: Path,
    label: str | None,
    fine: str | None,
    usual_label: str | None,
) -> Found:
    """X by its usual names; y by the name given or its usual ones; only what is wanted is read."""
    label = label or (usual_label if usual_label in names else None)
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
    return found, notes, y
