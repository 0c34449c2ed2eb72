"""One head: drawn, certified, searched."""

from __future__ import annotations

import math
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

import polyrelu
from tools.rounding.exact import linear_radius
from tools.rounding.executed import Executed, of_head, of_onnx
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
    lower, steps = found.lower.numpy(), found.perturbation.numpy()
    where = f"seed {seed}, head {number}"
    with tempfile.TemporaryDirectory() as folder:
        runs = of_onnx(head, Path(folder)) if onnx else of_head(head)
        return _rows(kind, dtype, runs, points, lower, steps, norm, source, "onnxruntime" if onnx else "torch", where)


def closed_form(number: int, seed: int, dtype: torch.dtype = torch.float32, each: int = EACH) -> list[Row]:
    """A linear head with its radius in real arithmetic: where a search that works finds flips."""
    source = np.random.default_rng([seed, number, 1])
    head = linear_head(source, dtype, int(source.choice([100, 300, 1000])), bias=number % 2 == 1)
    points = points_of(head, source, each)
    net, norm = head.net_, NORMS[number % len(NORMS)]
    weight = net.weight[0].detach().double().numpy() * float(net.output.detach()[0, 0])
    bias = 0.0 if net.bias is None else float(net.bias.detach()[0])
    lower = np.array([linear_radius(weight, bias, row, norm) for row in points])
    steps = np.zeros(points.shape)
    where = f"seed {seed}, closed form {number}"
    return _rows(EXACT, dtype, of_head(head), points, lower, steps, norm, source, "torch", where)


def _rows(
    kind: str, dtype: torch.dtype, runs: Executed, points: Array, lower: Array, steps: Array, norm: float,
    source: np.random.Generator, runtime: str, where: str,
) -> list[Row]:  # fmt: skip
    rows = []
    for i, (row, radius, step) in enumerate(zip(points, lower.tolist(), steps, strict=True)):
        name = str(dtype).removeprefix("torch.")
        if not radius > 0:
            rows.append(Row(kind, name, runtime, radius, 0, math.inf, False, f"{where}, point {i}"))
            continue
        out = Search(runs, row, radius, norm, source).run(step[None])
        rows.append(Row(kind, name, runtime, radius, out.tries, out.ratio, out.broken, f"{where}, point {i}"))
    return rows
