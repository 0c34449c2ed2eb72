"""What a report is measured on: rows and labels, the points drawn among them, sub-classes, and radii to look at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyrelu.checks import plain_array, plain_tensor, value_text
from polyrelu.errors import InputError, require
from polyrelu.estimator.robustness_report.measurement import MeasuredRadii, measure_radii
from polyrelu.estimator.robustness_report.structure import (
    Averaging,
    Direction,
    Structure,
    averaging_of,
    direction_of,
    structure_of,
)
from polyrelu.estimator.robustness_report.target_model import TargetModel
from polyrelu.progress import Progress

FRACTIONS = (0.1, 0.2, 0.3)  # of the typical norm
POOL = 2000  # rows that attacks walk towards
Array = NDArray[Any]


@final
@dataclass(frozen=True, eq=False)
class ClassifierReport:
    """One classifier of a report: its radii, its averaging score and its one direction."""

    measured: MeasuredRadii
    averaging: Averaging
    direction: Direction

    @property
    def name(self) -> str:
        """What it is called."""
        return self.measured.name

    def record(self, radii: Array) -> dict[str, Any]:
        """The numbers, as JSON holds them; null where there is none."""
        line = self.measured.curve
        numbers = {
            "broken_at": self.measured.broken_at,
            "proven_to": self.measured.proven_to,
            "averaging": self.averaging.score,
        }
        return {
            "name": self.name,
            "proof": self.measured.proof,
            "clean": self.measured.clean,
            "attacked": line.attacked(radii).tolist(),
            "certified": line.certified(radii).tolist(),
            "universal": [_finite(self.direction.broken(radius)) for radius in radii.tolist()],
            **{name: _finite(number) for name, number in numbers.items()},
        }


@final
@dataclass(frozen=True, eq=False)
class ReportRows:
    """Rows X (n, D) and labels y (n,), and what every classifier of a report is measured with.

    train : rows and labels a head is trained on, or None
    pool : rows and labels that attacks walk towards
    points : numbers of the rows that are attacked
    radii : where accuracies are given; typical : median |x - mean|, the mean over the training rows if there are any
    """

    X: Tensor
    y: Array
    train: tuple[Tensor, Array] | None
    pool: tuple[Tensor, Array]
    points: Array
    radii: Array
    typical: float
    structure: Structure
    seed: int
    progress: Progress

    @classmethod
    def from_data(
        cls, X: Any, y: Any, *, radii: Sequence[float] | None, fine: Any, pool: Any, train: Any, seed: int, points: int,
        progress: Progress,
    ) -> ReportRows:  # fmt: skip
        """Checked; the arguments are those of `RobustnessReport.measure`."""
        listed = radii is None or (isinstance(radii, Sequence | np.ndarray | Tensor) and not isinstance(radii, str))
        require(listed, "radii", value_text(radii), "a list of finite numbers >= 0")
        X, y = _rows(X, y, "X")
        train = None if train is None else _rows(*_pair(train, "train"), "train")
        known = train or (X, y)
        near, labels = known if pool is None else _rows(*_pair(pool, "pool"), "pool")
        some = np.sort(np.random.default_rng([seed, 8]).permutation(len(labels))[:POOL])
        drawn = np.sort(np.random.default_rng([seed, 7]).permutation(len(y))[:points])
        typical = float((X - known[0].mean(dim=0)).norm(dim=1).median())
        require(typical > 0, "X", "rows that are all equal", "rows that differ")
        wanted = (
            [fraction * typical for fraction in FRACTIONS]
            if radii is None
            else plain_tensor("radii", radii).double().flatten().tolist()
        )
        require(all(0 <= r < math.inf for r in wanted) and len(wanted) > 0, "radii", radii, "finite numbers >= 0")
        progress.update(doing="looking for sub-classes")
        given = None if fine is None else _labels("fine", fine)
        grouped, names = known if given is None else (X, y)
        structure = structure_of(grouped, names, given, seed)
        near_pool = (near[torch.from_numpy(some)], labels[some])
        return cls(X, y, train, near_pool, drawn, np.array(sorted(wanted)), typical, structure, seed, progress)

    @property
    def all_labels(self) -> Array:
        """Of these rows and of the training rows."""
        return np.concatenate([self.y, self.y if self.train is None else self.train[1]])

    def report_on(self, target: TargetModel) -> ClassifierReport:
        """Attack and certify all points."""
        self.progress.update(doing=f"attacking {target.name}")
        measured = measure_radii(target, self.X, self.y, self.points, self.pool, radii=self.radii, seed=self.seed)
        return self.described(target, measured, self.points)

    def described(self, target: TargetModel, measured: MeasuredRadii, points: Array) -> ClassifierReport:
        """With the averaging score and the one direction of some points, measured before."""
        rows, labels = self.X[torch.from_numpy(points)], self.y[points]
        direction = direction_of(target, measured, rows, labels, self.structure, self.typical)
        return ClassifierReport(measured, averaging_of(measured, labels, self.structure), direction)


def _pair(given: Any, name: str) -> tuple[Any, Any]:
    good = isinstance(given, tuple | list) and len(given) == 2
    require(good, name, type(given).__name__, "rows and labels, (X, y)")
    X, y = given
    return X, y


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _labels(name: str, given: Any) -> Array:
    """Labels of any kind as an array, whatever they are in."""
    try:
        return plain_array(name, given) if isinstance(given, Tensor) else np.asarray(given)
    except (TypeError, ValueError):
        raise InputError(f"{name}={value_text(given)}: expected one label per row, in one dimension.") from None


def _rows(X: Any, y: Any, name: str) -> tuple[Tensor, Array]:
    """Rows (n, D) in float64 and labels (n,), checked."""
    rows = plain_tensor(name, X).cpu().double()
    labels = _labels("y", y)
    require(labels.dtype.kind in "biufUSO", "y", f"{labels.dtype} labels", "numbers or text")
    require(rows.ndim == 2 and min(rows.shape) > 0, f"{name}.shape", tuple(rows.shape), "(n, D), one row per point")
    require(bool(rows.isfinite().all()), name, "NaN or infinity", "finite numbers")
    require(labels.shape == (len(rows),), "y.shape", labels.shape, f"({len(rows)},), one label per row")
    try:
        classes = np.unique(labels)
    except TypeError:
        raise InputError(f"y={value_text(labels)}: expected labels of one kind, numbers or text.") from None
    require(len(classes) > 1, "y", f"only {labels[0]}", "rows of two classes at least")
    return rows, labels
