"""Whole files or none: everything is written beside its target, flushed to disk and renamed. Only files are read."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from polyrelu.checks import value_text
from polyrelu.errors import InputError, require
from polyrelu.interrupt import undone, whole

ODD_NAMES = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
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


@contextlib.contextmanager
def writing(out: str | Path, kept: str) -> Iterator[None]:
    """A full disk is not a bug: an InputError that says what is ``kept`` takes the place of the OSError."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"out={out}: cannot be written ({error.strerror or error}); {kept}, free some space and run the same "
            "command again."
        ) from None


def is_file(path: str | Path) -> bool:
    """Is there an ordinary file of this name? Names that no file can have are no error."""
    return os.path.isfile(path)  # noqa: PTH113 - pathlib raises an error at such names


def exists(path: str | Path) -> bool:
    """Is there anything of this name?"""
    return os.path.exists(path)  # noqa: PTH110


def open_file(path: str | Path) -> IO[bytes]:
    """An ordinary file, open for reading; OSError for anything else: a pipe would wait, a device would never end."""
    if not stat.S_ISREG(Path(path).stat().st_mode):
        raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
    return Path(path).open("rb")


def read_text(path: str | Path, encoding: str = "utf-8") -> str:
    """The text of an ordinary file; OSError if it is none, ValueError if it is no text."""
    with open_file(path) as stream:
        return stream.read().decode(encoding)


def parse_json(text: str) -> Any:
    """What a JSON text says; ValueError if it is none, or nested beyond what can be read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def write_atomically(path: str | Path, write: Callable[[Path], object]) -> Path:
    """Call ``write(temporary)`` and rename the result to ``path``; on any failure nothing is left behind.

    That includes the end of the process by a second Ctrl-C (`polyrelu.interrupt`).
    """
    good = isinstance(path, str | Path) and "\0" not in str(path)
    with contextlib.suppress(OSError):  # said below, in words
        good = good and not Path(path).is_dir()
    require(good, "path", value_text(path), "the name of a file")
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=target.suffix)
    except (OSError, ValueError) as error:  # a name that no file can have; a full disk shows itself below
        if isinstance(error, OSError) and error.errno not in ODD_NAMES:
            raise
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"path={str(path)[:200]}: expected a file that can be written ({reason}).") from None
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
    except BaseException as error:
        undo()
        if isinstance(error, OSError) and error.filename in (None, name):
            error.filename = str(target)  # the name that people know
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
