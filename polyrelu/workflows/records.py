"""The JSON file in an output folder that says what was run there; and the command line that runs it again."""

from __future__ import annotations

import csv
import json
import math
import platform
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from polyrelu._version import __version__
from polyrelu.errors import require
from polyrelu.files import parse_json, read_text, write_atomically


def to_argv(*words: str, **options: Any) -> str:
    """``polyrelu WORDS --option value ...``: None, False and what is empty is left out; a list repeats its option."""
    line = ["polyrelu", *words]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        for one in value if isinstance(value, list | tuple) else [value]:
            if one is True:
                line.append(option)
            elif one is not None and one is not False and one != "":
                line += [option, text(one)]
    return shlex.join(line)


def text(value: object) -> str:
    """A value as a person would type it."""
    if value is True:
        return "yes"
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def versions() -> dict[str, str]:
    """What computed the numbers."""
    import torch

    return {"python": platform.python_version(), "torch": str(torch.__version__), "polyrelu": __version__}


def plain(value: Any) -> Any:
    """As JSON can hold it: arrays as lists, None for infinity and NaN."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_record(path: Path, record: dict[str, Any], indent: int = 2, ensure_ascii: bool = True) -> None:
    """Write it, whole or not at all."""
    lines = json.dumps(record, indent=indent, allow_nan=False, ensure_ascii=ensure_ascii) + "\n"
    write_atomically(path, lambda temporary: temporary.write_text(lines, encoding="utf-8"))


def read_record(path: Path, kind: str, expected: str, **types: type) -> dict[str, Any] | None:
    """The record of a format, with fields of these types; None if there is no file, others are refused."""
    try:
        record = parse_json(read_text(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        record = None
    good = isinstance(record, dict) and record.get("format") == kind
    good = good and all(isinstance(record.get(name), wanted) for name, wanted in types.items())
    require(good, "out", path, expected)
    return dict(record)


def require_replaceable(out: Path, is_ours: Callable[[Path], bool], otherwise: str) -> None:
    """Nothing is there yet, or what the same command wrote (``is_ours``); ``otherwise`` says what else it is."""
    require(not out.is_dir(), "out", out, "a file, this is a folder")
    if out.exists():
        require(out.is_file(), "out", out, "the name of an ordinary file")
        require(is_ours(out), "out", out, f"another name: it is there and {otherwise}")


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table, whole or not at all."""

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows([header, *rows])

    write_atomically(path, write)
