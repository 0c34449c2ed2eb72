"""Arrays of anybody: read as numpy reads them, or refused before anything is run or any memory taken."""

import io
import os
import pickle
import struct
import zipfile

import numpy as np
import pytest

from polyrelu.arrays import DAMAGED, is_npy, map_npy, open_npz, read_npy, read_npz
from polyrelu.files import open_file

ARRAYS = [
    np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.array(5.0),
    np.array(["a", "bc"]), np.array([b"x"]),
    np.zeros((0, 3), np.float32), np.arange(4, dtype=">i2"), np.array([True, False]), np.zeros(3, "f4,i4"),
    np.array(["2020"], "M8[D]"),
]  # fmt: skip


class Payload:
    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


def objects(trace):
    array = np.empty(3, dtype=object)
    array[0] = Payload(trace)
    return array


def header(text, version=(1, 0), content=bytes(48)):
    line = text.encode("latin1") + b"\n"
    size = struct.pack("<H" if version == (1, 0) else "<I", len(line))
    return b"\x93NUMPY" + bytes(version) + size + line + content


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_what_numpy_writes_is_read(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    np.savez_compressed(tmp_path / "a.npz", a=array, b=array[..., None])
    mapped = map_npy(tmp_path / "a.npy")
    for found in (read_npy(tmp_path / "a.npy"), mapped, read_npz(tmp_path / "a.npz")["a"]):
        assert found.dtype == array.dtype and found.shape == array.shape
        np.testing.assert_array_equal(found, array)
    assert list(read_npz(tmp_path / "a.npz")) == ["a", "b"]
    assert array.size == 0 or isinstance(mapped, np.memmap)
    assert read_npy(tmp_path / "a.npy").flags.writeable


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_both_versions_and_the_numbers_of_python_2(tmp_path, version):
    path = tmp_path / "a.npy"
    path.write_bytes(
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (2L, 3L), }", version, np.arange(6.0).tobytes())
    )
    assert read_npy(path).tolist() == map_npy(path).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_no_pickle_is_ever_loaded(tmp_path):
    trace = tmp_path / "trace"
    np.save(tmp_path / "a.npy", objects(trace), allow_pickle=True)
    np.savez(tmp_path / "a.npz", a=objects(trace))
    (tmp_path / "b.npy").write_bytes(pickle.dumps(Payload(trace)))
    for read, name in (
        (read_npy, "a.npy"),
        (map_npy, "a.npy"),
        (read_npz, "a.npz"),
        (read_npy, "b.npy"),
        (map_npy, "b.npy"),
    ):
        with pytest.raises(ValueError):
            read(tmp_path / name)
    assert not trace.exists()
    np.load(tmp_path / "a.npy", allow_pickle=True)
    assert trace.exists()  # it would have


@pytest.mark.parametrize(
    "shape", ["(1000000000000,)", "(2, 4)", "(-1, 6)", "(4611686018427387904, 8)", "(9223372036854775808, 0)"]
)
@pytest.mark.parametrize("descr", ["'<f8'", "'|O'", "'<U9'"])
def test_sizes_that_a_file_does_not_hold_are_refused_at_once(tmp_path, shape, descr):
    content = header(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}")
    (tmp_path / "a.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", content)
    for read, name in ((read_npy, "a.npy"), (map_npy, "a.npy"), (read_npz, "a.npz")):
        with pytest.raises(DAMAGED) as caught:
            read(tmp_path / name)
        assert not isinstance(caught.value, MemoryError)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "5", "{'descr': 'x', 'fortran_order': False, 'shape': (2,), }", "{'shape': (2,), }", "(" * 3000,
        "[" * 900 + "]" * 900,
        "{'descr': '<f8', 'fortran_order': 3, 'shape': (2,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': ('a',), }",
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0), (9, 9)])
def test_damaged_headers_are_one_of_damaged(tmp_path, text, version):
    (tmp_path / "a.npy").write_bytes(header(text, version))
    for read in (read_npy, map_npy):
        with pytest.raises(DAMAGED):
            read(tmp_path / "a.npy")


def test_an_archive_that_unpacks_to_far_more_than_it_is_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("polyrelu.arrays.ALWAYS_UNPACKED", 2**16)
    np.savez_compressed(tmp_path / "zeros.npz", a=np.zeros(2**17))
    with pytest.raises(ValueError, match="unpacks to"):
        read_npz(tmp_path / "zeros.npz")
    np.savez_compressed(tmp_path / "numbers.npz", a=np.random.default_rng(0).normal(size=2**14))
    assert read_npz(tmp_path / "numbers.npz")["a"].shape == (2**14,)
    np.savez_compressed(tmp_path / "few.npz", a=np.zeros(2**12))
    assert not read_npz(tmp_path / "few.npz")["a"].any()


def test_cut_short(tmp_path):
    stream = io.BytesIO()
    np.save(stream, np.arange(100.0))
    for end in range(0, len(stream.getvalue()), 13):
        (tmp_path / "a.npy").write_bytes(stream.getvalue()[:end])
        for read in (read_npy, map_npy):
            with pytest.raises(DAMAGED):
                read(tmp_path / "a.npy")


def test_what_is_no_ordinary_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.npy")
    (tmp_path / "zero.npy").symlink_to("/dev/zero")
    (tmp_path / "loop.npy").symlink_to("loop.npy")
    (tmp_path / "folder.npy").mkdir()
    for name in ("pipe", "zero", "loop", "folder", "missing"):
        for read in (read_npy, map_npy, read_npz, is_npy, open_file):
            with pytest.raises(OSError):
                read(tmp_path / f"{name}.npy")


def test_only_what_is_asked_for_is_read(tmp_path):
    np.savez(tmp_path / "a.npz", good=np.arange(3), bad=objects(tmp_path / "trace"))
    with open_npz(tmp_path / "a.npz") as stored:
        assert stored.names == ["good", "bad"] and stored["good"].tolist() == [0, 1, 2]
        with pytest.raises(KeyError):
            stored["nothing"]
