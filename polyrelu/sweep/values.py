"""Values as strict JSON and back: nan and infinities as {"$float": "nan"}, arrays and tensors as lists.

Unambiguous: keys of the user that begin with "$" are written with one "$" more, so decode(encode(x)) == x.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

MARK, FLOAT = "$", "$float"


def encode(value: Any, where: str = "result") -> Any:
    """``value`` as strict JSON; TypeError naming the place where that cannot be."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        number = float(value)
        return number if math.isfinite(number) else {FLOAT: repr(number)}
    if isinstance(value, Mapping):
        return {_key(key, where): encode(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if hasattr(value, "tolist"):  # NumPy arrays and scalars, tensors
        return encode(value.tolist(), where)
    raise TypeError(f"{where}: expected numbers, text, lists or dictionaries, not {type(value).__name__}")


def decode(value: Any) -> Any:
    """The inverse of `encode`."""
    if isinstance(value, dict):
        if value.keys() == {FLOAT}:
            return float(str(value[FLOAT]))
        return {key.removeprefix(MARK): decode(item) for key, item in value.items()}
    return [decode(item) for item in value] if isinstance(value, list) else value


def canonical(encoded: Any) -> str:
    """One text for one value: sorted keys, no spaces."""
    return json.dumps(encoded, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(encoded: Any) -> str:
    """The first 20 hex digits of the sha256 of the canonical text."""
    return hashlib.sha256(canonical(encoded).encode()).hexdigest()[:20]


def _key(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{where}: expected text as keys, not {key!r}")
    return MARK + key if key.startswith(MARK) else str(key)
