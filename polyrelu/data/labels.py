"""Labels as they are kept: +1/-1 as floating numbers, or classes 0..C-1 as int64."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from polyrelu.checks import plain_tensor
from polyrelu.errors import InputError, require

_ALLOWED = "+1 or -1, or classes 0, 1, ... of an integer type"


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
        require(False, f"y[{first}]", f"{labels[first].item():g}", _ALLOWED)
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
    require(
        index.shape == (rows,), "cluster", f"shape {tuple(index.shape)}", f"one number per row of X, shape ({rows},)"
    )
    integer = not (index.is_floating_point() or index.is_complex() or index.dtype == torch.bool)
    require(integer, "cluster", f"{index.dtype} numbers", "an integer type")
    index = index.to(device, torch.int64)
    require(bool(index.min() >= 0), "cluster", int(index.min()), "cluster numbers >= 0")
    return index
