"""The settings of a head, checked, with what "auto" stands for, and the training they ask for."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, final

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from polyrelu.checks import is_number, is_whole
from polyrelu.data import Dataset
from polyrelu.errors import require
from polyrelu.estimator.head_training.adam import HeldOut, held_out_rows
from polyrelu.estimator.head_training.head_data import TrainingSet
from polyrelu.estimator.head_training.head_init import HeadStart, location, precision
from polyrelu.nets import PolyReLUNet, as_float64
from polyrelu.progress import Progress
from polyrelu.robust import margin_of, proven_at_radius
from polyrelu.train import Status, Trajectory, flow
from polyrelu.train.descent import adam_epochs, input_degree
from polyrelu.train.gradient_flow import stratified

AUTO_WIDTH = 500  # "auto"
LEAST_UPDATES, LEAST_EPOCHS = 300, 10  # "auto": so many updates, and passes, at least
AUTO_FLOW_PASSES = 1000  # "auto", of the flow
MOST_DECADES = 307  # that a float64 holds, of unit^degree
MOST_SET_ASIDE = 10_000  # rows set aside at most
POWERS = (1.0, 2.0, 3.0, 4.0)  # "auto": one of these
FOLDS = 3
SEARCHED_ROWS = 6000  # looked at in the search for p, drawn at random
CERTIFIED_ROWS = 100  # in each fold
MOST_VALIDATIONS = 100  # of a run on the rows set aside, at most one an epoch

_COUNTS = {"width": True, "epochs": True, "batch": False, "patience": False}  # may it be "auto"?
_SIZES = {"rate": math.inf, "validation_fraction": 1.0, "scale": math.inf, "until": math.inf, "radius": math.inf}


class TrainingStopped(KeyboardInterrupt):
    """Ctrl-C in a training: what was ``reached``, and ``head``, the estimator of the whole passes, if there was one."""

    def __init__(self, reached: Trajectory) -> None:
        super().__init__()
        self.reached = reached
        self.head: Any = None


@final
@dataclass(frozen=True)
class HeadSettings:
    """Parameters of `polyrelu.PolyReLUClassifier`, which explains them."""

    p: float | str
    width: int | str
    solver: str
    epochs: int | str
    rate: float
    batch: int
    init: str
    bias: bool
    normalise_input: bool
    early_stopping: bool
    validation_fraction: float
    patience: int
    scale: float
    until: float
    radius: float

    @classmethod
    def from_params(cls, params: Mapping[str, Any], weighted: bool) -> HeadSettings:
        """Checked; ``weighted``: are there weights of samples?"""
        for name, value in params.items():  # before anything is compared with what may be an array
            plain = value is None or isinstance(value, str | Real | np.bool_)
            require(plain, name, type(value).__name__, "a number, a text, True or False")
        p, solver = params["p"], params["solver"]
        require(p == "auto" or is_number(p, least=1), "p", repr(p), "a number >= 1 or 'auto'")
        require(solver in ("adam", "flow"), "solver", repr(solver), "'adam' or 'flow'")
        require(params["init"] in ("rows", "random"), "init", repr(params["init"]), "'rows' or 'random'")
        for name, auto in _COUNTS.items():
            value, more = params[name], " or 'auto'" if auto else ""
            require(is_whole(value, 1) or (auto and value == "auto"), name, repr(value), f"a whole number >= 1{more}")
        for name, most in _SIZES.items():
            allowed = "a number > 0" if most == math.inf else f"a number between 0 and {most:g}"
            require(is_number(params[name], above=0, below=most), name, repr(params[name]), allowed)
        if solver == "flow":
            require(not weighted, "sample_weight", "given", "None with solver='flow'; solver='adam' takes weights")
            allowed = "False with solver='flow', which ends at a loss; see until"
            require(not params["early_stopping"], "early_stopping", params["early_stopping"], allowed)
        return cls(**params)

    @property
    def neurons(self) -> int:
        """Width of the net."""
        return AUTO_WIDTH if isinstance(self.width, str) else int(self.width)

    def passes(self, n: int) -> int:
        """Passes over n rows, at most."""
        if not isinstance(self.epochs, str):
            return int(self.epochs)
        if self.solver == "flow":
            return AUTO_FLOW_PASSES
        return max(LEAST_EPOCHS, math.ceil(LEAST_UPDATES / math.ceil(n / self.batch)))

    def train(self, problem: TrainingSet, p: float, seed: int, progress: Progress | None = None) -> Trajectory:
        """By Adam, with rows set aside if asked for, or by the flow; Ctrl-C is not swallowed (`TrainingStopped`)."""
        data, weights, held_out, passes = problem.data, problem.weights, None, self.passes(len(problem.data))
        if self.early_stopping:  # rows set aside have no weight, so that nothing is copied
            weights = torch.ones(len(data), device=data.y.device) if weights is None else weights.clone()
            share = min(self.validation_fraction, MOST_SET_ASIDE / len(data))
            aside = held_out_rows(problem.groups, weights, share, seed)
            enough = len(set(data.y[aside].tolist())) > 1
            require(enough, "early_stopping", True, "two rows at least in two classes, so that one can be held out")
            every = max(1, passes // MOST_VALIDATIONS)
            held_out = HeldOut(data.subset(aside), weights[aside], int(self.patience), every)
            weights[aside] = 0.0
        start = self.start(data, p, weights, seed)
        if self.solver == "flow":
            net = start.balanced(self.scale)
            out = flow(net, data, loss="cross_entropy", until=self.until, max_evaluations=passes, progress=progress)
        else:
            net = start.rows(data, weights) if self.init == "rows" else start.random()
            out = adam_epochs(
                net, data, epochs=passes, rate=self.rate, batch=int(self.batch), seed=seed, each_epoch=held_out,
                progress=progress, weights=weights, unit=start.unit,
            )  # fmt: skip
            out = out if held_out is None else held_out.kept(out)
        if out.status is Status.INTERRUPTED:
            raise TrainingStopped(out)
        if out.status is not (Status.LOSS if self.solver == "flow" else Status.BUDGET):
            said = f"{out.status.value} The loss is {math.exp(out.log_loss):.3g}."
            warnings.warn(said, ConvergenceWarning, stacklevel=3)
        return out

    def start(self, data: Dataset, p: float, weights: Tensor | None, seed: int) -> HeadStart:
        """In float64 for float64 rows that fit into one batch, otherwise as `precision` says."""
        centre, unit = location(data, weights)
        power = input_degree(p, bool(self.normalise_input))
        good = bool(centre.isfinite().all()) and abs(power * math.log10(unit)) < MOST_DECADES
        said = f"rows whose squares and powers of {power:g} a float holds: scale them to about 1"
        require(good, "X", f"rows of length {unit:.3g} around their mean", said)
        few = data.dtype == torch.float64 and (self.solver == "flow" or len(data) <= self.batch)
        dtype = torch.float64 if few else precision(centre, unit, power)
        return self._start_at(p, 1 if data.binary else data.classes, centre, unit, dtype, seed)

    def begin(self, centre: Tensor, unit: float, classes: int, seed: int) -> PolyReLUNet:
        """The net before any row was seen, in float32 where centre and unit of length allow it."""
        require(not isinstance(self.p, str), "p", repr(self.p), "a number in partial_fit; fit may choose it")
        require(self.solver == "adam", "solver", repr(self.solver), "'adam' in partial_fit")
        p = float(self.p)
        dtype = precision(centre, unit, input_degree(p, bool(self.normalise_input)))
        return self._start_at(p, 1 if classes == 2 else classes, centre, unit, dtype, seed).random()

    def _start_at(
        self, p: float, outputs: int, centre: Tensor, unit: float, dtype: torch.dtype, seed: int
    ) -> HeadStart:
        bias, normalised = bool(self.bias), bool(self.normalise_input)
        return HeadStart(p, self.neurons, outputs, centre, unit, bias, normalised, dtype, seed)

    def choose_power(self, problem: TrainingSet, seed: int) -> dict[str, Any]:
        """``p_``, ``radius_`` and ``cv_results_`` of `PolyReLUClassifier`: p of the largest mean certified accuracy.

        Three times for each p: trained on two thirds of the rows, up to 100 of the others certified at the radius
        (`proven_at_radius`), which is given in units of the median distance of the rows from their mean. Of two powers
        that prove as much the more accurate one is taken, then the smaller one. At most 6000 rows, drawn at random,
        are looked at.
        """
        centre, _ = location(problem.data, problem.weights)
        source = torch.Generator().manual_seed(seed)
        if problem.weights is not None and not bool(problem.weights.all()):  # rows without weight are as if not there
            problem = problem.subset(problem.weights.nonzero()[:, 0])
        if len(problem.data) > SEARCHED_ROWS:
            problem = problem.subset(stratified(problem.groups, SEARCHED_ROWS, source))
        lengths = torch.cat([torch.linalg.vector_norm(x.double() - centre, dim=1) for _, x in problem.data.blocks()])
        radius = self.radius * float(lengths.median())
        fold = _folds(problem.groups, source)
        enough = f"a number, or {FOLDS} rows at least in some class, so that rows can be held out"
        require(bool((fold >= 0).any()), "p", "'auto'", enough)
        certified, accuracy = np.zeros((len(POWERS), FOLDS)), np.zeros((len(POWERS), FOLDS))
        for k in range(FOLDS):
            kept, aside = (which.nonzero()[:, 0] for which in (fold != k, fold == k))
            aside = aside[torch.randperm(len(aside), generator=source).to(aside.device)[:CERTIFIED_ROWS]]
            X, y = problem.data.gather(aside).double().cpu(), problem.y[aside].cpu()
            y = y.double() if y.is_floating_point() else y
            weights = torch.ones(len(aside)) if problem.weights is None else problem.weights[aside].cpu()
            for i, p in enumerate(POWERS):
                part = problem.subset(kept)
                net = as_float64(part.net(self.train(part, p, seed).net)).cpu()
                with torch.no_grad():
                    right = margin_of(net(X), y) > 0
                accuracy[i, k] = _mean(right, weights)
                certified[i, k] = _mean(proven_at_radius(net, X, y, radius, seed=seed), weights)
        order = sorted(range(len(POWERS)), key=lambda i: (-certified[i].mean(), -accuracy[i].mean(), POWERS[i]))
        results = {"param_p": np.array(POWERS), "rank_test_certified": np.argsort(order) + 1}
        for name, table in (("certified", certified), ("accuracy", accuracy)):
            results |= {f"split{k}_test_{name}": table[:, k] for k in range(FOLDS)}
            results |= {f"mean_test_{name}": table.mean(axis=1), f"std_test_{name}": table.std(axis=1)}
        return {"p_": POWERS[order[0]], "radius_": radius, "cv_results_": results}


def _folds(groups: Tensor, source: torch.Generator) -> Tensor:
    """The fold in which each row is held out, evenly within every group; -1 (never) in groups of one or two rows."""
    fold = torch.full_like(groups, -1)
    for group in sorted(set(groups.tolist())):
        rows = (groups == group).nonzero()[:, 0]
        turn = torch.randperm(len(rows), generator=source).to(fold) % FOLDS
        fold[rows] = turn if len(rows) >= FOLDS else -1
    return fold


def _mean(flags: Tensor, weights: Tensor) -> float:
    return float((flags * weights.double()).sum() / weights.double().sum())
