"""What is kept of one setting, and what names it: key = sha256(function, version, settings)[:20].

Values are strict JSON: nan and infinities as {"$float": "nan"}, arrays and tensors as lists. Unambiguous: keys of the
user that begin with "$" are written with one "$" more, so decode(encode(x)) == x.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

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


def key_of(function: str, version: str, settings: Mapping[str, Any]) -> str:
    """The name of a setting's files."""
    return digest({"function": function, "version": version, "settings": encode(settings)})


@final
@dataclass(frozen=True)
class Record:
    """One setting that was run: what it gave, or the error (one line; "" for a success).

    ``file`` is relative to the output folder; ``seconds`` is the time of the call; ``details`` holds the traceback and
    the last output of a failure; ``versions`` are those it was computed with. ``time_limit`` is that of a setting that
    was ended because it took longer.
    """

    key: str
    settings: Mapping[str, Any]
    result: Any | None
    error: str
    file: str
    seconds: float
    details: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    time_limit: float | None = None

    @property
    def failed(self) -> bool:
        """Was there an error?"""
        return bool(self.error)

    def worth_another_try(self, time_limit: float | None) -> bool:
        """Was it ended by a time limit, and is there more time now?"""
        return self.time_limit is not None and (time_limit is None or time_limit > self.time_limit)


@final
@dataclass(frozen=True)
class FunctionVersion:
    """A function by name, "package.module:name", and the version of its source."""

    name: str
    version: str


@final
@dataclass(frozen=True)
class EngineResult:
    """What an engine brings back for one setting: an encoded result, or an error and its details."""

    key: str
    result: Any = None
    error: str = ""
    details: str = ""
    seconds: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)
    time_limit: float | None = None


def out_of_time(key: str, limit: float, output: str = "") -> EngineResult:
    """The result of a setting that took longer than the limit and was ended."""
    error = f"time limit: not done after {limit:g} s, ended; more time is another try"
    return EngineResult(key, error=error, details=output, seconds=limit, time_limit=limit)
