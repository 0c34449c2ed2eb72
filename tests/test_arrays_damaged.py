"""Arrays of anybody's files: whole ones come back, announced ones that are not there take no memory."""

from __future__ import annotations

import io
import os
import struct
import warnings
import zipfile

import numpy as np
import pytest

from polyrelu import arrays
from polyrelu.arrays import DAMAGED, is_npy, map_npy, open_npz, read_npy, read_npz

GOOD = [
    np.arange(12.0).reshape(3, 4),
    np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    np.array(3.0),
    np.zeros((0, 3)),
    np.zeros((3, 0)),
    np.array([], "f4"),
    np.array(["a", "bc"]),
    np.array([b"a"]),
    np.array([True, False]),
    np.arange(3, dtype=">i2"),
]


@pytest.mark.parametrize("array", GOOD, ids=lambda one: f"{one.dtype} {one.shape}")
def test_whole_arrays_come_back(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", x=array, y=array)
    np.savez_compressed(tmp_path / "b.npz", x=array)
    with open_npz(tmp_path / "a.npz") as stored:
        one = stored["x"]
        assert stored.names == ["x", "y"]
    found = [read_npy(tmp_path / "a.npy"), map_npy(tmp_path / "a.npy"), one, *read_npz(tmp_path / "a.npz").values()]
    for again in (*found, read_npz(tmp_path / "b.npz")["x"]):
        assert again.dtype == array.dtype and again.shape == array.shape and np.array_equal(again, array)
    assert is_npy(tmp_path / "a.npy") and not is_npy(tmp_path / "a.npz")
    if array.size:
        assert isinstance(found[1], np.memmap)


def header(shape: tuple[int, ...], dtype: str = "<f8", content: bytes = b"", version: int = 1) -> bytes:
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    text = text + " " * (63 - (10 + len(text)) % 64) + "\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H", len(text)) + text.encode() + content


@pytest.mark.parametrize(
    "content",
    [
        header((10**6, 10**6)),
        header((2**62 + 1, 0)),
        header((0, 2**63 - 1)),
        header((2,), content=b"x" * 15),
        header((-1,), content=b"x" * 16),
        header((-2, -1), content=b"x" * 16),
        header((10**15,), "|V0", b"x" * 8),
        header((10**9,), "<U0", b"x" * 8),
        header((1,), "|O", b"x" * 8),
        header((1,), version=3, content=b"x" * 8),
        header((1,), version=9, content=b"x" * 8),
        b"",
        b"\x93NUMPY",
        b"not an array at all",
        header((1,))[:40],
    ],
    ids=range(15),
)
def test_what_is_announced_and_not_there_is_refused(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        file.writestr("x.npy", content)
    for read in (read_npy, map_npy):
        with pytest.raises(DAMAGED):
            read(tmp_path / "a.npy")
    with pytest.raises(DAMAGED):
        read_npz(tmp_path / "a.npz")


def test_exactly_what_is_announced_is_enough(tmp_path):
    (tmp_path / "a.npy").write_bytes(header((2,), content=b"\0" * 16))
    assert read_npy(tmp_path / "a.npy").tolist() == map_npy(tmp_path / "a.npy").tolist() == [0.0, 0.0]
    (tmp_path / "a.npy").write_bytes(header((2,), content=b"\0" * 15))
    with pytest.raises(DAMAGED, match="more than it holds"):  # the mapping counts without the header
        map_npy(tmp_path / "a.npy")
    with pytest.raises(EOFError, match="cut short"):
        read_npy(tmp_path / "a.npy")


def test_what_unpacks_to_far_more_than_it_is_is_refused(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros(10**5))
    assert read_npz(tmp_path / "a.npz")["x"].shape == (10**5,)  # small enough in any case
    monkeypatch.setattr(arrays, "ALWAYS_UNPACKED", 1000)
    monkeypatch.setattr(arrays, "MOST_EXPANSION", 20)
    with pytest.raises(ValueError, match="unpacks to"):
        read_npz(tmp_path / "a.npz")
    np.savez_compressed(tmp_path / "a.npz", x=np.random.default_rng(0).normal(size=1000))
    assert read_npz(tmp_path / "a.npz")["x"].shape == (1000,)  # honest numbers do not shrink so
    monkeypatch.setattr(arrays, "MOST_EXPANSION", 0)
    np.savez(tmp_path / "b.npz", x=np.zeros(10))
    assert read_npz(tmp_path / "b.npz")["x"].shape == (10,)
    size = zipfile.ZipFile(tmp_path / "b.npz").infolist()[0].file_size
    monkeypatch.setattr(arrays, "ALWAYS_UNPACKED", size)
    assert read_npz(tmp_path / "b.npz")["x"].shape == (10,)
    monkeypatch.setattr(arrays, "ALWAYS_UNPACKED", size - 1)
    with pytest.raises(ValueError, match="unpacks to"):
        read_npz(tmp_path / "b.npz")


def test_old_headers_are_read_without_a_warning(tmp_path):
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1L,), }"
    text += b" " * (63 - (10 + len(text)) % 64) + b"\n"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text + b"\0" * 8)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert read_npy(tmp_path / "a.npy").tolist() == [0.0]
    assert not said


def test_the_first_of_two_members_of_one_name_counts(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
            for number in (1.0, 2.0):
                stream = io.BytesIO()
                np.save(stream, np.array([number]))
                file.writestr("x.npy", stream.getvalue())
    assert read_npz(tmp_path / "a.npz")["x"].tolist() == [1.0]


@pytest.mark.parametrize("read", [read_npy, map_npy, read_npz, is_npy])
def test_only_files_are_read(tmp_path, read):
    with pytest.raises(OSError):
        read(tmp_path)
    with pytest.raises(OSError):
        read(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="ordinary file"):
        read(tmp_path / "pipe")
