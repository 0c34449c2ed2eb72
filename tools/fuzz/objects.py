"""Damage to .parquet, checkpoints, archives and images that knows how they are built."""

from __future__ import annotations

import datetime
import decimal
import gzip
import importlib
import io
import pickle
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tools.fuzz.arrays import Payload, odd_array

Random = np.random.Generator


def damage_parquet(path: Path, source: Random) -> None:
    """A table whose columns are of other types, nested, empty, without values or without names."""
    pa: Any = importlib.import_module("pyarrow")
    pq: Any = importlib.import_module("pyarrow.parquet")

    table = pq.read_table(path)
    n = len(table)
    columns: tuple[Callable[[], Any], ...] = (
        lambda: pa.nulls(n), lambda: pa.array([None, *range(n - 1)]), lambda: pa.array(["a", None] * (n // 2)),
        lambda: pa.array([decimal.Decimal("1.5")] * n), lambda: pa.array([datetime.datetime(2020, 1, 1)] * n),
        lambda: pa.array([datetime.timedelta(1)] * n), lambda: pa.array([{"a": 1, "b": [1]}] * n),
        lambda: pa.array([b"x"] * n),
        lambda: pa.array([[1.0, 2.0], [1.0]] * (n // 2)), lambda: pa.array([[]] * n),
        lambda: pa.array([[None, 1.0]] * n),
        lambda: pa.array([["a", "b"]] * n), lambda: pa.array([[[1.0]]] * n),
        lambda: pa.array([True, False] * (n // 2)),
        lambda: pa.array(np.zeros(n, np.float16)), lambda: pa.array([2**63 - 1] * n),
        lambda: pa.array(["a", "b"] * (n // 2)).dictionary_encode(),
        lambda: pa.array([float("nan")] * n), lambda: pa.array([1e300] * n), lambda: pa.array(["x" * 10_000] * n),
        lambda: pa.array([2**64 - 1] * n, pa.uint64()),
        lambda: pa.array([[1.0, 2.0]] * n, pa.list_(pa.float32(), 2)),
        lambda: pa.array([("k", 1)] * n, pa.struct([("k", pa.string()), ("v", pa.int8())])) ,
        lambda: pa.array([datetime.time(1)] * n), lambda: pa.array([""] * n),
        lambda: pa.array([["a"], None] * (n // 2)),
    )  # fmt: skip
    way = source.random()
    place = int(source.integers(table.num_columns))
    if way < 0.7:
        try:
            column = columns[source.integers(len(columns))]()
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
            column = pa.nulls(n)
        table = table.set_column(place, table.column_names[place], column)
    elif way < 0.8:
        table = table.slice(0, int(source.integers(0, 3)))
    elif way < 0.9:
        table = table.select(source.permutation(table.num_columns)[: source.integers(0, 3)].tolist())
    else:
        names = ["", "label", "y", "a\0b", table.column_names[0], "é" * 300]
        table = table.rename_columns(
            [names[source.integers(6)] if i == place else name for i, name in enumerate(table.column_names)]
        )
    pq.write_table(table, path, compression=("snappy", "gzip", "zstd", "none")[source.integers(4)])


def damage_checkpoint(path: Path, source: Random, code: str) -> None:
    """A checkpoint with other tensors, other keys, other objects, or code in it."""
    stored = torch.load(path, weights_only=True)
    state = stored.get("state_dict", stored)
    key = sorted(state)[source.integers(len(state))]
    given = state[key]
    odd: tuple[Callable[[], Any], ...] = (
        lambda: None, lambda: 3, lambda: "x", lambda: [1.0], lambda: given.half(), lambda: given.long(),
        lambda: given.bool(),
        lambda: given.to(torch.complex64), lambda: given.to_sparse(), lambda: given.to("meta"),
        lambda: given * float("nan"),
        lambda: given[None], lambda: given.flatten()[0], lambda: given[:0], lambda: given.mT, lambda: given.double(),
        lambda: torch.zeros(1).expand(10**6, 10**6), lambda: torch.zeros(1).expand(6, 10**10),
        lambda: torch.zeros(1).expand(10**9),
        lambda: given * 1e38, lambda: torch.nn.Parameter(given), lambda: given.numpy(), lambda: {"a": given},
        lambda: torch.zeros(1).expand(1, 10**9), lambda: Payload(code), lambda: given.bfloat16(),
        lambda: given.to(torch.float8_e5m2),
    )  # fmt: skip
    way = source.random()
    content: Any = stored
    if way < 0.6:
        try:
            state[key] = odd[source.integers(len(odd))]()
        except (RuntimeError, NotImplementedError):  # there is no such variant of this tensor
            state[key] = None
    elif way < 0.7:
        del state[key]
    elif way < 0.8:
        state[("x", "", "center", 3, None)[source.integers(5)]] = state.pop(key)
    else:
        content = (
            [],
            {},
            None,
            5,
            given,
            {"state_dict": None},
            {"state_dict": []},
            Payload(code),
            torch.nn.Linear(2, 2),
        )[source.integers(9)]
    if source.random() < 0.1:
        path.write_bytes(pickle.dumps(Payload(code), int(source.integers(6))))
        return
    torch.save(content, path, _use_new_zipfile_serialization=bool(source.random() < 0.7))


def damage_wheel(path: Path, source: Random, code: str) -> None:
    """The pickle inside is another one."""
    with zipfile.ZipFile(path) as wheel:
        (name,) = wheel.namelist()
        train, *_ = pickle.loads(gzip.decompress(wheel.read(name)))  # made by tools.fuzz.seeds
    x, y = train
    odd = (odd_array(x, source), odd_array(y, source))
    contents: tuple[Any, ...] = (
        (odd, train, train), (train, train), train, None, (train, train, (x,)), (train, train, None), {"a": 1},
        Payload(code),
        (Payload(code), train, train), (train, train, train, train), ([], [], []),
        (np.array([Payload(code)], dtype=object), y), "x" * 100,
    )  # fmt: skip
    content = gzip.compress(pickle.dumps(contents[source.integers(len(contents))], int(source.integers(5))))
    if source.random() < 0.2:
        content = (content[:-9], gzip.decompress(content), b"", b"\x1f\x8b" + content)[source.integers(4)]
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(name if source.random() < 0.9 else "other", content)


def damage_tar(path: Path, source: Random) -> None:
    """Members of other sizes, links instead of files, headers that announce more."""
    with tarfile.open(path) as tar:
        members = {info.name: tar.extractfile(info).read() for info in tar.getmembers()}  # type: ignore[union-attr]
    chosen = sorted(members)[source.integers(len(members))]
    content = bytearray(members[chosen])
    way = int(source.integers(6))
    if way == 0:
        content[3] = int(source.integers(256))
    elif way == 1:
        content[4:8] = struct.pack(">I", (0, 2**32 - 1, 2**31, 7)[source.integers(4)])
    elif way == 2:
        content = content[: source.integers(12)]
    elif way == 3:
        del members[chosen]
    with tarfile.open(path, "w:gz") as tar:
        for name, inside in members.items():
            info = tarfile.TarInfo(name)
            changed = bytes(content) if name == chosen else inside
            info.size = len(changed)
            if way == 4 and name == chosen:
                info.type = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE)[source.integers(4)]
                info.linkname, info.size = ("/etc/passwd", name, "../x")[source.integers(3)], 0
            tar.addfile(info, io.BytesIO(changed) if info.size else None)


def damage_png(path: Path, source: Random) -> None:
    """A PNG that says it is of another size or kind, with a checksum that is right."""
    content = path.read_bytes()
    if not content.startswith(b"\x89PNG"):
        path.write_bytes(content[: len(content) // 2])
        return
    width, height = ((0, 0), (2**31 - 1, 1), (20_000, 20_000), (1, 100_000), (100_000, 1), (9, 12))[source.integers(6)]
    depth, colour = ((8, 2), (16, 2), (1, 0), (8, 3), (8, 6), (7, 9), (8, 4))[source.integers(7)]
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(source.integers(2)))
    path.write_bytes(content[:12] + header + struct.pack(">I", zlib.crc32(header)) + content[33:])
