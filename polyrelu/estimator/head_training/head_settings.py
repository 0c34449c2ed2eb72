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
from polyrelu.errors import require
from polyrelu.estimator.head_training.head_data import TrainingSet
from polyrelu.estimator.head_training.head_init import STARTS, HeadStart
from polyrelu.estimator.head_training.train_head import flow_head, held_out_rows, precision, train_head
from polyrelu.nets import PolyReLUNet
from polyrelu.progress import Progress
from polyrelu.train import Status, Trajectory
from polyrelu.train.descent import degree

AUTO_WIDTH = 500  # "auto"
LEAST_UPDATES, LEAST_EPOCHS = 300, 10  # "auto": so many updates, and passes, at least
AUTO_FLOW_PASSES = 1000  # "auto", of the flow
MOST_SET_ASIDE = 10_000  # rows set aside at most
PLAIN_VALUE = "a number, a text, True or False"

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
            require(value is None or isinstance(value, str | Real | np.bool_), name, type(value).__name__, PLAIN_VALUE)
        p, solver = params["p"], params["solver"]
        require(p == "auto" or is_number(p, least=1), "p", repr(p), "a number >= 1 or 'auto'")
        require(solver in ("adam", "flow"), "solver", repr(solver), "'adam' or 'flow'")
        require(params["init"] in STARTS, "init", repr(params["init"]), " or ".join(map(repr, STARTS)))
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
        data, weights, validation, held_weights = problem.data, problem.weights, None, None
        shape: dict[str, Any] = {"width": self.neurons, "seed": seed, "progress": progress}
        shape |= {"bias": bool(self.bias), "normalise_input": bool(self.normalise_input)}
        if self.solver == "flow":
            out = flow_head(data, p, scale=self.scale, until=self.until, passes=self.passes(len(data)), **shape)
        else:
            if self.early_stopping:  # rows set aside have no weight, so that nothing is copied
                weights = torch.ones(len(data), device=data.y.device) if weights is None else weights.clone()
                aside = held_out_rows(
                    problem.groups, weights, min(self.validation_fraction, MOST_SET_ASIDE / len(data)), seed
                )
                enough = len(set(data.y[aside].tolist())) > 1
                require(enough, "early_stopping", True, "two rows at least in two classes, so that one can be held out")
                validation, held_weights, weights[aside] = data.subset(aside), weights[aside], 0.0
            out = train_head(
                data, p, epochs=self.passes(len(data)), rate=self.rate, batch=int(self.batch), weights=weights,
                init=self.init, validation=validation, validation_weights=held_weights, patience=int(self.patience),
                **shape,
            )  # fmt: skip
        if out.status is Status.INTERRUPTED:
            raise TrainingStopped(out)
        if out.status is not (Status.LOSS if self.solver == "flow" else Status.BUDGET):
            said = f"{out.status.value} The loss is {math.exp(out.log_loss):.3g}."
            warnings.warn(said, ConvergenceWarning, stacklevel=3)
        return out

    def begin(self, centre: Tensor, unit: float, classes: int, seed: int) -> PolyReLUNet:
        """The net before any row was seen, in float32 where centre and unit of length allow it."""
        require(not isinstance(self.p, str), "p", repr(self.p), "a number in partial_fit; fit may choose it")
        require(self.solver == "adam", "solver", repr(self.solver), "'adam' in partial_fit")
        p, normalised = float(self.p), bool(self.normalise_input)
        dtype = precision(centre, unit, degree(p, normalised))
        outputs = 1 if classes == 2 else classes
        return HeadStart(p, self.neurons, outputs, centre, unit, bool(self.bias), normalised, dtype, seed).random()
