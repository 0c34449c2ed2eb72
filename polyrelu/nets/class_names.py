"""Class names beside a net, as JSON: numbers, booleans or text, back in the very type they had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from polyrelu.errors import require

HEAD_VERSION = 1
KINDS = {"b": "bool", "i": "int", "u": "int", "f": "float", "U": "str"}
ALLOWED = "whole numbers, floating numbers, booleans or text"


def classes_to_json(classes: npt.NDArray[Any], name: str = "classes") -> dict[str, Any]:
    """{name: values, name_kind: "int", "float", "bool" or "str", name_dtype: as numpy writes it}."""
    text = classes.dtype.kind == "O" and all(isinstance(one, str) for one in classes)
    kind = "str" if text else KINDS.get(classes.dtype.kind)
    require(kind is not None, name, f"labels of type {classes.dtype}", f"{ALLOWED}; others cannot be kept in a file")
    return {name: classes.tolist(), f"{name}_kind": kind, f"{name}_dtype": classes.dtype.str}


def classes_from_json(about: Mapping[str, Any], path: object, name: str = "classes") -> npt.NDArray[Any]:
    """The inverse of `classes_to_json`, for what was read from ``path``."""
    values, kind, dtype = (about.get(key) for key in (name, f"{name}_kind", f"{name}_dtype"))
    whole = isinstance(values, list) and isinstance(kind, str) and isinstance(dtype, str)
    require(whole, "path", path, f"a head saved by PolyReLUClassifier.save, this file names no {name}")
    good = dtype == "|O" and kind == "str" if dtype[1:2] == "O" else KINDS.get(dtype[1:2]) == kind  # type: ignore[index]
    good = good and all(isinstance(one, (str, bool, int, float)) for one in values)  # type: ignore[union-attr]
    require(good, "path", path, f"{name} that are {ALLOWED}, the file says {kind} in {dtype}")
    try:
        found = np.array(values, dtype=dtype)
    except (ValueError, OverflowError, TypeError):
        found = np.empty(0)
    good = found.shape == (len(values),) and found.tolist() == values and len(found) > 0  # type: ignore[arg-type]
    require(good, "path", path, f"{name} that fit the type {dtype}, the file has others")
    return found
