"""A sweep: one function and the settings it is called with, from Python or from a TOML or JSON file."""

from __future__ import annotations

import itertools
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from polyrelu.checks import checked, value_text
from polyrelu.errors import InputError, nearest, require
from polyrelu.files import read_text
from polyrelu.sweep.function import check_settings, find_function
from polyrelu.sweep.record import decode, encode

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FIELDS = ("function", "grid", "fixed", "settings", "time_limit")
MAX_SETTINGS = 1_000_000  # settings of a grid


@final
@dataclass(frozen=True)
class Sweep:
    """``function`` ("package.module:name") called once for each of ``settings``, which are plain values.

    ``time_limit`` : seconds one of them may take, None for no limit; no result depends on it
    """

    function: str
    settings: Sequence[Mapping[str, Any]]
    time_limit: float | None = None

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit)
        require(isinstance(self.function, str), "function", self.function, 'text such as "package.module:function"')
        listed = isinstance(self.settings, Iterable) and not isinstance(self.settings, str | bytes | Mapping)
        require(listed, "settings", value_text(self.settings), "a list of tables of settings by name")
        plain = []
        for number, one in enumerate(self.settings):
            require(isinstance(one, Mapping), f"settings[{number}]", one, "a table of settings by name")
            try:
                plain.append(decode(encode(one, f"settings[{number}]")))
            except TypeError as error:
                raise InputError(f"{error}.") from None
        object.__setattr__(self, "settings", tuple(plain))

    @classmethod
    def grid(cls, function: str, grid: Mapping[str, Sequence[Any]], fixed: Mapping[str, Any] | None = None) -> Sweep:
        """Every combination of the lists in ``grid``, the last one changing fastest, each with all of ``fixed``."""
        fixed = {} if fixed is None else fixed
        for name, table in (("grid", grid), ("fixed", fixed)):
            require(isinstance(table, Mapping), name, value_text(table), "a table of settings by name")
        require(len(grid) > 0, "grid", dict(grid), "at least one list of values")
        for key, values in grid.items():
            listed = isinstance(values, Sequence) and not isinstance(values, str | bytes)
            require(listed, f"grid.{key}", values, f"a list of values; one value for all settings goes to fixed.{key}")
            require(len(values) > 0, f"grid.{key}", values, "at least one value")
            require(key not in fixed, f"grid.{key}", values, f"a setting not also in fixed ({fixed.get(key)})")
        count = math.prod(len(values) for values in grid.values())
        require(count <= MAX_SETTINGS, "grid", f"{count:,} settings", f"at most {MAX_SETTINGS:,}")
        rows = itertools.product(*grid.values())
        return cls(function, [{**dict(zip(grid, row, strict=True)), **fixed} for row in rows])

    @classmethod
    @checked
    def read(cls, path: str | Path, *, call: bool = False) -> Sweep:
        """The sweep in a .toml or .json file: ``function``, ``fixed``, ``grid`` or ``settings``, ``time_limit`` if any.

        call : also import the function and see that it takes every setting
        """
        text, content = _parse(Path(path))
        try:
            sweep = replace(_sweep_of(content), time_limit=content.get("time_limit"))
            if call:
                check_call(sweep)
            return sweep
        except InputError as error:
            raise InputError(f"{path}{_line(text, str(error))}: {error}") from None


def _parse(path: Path) -> tuple[str, Any]:
    require(path.suffix in (".toml", ".json"), "file", path, "a sweep file that ends in .toml or .json")
    try:
        text = read_text(path, "utf-8-sig")
    except OSError as error:
        raise InputError(f"file={path}: expected a sweep file that can be read ({error.strerror}).") from None
    except UnicodeDecodeError as error:
        raise InputError(f"file={path}: expected text in UTF-8 ({error.reason} at byte {error.start}).") from None
    kind = path.suffix[1:].upper()
    try:
        return text, tomllib.loads(text) if kind == "TOML" else json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"{path}: expected {kind}; {error.msg} ({where}: {_excerpt(text, error.lineno)}).") from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError and names the line itself
        line = re.search(r"line (\d+)", str(error))
        there = f": {_excerpt(text, int(line[1]))}" if line else ""
        raise InputError(f"{path}: expected {kind}; {error}{there}.") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """TOML forbids a key that is there twice; JSON would keep the last one in silence."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} is there twice in one table")
        found[key] = value
    return found


def _sweep_of(content: Any) -> Sweep:
    require(isinstance(content, dict), "content", type(content).__name__, f"a table with {', '.join(FIELDS)}")
    for key in content:
        if key not in FIELDS:
            raise InputError(f"{key}: expected one of {', '.join(FIELDS)}{nearest(key, FIELDS)}.")
    require("function" in content, "function", "nothing", 'text such as function = "package.module:name"')
    both = "grid" in content and "settings" in content
    require(not both, "grid", content.get("grid"), "either a grid or settings, both are there")
    require("grid" in content or "settings" in content, "grid", "nothing", "either a grid or settings")
    for key in ("grid", "fixed"):
        require(isinstance(content.get(key, {}), dict), key, content.get(key), "a table of settings by name")
    fixed = content.get("fixed", {})
    if "grid" in content:
        return Sweep.grid(content["function"], content["grid"], fixed)
    settings = content["settings"]
    require(isinstance(settings, list) and len(settings) > 0, "settings", settings, "a list of at least one table")
    for number, one in enumerate(settings):
        require(isinstance(one, dict), f"settings[{number}]", one, "a table of settings by name")
        twice = [key for key in one if key in fixed]
        require(not twice, f"settings[{number}]", one, f"settings that are not also in fixed ({', '.join(twice)})")
    return Sweep(content["function"], [{**one, **fixed} for one in settings])


def check_time_limit(seconds: Any) -> None:
    """Refuse what is neither None nor a number of seconds."""
    good = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds < math.inf
    require(seconds is None or good, "time_limit", seconds, "a number of seconds > 0, or nothing for no limit")


def check_call(sweep: Sweep) -> None:
    """Refuse a function that is not there and settings that it does not take or lacks."""
    function = find_function(sweep.function)
    for number, settings in enumerate(sweep.settings):
        try:
            check_settings(sweep.function, function, settings)
        except InputError as error:
            raise InputError(f"{str(error).removesuffix('.')} (setting number {number + 1}).") from None


def _line(text: str, message: str) -> str:
    """``" (line 4)"``: where the key that a message begins with is set, if that is in one place only."""
    table, key = re.match(r"(?:(\w+)\.)?(\w*)", message).groups()  # type: ignore[union-attr]
    lines, inside = [], ""
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([\w.]+)", line)
        inside = header[1] if header else inside
        named = table is None or inside == table or re.search(rf'\b{table}\b"?\s*[.=:]', line)
        if named and re.search(rf'(^|[{{,\[.]|\s)"?{key}"?\s*[=:\].]', line):
            lines.append(number)
    return f" (line {lines[0]})" if len(lines) == 1 else ""


def _excerpt(text: str, line: int) -> str:
    lines = text.splitlines()
    return lines[line - 1].strip()[:60] if 0 < line <= len(lines) else "end of the file"
