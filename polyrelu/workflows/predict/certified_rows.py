"""Rows that are certified already, kept beside the table they are for: an interruption costs one chunk of them.

OUT.partial: a line of JSON that says what the numbers depend on, then one for each chunk of rows, with a hash of the
rows themselves and a checksum. Lines are only ever added, so a process may end anywhere; what does not fit is computed
again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from polyrelu.errors import InputError

FORMAT = "polyrelu-certified-rows-1"
LONGEST = 10**6  # bytes of a line; longer ones are none of ours
Decided = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]  # class, probability, radius of each row


class CertifiedRows:
    """What is kept of one prediction, read and added to in the order of the rows; ``said`` is what was ignored."""

    def __init__(self, out: Path, identity: Mapping[str, Any], classes: int) -> None:
        self.path, self.identity, self.classes = out.with_name(f"{out.name}.partial"), dict(identity), classes
        self.before = self.rows = 0  # from an earlier run, and in all
        self.said: list[str] = []
        self.stream: IO[bytes] | None = None
        self.reading = self.usable = True
        if self.path.exists() or self.path.is_symlink():
            self._open_again()

    def take(self, start: int, X: NDArray[Any]) -> Decided | None:
        """What is kept of the rows X, which begin with number ``start``; None if they are to be computed."""
        if self.stream is None or not self.reading:
            return None
        place = self.stream.tell()
        line = self.stream.readline(LONGEST)
        found = self._decided(line, start, X)
        if found is None:
            self.reading = False
            self.stream.seek(place)
            self.stream.truncate()
            if line.endswith(b"\n"):
                self.said.append(
                    f"{self.path} is damaged, or of other rows, from row {start} on: these are done again."
                )
            return None
        self.before = self.rows = start + len(X)
        return found

    def add(self, start: int, X: NDArray[Any], decided: Decided) -> None:
        """Keep these, after those before."""
        if not self.usable:
            return
        if self.stream is None:
            self._begin()
        assert self.stream is not None
        columns = dict(zip(("class", "probability", "radius"), (part.tolist() for part in decided), strict=True))
        self.stream.write(_line({"start": start, "rows": _hash(X), **columns}))
        self.stream.flush()
        self.rows = start + len(X)

    def close(self, done: bool) -> None:
        """Let go of the file, which is of no use any more if all is ``done``."""
        if self.stream is not None:
            if done:
                self.path.unlink(missing_ok=True)
            self.stream.close()

    def _open_again(self) -> None:
        with contextlib.suppress(OSError):
            if self.path.is_file():
                self.stream = self.path.open("r+b")
        about = None if self.stream is None else _content(self.stream.readline(LONGEST))
        if about is None or about.get("format") != FORMAT:
            self.close(done=False)
            self.stream, self.usable = None, False
            self.said.append(
                f"{self.path} is none of ours: it is left alone, and nothing is kept if this is interrupted."
            )
            return
        self._lock()
        if about.get("identity") != self.identity:
            self.said.append(f"{self.path} is of another head or version of polyrelu: it is begun anew.")
            self._begin()

    def _begin(self) -> None:
        if self.stream is None:
            self.stream = self.path.open("x+b")
            self._lock()
        self.reading = False
        self.stream.seek(0)
        self.stream.truncate()
        self.stream.write(_line({"format": FORMAT, "identity": self.identity}))

    def _lock(self) -> None:
        assert self.stream is not None
        try:
            fcntl.flock(self.stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.stream.close()
            raise InputError(
                f"out={self.path.with_suffix('')}: another run is at work on it; wait for it to end or choose another "
                "--out."
            ) from None

    def _decided(self, line: bytes, start: int, X: NDArray[Any]) -> Decided | None:
        found = _content(line)
        if found is None or found.get("start") != start or found.get("rows") != _hash(X):
            return None
        try:
            chosen = np.array(found["class"], dtype=np.int64)
            probability, radius = (np.array(found[name], dtype=np.float64) for name in ("probability", "radius"))
        except (KeyError, TypeError, ValueError, OverflowError):
            return None
        good = all(part.shape == (len(X),) for part in (chosen, probability, radius))
        good = good and bool(((0 <= chosen) & (chosen < self.classes) & (radius >= 0)).all())
        return (chosen, probability, radius) if good else None


def file_hash(path: str | Path) -> str:
    """sha256 of what a file holds."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _hash(X: NDArray[Any]) -> str:
    return hashlib.sha256(f"{X.dtype} {X.shape} ".encode() + np.ascontiguousarray(X).data).hexdigest()


def _line(content: Mapping[str, Any]) -> bytes:
    return json.dumps({**content, "check": _check(content)}, separators=(",", ":")).encode() + b"\n"


def _check(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, separators=(",", ":"), sort_keys=True).encode()).hexdigest()[:20]


def _content(line: bytes) -> dict[str, Any] | None:
    """What a whole line of ours says; None if it is damaged or something else."""
    try:
        content = json.loads(line) if line.endswith(b"\n") else None
        if isinstance(content, dict) and content.pop("check", None) == _check(content):
            return content
    except (ValueError, RecursionError):
        pass
    return None
