"""The output folder of a sweep: results/<key>.json, failures/<key>.json, each whole or not there, and sweep.json.

One run at a time works in a folder (a lock the kernel takes away with the process). Files that are damaged or of
something else count as missing.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from polyrelu.errors import InputError, require
from polyrelu.files import output_folder, parse_json, read_text, write_atomically
from polyrelu.sweep.record import EngineResult, FunctionVersion, Record, decode, digest, encode, key_of

FORMAT = "polyrelu-sweep-1"
SWEEP, RESULTS, FAILURES, LOCK = "sweep.json", "results", "failures", ".lock"
LOCK_TIMEOUT = 60.0  # to wait for processes that test the lock; they release it at once


@final
@dataclass(frozen=True)
class Folder:
    """The folder ``path`` with results of ``function``."""

    path: Path
    function: FunctionVersion

    def write_sweep(self, settings: Sequence[Mapping[str, Any]]) -> None:
        """Write the function and the settings of the latest run."""
        about = {"function": self.function.name, "version": self.function.version, "settings": encode(settings)}
        self._write(self.path / SWEEP, about)

    def write_result(self, result: EngineResult, settings: Mapping[str, Any]) -> Record:
        """Write what came back for a setting; a success replaces an earlier failure."""
        name = f"{FAILURES if result.error else RESULTS}/{result.key}.json"
        outcome = {"error": result.error, "details": result.details} if result.error else {"result": result.result}
        outcome |= {} if result.time_limit is None else {"time_limit": result.time_limit}
        content = {
            "function": self.function.name,
            "version": self.function.version,
            "key": result.key,
            "settings": encode(settings),
            **outcome,
            "seconds": result.seconds,
            "versions": dict(result.versions),
        }
        (self.path / name).parent.mkdir(exist_ok=True)
        self._write(self.path / name, content)
        if not result.error:
            (self.path / FAILURES / f"{result.key}.json").unlink(missing_ok=True)
        return _record(content, name)

    def read(self, key: str) -> Record | None:
        """The record of a setting: its result, else its failure, else None."""
        for kind in (RESULTS, FAILURES):
            name = f"{kind}/{key}.json"
            content = _content(self.path / name)
            if content is None or content.get("key") != key:
                continue
            about = {part: content.get(part) for part in ("function", "version", "settings")}
            if digest(about) == key and ("result" in content) != bool(content.get("error")):
                with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):  # of another version
                    return _record(content, name)
        return None

    def records(self, wanted: Iterable[str]) -> list[Record]:
        """The records of these settings, where there is one."""
        return [record for key in wanted if (record := self.read(key)) is not None]

    def other_records(self, known: set[str]) -> list[Record]:
        """Records of settings that are not among ``known``, by key."""
        keys = {file.stem for kind in (RESULTS, FAILURES) for file in (self.path / kind).glob("[0-9a-f]*.json")}
        return self.records(sorted(keys - known))

    def key(self, settings: Mapping[str, Any]) -> str:
        """The name of a setting's files."""
        return key_of(self.function.name, self.function.version, settings)

    def _write(self, path: Path, content: Mapping[str, Any]) -> None:
        whole = {"format": FORMAT, **content, "check": digest(content)}
        text = json.dumps(whole, indent=1, allow_nan=False) + "\n"
        write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


@contextlib.contextmanager
def locked_folder(out: str | Path, function: FunctionVersion) -> Iterator[Folder]:
    """The folder, locked as long as the block lasts; refused if another run or another function has it."""
    path = output_folder(out)
    with (path / LOCK).open("a+", encoding="utf-8") as lock:
        if not _acquire(lock.fileno()):
            lock.seek(0)
            raise InputError(
                f"out={path}: another run (process {lock.read().strip() or 'unknown'}) is at work in this folder; "
                "wait for it to end or choose another --out."
            )
        with contextlib.suppress(OSError):  # only for the message above
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
        for stray in (file for kind in (RESULTS, FAILURES) for file in (path / kind).glob(".*-*.json")):
            stray.unlink(missing_ok=True)  # of a run that was killed while it wrote
        there = stored_sweep(path)
        if there is not None:
            for name, now in (("function", function.name), ("version", function.version)):
                before = there[name]
                allowed = f"a folder of this {name}, {now}; it holds results of {before}: choose another --out"
                require(before == now, "out", path, allowed)
        yield Folder(path, function)


def stored_sweep(path: Path) -> dict[str, Any] | None:
    """The content of sweep.json; None where there is none."""
    try:
        there = (path / SWEEP).exists()
    except OSError as error:
        raise InputError(f"out={path}: expected a folder that can be read ({error.strerror}).") from None
    if not there:
        return None
    content = _content(path / SWEEP)
    if content is None or not {"function", "version", "settings"} <= content.keys():
        raise InputError(
            f"out={path}: its {SWEEP} was not written by a sweep of this version of polyrelu, or is damaged; "
            "choose another --out."
        )
    try:
        settings = decode(content["settings"])
    except ValueError:  # a number that is none
        settings = None
    texts = all(isinstance(content[name], str) for name in ("function", "version"))
    listed = isinstance(settings, list) and all(isinstance(one, dict) for one in settings)
    require(texts and listed, "out", path, f"a {SWEEP} as sweeps write it; choose another --out")
    return {**content, "settings": settings}


def is_running(path: Path) -> bool:
    """Is a run at work in this folder now?"""
    try:
        with (path / LOCK).open() as lock:
            return not _try_lock(lock.fileno(), fcntl.LOCK_SH)
    except OSError:
        return False


def _acquire(descriptor: int) -> bool:
    """Take the lock for a run. While it can be shared, another process only tests it and no run has it."""
    until = time.monotonic() + LOCK_TIMEOUT
    while not _try_lock(descriptor, fcntl.LOCK_EX):
        if not _try_lock(descriptor, fcntl.LOCK_SH) or time.monotonic() >= until:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        time.sleep(0.02)
    return True


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _content(path: Path) -> dict[str, Any] | None:
    """The content of a file of a sweep; None where it is missing, damaged or of something else."""
    try:
        content = parse_json(read_text(path))
        if not isinstance(content, dict) or content.pop("format") != FORMAT or content.pop("check") != digest(content):
            return None
    except (OSError, ValueError, KeyError, RecursionError):
        return None
    return content


def _record(content: Mapping[str, Any], name: str) -> Record:
    settings, result, seconds = decode(content["settings"]), decode(content.get("result")), content["seconds"]
    error, details, versions = content.get("error", ""), content.get("details", ""), content.get("versions", {})
    if not isinstance(seconds, int | float) or not isinstance(settings, dict) or not isinstance(versions, dict):
        raise TypeError("not a record")
    if not isinstance(error, str) or not isinstance(details, str):
        raise TypeError("not a failure")
    limit = content.get("time_limit") if isinstance(content.get("time_limit"), int | float) else None
    return Record(content["key"], settings, result, error, name, seconds, details, versions, limit)
