"""One head: drawn, certified, searched."""

from __future__ import annotations

import math
import signal
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

import polyrelu
from tools.rounding.exact import linear_radius
from tools.rounding.executed import Executed, codes, of_head, of_onnx
from tools.rounding.kinds import KINDS, linear_head, points_of
from tools.rounding.search import Search

Array = NDArray[Any]
EACH = 10  # points of a head
EXACT = "closed form"
NORMS = (2.0, 2.0, 1.0, math.inf)  # of the heads of a kind in turn


class Row(NamedTuple):
    """What one point gave: see `Outcome`; ``where`` finds it again."""

    kind: str
    dtype: str
    runtime: str
    lower: float
    tries: int
    ratio: float
    broken: bool
    where: str


class Proven(NamedTuple):
    """Points (n, D), what they are proven to be (n,), within which radius (n,), and steps that lead out (n, D)."""

    points: Array
    labels: Array
    lower: Array
    steps: Array
    norm: float


def alone() -> None:
    """One thread, where processes share the cores; Ctrl-C is for the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)


def certified(number: int, seed: int, *, onnx: bool = False, each: int = EACH) -> list[Row]:
    """Head ``number`` of ``seed``: kinds and dtypes in turn, radii of `PolyReLUClassifier.certify`."""
    kind = tuple(KINDS)[number % len(KINDS)]
    turn = number // len(KINDS)
    dtype = (torch.float32, torch.float64)[turn % 2]
    norm = NORMS[(turn // 2) % len(NORMS)]
    source = np.random.default_rng([seed, number])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short trainings say that they are short
        head = KINDS[kind](source, dtype)
    points = points_of(head, source, each)
    found = head.certify(points, norm=norm, tol=1e-9, budget=polyrelu.Budget(nodes=100))
    lower = found.lower.numpy()
    where = f"seed {seed}, head {number}"
    with tempfile.TemporaryDirectory() as folder:
        runs = of_onnx(head, Path(folder)) if onnx else of_head(head)
        proven = Proven(points, codes(head, points), lower, found.perturbation.numpy(), norm)
        return _rows((kind, _name(dtype), "onnxruntime" if onnx else "torch"), runs, proven, source, where)


def closed_form(number: int, seed: int, dtype: torch.dtype = torch.float32, each: int = EACH) -> list[Row]:
    """A linear head with its radius in real arithmetic: where a search that works finds flips."""
    source = np.random.default_rng([seed, number, 1])
    head = linear_head(source, dtype, int(source.choice([100, 300, 1000])), bias=number % 2 == 1)
    points = points_of(head, source, each)
    net, norm = head.net_, NORMS[number % len(NORMS)]
    weight = net.weight[0].detach().double().numpy() * float(net.output.detach()[0, 0])
    bias = 0.0 if net.bias is None else float(net.bias.detach()[0])
    lower = np.array([linear_radius(weight, bias, row, norm) for row in points])
    proven = Proven(points, codes(head, points), lower, np.zeros(points.shape), norm)
    return _rows((EXACT, _name(dtype), "torch"), of_head(head), proven, source, f"seed {seed}, closed form {number}")


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _rows(
    names: tuple[str, str, str], runs: Executed, proven: Proven, source: np.random.Generator, where: str
) -> list[Row]:
    rows = []
    for i, (row, label, radius, step) in enumerate(zip(*proven[:4], strict=True)):
        place = f"{where}, point {i}"
        if not radius > 0:
            rows.append(Row(*names, float(radius), 0, math.inf, False, place))
            continue
        out = Search(runs, row, int(label), float(radius), proven.norm, source).run(step[None])
        rows.append(Row(*names, float(radius), out.tries, out.ratio, out.broken, place))
    return rows
