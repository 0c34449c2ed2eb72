"""A file as a `Dataset`: what `table` reads, with labels that are +1/-1 or 0, 1, ..., C-1.

What a file holds is turned into numbers as exactly as they are stored (whole numbers become floats that hold them, a
table of text becomes float64); nothing is scaled.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyrelu.data.dataset import Dataset
from polyrelu.data.tables.archives import label_file
from polyrelu.data.tables.table import as_floats, open_table
from polyrelu.errors import InputError, require

ADVICE = "expected +1/-1, or classes numbered 0, 1, ..., C-1"


def read_dataset_file(path: Path) -> Dataset:
    """The set in a file, read by how its name ends; every complaint names the file."""
    table = open_table(path)
    if table.y is None:
        beside = f"its labels beside it in {label_file(path).name}"
        require(False, "data", path, beside if path.suffix.lower() == ".npy" else "X (n, D) and y (n,) inside")
    try:
        y = as_label_numbers(table.y)
        return Dataset(as_floats(table.X), y, table.extra.get("cluster"), table.extra.get("centres"), name=path.name)
    except InputError as error:
        raise InputError(f"data={path}: {error}") from None


def as_label_numbers(y: Any) -> Any:
    """+1/-1, or int64 classes that begin at 0 (whole floats, as tables hold them, included); no other set of labels.

    Guessing would hide mistakes: {1, 2} may be classes counted from one or a set without its class 0.
    """
    array: NDArray[Any] = np.asarray(y)
    if array.dtype.kind in "USO":
        texts = sorted({str(label) for label in array.ravel()[:1000]})
        some = ", ".join(texts[:3]) + ", ..." * (len(texts) > 3)
        raise InputError(
            f"labels are text ({some}): {ADVICE}; number them, as np.unique(y, return_inverse=True)[1] does."
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
