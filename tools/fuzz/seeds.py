"""Whole files of every kind, small, to be damaged: made once, by the commands and functions that people use."""

from __future__ import annotations

import gzip
import importlib
import io
import json
import pickle
import struct
import sys
import tarfile
import zipfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import torch

import polyrelu
from polyrelu import nets
from tools.fuzz.arrays import bomb_npz

DIM, ROWS = 6, 24
SWEEP = (
    'function = "polyrelu.workflows.experiments:mixture"\n[grid]\np = [1.0, 3.0]\n[fixed]\ndim = 6\nclusters = "2+1"\n'
)
CLAIM = "A6"  # one that takes a second
RECIPES = ("mixture:dim=6,clusters=2+1,alpha=0.1,n=9,seed=1", "sphere:dim=5,n=6", "symmetric:dim=4,n=8,margin=1",
           "digits:parity", "digits:train:mod5",
           "mixture:dim=6,clusters=1+1,alpha=0.1,n=8,scale=sqrt_dim,rotate=1")  # fmt: skip


def command(*words: object) -> int:
    """Run ``polyrelu WORDS`` in this process, which goes on to take its own Ctrl-C; the exit status."""
    from polyrelu.cli.application import app

    before, sys.argv = sys.argv, ["polyrelu", *map(str, words)]
    try:
        app(prog_name="polyrelu")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv = before
    return 0


def rows() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Rows of four sub-classes and their numbers."""
    source = np.random.default_rng(0)
    kind = np.arange(ROWS) % 4
    return (3 * np.eye(4, DIM)[kind] + 0.3 * source.normal(size=(ROWS, DIM))).astype(np.float32), kind


def tables(folder: Path) -> None:
    """The same rows in every format of a table."""
    X, kind = rows()
    np.savez(
        folder / "data.npz", X=X, y=kind % 2, cluster=kind, centres=3 * np.eye(4, DIM, dtype=np.float32), kind=kind
    )
    for name, array in (("X", X), ("y", kind % 2), ("kind", kind)):
        np.save(folder / f"{name}.npy", array)
    names = [f"f{i}" for i in range(DIM)]
    lines = [",".join([*names, "kind", "label"])]
    lines += [",".join([*map(repr, row), str(k), str(k % 2)]) for row, k in zip(X.tolist(), kind, strict=True)]
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    words = [
        line.removesuffix("0") + "even" if line.endswith(",0") else line.removesuffix("1") + "odd" for line in lines[1:]
    ]
    (folder / "words.csv").write_text("\n".join([lines[0], *words]) + "\n")
    parquet(folder / "data.parquet")
    from safetensors.numpy import save_file

    save_file({"X": X, "y": kind % 2, "kind": kind}, folder / "data.safetensors")
    (folder / "groups.json").write_text(json.dumps({"0": "1", "1": "-1", "2": "1", "3": "-1"}))
    (folder / "groups.csv").write_text("0,1\n1,-1\n2,1\n3,-1\n")


def parquet(path: Path) -> None:
    """A table with columns of numbers and of lists."""
    pa: Any = importlib.import_module("pyarrow")
    pq: Any = importlib.import_module("pyarrow.parquet")

    X, kind = rows()
    columns = {f"f{i}": X[:, i] for i in range(DIM - 2)} | {"vector": X[:, DIM - 2 :].tolist()}
    pq.write_table(pa.table({**columns, "label": kind % 2}), path)


def net(folder: Path) -> None:
    """One net of every kind that can be saved."""
    mixture = polyrelu.OrthonormalMixture(DIM, 2, 2, 0.1)
    made = [
        polyrelu.PolyReLUNet(DIM, 5, 2.5, init="balanced", scale=1e-3),
        polyrelu.PolyReLUNet(DIM, 4, 3.0, 3, bias=True, centre=torch.ones(DIM)),
        nets.AverageClassifier(mixture.centres, mixture.labels),
        nets.CentreClassifier(mixture.centres, mixture.labels, 3.0),
        nets.MLP(DIM, 3, 2, 2), nets.TanhNet(DIM, 3), nets.LogisticRegression(DIM), nets.GroupedNet(DIM, 2, 2),
        nets.FixedOutputNet(DIM, 4),
        nets.ReadOut(polyrelu.PolyReLUNet(DIM, 4, 2.0, 3), (0, 0, 1)), nets.SmallCNN(4, 2, hidden=3),
        nets.ResNet(1, 4, 2, (1,), 2),
    ]  # fmt: skip
    for number, one in enumerate(made):
        polyrelu.save(
            one, folder / f"net{number}.safetensors", about={"why": "to be damaged", "numbers": [1, 2.5, None]}
        )
    labelled(folder)


def labelled(folder: Path) -> None:
    """Data with labels +1/-1 and with classes, as nets take them."""
    X, kind = rows()
    np.savez(folder / "signs.npz", X=X, y=2.0 * (kind % 2) - 1)
    np.savez(folder / "classes.npz", X=X, y=kind % 2)


def head(folder: Path) -> None:
    """Heads of fit: of an archive, of a table with names, and with sub-classes."""
    tables(folder)
    small = ("--epochs", 2, "--width", 6, "--quiet")
    for name, words in (("plain", ("data.npz",)), ("named", ("words.csv",)), ("fine", ("data.npz", "--fine", "kind"))):
        first, *more = words
        assert command("fit", folder / first, *more, *small, "-o", folder / f"{name}.safetensors") == 0
    (folder / "predictions.csv").write_text("row,prediction,probability\n0,0,0.9\n")


def run(folder: Path) -> None:
    """A run of flow."""
    small = (
        "--dim",
        8,
        "--clusters",
        "2+1",
        "--samples",
        40,
        "--width",
        6,
        "--init",
        0.01,
        "--until-loss",
        0.4,
        "--quiet",
    )
    assert command("flow", *small, "--out", folder / "run") == 0


def evaluation(folder: Path) -> None:
    """A finished evaluation, which the same command goes on with."""
    net = polyrelu.PolyReLUNet(DIM, 4, 2.0, seed=3)
    polyrelu.save(net, folder / "net.safetensors")
    labelled(folder)
    assert (
        command(
            "evaluate",
            folder / "net.safetensors",
            folder / "signs.npz",
            "--limit",
            4,
            "--quiet",
            "--out",
            folder / "out",
        )
        == 0
    )


def sweep(folder: Path) -> None:
    """A sweep's file, and its folder with a result and a failure."""
    (folder / "sweep.toml").write_text(SWEEP)
    (folder / "sweep.json").write_text(
        json.dumps({"function": "polyrelu.workflows.experiments:mixture", "settings": [{"p": 1.0}]})
    )
    from polyrelu.sweep import Sweep, run_sweep

    run_sweep(Sweep("tools.fuzz.goods:example", [{"p": 1.0}, {"p": 2.5}]), folder / "out", workers=1)


