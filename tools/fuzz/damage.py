"""Ways to damage any file: bytes, and what stands in its place. Which way, and where, is drawn from the case's seed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np

Random = np.random.Generator
PAGE = b"<!doctype html><html><body>404 Not Found</body></html>"
ODD = (b"", b"\0", b"\0" * 64, b"\xff\xfe\xfa", PAGE, b"\x89PNG\r\n\x1a\n", b"PK\x03\x04", b"\x93NUMPY", b"PAR1",
       b"null", b"{}",
       b"[" * 100_000, b'{"a":' * 50_000, b"NaN", b"1e999", b"9" * 5000, "\ufeff".encode(), b"\x1f\x8b\x08",
       b"\x80\x04.")  # fmt: skip


def flip(content: bytes, source: Random) -> bytes:
    """A few bytes become others; near the beginning, where headers are, more often than elsewhere."""
    if not content:
        return b"\0"
    changed = bytearray(content)
    reach = len(changed) if source.random() < 0.5 else min(len(changed), 400)
    for place in source.integers(reach, size=int(source.integers(1, 9))).tolist():
        changed[place] = (
            int(source.integers(256)) if source.random() < 0.5 else changed[place] ^ (1 << int(source.integers(8)))
        )
    return bytes(changed)


def cut(content: bytes, source: Random) -> bytes:
    """Cut short, at the end or at the beginning."""
    place = int(source.integers(len(content) + 1))
    return content[:place] if source.random() < 0.8 else content[place:]


def insert(content: bytes, source: Random) -> bytes:
    """Something foreign in the middle."""
    place = int(source.integers(len(content) + 1))
    what = ODD[source.integers(len(ODD))] if source.random() < 0.5 else source.bytes(int(source.integers(1, 40)))
    return content[:place] + what + content[place:]


def move(content: bytes, source: Random) -> bytes:
    """A piece removed, doubled or zeroed."""
    a, b = sorted(source.integers(len(content) + 1, size=2).tolist())
    piece = (b"", content[a:b] * 2, b"\0" * (b - a))[source.integers(3)]
    return content[:a] + piece + content[b:]


def size(content: bytes, source: Random) -> bytes:
    """Four or eight bytes that may be a size become a huge or negative one."""
    width = int(source.choice([4, 8]))
    value: int = (2**31 - 1, 2**31, 2**32 - 1, 2**60, 2**63 - 1, 2**64 - 1, 10**12)[source.integers(7)]
    place = int(source.integers(max(1, min(len(content) - width, 200 if source.random() < 0.5 else len(content)))))
    order: Literal["little", "big"] = "little" if source.random() < 0.7 else "big"
    written = (value % 2 ** (8 * width)).to_bytes(width, order)
    return bytes(content[:place] + written + content[place + width :])


def other(content: bytes, source: Random) -> bytes:
    """Another file altogether."""
    return ODD[source.integers(len(ODD))] if source.random() < 0.7 else source.bytes(int(source.integers(0, 300)))


BYTES: tuple[Callable[[bytes, Random], bytes], ...] = (flip, flip, cut, insert, move, size, other)


def damage_bytes(path: Path, source: Random) -> str:
    """Change the bytes of a file; what was done, in a word."""
    way = BYTES[source.integers(len(BYTES))]
    path.write_bytes(way(path.read_bytes(), source))
    return way.__name__


def damage_place(path: Path, source: Random) -> str:
    """Something else where the file was: nothing, a folder, a link that leads nowhere, a pipe, a device."""
    path.unlink()
    way = ("missing", "folder", "loop", "dangling", "pipe", "device", "link to a folder")[source.integers(7)]
    if way == "folder":
        path.mkdir()
    elif way == "pipe":
        os.mkfifo(path)
    elif way != "missing":
        leads = {"loop": path.name, "dangling": "nowhere", "device": "/dev/zero", "link to a folder": "."}
        path.symlink_to(leads[way])
    return way
