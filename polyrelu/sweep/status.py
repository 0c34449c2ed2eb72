"""The content of a sweep's folder: how far it is, its records, and all of them as one table (CSV or JSON lines)."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from polyrelu.checks import checked
from polyrelu.errors import InputError, require
from polyrelu.files import write_atomically
from polyrelu.sweep.folder import SWEEP, Folder, is_running, stored_sweep
from polyrelu.sweep.record import FunctionVersion, Record, encode

TABLES = (".csv", ".jsonl")
FIXED_COLUMNS = ("key", "seconds", "error", "result")  # columns of every table


@final
@dataclass(frozen=True)
class SweepStatus:
    """How far the sweep last asked for in a folder is; ``others`` counts records of further settings."""

    function: str
    version: str
    total: int
    done: int
    failures: tuple[Record, ...]
    others: int
    seconds: float
    at_work: bool

    @property
    def failed(self) -> int:
        """Settings that ended with an error."""
        return len(self.failures)

    @property
    def missing(self) -> int:
        """Settings that were not run yet."""
        return self.total - self.done - self.failed

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        names = ("function", "version", "total", "done", "failed", "missing", "others", "seconds", "at_work")
        failures = [{"settings": encode(one.settings), "error": one.error, "file": one.file} for one in self.failures]
        return {**{name: getattr(self, name) for name in names}, "failures": failures}


@checked
def status(path: str | Path) -> SweepStatus:
    """How far the sweep in this folder is; it may be running."""
    folder, wanted = _open(Path(path))
    records = folder.records(wanted)
    others = folder.other_records(set(wanted))
    failures = tuple(record for record in records if record.failed)
    seconds = sum(record.seconds for record in (*records, *others))
    done, function = len(records) - len(failures), folder.function
    return SweepStatus(
        function.name, function.version, len(wanted), done, failures, len(others), seconds, is_running(folder.path)
    )


@checked
def read_records(path: str | Path) -> list[Record]:
    """Every record of a folder: those last asked for in their order, then the others by key."""
    folder, wanted = _open(Path(path))
    return folder.records(wanted) + folder.other_records(set(wanted))


@checked
def export(path: str | Path, to: str | Path) -> int:
    """Write all records of a folder as a table, one row each, and say how many; a file is there whole or not at all.

    Columns: key, seconds, error, the settings by name, and the numbers and texts of the results by their place,
    "result.margin.median". Lists are left out of a .csv. In a .jsonl nan and infinities are text.
    """
    target = Path(to)
    require(target.suffix in TABLES, "to", to, "a name that ends in .csv or .jsonl")
    rows = [row_of(record) for record in read_records(path)]
    if not target.parent.is_dir():
        raise InputError(f"to={to}: expected a file in a folder that exists.")
    write_atomically(target, lambda temporary: _write(temporary, rows, target.suffix))
    return len(rows)


def row_of(record: Record) -> dict[str, Any]:
    """One record as columns."""
    row: dict[str, Any] = {"key": record.key, "seconds": record.seconds, "error": record.error}
    for name, value in record.settings.items():
        row.update(_flat(f"settings.{name}" if name.partition(".")[0] in FIXED_COLUMNS else name, value))
    return {**row, **_flat("result", record.result)}


def _flat(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {name: value}
    return {place: one for key, item in value.items() for place, one in _flat(f"{name}.{key}", item).items()}


def _write(path: Path, rows: list[dict[str, Any]], kind: str) -> None:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
        if kind == ".jsonl":
            stream.writelines(json.dumps(_text(row), ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
            return
        plain = [{name: value for name, value in row.items() if not isinstance(value, list)} for row in rows]
        columns = dict.fromkeys(name for row in plain for name in row)
        table = csv.DictWriter(stream, list(columns), restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(plain)


def _text(value: Any) -> Any:
    """Numbers that JSON does not have, as text: "nan", "inf", "-inf"."""
    if isinstance(value, dict):
        return {key: _text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_text(item) for item in value]
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def _open(path: Path) -> tuple[Folder, dict[str, Mapping[str, Any]]]:
    """The folder and the settings last asked for, by key."""
    there = stored_sweep(path)
    if there is None:
        raise InputError(f"out={path}: expected the output folder of a sweep; it has no {SWEEP}.")
    folder = Folder(path, FunctionVersion(there["function"], there["version"]))
    return folder, {folder.key(settings): settings for settings in there["settings"]}
