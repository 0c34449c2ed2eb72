"""Is this classifier fragile, why, and what would a polynomial head do on the same data?

report = RobustnessReport.measure(model, X_test, y_test, train=(X_train, y_train))
print(report.summary())
report.save("diagnosis.html")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from torch import Tensor

from polyrelu.checks import checked, seed_number, shown, whole_number
from polyrelu.errors import require
from polyrelu.estimator.robustness_report.cross_fitting import cross_fitted, refitted
from polyrelu.estimator.robustness_report.report_rows import Array, ClassifierReport, ReportRows
from polyrelu.estimator.robustness_report.structure import Structure
from polyrelu.estimator.robustness_report.target_model import TargetModel, as_target
from polyrelu.progress import Progress

if TYPE_CHECKING:
    from polyrelu.estimator.classifier import PolyReLUClassifier

AHEAD = 1.05  # how much farther a head must hold to be called better


@final
@dataclass(frozen=True, eq=False)
class RobustnessReport:
    """How far a fitted classifier holds (l2), what it learned of hidden sub-classes, and what a p = 3 head would do.

    It stores what `RobustnessReport.measure` has measured.

    typical : median |x - mean|, the typical norm; ``fractions`` = radii / typical
    clean, attacked, certified : accuracy as it is, and what was not broken and what is proven at each radius
    broken_at, proven_to : the radius at which half of the points break, and up to which half are proven to hold
    averaging : 0 (single sub-classes) to 1 (class averages); nan without sub-classes
    universal : share of the right points that one direction for each class breaks, at each radius
    subclasses : number of sub-classes of each class
    model, head, refit, beside : everything of each classifier (`ClassifierReport`); ``head`` and ``refit`` may be None
    X, y, points : all rows and their labels, and the numbers of those that were attacked
    structure : the `Structure` of the data
    notes : what to keep in mind when reading the numbers
    """

    X: Tensor
    y: Array
    points: Array
    radii: Array
    typical: float
    structure: Structure
    seed: int
    model: ClassifierReport
    beside: tuple[ClassifierReport, ...] = ()
    refit: ClassifierReport | None = None
    head: ClassifierReport | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def measure(
        cls,
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
        progress: Progress | None = None,
    ) -> RobustnessReport:
        """Attack and certify ``model`` and what it is compared with, on the same points.

        Parameters
        ----------
        model : a classifier of scikit-learn or ours, a torch module on (n, D), measured in eval mode, or a function
            from rows to labels; proven only if its class is a known one, unchanged (`polyrelu.robust.core.integrity`)
        X, y : rows (n, D) and labels (n,) that the model was not trained on
        radii : where accuracies are given, in the unit of X; None: .1, .2 and .3 of the typical norm
        fine : (n,) known sub-classes of X; None: they are looked for
        pool : rows and labels for attacks to walk towards; None: the training rows, else X and y
        points : rows attacked at most, drawn at random; accuracy is over all rows
        compare : also train and measure a `PolyReLUClassifier` of p = 3, or the unfitted one given here
        train : rows and labels the head is trained on, best those of the model. None: the head is cross-fitted, trained
            on one half of X and measured on the other, and the model, if scikit-learn can clone it, refitted so too
        beside : more fitted classifiers by name, measured on the same points
        progress : told what is being done, see `polyrelu.progress.Progress`
        """
        seed_number("seed", seed)
        whole_number("points", points, 1)
        check_options(compare, beside, name, progress)
        rows = ReportRows.from_data(X, y, radii, fine, pool, train, seed, points, progress or Progress())
        target = as_target(model, rows.X, rows.all_labels, name)
        more = [as_target(other, rows.X, rows.all_labels, title) for title, other in (beside or {}).items()]
        notes = [f"It was attacked by its decisions alone ({target.why})"] if target.why else []
        notes += [f"Nothing is proven of the {one.name}: {one.altered}." for one in (target, *more) if one.altered]
        measured, others = rows.report_on(target), tuple(map(rows.report_on, more))
        refit = head = None
        if compare is not False:
            refit, head, said = with_head(rows, target, None if compare is True else compare)
            notes += said
        return cls(
            rows.X, rows.y, rows.points, rows.radii, rows.typical, rows.structure, seed, measured, others, refit, head,
            tuple(notes),
        )  # fmt: skip

    @property
    def parts(self) -> tuple[ClassifierReport, ...]:
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

    @property
    def advice(self) -> str:
        """To "train" the polynomial head, or to "stay" with what is there; "" without a head."""
        if self.head is None:
            return ""
        return "train" if self.head.measured.broken_at > AHEAD * self.best_rival.measured.broken_at else "stay"

    @property
    def best_rival(self) -> ClassifierReport:
        """Of all that is not the head, what holds farthest."""
        return max((part for part in self.parts if part is not self.head), key=lambda part: part.measured.broken_at)

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
        from polyrelu.estimator.robustness_report.sentences import sentences

        return " ".join(sentences(self))

    @checked
    def save(self, path: str | Path, *, command: str = "", data: str = "", next_commands: Sequence[str] = ()) -> Path:
        """Write one HTML page that needs nothing else, whole or not at all; ``data`` is what it calls the rows."""
        from polyrelu.estimator.robustness_report.page import write_diagnosis_page

        return write_diagnosis_page(path, self, command, data, next_commands)


def check_options(compare: Any, beside: Any, name: Any, progress: Any) -> None:
    """Refuse what is not of its kind, before anything is measured."""
    from polyrelu.estimator.classifier import PolyReLUClassifier

    good = isinstance(compare, bool | PolyReLUClassifier)
    require(good, "compare", shown(compare), "True, False or an unfitted PolyReLUClassifier")
    require(beside is None or isinstance(beside, Mapping), "beside", shown(beside), "classifiers by name")
    good = progress is None or isinstance(progress, Progress)
    require(good, "progress", shown(progress), "None or a polyrelu.progress.Progress")
    require(name is None or isinstance(name, str), "name", shown(name), "a text")


def with_head(
    rows: ReportRows, target: TargetModel, head: PolyReLUClassifier | None
) -> tuple[ClassifierReport | None, ClassifierReport | None, list[str]]:
    """The model fitted anew, if it can be; the head, trained on the training rows or cross-fitted as well; notes."""
    from sklearn.base import clone

    from polyrelu.estimator.classifier import PolyReLUClassifier

    head = PolyReLUClassifier(p=3, random_state=rows.seed) if head is None else clone(head)
    name = f"polynomial head, p = {head.p}"
    if rows.train is not None:
        rows.progress.update(doing=f"training the {name}")
        fitted = head.fit(rows.train[0].numpy(), rows.train[1])
        return None, rows.report_on(as_target(fitted, rows.X, rows.y, name)), []
    found = cross_fitted(rows, head, name)
    if found is None:
        return None, None, ["No head was trained: a class has a single row, and none could be set aside."]
    again = refitted(target.model)
    refit = None if again is None else cross_fitted(rows, again, f"{target.name}, fitted anew like the head")
    note = "Without training rows the head was cross-fitted: trained on one half of X, measured on the other."
    return refit, found, [note]
