"""Weights of other people's models: the stored numbers exactly, or a refusal."""

from __future__ import annotations

import importlib
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import nn

from polyrelu.errors import require
from polyrelu.robust.core.model_copy import QUERY


def stored_numbers(value: Any, name: str) -> Any:
    """A float64 copy of the array, the same numbers exactly; of a sparse one too (``sparsify``)."""
    value = value.toarray() if hasattr(value, "toarray") else value
    kind = type(value)
    plain = not isinstance(value, np.ndarray) or kind in (np.ndarray, np.memmap)
    array = np.asarray(value)
    plain = plain and array.dtype.kind in "fiu" and array.dtype.itemsize <= 8
    require(plain, name, f"{kind.__name__} of {array.dtype}", f"plain real numbers, of float64 at most; {QUERY}")
    array = np.array(array, dtype=np.float64)
    require(bool(np.isfinite(array).all()), name, "NaN or infinity", f"finite numbers; {QUERY}")
    return array


def affine_layer(weight: Any, bias: Any, logits: int) -> nn.Linear:
    """x -> weight x + bias with ``logits`` outputs; bias None: none."""
    rows, shift = (
        torch.from_numpy(stored_numbers(0.0 if part is None else part, "weights")) for part in (weight, bias)
    )
    fits = rows.ndim == 2 and len(rows) == logits and shift.numel() in (1, logits)
    shapes = f"{tuple(rows.shape)} and {tuple(shift.shape)}"
    require(fits, "weights", shapes, f"({logits}, D) and ({logits},), as its classes_ say; {QUERY}")
    layer = nn.Linear(rows.shape[1], rows.shape[0], bias=bias is not None, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(rows)
        if bias is not None:
            layer.bias.copy_(shift.reshape(-1).expand(len(rows)))
    return layer.requires_grad_(False)


def call_with_feature_names(model: Any, method: str, X: Any) -> Any:
    """``model.method`` of a copy of plain rows, which get the names of the columns that the model was fitted on."""
    rows, names = np.array(X), getattr(model, "feature_names_in_", None)  # a scaler of copy=False writes into its rows
    if names is not None and find_spec("pandas") is not None:
        rows = importlib.import_module("pandas").DataFrame(rows, columns=names)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return getattr(model, method)(rows)
