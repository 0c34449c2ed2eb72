"""Damage to files of arrays that knows how they are built: .npy, .npz and .safetensors.

Headers announce huge, negative or strange sizes; types are those nobody expects; objects are pickles that would run
code; archives unpack to far more than they are.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tools.fuzz.texts import odd_json, odd_json_text

Random = np.random.Generator
Array = np.ndarray[Any, Any]
SHAPES = ("(1000000000000,)", "(1000000, 1000000)", "(-1, 6)", "(4611686018427387904, 8)", "()", "(0, 6)", "(24, 0)",
          "(1.5, 2)", "('a',)", "(24, 6, 1)", "[24, 6]", "None", "(18446744073709551616,)", "(True, 6)",
          "(4000000000,)")  # fmt: skip
DESCRIPTIONS = ("'<f4'", "'>f8'", "'<f2'", "'<c16'", "'|O'", "'|V8'", "'<U6'", "'|S4'", "'<M8[s]'", "'<m8[D]'",
                "'|b1'",
                "'<i1'", "'<u8'", "[('a', '<f4'), ('b', '<i4')]", "'<f16'", "'x'", "5", "'<f8'*9", "'|V0'", "'<U0'",
                "'<f0'",
                "('<f4', (2,))", "[('a', 'O')]")  # fmt: skip
KINDS = ("f2", ">f4", ">f8", "f8", "c8", "i1", "u8", "?", "U3", "S3", "M8[s]", "m8[D]", "O", "V4", "g", "i4,f4")


class Payload:
    """A pickle of this runs ``code`` when it is loaded."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (self.code,)


def npy_bytes(array: Array) -> bytes:
    """An array as .npy, objects as a pickle."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def poisoned(array: Array, code: str) -> bytes:
    """An .npy of the same shape, whose objects run code when unpickled."""
    objects = np.full(array.shape or (1,), None, dtype=object)
    objects.flat[0] = Payload(code)
    return npy_bytes(objects)


def odd_array(array: Array, source: Random) -> Array:
    """Another type, another shape, or numbers that are none."""
    way = int(source.integers(9))
    if way < 4:
        kind = KINDS[source.integers(len(KINDS))]
        try:
            return array.astype(kind)
        except (TypeError, ValueError):
            return np.zeros(array.shape, kind)
    if way == 4:
        shapes = ((), (0,), (1, 1, 1), (len(array.ravel()),), (2, 0), (3, 2), (*array.shape, 1), array.shape[::-1])
        return np.resize(array, shapes[source.integers(len(shapes))])
    if way == 5:
        return array[: int(source.integers(0, 3))] if array.ndim else array
    if way == 6 and array.dtype.kind == "f":
        odd: Array = np.where(source.random(array.shape) < 0.1, source.choice([np.nan, np.inf, -np.inf, 1e300]), array)
        return odd
    if way == 7 and array.dtype.kind in "iuf":
        scaled: Array = (array * source.choice([0, -1, 1e18, 1e-300, 7])).astype(array.dtype)
        return scaled
    return np.resize(array[::-1] if array.ndim else array, array.shape)


def damage_npy(content: bytes, source: Random, code: str) -> bytes:
    """The header of an .npy says something else, or the array is another one."""
    array = np.load(io.BytesIO(content), allow_pickle=False)
    way = source.random()
    if way < 0.25:
        return npy_bytes(odd_array(array, source))
    if way < 0.35:
        return poisoned(array, code)
    fields = {"descr": repr(array.dtype.str), "fortran_order": "False", "shape": repr(array.shape)}
    name = ("descr", "shape", "fortran_order")[source.integers(3)]
    options = {"descr": DESCRIPTIONS, "shape": SHAPES, "fortran_order": ("True", "2", "None", "'x'", "1/0", "[]")}[name]
    fields[name] = options[source.integers(len(options))]
    if source.random() < 0.1:
        fields.pop(name)
    if source.random() < 0.1:
        fields["more"] = "1"
    header = "{" + ", ".join(f"'{key}': {value}" for key, value in fields.items()) + ", }"
    if source.random() < 0.1:
        header = (header[:-3], "(" * 3000, header + "\0", "é" + header, " " * 70_000 + header)[source.integers(5)]
    version = ((1, 0), (2, 0), (3, 0), (9, 9), (0, 0))[source.choice(5, p=[0.6, 0.1, 0.1, 0.1, 0.1])]
    text = header.encode("latin1", "replace") + b"\n"
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text) % 2**16)
    return b"\x93NUMPY" + bytes(version) + length + text + content[-array.nbytes :]


def damage_npz(path: Path, source: Random, code: str) -> None:
    """An archive with other members: missing, twice, renamed, damaged, poisoned, or a bomb."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = sorted(members)[source.integers(len(members))]
    way = int(source.integers(10))
    if way == 0:
        del members[name]
    elif way == 1:
        members[("X.npy", "y.npy", "a/b.npy", "../up.npy", "/tmp/x.npy", "X", "x" * 300)[source.integers(7)]] = (
            members.pop(name)
        )
    elif way == 2:
        others = sorted(members)
        swap = others[source.integers(len(others))]
        members[name], members[swap] = members[swap], members[name]
    elif way == 3:
        members[name] = (b"", b"\0" * 10, b"not an array", members[name][:-5])[source.integers(4)]
    else:
        members[name] = damage_npy(members[name], source, code)
    kinds = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    with zipfile.ZipFile(path, "w", kinds[source.integers(4)]) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
        if source.random() < 0.05:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it is there twice, as it should be
                archive.writestr(name, members.get(name, b""))


