"""Data for `heads.py`: two classes with hidden sub-classes, in units in which the median centred norm is 1."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

from polyrelu.data import read
from polyrelu.data.images import cache_folder, embed_images, load_images

KINDS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
VEHICLES = (0, 1, 8, 9)
TRAIN, TEST = 2000, 300  # photographs
SEEN = 150  # of the test photographs, on which defaults of the head were chosen: left out


@dataclass(frozen=True)
class Task:
    """Rows, labels +-1 and fine labels, to train on and to test on."""

    name: str
    train: tuple[np.ndarray, np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray, np.ndarray]


def task(name, X, y, fine, train, test):
    """Centre at the mean of the training rows, and divide by the median norm of what is left."""
    X = X.astype(np.float64) - X[train].mean(axis=0, dtype=np.float64)
    X = X / np.median(np.linalg.norm(X[train], axis=1))
    return Task(name, *((X[rows], y[rows], fine[rows]) for rows in (train, test)))


def digits(seed, points):
    data = read("digits:parity")
    order = np.random.default_rng(seed).permutation(len(data))
    few = 3 * len(data) // 4
    X, y, fine = (part.numpy() for part in (data.rows(), data.y, data.cluster))
    return task("digits parity, 1347 to train", X, y, fine, order[:few], order[few:][:points])


def mnist(seed, points, rows):
    train, test = read("mnist:parity"), read("mnist:test:parity")
    draw = np.random.default_rng(seed)
    first, second = draw.permutation(len(train))[:rows], draw.permutation(len(test))[:points]
    X = np.concatenate([train.rows().numpy()[first], test.rows().numpy()[second]])
    y = np.concatenate([train.y.numpy()[first], test.y.numpy()[second]])
    fine = np.concatenate([train.cluster.numpy()[first], test.cluster.numpy()[second]])
    return task(f"MNIST parity, {rows} to train", X, y, fine, np.arange(rows), rows + np.arange(points))


def gram(path, seed, points):
    """Features x with ten classes y, the first five against the rest; half to train."""
    stored = np.load(path)
    X, fine = stored["x"], stored["y"].astype(int) - stored["y"].min()
    order = np.random.default_rng(seed).permutation(len(X))
    half = len(X) // 2
    y = np.where(fine < 5, 1.0, -1.0)
    return task(f"Gram features, {half} to train", X, y, fine, order[:half], order[half:][:points])


def photographs(path, seed, points):
    """Embeddings of CIFAR-10, animals against vehicles; made first if there are none at ``path``."""
    path = Path(path or cache_folder() / "cifar10_embeddings.npz")
    if not path.exists():
        make_embeddings(path)
    stored = np.load(path)
    fine, train = stored["y"], np.array([Path(file).name.startswith("train") for file in stored["files"]])
    y = np.where(np.isin(fine, VEHICLES), -1.0, 1.0)
    unseen = np.random.default_rng(0).permutation(np.flatnonzero(~train))[SEEN:]
    test = np.random.default_rng(seed).permutation(unseen)[:points]
    name = f"CIFAR-10 embeddings, animals against vehicles, {train.sum()} to train"
    return task(name, stored["X"], y, fine, np.flatnonzero(train), test)


def make_embeddings(path):
    """The first photographs of both parts of CIFAR-10 as files, and their EfficientNet-Lite0 embeddings."""
    found = load_images("cifar10")
    with TemporaryDirectory() as folder:
        for part, count in (("train", TRAIN), ("test", TEST)):
            for number in range(count):
                pixels, kind = found[f"{part}_x"][number], KINDS[found[f"{part}_y"][number]]
                Path(folder, kind).mkdir(exist_ok=True)
                picture = Image.fromarray(pixels.reshape(3, 32, 32).transpose(1, 2, 0))
                picture.save(Path(folder, kind, f"{part}_{number:05d}.png"))
        embed_images(folder, path)
