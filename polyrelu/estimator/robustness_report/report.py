"""Is this classifier fragile, why, and what would a polynomial head do on the same data?

report = RobustnessReport.measure(model, X_test, y_test, train=(X_train, y_train))
print(report.summary())
report.save("diagnosis.html")
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np
from torch import Tensor

from polyrelu._version import __version__
from polyrelu.checks import checked, seed_number, value_text, whole_number
from polyrelu.errors import require
from polyrelu.estimator.classifier import PolyReLUClassifier
from polyrelu.estimator.robustness_report.cross_fitting import with_head
from polyrelu.estimator.robustness_report.measurement import EXACT, UNPROVEN
from polyrelu.estimator.robustness_report.picture import picture_values
from polyrelu.estimator.robustness_report.report_rows import Array, ClassifierReport, ReportRows
from polyrelu.estimator.robustness_report.structure import Structure
from polyrelu.estimator.robustness_report.target_model import as_target
from polyrelu.progress import Progress

BETTER_FACTOR = 1.05  # how much farther a head must hold to be called better
AVERAGING_SCORE = 0.55  # averaging score from which a classifier is said to average its sub-classes
DECOUPLED_SCORE = 0.45  # up to which it is said to keep them apart
NEXT_COMMANDS = (
    "polyrelu fit DATA -o head.safetensors",
    "polyrelu predict head.safetensors DATA --radius -o predictions.csv",
)


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
        good = isinstance(compare, bool | PolyReLUClassifier)
        require(good, "compare", value_text(compare), "True, False or an unfitted PolyReLUClassifier")
        require(beside is None or isinstance(beside, Mapping), "beside", value_text(beside), "classifiers by name")
        good = progress is None or isinstance(progress, Progress)
        require(good, "progress", value_text(progress), "None or a polyrelu.progress.Progress")
        require(name is None or isinstance(name, str), "name", value_text(name), "a text")
        rows = ReportRows.from_data(
            X, y, radii=radii, fine=fine, pool=pool, train=train, seed=seed, points=points,
            progress=progress or Progress(),
        )  # fmt: skip
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
        return "train" if self.head.measured.broken_at > BETTER_FACTOR * self.best_rival.measured.broken_at else "stay"

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
        """What was found in sentences, the most important first; lengths are fractions of the typical norm."""
        return " ".join([*findings(self), direction_words(self), *self.notes])

    @checked
    def save(self, path: str | Path, *, command: str = "", data: str = "", next_commands: Sequence[str] = ()) -> Path:
        """Write one HTML page that needs nothing else, whole or not at all, and return its path. Every text is escaped.

        command : makes the page again; data : what it calls the rows; next_commands : what to try next
        """
        from polyrelu.report.pages import write_page  # jinja2 is loaded only where a page is written

        return write_page(
            path,
            (__package__, "diagnosis"),
            {"percent": percent, "score": _score, "fraction": partial(fraction, typical=self.typical)},
            report=self,
            title=data,
            command=command,
            version=__version__,
            findings=findings(self),
            direction=direction_words(self),
            next=self.advice,
            best=self.best_rival,
            commands=next_commands or NEXT_COMMANDS,
            uncertain=f"{100 / math.sqrt(len(self.points)):.0f}",
            unproven=UNPROVEN,
            exact=EXACT,
            **picture_values(self.parts, self.model, self.head, self.structure, self.radii.tolist(), self.typical),
        )


def findings(report: RobustnessReport) -> list[str]:
    """The sub-classes, the classifier, and the head if there is one."""
    return [_structure(report), _model(report), *([] if report.head is None else [_head(report)])]


def fraction(radius: float, typical: float) -> str:
    """.27, as a part of the typical norm; "no radius tried" where nothing broke."""
    if math.isinf(radius):
        return "no radius tried"
    text = f"{radius / typical:.2f}"
    return text[1:] if text.startswith("0") else text


def percent(share: float) -> str:
    """87 %; a dash where there is no number."""
    return "–" if math.isnan(share) else f"{100 * share:.0f} %"


def _score(score: float) -> str:
    return "–" if math.isnan(score) else f"{score:.2f}"


def _structure(report: RobustnessReport) -> str:
    structure = report.structure
    if not structure.hidden:
        return "No sub-classes were found within your classes."
    known = "" if structure.given else " hidden"
    counts = f" ({' + '.join(map(str, structure.counts))})" if len(structure.counts) <= 8 else ""
    return f"Your {len(structure.counts)} classes have {structure.total}{known} sub-classes{counts}."


def _model(report: RobustnessReport) -> str:
    part, typical, score = report.model, report.typical, report.averaging
    does = ""
    if score >= AVERAGING_SCORE:
        does = f" averages them (score {score:.2f}):"
    elif score <= DECOUPLED_SCORE:
        does = f" tells them apart (averaging score {score:.2f}):"
    elif not math.isnan(score):
        does = f" partly averages them (score {score:.2f}):"
    if math.isinf(report.broken_at):
        return f"The {part.name}{does or ':'} fewer than half of the points were broken at all{_proof(part, typical)}."
    where = f"{fraction(report.broken_at, typical)} of the typical norm{_proof(part, typical)}"
    return (
        f"The {part.name}{does} half of the points break at {where}."
        if does
        else (f"Half of the points that the {part.name} was asked about break at {where}.")
    )


def _proof(part: ClassifierReport, typical: float) -> str:
    if part.measured.proof == UNPROVEN:
        return " (attacked; nothing is proven for this kind of classifier)"
    if part.measured.proof == EXACT:
        return " (exact)"
    return f" (certified {fraction(part.measured.proven_to, typical)})"


def _head(report: RobustnessReport) -> str:
    assert report.head is not None
    rival, head, typical = report.refit or report.model, report.head, report.typical
    mine, theirs = head.measured.broken_at, rival.measured.broken_at
    where = fraction(mine, typical)
    accuracy = (
        f"its accuracy is {percent(head.measured.clean)}, that of the {rival.name} {percent(rival.measured.clean)}"
    )
    if mine > BETTER_FACTOR * theirs:
        verb = "holds to"
    elif mine * BETTER_FACTOR < theirs:
        verb = "does worse, it holds to"
    else:
        verb = "does about the same, it holds to"
    said = f"A {head.name} {verb} {where}{_proof(head, typical)}; {accuracy}."
    best = report.best_rival
    if best in (rival, report.model):
        return said
    return f"{said} The {best.name} holds to {fraction(best.measured.broken_at, typical)}{_proof(best, typical)}."


def direction_words(report: RobustnessReport) -> str:
    """What one direction for all points of a class does to the classifier."""
    radius = report.radii[len(report.radii) // 2]
    share = report.model.direction.broken(radius)
    if math.isnan(share):
        return "No point is classified rightly."
    at = fraction(radius, report.typical)
    right = f"{percent(share)} of what the {report.model.name} has right"
    return f"One direction for each class, the same for all its points, breaks {right} at {at}."
