"""Arrays in .npy and .npz files, written whole and read without trusting them.

Pickles are refused. A header that announces more numbers than the file holds is refused before any memory is taken,
and so is an archive that unpacks to more than `MOST_EXPANSION` times its size (and more than `ALWAYS_UNPACKED` bytes).
Whatever is wrong with a file is one of `DAMAGED`.
"""

from __future__ import annotations

import lzma
import math
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, final

import numpy as np
from numpy.typing import NDArray

from polyrelu.files import open_file, write_atomically

ALWAYS_UNPACKED = 2**28  # bytes that an archive may unpack to, however small it is
MOST_EXPANSION = 200  # times its size that a larger one may unpack to: zeros alone are 229 and more
DAMAGED = (
    OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, EOFError, OverflowError, MemoryError,
    NotImplementedError, RuntimeError, SyntaxError, RecursionError, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
    tokenize.TokenError,
)  # fmt: skip
OBJECTS = "Python objects"
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@final
class Archive:
    """The arrays of an open .npz by name; each is read when it is asked for."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(stream)
        self.names = [name.removesuffix(".npy") for name in self._zip.namelist()]

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The array called ``name``."""
        entries = {one.filename.removesuffix(".npy"): one for one in reversed(self._zip.infolist())}
        entry = entries[name]
        if entry.file_size > max(ALWAYS_UNPACKED, MOST_EXPANSION * entry.compress_size):
            raise ValueError(f"{name} unpacks to {entry.file_size:,} bytes, from {entry.compress_size:,}")
        with self._zip.open(entry) as stream:
            return _array(stream, entry.file_size)


@contextmanager
def open_npz(path: str | Path) -> Iterator[Archive]:
    """The arrays of an .npz, while it is open; one of `DAMAGED` if it is none."""
    with open_file(path) as stream:
        yield Archive(stream)


def read_npz(path: str | Path) -> dict[str, NDArray[Any]]:
    """All arrays of an .npz."""
    with open_npz(path) as stored:
        return {name: stored[name] for name in stored.names}


def read_npy(path: str | Path) -> NDArray[Any]:
    """The array of an .npy."""
    with open_file(path) as stream:
        return _array(stream, Path(path).stat().st_size)


def write_npz(path: str | Path, arrays: Mapping[str, Any], *, compressed: bool = False) -> Path:
    """Write an .npz of these arrays, whole or not at all."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as stream:  # a bare name would get .npz appended
            (np.savez_compressed if compressed else np.savez)(stream, **arrays)

    return write_atomically(path, write)


def map_npy(path: str | Path) -> NDArray[Any]:
    """The array of an .npy, which stays in its file."""
    with open_file(path) as stream:
        shape, fortran, dtype = _header(stream)
        _require_stored(shape, dtype, Path(path).stat().st_size - stream.tell())
        order: Any = "F" if fortran else "C"
        if 0 in shape:
            return np.empty(shape, dtype, order)
        return np.memmap(path, dtype, "r", stream.tell(), shape, order)


def is_npy(path: str | Path) -> bool:
    """Does it begin as an .npy does?"""
    with open_file(path) as stream:
        return stream.read(6) == np.lib.format.MAGIC_PREFIX


def _array(stream: IO[bytes], size: int) -> NDArray[Any]:
    shape, fortran, dtype = _header(stream)
    numbers = _require_stored(shape, dtype, size)
    content = bytearray(numbers * dtype.itemsize)
    view, place = memoryview(content), 0
    while place < len(view):
        piece = stream.read(min(2**24, len(view) - place))
        if not piece:
            raise EOFError("the array is cut short")
        view[place : place + len(piece)] = piece
        place += len(piece)
    flat = np.frombuffer(content, dtype) if content else np.empty(numbers, dtype)
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    if version not in HEADERS:
        raise ValueError(f"version {version} of the format, which only tables with odd names need")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 2 wrote 3L, which is read too
        shape, fortran, dtype = HEADERS[version](stream)
    if dtype.hasobject:
        raise ValueError(f"{OBJECTS}, or no numbers at all")
    return shape, fortran, dtype


def _require_stored(shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> int:
    """The count of numbers that the header announces; ValueError if ``size`` bytes cannot hold them."""
    numbers = math.prod(shape)
    if min(shape, default=0) < 0 or numbers * max(1, dtype.itemsize) > max(size, 0) or max(shape, default=0) > 2**62:
        raise ValueError(f"it announces {shape} numbers of type {dtype}, more than it holds")
    return numbers