def claims(folder: Path) -> None:
    """A claim, measured and judged."""
    assert command("claims", "run", CLAIM, "--workers", 1, "--out", folder / "out", "--quiet") in (0, 1)


def reference(folder: Path) -> None:
    """Checkpoints as the published code writes them."""
    state = {"center": torch.zeros(1, DIM), "prelulayer.W": torch.randn(DIM, 4), "output_net.weight": torch.randn(2, 4)}
    torch.save(state, folder / "reference.pt")
    torch.save({"state_dict": {**state, "output_net.bias": torch.zeros(2)}}, folder / "nested.pth")
    torch.save(state, folder / "old.pt", _use_new_zipfile_serialization=False)
    labelled(folder)


def images(folder: Path) -> None:
    """Folders of images by class, and one with a table of labels."""
    from PIL import Image

    source = np.random.default_rng(0)
    for number, name in enumerate(("a/1.png", "a/2.jpg", "b/1.gif", "b/2.bmp", "flat/1.png", "flat/2.png")):
        path = folder / "images" / name if number < 4 else folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(source.integers(0, 256, (12, 9, 3), dtype=np.uint8)).save(path)
    (folder / "labels.csv").write_text("file,label\n1.png,a\n2.png,b\n")


def archive(folder: Path) -> None:
    """Archives of MNIST as its sources pack them, with few images, and the file it is kept in."""
    source = np.random.default_rng(0)
    x, y = source.integers(0, 256, (3, 784), dtype=np.uint8), np.array([1, 2, 3], dtype=np.uint8)
    with tarfile.open(folder / "mnist.tgz", "w:gz") as tar:
        for name, array in (
            ("train-images-idx3", x.reshape(3, 28, 28)),
            ("train-labels-idx1", y),
            ("t10k-images-idx3", x.reshape(3, 28, 28)),
            ("t10k-labels-idx1", y),
        ):
            content = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
            info = tarfile.TarInfo(f"package/data/{name}-ubyte")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    part = ((x / 256).astype(np.float32), y.astype(np.int64))
    with zipfile.ZipFile(folder / "mnist.whl", "w") as wheel:
        wheel.writestr("mnist/data/mnist.pkl.gz", gzip.compress(pickle.dumps((part, part, part), 2)))
    np.savez_compressed(folder / "mnist.npz", train_x=x, train_y=y, test_x=x, test_y=y)


def bomb(folder: Path) -> None:
    """Archives of a few megabytes that unpack to more than a case may take."""
    bomb_npz(folder / "bomb.npz", 3 * 2**26)
    with gzip.open(folder / "zeros.gz", "wb", compresslevel=1) as stream:
        for _ in range(96):
            stream.write(bytes(2**24))
    with zipfile.ZipFile(folder / "bomb.whl", "w") as wheel:
        wheel.write(folder / "zeros.gz", "mnist/data/mnist.pkl.gz")
    (folder / "zeros.gz").unlink()


def nothing(folder: Path) -> None:
    """For what is typed, not read."""


SEEDS: dict[str, Callable[[Path], None]] = {
    "table": tables, "net": net, "head": head, "run": run, "evaluation": evaluation, "sweep": sweep,
    "claims": claims, "reference": reference,
    "images": images, "archive": archive, "bomb": bomb, "recipe": nothing,
}  # fmt: skip


def make(folder: Path, wanted: Collection[str] = ()) -> None:
    """All of them, or those wanted, each kind in a folder of its own; what the commands print is not shown."""
    import contextlib
    import os

    here = Path.cwd()
    for name, seed in SEEDS.items():
        if wanted and name not in wanted:
            continue
        (folder / name).mkdir()
        os.chdir(folder / name)
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                seed(folder / name)
        finally:
            os.chdir(here)
