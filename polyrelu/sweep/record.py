"""What is kept of one setting, and what names it: key = sha256(function, version, settings)[:20]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from polyrelu.sweep.values import digest, encode


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
