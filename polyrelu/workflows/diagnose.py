"""What `polyrelu diagnose` runs: rows and labels to one page; four fifths to train on, the rest to measure."""

from __future__ import annotations

import shlex
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from polyrelu.data import InputSchema, Table, class_indices, read_table, split_rows
from polyrelu.errors import InputError, require
from polyrelu.estimator import PolyReLUClassifier, RobustnessReport
from polyrelu.files import output_folder
from polyrelu.nets import load, load_about
from polyrelu.progress import Progress
from polyrelu.workflows.records import to_argv

TRAINED, MEASURED = 20_000, 5_000  # rows at most; more change the numbers less than the draw of points does
RELU, LOGISTIC = "ReLU head", "logistic regression"
Array = NDArray[Any]


@final
@dataclass(frozen=True)
class DiagnosisSettings:
    """DATA as typed, and what was asked."""

    data: str
    out: Path
    label: str | None = None
    fine: str | None = None
    model: str | None = None
    points: int = 200
    seed: int = 0

    def command(self) -> str:
        """What makes the page again."""
        points, seed = self.points if self.points != 200 else None, self.seed or None
        options = {"label": self.label, "fine": self.fine, "model": self.model, "points": points, "seed": seed}
        return f"{to_argv('diagnose', self.data, **options)} -o {shlex.quote(str(self.out))}"

    def next_commands(self, discover: bool) -> list[str]:
        """A head of one's own, and its certified predictions."""
        fit = to_argv("fit", self.data, label=self.label, fine="discover" if discover else None)
        predict = to_argv("predict", "head.safetensors", self.data, radius=True)
        return [f"{fit} -o head.safetensors", f"{predict} -o predictions.csv"]


def run_diagnosis(settings: DiagnosisSettings, progress: Progress) -> RobustnessReport:
    """Read, train what is asked for, measure on the fifth held out, write the page."""
    out = settings.out
    progress.stage("diagnose")
    steps = DiagnosisProgress(progress, out)
    steps.update(doing="reading the data")
    require(out.suffix.lower() in (".html", ".htm"), "out", out, "a name that ends in .html")
    require(not out.is_dir(), "out", out, "a file, this is a folder")
    model, takes = (None, None) if settings.model is None else _model(settings.model)
    table = read_table(settings.data, label=settings.label, fine=settings.fine, takes=takes)
    y = _labels(table, settings.data, getattr(model, "classes_", None))
    if takes is not None and table.X.shape[1] != takes.count:
        raise InputError(f"data={settings.data}: has {table.X.shape[1]} columns, but the model takes {takes.count}.")
    train, test = (split_rows(len(table), part, settings.data).numpy() for part in ("train", "test"))
    train, test = np.sort(train[:TRAINED]), np.sort(test[:MEASURED])
    output_folder(out.parent)
    X, Z = (np.asarray(table.X[rows], dtype=np.float64) for rows in (train, test))
    report = RobustnessReport.measure(
        **_classifiers(model, settings, X, y[train], steps),
        X=Z,
        y=y[test],
        train=(X, y[train]),
        fine=None if table.fine is None else table.fine[test],
        seed=settings.seed,
        points=settings.points,
        progress=steps,
    )
    notes = (*report.notes, *_notes(settings, len(table), len(train), len(test)), *table.notes)
    report = replace(report, notes=notes)
    steps.update(doing="writing the page")
    commands = settings.next_commands(discover=report.advice == "stay")
    report.save(out, command=settings.command(), data=settings.data, next_commands=commands)
    return report


@final
class DiagnosisProgress(Progress):
    """Of a diagnosis, which leaves nothing when it is interrupted, whatever it is doing."""

    def __init__(self, whole: Progress, out: Path) -> None:
        self.whole, self.out = whole, out

    def update(self, done: float | None = None, **numbers: Any) -> None:
        """Pass it on; an interruption says what was under way and that nothing is written."""
        doing = numbers["doing"]
        self.whole.keep(f"interrupted while {doing}; {self.out} is not written. The same command begins anew.")
        self.whole.update(done, **numbers)


def _classifiers(model: Any, settings: DiagnosisSettings, X: Array, y: Array, progress: Progress) -> dict[str, Any]:
    """The classifier in question, what stands beside it, and whether a p = 3 head does: fitted on the training rows."""
    progress.update(doing=f"training the {LOGISTIC}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        beside: dict[str, Any] = {LOGISTIC: LogisticRegression(max_iter=1000).fit(X, y)}
    head = PolyReLUClassifier(p=1, random_state=settings.seed)
    polynomial = getattr(model, "p_", getattr(model, "p", 1.0)) > 2
    if model is None or polynomial:
        progress.update(doing=f"training the {RELU}")
        head.fit(X, y)
    if model is None:
        return {"model": head, "name": RELU, "beside": beside}
    name = f"head in {Path(settings.model or '').name}"
    beside = {RELU: head, **beside} if polynomial else beside
    return {"model": model, "name": name, "beside": beside, "compare": not polynomial}


def _model(text: str) -> tuple[Any, InputSchema]:
    """A head or a net saved by polyrelu, and the columns it takes."""
    path = Path(text)
    require(path.is_file(), "model", text, "an existing file written by polyrelu (.safetensors)")
    try:
        about = load_about(path)
        if about.get("head") is None:
            net = load(path)
            return net, InputSchema(net.dim, None, None)
        head = PolyReLUClassifier.load(path)
        return head, InputSchema.from_json(about, path, head.n_features_in_)
    except InputError as error:
        raise InputError(str(error).replace("path=", "model=", 1)) from None


def _labels(table: Table, data: str, classes: Array | None) -> Array:
    """The labels, as the model has them if there is one."""
    y = table.y
    if y is None:
        raise InputError(f"data={data}: has no labels: expected y (n,) inside, or its name in --label.")
    found, counts = np.unique(y, return_counts=True)
    if len(found) < 2 or len(found) > len(y) / 2:
        raise InputError(
            f"data={data}: holds {len(found)} different labels in {len(y)} rows: expected at least two classes with "
            "several rows each; --label NAME names another column."
        )
    if classes is None:
        few = found[counts.argmin()]
        require(int(counts.min()) > 1, "data", data, f"two rows or more of every class, {few} has one")
        return y
    place = class_indices(y, classes)
    require(bool((place >= 0).all()), "data", data, f"labels that the model knows, {y[place.argmin()]} is none of them")
    return classes[place]


def _notes(settings: DiagnosisSettings, rows: int, train: int, test: int) -> list[str]:
    """How the rows were divided."""
    held = f"Measured on {test} rows held out of {rows}"
    if settings.model is None:
        return [f"{held}; everything was trained on {train} others."]
    return [
        f"{held}, the fifth that polyrelu fit also sets aside. If {Path(settings.model).name} was trained on them in "
        f"another way, its numbers flatter it. What stands beside it was trained on {train} others."
    ]
