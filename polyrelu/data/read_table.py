"""Rows with labels of any kind by what a person types, and the places of labels among classes that are known."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from polyrelu.data.dataset import Dataset
from polyrelu.data.spec import read
from polyrelu.data.splits import SPLITS
from polyrelu.data.tables.columns import InputSchema, is_number_text
from polyrelu.data.tables.table import TABLE_SUFFIXES, Table, read_table_file
from polyrelu.errors import InputError, require


def read_table(
    text: str, *, label: str | None = None, fine: str | None = None, takes: InputSchema | None = None
) -> Table:
    """The table in a file (`read_table_file`), in a part of one (FILE:train, FILE:test), or the set that `read` finds.

    Of a set that is no file of its own (digits:parity, FILE:mod10, a recipe) ``fine="cluster"`` are the finer labels.
    """
    require(isinstance(text, str) and bool(text.strip()), "data", repr(text), "a file, a name or a recipe")
    text = text.strip()
    file, _, rest = text.partition(":")
    path = Path(text)
    if path.suffix.lower() in TABLE_SUFFIXES:
        return read_table_file(path, label=label, fine=fine, takes=takes)
    if Path(file).suffix.lower() in TABLE_SUFFIXES and rest in SPLITS:
        return read_table_file(file, label=label, fine=fine, takes=takes).part(rest)
    data = read(text)
    require(label is None, "label", label, f"no --label: {text} is not a file with columns")
    require(fine in (None, "cluster"), "fine", fine, f"cluster, the finer labels of {text}")
    require(fine is None or data.cluster is not None, "fine", fine, f"a set with finer labels, {text} has none")
    if takes is not None and data.dim != takes.count:
        raise InputError(f"data={text}: has {data.dim} columns, but the head takes {takes.count}.")
    return dataset_as_table(data, fine is not None)


def dataset_as_table(data: Dataset, fine: bool = False) -> Table:
    """A `Dataset` as a table; +1/-1 are whole numbers."""
    extra = {name: part for name in ("cluster", "centres") if (part := getattr(data, name)) is not None}
    y = data.y.to(torch.int64).numpy()
    sub = extra["cluster"].numpy() if fine else None
    return Table(data.rows().numpy(), y, sub, name=data.name, extra=extra)


def class_indices(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Where each label stands among ``classes``, -1 for one that is none of them; 1, 1.0 and "1" are the same label."""
    texts = [part.dtype.kind in "OU" for part in (y, classes)]
    plain = _number if any(texts) and not all(texts) else _same
    known = {plain(label): place for place, label in enumerate(classes.tolist())}
    return np.array([known.get(plain(label), -1) for label in y.tolist()], dtype=np.int64)


def _same(label: Any) -> Any:
    return label.strip() if isinstance(label, str) else label


def _number(label: Any) -> Any:
    """For text beside numbers: both as numbers, and whatever is none as text."""
    text = str(label).strip()
    return float(text) if is_number_text(text) and math.isfinite(float(text)) else text