def bomb_npz(path: Path, numbers: int) -> None:
    """An .npz of a few megabytes whose X (n, 8) of zeros takes ``numbers`` x 8 bytes."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (numbers // 8, 8)})
    zeros = bytes(2**24)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("X.npy", "w", force_zip64=True) as member:
            member.write(header.getvalue())
            for _ in range(8 * numbers // len(zeros)):
                member.write(zeros)
        archive.writestr("y.npy", npy_bytes(np.arange(numbers // 8, dtype=np.int8) % 2))


def damage_safetensors(path: Path, source: Random) -> None:
    """Another header: sizes, types, offsets, names, or the JSON texts that settings are kept in."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    way = source.random()
    if way < 0.1:
        announced = (2**60, 2**63, 2**64 - 1, 0, length + 1, 10**9)[source.integers(6)]
        path.write_bytes(announced.to_bytes(8, "little") + content[8:])
        return
    about = header.get("__metadata__", {})
    nested = [key for key, value in about.items() if str(value).startswith("{")]
    if way < 0.7 and nested:
        key = nested[source.integers(len(nested))]
        about[key] = odd_json_text(about[key], source)
    elif way < 0.8 and about:
        key = sorted(about)[source.integers(len(about))]
        about[key] = ("", "2", "-1", "x", "999999999999", "{}", "[]", "null", "\0", "PolyReLUNet", "MLP", "²")[
            source.integers(12)
        ]
    else:
        header = odd_tensors(header, source) if source.random() < 0.6 else odd_json(header, source)
    try:
        text = json.dumps(header).encode()
    except (ValueError, RecursionError, TypeError):
        text = b"{}"
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def odd_tensors(header: dict[str, Any], source: Random) -> dict[str, Any]:
    """Names, types and shapes of the tensors change, with offsets that still fit, or not."""
    names = [name for name in header if name != "__metadata__"]
    if not names:
        return header
    name = names[source.integers(len(names))]
    way = int(source.integers(5))
    if way == 0:
        header[("weight", "X", "y", "bias", "", "net.weight")[source.integers(6)]] = header.pop(name)
    elif way == 1:
        same = {"F32": ("I32", "U32"), "F64": ("I64", "U64"), "I64": ("F64", "U64")}
        wide = ("F16", "BF16", "F8_E4M3", "BOOL", "U8", "I8", "F64", "C64", "F4", "X")
        kinds = (*same.get(header[name]["dtype"], ()), *wide)
        header[name]["dtype"] = kinds[source.integers(len(kinds))]
    elif way == 2:
        header[name]["shape"] = (
            [10**12],
            [2**40, 2**40],
            [-1],
            [],
            [1, *header[name]["shape"]],
            header[name]["shape"][::-1],
        )[source.integers(6)]
    elif way == 3:
        header[name]["data_offsets"] = ([0, 2**60], [5, 1], [0, 0], [-1, 4], [0, 4])[source.integers(5)]
    else:
        header.pop(name)
    return header


def pickle_bytes(code: str, protocol: int) -> bytes:
    """A plain pickle that runs code."""
    return pickle.dumps({"state_dict": Payload(code)}, protocol)


Damage = Callable[[Path, Random, str], None]
