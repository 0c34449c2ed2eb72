"""Whole files or none: everything is written beside its target, flushed to disk and renamed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from polyrelu.errors import InputError
from polyrelu.interrupt import undone, whole

_together: list[tuple[Path, Path]] | None = None  # (temporary, target) of files that wait for the others


def output_folder(path: str | Path) -> Path:
    """Create ``path`` (and its parents) and prove that a file can be written there."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"out={folder}: expected a folder that can be written ({error.strerror}).") from None
    return folder


def write_atomically(path: str | Path, write: Callable[[Path], object]) -> Path:
    """Call ``write(temporary)`` and rename the result to ``path``; on any failure nothing is left behind.

    That includes the end of the process by a second Ctrl-C (`polyrelu.interrupt`).
    """
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=target.suffix)
    os.close(handle)
    temporary = Path(name)

    def undo() -> None:
        temporary.unlink(missing_ok=True)

    try:
        with undone(undo):
            write(temporary)
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
            temporary.chmod(0o644)
            if _together is None:
                temporary.replace(target)
            else:
                _together.append((temporary, target))
    except BaseException:
        undo()
        raise
    return target


@contextlib.contextmanager
def written_together() -> Iterator[None]:
    """What `write_atomically` writes within appears at the end, all files or none: a net goes with its history."""
    global _together
    waiting: list[tuple[Path, Path]] = []
    before, _together = _together, waiting

    def undo() -> None:
        for temporary, _ in waiting:
            temporary.unlink(missing_ok=True)

    try:
        with undone(undo):
            yield
            with whole():
                for temporary, target in waiting:
                    temporary.replace(target)
    except BaseException:
        undo()
        raise
    finally:
        _together = before
