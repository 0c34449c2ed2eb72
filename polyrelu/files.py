"""Whole files or none: everything is written beside its target, flushed to disk and renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from polyrelu.errors import InputError


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
    """Call ``write(temporary)`` and rename the result to ``path``; on any failure nothing is left behind."""
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=target.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        temporary.chmod(0o644)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return target
