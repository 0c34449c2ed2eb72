"""Everything that reads a file: commands through their entry point, and the functions people call.

A kind has a folder of whole files (`tools.fuzz.seeds`), the files of it that are damaged, and its readers, each a
function of the folder that a case works in.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final
from unittest import mock

import numpy as np

from polyrelu import InputError
from tools.fuzz.seeds import CLAIM, command, rows

Reader = Callable[[Path], Any]


class WrongStatusError(Exception):
    """A command ended with a status that its help does not know, or that means a bug of ours."""


def run(*words: object) -> None:
    """A command; statuses 0 (done), 1 (stopped short, some failed) and 2 (bad input) are answers."""
    status = command(*words)
    if status == 2:
        raise InputError(f"polyrelu {words[0]} refused it")
    if status not in (0, 1):
        raise WrongStatusError(f"polyrelu {' '.join(map(str, words))}: exit status {status}")


@final
@dataclass(frozen=True)
class Kind:
    """``seed``: whose files; ``files``: patterns of those damaged; ``weight``: how often; ``starts``: has processes."""

    seed: str
    files: tuple[str, ...]
    readers: tuple[Reader, ...]
    weight: float = 1.0
    starts: bool = False


def _load(path: Path) -> Any:
    import torch

    import polyrelu

    net = polyrelu.load(path)
    return net(torch.ones(2, net.dim, dtype=net.dtype))


def _head(path: Path) -> Any:
    import polyrelu

    head, (X, kind) = polyrelu.PolyReLUClassifier.load(path), rows()
    X = np.hstack([X, X])[:, : head.n_features_in_]
    head.predict_proba(X)
    head.score(X, head.classes_[kind % 2])
    return head.certify(X[:2], budget=polyrelu.Budget(nodes=1))


def _each(pattern: str, action: Callable[[Path], Any]) -> Reader:
    """The same for every file of a folder; what one refuses does not keep the others from being read."""

    def read(folder: Path) -> None:
        refused = None
        for path in sorted(folder.glob(pattern)):
            try:
                action(path)
            except InputError as error:
                refused = error
        if refused:
            raise refused

    return read


def _read(name: str, **more: Any) -> Reader:
    from polyrelu import data

    return lambda folder: list(itertools.islice(data.read(name, **more).blocks(), 3))


def _trajectory(folder: Path) -> Any:
    import polyrelu
    from polyrelu.report.figures import trajectory_figure

    found = polyrelu.Trajectory.load(folder / "run/trajectory.npz", polyrelu.PolyReLUNet(8, 6))
    return found.log_loss, found.accuracy, found.time, trajectory_figure(found)


def _explore(folder: Path) -> None:
    from tools.fuzz.page import own_run

    own_run(folder)


def _sweep(folder: Path) -> None:
    from polyrelu import sweep

    sweep.status("out")
    sweep.read_records("out")
    sweep.export("out", "table.csv")
    sweep.export("out", "table.jsonl")


def _sweep_file(name: str) -> Reader:
    from polyrelu.sweep import Sweep

    return lambda folder: Sweep.read(folder / name, call=True)


def _reference(path: Path) -> Any:
    import torch

    from polyrelu import load_reference

    net = load_reference(path, 3.0)
    return net(torch.ones(2, net.dim, dtype=net.dtype))


@contextlib.contextmanager
def _no_network() -> Iterator[None]:
    def none(*words: Any, **more: Any) -> Any:
        raise OSError("no network here")

    with mock.patch("subprocess.Popen", none), mock.patch("sklearn.datasets.fetch_openml", none):
        yield


def _fetch(name: str) -> Reader:
    def read(folder: Path) -> None:
        with _no_network(), mock.patch.dict(os.environ, POLYRELU_DATA=str(folder / "cache")):
            run("data", "fetch", "mnist", "--file", name)

    return read


def _cached(folder: Path) -> Any:
    from polyrelu import data

    with _no_network(), mock.patch.dict(os.environ, POLYRELU_DATA=str(folder)):
        return data.read("mnist:test:parity").rows()


def _said(*words: object) -> Reader:
    return lambda folder: run(*words)


FIT = ("--epochs", 1, "--width", 3, "-o", "new.safetensors", "--quiet")
SMALL = ("--limit", 3, "--budget-nodes", 2, "--quiet")
NPY = ("X.npy", "y.npy", "kind.npy")


def kinds() -> dict[str, Kind]:
    """Every kind of file, by name."""
    return {
        "npz": Kind("head", ("data.npz",), (
            _read("data.npz"), _read("data.npz:train:mod2"), _said("fit", "data.npz", *FIT),
            _said("fit", "data.npz", "--label", "kind", *FIT),
            _said("fit", "data.npz", "--fine", "kind", *FIT),
            _said("predict", "plain.safetensors", "data.npz", "-o", "out.csv"),
            _said("evaluate", "plain.safetensors", "data.npz", *SMALL, "--out", "new"))),
        "npy": Kind("head", NPY, (
            _read("X.npy"), _said("fit", "X.npy", *FIT), _said("fit", "X.npy", "--label", "kind.npy", *FIT),
            _said("fit", "X.npy", "--fine", "kind.npy", *FIT), _said("predict", "plain.safetensors", "X.npy"),
            _said("predict", "plain.safetensors", "X.npy", "--label", "kind.npy"))),
        "csv": Kind("head", ("data.csv", "words.csv"), (
            _read("data.csv"), _said("fit", "words.csv", "--label", "label", "--fine", "kind", *FIT),
            _said("fit", "data.csv", *FIT), _said("predict", "named.safetensors", "words.csv"),
            _said("predict", "named.safetensors", "data.csv", "--label", "kind"), _read("data.csv:test"))),
        "parquet": Kind("head", ("data.parquet",), (
            _read("data.parquet"), _said("fit", "data.parquet", *FIT),
            _said("fit", "data.parquet", "--label", "label", *FIT),
            _said("predict", "plain.safetensors", "data.parquet"))),
        "safetensors": Kind("head", ("data.safetensors",), (
            _read("data.safetensors"), _said("fit", "data.safetensors", "--fine", "kind", *FIT),
            _said("predict", "plain.safetensors", "data.safetensors"))),
        "mapping": Kind("head", ("groups.*",), (_read("X.npy:groups.json"), _read("data.npz:groups.csv"))),
        "head": Kind("head", ("plain.safetensors", "named.safetensors", "fine.safetensors"), (
            _each("[pf]*.safetensors", _head), _each("named.safetensors", _head),
            _said("predict", "plain.safetensors", "data.npz", "--radius"),
            _said("predict", "named.safetensors", "words.csv"),
            _said("predict", "fine.safetensors", "data.npz"),
            _said("evaluate", "named.safetensors", "words.csv", *SMALL, "--out", "new"),
            _said("fit", "data.npz", "--epochs", 1, "--width", 3, "--quiet", "-o", "plain.safetensors")), 1.5),
        "net": Kind("net", ("net*.safetensors",), (
            _each("net*.safetensors", _load), _each("net*.safetensors", _load),
            _said("evaluate", "net0.safetensors", "signs.npz", *SMALL, "--out", "new"),
            _said("inspect", "net0.safetensors", "signs.npz", "--out", "new", "--quiet")), 1.5),
        "run": Kind("run", ("run/*",), (
            _trajectory, _said("flow", "--resume", "--out", "run", "--until-loss", 0.35, "--max-evaluations", 30,
                               "--quiet"), _explore,
            _said("evaluate", "run", "mixture:dim=8,clusters=2+1,alpha=0.1,n=3", *SMALL, "--out", "new"),
            _said("inspect", "run", "mixture:dim=8,clusters=2+1,alpha=0.1,n=20", "--out", "new", "--quiet")), 1.5),
        "evaluation": Kind("evaluation", ("out/parts/*", "out/evaluation.json", "out/*.csv"), (
            _said("evaluate", "net.safetensors", "signs.npz", "--limit", 4, "--quiet", "--out", "out"),)),
        "sweep": Kind("sweep", ("out/sweep.json", "out/results/*"),
                      (_sweep, _said("sweep", "status", "out", "--json"),
                       _said("sweep", "export", "out", "--to", "t.csv"))),
        "sweep file": Kind("sweep", ("sweep.toml", "sweep.json"),
                           (_sweep_file("sweep.toml"), _sweep_file("sweep.json"))),
        "claims": Kind("claims", ("out/results/*", "out/sweep.json", "out/claims.json"), (
            _said("claims", "run", CLAIM, "--out", "out", "--workers", 1, "--quiet"),), 0.05, starts=True),
        "reference": Kind("reference", ("*.pt", "*.pth"), (
            _each("*.pt*", _reference), _said("evaluate", "--reference", "reference.pt", "--p", 2, "--data",
                                              "classes.npz", *SMALL, "--out", "new"))),
        "images": Kind("images", ("images/*/*", "flat/*", "labels.csv"),
                       (_said("data", "embed", "images", "-o", "images.npz", "--quiet"),
            _said("data", "embed", "flat", "--labels", "labels.csv", "-o", "images.npz", "--quiet")), 0.5),
        "archive": Kind("archive", ("mnist.*",), (_fetch("mnist.tgz"), _fetch("mnist.whl"), _cached)),
        "predictions": Kind("head", ("predictions.csv",),
                            (_said("predict", "plain.safetensors", "data.npz", "-o", "predictions.csv"),), 0.3),
        "diagnosis": Kind("head", ("data.npz", "plain.safetensors"), (
            _said("diagnose", "data.npz", "--model", "plain.safetensors", "--points", 3, "-o", "page.html",
                  "--quiet"),), 0.1),
        "export": Kind("head", ("plain.safetensors",), (_said("export", "plain.safetensors", "-o", "head.pt2"),),
                       0.02),
        "bomb": Kind("bomb", ("bomb.*",), (_read("bomb.npz"), _fetch("bomb.whl"), _said("fit", "bomb.npz", *FIT)),
                     0.02),
        "recipe": Kind("recipe", (), (), 1.0),
        "request": Kind("recipe", (), (), 0.5),
    }  # fmt: skip
