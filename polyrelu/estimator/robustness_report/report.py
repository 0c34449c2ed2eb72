"""Is this classifier fragile, why, and what would a polynomial head do on the same data?

report = RobustnessReport(model, X_test, y_test, train=(X_train, y_train))
print(report.summary())
report.save("diagnosis.html")
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyrelu.checks import checked, plain_array, plain_tensor, seed_number, shown, whole_number
from polyrelu.errors import InputError, require
from polyrelu.estimator.robustness_report.measurement import Measured, Subject, measure, subject_of
from polyrelu.estimator.robustness_report.structure import (
    Averaging,
    Direction,
    averaging_of,
    direction_of,
    structure_of,
)

if TYPE_CHECKING:
    from polyrelu.estimator.classifier import PolyReLUClassifier

FRACTIONS = (0.1, 0.2, 0.3)  # of the typical norm
POOL = 2000  # rows that attacks walk towards
Array = NDArray[Any]
Tell = Callable[[str], None]  # what is being done now


@final
class Part:
    """One classifier of a report: its radii, its averaging score and its one direction."""

    def __init__(self, measured: Measured, averaging: Averaging, direction: Direction) -> None:
        self.name, self.measured, self.averaging, self.direction = measured.name, measured, averaging, direction

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
class RobustnessReport:
    """How far a fitted classifier holds (l2), what it learned of hidden sub-classes, and what a p = 3 head would do.

    Parameters
    ----------
    model : a classifier of scikit-learn or ours, a torch module on (n, D), measured in eval mode, or a function from
        rows to labels; proven only if its class is a known one, unchanged (`polyrelu.robust.core.integrity`)
    X, y : rows (n, D) and labels (n,) that the model was not trained on
    radii : where accuracies are given, in the unit of X; None: .1, .2 and .3 of the typical norm
    fine : (n,) known sub-classes of X; None: they are looked for
    pool : rows and labels for attacks to walk towards; None: the training rows, else X and y
    points : rows attacked at most, drawn at random; accuracy is over all rows
    compare : also train and measure a `PolyReLUClassifier` of p = 3, or the unfitted one given here
    train : rows and labels the head is trained on, best those of the model. None: the head is cross-fitted, trained on
        one half of X and measured on the other, and the model, if scikit-learn can clone it, refitted the same way too
    beside : more fitted classifiers by name, measured on the same points
    tell : called with what is being done

    Attributes
    ----------
    typical : median |x - mean|, the typical norm; ``fractions`` = radii / typical
    clean, attacked, certified : accuracy as it is, and what was not broken and what is proven at each radius
    broken_at, proven_to : the radius at which half of the points break, and up to which half are proven to hold
    averaging : 0 (single sub-classes) to 1 (class averages); nan without sub-classes
    universal : share of the right points that one direction for each class breaks, at each radius
    subclasses : number of sub-classes of each class
    model, head, refit, beside : `Part`s with everything of each classifier; ``head`` and ``refit`` may be None
    structure : the `Structure` of the data
    notes : what to keep in mind when reading the numbers
    """

    def __init__(
        self,
        model: Any,
        X: Any,
        y: Any,
        *,
        radii: Sequence[float] | None = None,
        fine: Any = None,
        pool: tuple[Any, Any] | None = None,
        seed: int = 0,
        points: int = 200,
        compare: bool | PolyReLUClassifier = True,
        train: tuple[Any, Any] | None = None,
        beside: Mapping[str, Any] | None = None,
        name: str | None = None,
        tell: Tell | None = None,
    ) -> None:
        from polyrelu.estimator.classifier import PolyReLUClassifier

        seed_number("seed", seed)
        whole_number("points", points, 1)
        good = isinstance(compare, bool | PolyReLUClassifier)
        require(good, "compare", shown(compare), "True, False or an unfitted PolyReLUClassifier")
        require(beside is None or isinstance(beside, Mapping), "beside", shown(beside), "classifiers by name")
        good = tell is None or (callable(tell) and not isinstance(tell, type))
        require(good, "tell", shown(tell), "a function of a text")
        require(name is None or isinstance(name, str), "name", shown(name), "a text")
        listed = radii is None or (isinstance(radii, Sequence | np.ndarray | Tensor) and not isinstance(radii, str))
        require(listed, "radii", shown(radii), "a list of finite numbers >= 0")
        self.seed, self._tell = seed, tell or (lambda what: None)
        self.X, self.y = _rows(X, y, "X")
        self._train = None if train is None else _rows(*_pair(train, "train"), "train")
        known = self._train or (self.X, self.y)
        self._near = self._pool(pool, known)
        source = np.random.default_rng([seed, 7])
        self.points = np.sort(source.permutation(len(self.y))[:points])
        self.typical = float((self.X - known[0].mean(dim=0)).norm(dim=1).median())
        require(self.typical > 0, "X", "rows that are all equal", "rows that differ")
        wanted = (
            [fraction * self.typical for fraction in FRACTIONS]
            if radii is None
            else plain_tensor("radii", radii).double().flatten().tolist()
        )
        require(all(0 <= r < math.inf for r in wanted) and len(wanted) > 0, "radii", radii, "finite numbers >= 0")
        self.radii = np.array(sorted(wanted))
        self._tell("looking for sub-classes")
        given = None if fine is None else np.asarray(fine)
        self.structure = structure_of(*(known if given is None else (self.X, self.y)), given, seed)
        every = np.concatenate([self.y, known[1]])
        subject = subject_of(model, self.X, every, name)
        self.notes: list[str] = [] if not subject.why else [f"It was attacked by its decisions alone ({subject.why})"]
        more = [subject_of(other, self.X, every, title) for title, other in (beside or {}).items()]
        strange = [one for one in (subject, *more) if one.altered]
        self.notes += [f"Nothing is proven of the {one.name}: {one.altered}." for one in strange]
        self.model = self._part(subject)
        self.beside = tuple(map(self._part, more))
        self.head: Part | None = None
        self.refit: Part | None = None
        if compare is not False:
            self._compare(model, subject, None if compare is True else compare)

    @property
    def parts(self) -> tuple[Part, ...]:
        """All that was measured: the model, what stands beside it, its refit, the head."""
        return tuple(part for part in (self.model, *self.beside, self.refit, self.head) if part is not None)

    @property
    def fractions(self) -> Array:
        """The radii in units of the typical norm."""
        return self.radii / self.typical

    @property
    def clean(self) -> float:
        """Accuracy without any perturbation."""
        return self.model.measured.clean

    @property
    def attacked(self) -> Array:
        """Share of the points that nothing broke at each radius."""
        return self.model.measured.curve.attacked(self.radii)

    @property
    def certified(self) -> Array:
        """Share of the points proven to hold at each radius; 0 where nothing is proven."""
        return self.model.measured.curve.certified(self.radii)

    @property
    def broken_at(self) -> float:
        """The radius at which half of the points were found to break."""
        return self.model.measured.broken_at

    @property
    def proven_to(self) -> float:
        """The radius up to which half of the points are proven to hold."""
        return self.model.measured.proven_to

    @property
    def averaging(self) -> float:
        """The averaging score of the model."""
        return self.model.averaging.score

    @property
    def universal(self) -> Array:
        """Share of the right points that one direction for each class breaks, at each radius."""
        return np.array([self.model.direction.broken(radius) for radius in self.radii.tolist()])

    @property
    def subclasses(self) -> tuple[int, ...]:
        """Number of sub-classes of each class."""
        return self.structure.counts

    def record(self) -> dict[str, Any]:
        """The numbers, as JSON holds them."""
        return {
            "typical": self.typical,
            "radii": self.radii.tolist(),
            "points": len(self.points),
            "subclasses": dict(zip(map(str, self.structure.classes.tolist()), self.subclasses, strict=True)),
            "classifiers": [part.record(self.radii) for part in self.parts],
            "notes": list(self.notes),
        }

    def summary(self) -> str:
        """The findings in sentences."""
        from polyrelu.report.pages import sentences

        return " ".join(sentences(self))

    @checked
    def save(self, path: str | Path, *, command: str = "", data: str = "", next_commands: Sequence[str] = ()) -> Path:
        """Write one HTML page that needs nothing else, whole or not at all; ``data`` is what it calls the rows."""
        from polyrelu.report.pages import write_diagnosis_page

        return write_diagnosis_page(path, self, command, data, next_commands)

    def _part(self, subject: Subject) -> Part:
        self._tell(f"attacking {subject.name}")
        measured = measure(subject, self.X, self.y, self.points, self._near, radii=self.radii, seed=self.seed)
        return self._looked(subject, measured, self.points)

    def _looked(self, subject: Subject, measured: Measured, points: Array) -> Part:
        rows, labels = self.X[torch.from_numpy(points)], self.y[points]
        direction = direction_of(subject, measured, rows, labels, self.structure, self.typical)
        return Part(measured, averaging_of(measured, labels, self.structure), direction)

    def _pool(self, pool: tuple[Any, Any] | None, known: tuple[Tensor, Array]) -> tuple[Tensor, Array]:
        """Rows and labels to walk towards, not too many of them."""
        rows, labels = known if pool is None else _rows(*_pair(pool, "pool"), "pool")
        some = np.sort(np.random.default_rng([self.seed, 8]).permutation(len(labels))[:POOL])
        return rows[torch.from_numpy(some)], labels[some]

    def _compare(self, model: Any, subject: Subject, head: PolyReLUClassifier | None) -> None:
        """The head, trained on the training rows or cross-fitted; then the model too, if it can be fitted anew."""
        from sklearn.base import clone

        from polyrelu.estimator.classifier import PolyReLUClassifier
        from polyrelu.estimator.robustness_report.cross_fitting import cross_fitted, refitted

        head = PolyReLUClassifier(p=3, random_state=self.seed) if head is None else clone(head)
        name = f"polynomial head, p = {head.p}"
        if self._train is not None:
            self._tell(f"training the {name}")
            fitted = head.fit(self._train[0].numpy(), self._train[1])
            self.head = self._part(subject_of(fitted, self.X, self.y, name))
            return
        self.head = cross_fitted(self, head, name)
        if self.head is None:
            self.notes.append("No head was trained: a class has a single row, and none could be set aside.")
            return
        self.notes.append(
            "Without training rows the head was cross-fitted: trained on one half of X, measured on the other."
        )
        again = refitted(model)
        if again is not None:
            self.refit = cross_fitted(self, again, f"{subject.name}, fitted anew like the head")


def _pair(given: Any, name: str) -> tuple[Any, Any]:
    good = isinstance(given, tuple | list) and len(given) == 2
    require(good, name, type(given).__name__, "rows and labels, (X, y)")
    X, y = given
    return X, y


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _rows(X: Any, y: Any, name: str) -> tuple[Tensor, Array]:
    """Rows (n, D) in float64 and labels (n,), checked."""
    rows = plain_tensor(name, X).cpu().double()
    labels = plain_array("y", y) if isinstance(y, Tensor) else np.asarray(y)
    require(labels.dtype.kind in "biufUSO", "y", f"{labels.dtype} labels", "numbers or text")
    require(rows.ndim == 2 and min(rows.shape) > 0, f"{name}.shape", tuple(rows.shape), "(n, D), one row per point")
    require(bool(rows.isfinite().all()), name, "NaN or infinity", "finite numbers")
    require(labels.shape == (len(rows),), "y.shape", labels.shape, f"({len(rows)},), one label per row")
    try:
        classes = np.unique(labels)
    except TypeError:
        raise InputError(f"y={shown(labels)}: expected labels of one kind, numbers or text.") from None
    require(len(classes) > 1, "y", f"only {labels[0]}", "rows of two classes at least")
    return rows, labels
