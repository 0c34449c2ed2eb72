"""A classifier as it runs: torch in `predict`, or an exported file in onnxruntime; alone, in batches, on threads."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

import polyrelu

Array = NDArray[Any]
WAYS = ((1, 0), (1, 3), (2, 0), (1, 66), (1, 1), (2, 5))  # threads, other rows before those looked at
TYPES = (np.float64, np.float32)  # of the rows that are handed in, in turn


@final
@dataclass(frozen=True, eq=False)
class Executed:
    """``scores`` (n,) or (n, C) and ``decide`` (n,) 0..C-1 of rows; ``net`` is the same in float64, for its slopes."""

    scores: Callable[[Array], Array]
    decide: Callable[[Array], Array]
    net: Any
    types: tuple[type[np.floating[Any]], ...]
    eps: float

    def run(self, rows: Array, label: int, way: tuple[int, int]) -> tuple[Array, Array]:
        """Margins of ``label`` and decisions, as computed on so many threads with so many rows before them."""
        threads, before = way
        rows = np.concatenate([rows[:1].repeat(before, 0), rows])
        old = torch.get_num_threads()
        if threads != old:
            torch.set_num_threads(threads)
        try:
            scores, found = self.scores(rows), self.decide(rows)
        finally:
            if threads != old:
                torch.set_num_threads(old)
        return margins(scores[before:], label), found[before:]

    def slope(self, rows: Array, label: int) -> tuple[Array, Array]:
        """Margins and their gradients, in float64."""
        X = torch.from_numpy(rows.astype(np.float64)).requires_grad_()
        scores = self.net(X)
        if scores.ndim == 1:
            margin = scores if label == 1 else -scores
        else:
            rest = scores.masked_fill(torch.arange(scores.shape[1]) == label, -torch.inf)
            margin = scores[:, label] - rest.amax(dim=1)
        (gradient,) = torch.autograd.grad(margin.sum(), X)
        return margin.detach().numpy(), gradient.numpy()


def margins(scores: Array, label: int) -> Array:
    """How far ``label`` is ahead; <= 0 where it is not."""
    scores = scores.astype(np.float64)
    if scores.ndim == 1:
        return scores if label == 1 else -scores
    found: Array = scores[:, label] - np.delete(scores, label, axis=1).max(axis=1)
    return found


def codes(head: Any, rows: Array) -> Array:
    """What the head predicts, as numbers of its classes."""
    found: Array = np.searchsorted(head.classes_, head.predict(rows))
    return found


def of_head(head: Any) -> Executed:
    """A fitted `polyrelu.PolyReLUClassifier`; rows of float64 go into a head of float32, too."""
    net = copy.deepcopy(head.net_).double()

    def decide(rows: Array) -> Array:
        return codes(head, rows)

    return Executed(head.decision_function, decide, net, TYPES, torch.finfo(head.net_.dtype).eps)


def of_onnx(head: Any, folder: Path) -> Executed:
    """The same head written by ``polyrelu export`` and run by onnxruntime; rows are cast to the type it takes."""
    from typer.testing import CliRunner

    from polyrelu.cli import application as cli

    onnxruntime = importlib.import_module("onnxruntime")
    stored, written = folder / "head.safetensors", folder / "head.onnx"
    polyrelu.save(head.net_, stored)
    result = CliRunner().invoke(cli.app, ["export", str(stored), "-o", str(written)])
    assert result.exit_code == 0, result.output
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(written), options, providers=["CPUExecutionProvider"])
    kind = np.float32 if "float)" in session.get_inputs()[0].type else np.float64

    def scores(rows: Array) -> Array:
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, as in torch
            cast = rows.astype(kind)
        found: Array = session.run(None, {"X": cast})[0]
        return found

    def decide(rows: Array) -> Array:
        found = scores(rows)
        return (found > 0).astype(np.int64) if found.ndim == 1 else found.argmax(axis=1)

    return Executed(scores, decide, copy.deepcopy(head.net_).double(), TYPES, float(np.finfo(kind).eps))
