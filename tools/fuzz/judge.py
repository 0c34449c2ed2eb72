"""What may come of a case: a result, or an `InputError`. Everything else is a finding.

traceback   any other exception; of scikit-learn `NotFittedError` is allowed
text        a complaint in words that nobody can act on: a traceback on stderr, an unknown exit status
warning     a warning that people would see and that neither polyrelu nor, for the estimator, scikit-learn wrote
code        something in a file was run: the canary file is there, or a process was started
memory      more than MOST bytes above what the worker held before, asked for or used
hang        no answer in time, also when run again alone; dead: the worker died
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

MOST = 2**30  # bytes of memory that a case may take
CANARY = "canary"  # the file that code in a file would make
ALLOWED = re.compile(r"allocate|not enough memory|out of memory", re.IGNORECASE)
UNSEEN = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)  # Python does not show them
STARTS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "pty.spawn"}


@final
@dataclass(frozen=True)
class Outcome:
    """What came of a case; ``what`` is "" if nothing is wrong. ``grown``: bytes of memory it took at most."""

    case: str
    what: str
    words: str
    details: str = ""
    grown: int = 0
    refused: bool = False


def judged(
    case: str, words: str, action: Callable[[], Any], folder: Path, *, starts: bool = False, sized: bool = False
) -> Outcome:
    """Run ``action`` and judge it.

    starts : it may start processes (workers of a sweep)
    sized : it has no reason to ask for much memory, so that to be refused it is a finding too
    """
    printed = Printed()
    before = _reset_peak()
    what, details, refused = "", "", False
    with _watched(printed) as seen:
        try:
            action()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            what, details, refused = _error(error)
    said = printed.text()
    text = f"{details}\n{said}"
    grown = max(0, _peak() - before)
    if not what and "Traceback (most recent call last)" in said:
        what, details = "text", said[-3000:]
    if not what and seen.warned:
        what, details = "warning", "\n".join(seen.warned)
    if sized and (refused or not what) and (asked := ALLOWED.search(text)):
        what, details = "memory", f"it asked for too much: ...{text[max(0, asked.start() - 300) : asked.end() + 100]}"
    if grown > MOST:
        what, details = "memory", f"{grown / 2**20:.0f} MiB"
    if (seen.started and not starts) or (folder / CANARY).exists():
        what, details = "code", f"started {seen.started}, canary {(folder / CANARY).exists()}\n{details}"
    return Outcome(case, what, words, "" if not what else details, grown, refused)


def _error(error: BaseException) -> tuple[str, str, bool]:
    """("", message, True) for an allowed error, else ("traceback", the traceback, False)."""
    from sklearn.exceptions import NotFittedError

    from polyrelu import InputError

    if isinstance(error, InputError | NotFittedError):
        return "", f"{type(error).__name__}: {error}", True
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    return "traceback", "".join(lines)[-6000:], False


class Printed:
    """What is printed, in the encodings of a terminal: stdout refuses what is no text, as it does for people."""

    def __init__(self) -> None:
        self.out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
        self.err = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True)

    def text(self) -> str:
        """All of it."""
        both = (self.out.buffer, self.err.buffer)
        return "\n".join(one.getvalue().decode() for one in both if isinstance(one, io.BytesIO))


class _Seen:
    def __init__(self) -> None:
        self.warned: list[str] = []
        self.started: list[str] = []


_NOW: list[_Seen] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _NOW and event in STARTS:
        _NOW[-1].started.append(f"{event} {str(arguments)[:200]}")


def install() -> None:
    """Watch for processes that are started, for good: an audit hook cannot be taken away."""
    sys.addaudithook(_hook)


@contextlib.contextmanager
def _watched(printed: Printed) -> Iterator[_Seen]:
    """Warnings, prints and processes of what is inside."""
    seen, told = _Seen(), warnings.warn

    def warn(message: Any, category: Any = None, stacklevel: int = 1, *more: Any, **rest: Any) -> None:
        name = sys._getframe(1).f_globals.get("__name__", "")
        if not name.startswith(("polyrelu.", "sklearn.")):
            told(message, category, stacklevel + 1, *more, **rest)

    with (
        contextlib.redirect_stdout(printed.out),
        contextlib.redirect_stderr(printed.err),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        warnings.warn = warn
        _NOW.append(seen)
        try:
            yield seen
        finally:
            _NOW.pop()
            warnings.warn = told
    seen.warned += [
        f"{one.category.__name__}: {one.message} ({one.filename}:{one.lineno})"
        for one in caught
        if not issubclass(one.category, UNSEEN)
    ]


def _reset_peak() -> int:
    """Bytes held now; the peak is counted from here (Linux; elsewhere 0)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


def _status(field: str) -> int:
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])
    return 0


def virtual() -> int:
    """Bytes of address space in use."""
    return _status("VmSize")


def canary(folder: Path) -> str:
    """Python code that a case's file would run, if it were run."""
    return f"open({os.fspath(folder / CANARY)!r}, 'w').close()"
