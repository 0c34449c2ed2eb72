"""What `polyrelu fit` runs: a table to a head in a file, measured on rows it was not trained on.

Radii are l2, in the unit of X; fractions are of the median of |x - mean| over the training rows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from polyrelu.data import (
    BLOCK,
    TABLE_SUFFIXES,
    InputSchema,
    Table,
    class_indices,
    is_memory_mapped,
    read_table,
    split_rows,
)
from polyrelu.errors import InputError, require
from polyrelu.estimator import PolyReLUClassifier, TrainingStopped
from polyrelu.files import output_folder, write_atomically
from polyrelu.nets import ReadOut, load_about
from polyrelu.nets import load as load_net
from polyrelu.nets import save as save_net
from polyrelu.progress import Progress
from polyrelu.robust import Budget, curve, lengths
from polyrelu.workflows.records import require_replaceable, to_argv

FRACTIONS = (0.1, 0.2, 0.3)
MEASURED, POINTS, POOL = 20_000, 200, 2000  # held-out rows: predicted, certified; training rows that attacks start from
NOTHING = "interrupted; nothing is written, and the same command begins anew"
WHOLE_PASS = 1 - 1e-6  # a pass, summed batch by batch
STOPPED = "stopped_after_passes"  # said in the file of a head whose training was interrupted
TOL, NODES = 0.02, 10  # how hard a bracket is worked at, where only the accuracy at three radii is asked


@final
@dataclass(frozen=True)
class FitSettings:
    """DATA as typed, and what was asked; None is the estimator's own choice."""

    data: str
    out: Path
    label: str | None = None
    p: float | str = 3.0
    fine: str | None = None
    test: str | None = None
    width: int | None = None
    epochs: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse a seed that nothing can be drawn from."""
        require(0 <= self.seed < 2**32, "seed", self.seed, "a whole number from 0 to 2^32 - 1")

    def next_commands(self) -> list[str]:
        """What to try with the head."""
        data, out = self.data, str(self.out)
        file = Path(data).suffix.lower() in TABLE_SUFFIXES
        rows = self.test or (f"{data}:test" if file else data)
        seen = "" if file or self.test else "  # rows it was trained on are among them"
        return [
            to_argv("evaluate", out, rows, limit=500, out="out/head") + seen,
            to_argv("predict", out, data, "--radius", "-o", "predictions.csv"),
            to_argv("diagnose", data, "--model", out, "-o", "diagnosis.html"),
        ]


def run_fit(settings: FitSettings, progress: Progress) -> dict[str, Any]:
    """Train on four fifths of DATA (or all of it beside ``test``), measure on the rest, write the head.

    What comes back are its numbers, as JSON holds them.

    After a KeyboardInterrupt, which says so, the head of the whole passes made is written, unmeasured.
    """
    progress.keep(NOTHING)
    _require_place_for_head(settings.out)
    discover = settings.fine == "discover"
    table = read_table(settings.data, label=settings.label, fine=None if discover else settings.fine)
    _check_classes(table, settings.data)
    rows, test = _parts(table, settings)
    output_folder(settings.out.parent)
    chosen = {name: value for name in ("width", "epochs") if (value := getattr(settings, name)) is not None}
    head = PolyReLUClassifier(p=settings.p, random_state=settings.seed, **chosen)
    typical = median_centred_norm(table.X, rows)
    progress.stage("training", None)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ConvergenceWarning)
        try:
            _train(head, table, rows, "discover" if discover else table.fine, TrainingProgress(progress))
        except TrainingStopped as stopped:
            raise KeyboardInterrupt(_stopped(stopped.head, settings, table, typical)) from None
    try:
        warned = [str(one.message) for one in told]
        return _measured(head, table, rows, test, settings=settings, typical=typical, warned=warned, progress=progress)
    except KeyboardInterrupt:
        save(head, settings.out, table, typical)
        measure = settings.next_commands()[0]
        raise KeyboardInterrupt(f"interrupted; the head is trained and in {settings.out}, but not measured. "
                                f"Measure it with: {measure}") from None  # fmt: skip


def _measured(
    head: PolyReLUClassifier, table: Table, rows: NDArray[np.int64], test: Table, *, settings: FitSettings,
    typical: float, warned: list[str], progress: Progress,
) -> dict[str, Any]:  # fmt: skip
    """Accuracy of a trained head on all rows to measure on, brackets on some; then it is written."""
    truth = class_indices(test.y, head.classes_)  # type: ignore[arg-type]
    accuracy = float((class_indices(head.predict(test.X), head.classes_) == truth).mean())
    strange = int((truth < 0).sum())
    source = np.random.default_rng(settings.seed)
    some = source.permutation(np.flatnonzero(truth >= 0))[:POINTS]
    require(len(some) > 0, "test", settings.test, "rows of the classes that the head tells apart")
    y = np.asarray(table.y)
    near = np.union1d(source.permutation(rows)[:POOL], rows[np.unique(y[rows], return_index=True)[1]])
    progress.stage("certifying", len(some))
    progress.keep(NOTHING, "keeping the head, which is trained")
    found = head.certify(
        test.X[some], head.classes_[truth[some]], pool=(table.X[near], y[near]), tol=TOL, budget=Budget(nodes=NODES),
        progress=progress,
    )  # fmt: skip
    line, radii = curve(found), typical * np.array(FRACTIONS)
    save(head, settings.out, table, typical)
    said = [*table.notes, *(f"{settings.test}: {one}" for one in test.notes if settings.test)]
    if strange:
        said.append(f"{strange} rows to measure on are of no class of the head: they count as wrong, and are not "
                    "certified.")  # fmt: skip
    net = head.net_.net if isinstance(head.net_, ReadOut) else head.net_
    return {
        "head": str(settings.out),
        "rows": len(rows),
        "held_out": len(test),
        "columns": net.dim,
        "classes": head.classes_.tolist(),
        "sub_classes": net.outputs if isinstance(head.net_, ReadOut) else None,
        "said": [*said, *warned],
        "p": head.p_,
        "chosen_at_radius": getattr(head, "radius_", None),
        "width": net.width,
        "passes": int(head.n_iter_),
        "accuracy": accuracy,
        "median_centred_norm": typical,
        "points": len(some),
        "radii": [
            {"fraction": fraction, "radius": float(radius), "certified": certified, "attacked": attacked}
            for fraction, radius, certified, attacked in zip(
                FRACTIONS, radii, line.certified(radii).tolist(), line.attacked(radii).tolist(), strict=True
            )
        ],
    }


@final
class TrainingProgress(Progress):
    """Of a training: once a whole pass is made, an interruption waits for the next batch and keeps that pass."""

    def __init__(self, whole: Progress) -> None:
        self.whole, self.waits = whole, False

    def update(self, done: float | None = None, **numbers: Any) -> None:
        """Pass it on; after the first whole pass an interruption keeps the head."""
        if numbers["evaluations"] > WHOLE_PASS and not self.waits:
            self.waits = True
            self.whole.keep(NOTHING, "keeping the head of the last whole pass")
        self.whole.update(done, **numbers)


def median_centred_norm(X: NDArray[Any], rows: NDArray[np.int64]) -> float:
    """median_i |x_i - mean|, i in ``rows``, the mean over the same rows; read in blocks."""
    blocks = [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
    mean = sum((X[block] / np.float64(len(rows))).sum(0) for block in blocks)
    long = [lengths(torch.from_numpy(X[block] - mean), 2.0) for block in blocks]
    return float(np.median(torch.cat(long).numpy()))


def _stopped(head: PolyReLUClassifier | None, settings: FitSettings, table: Table, typical: float) -> str:
    """Write what a training that was stopped has made, but over no finished head; what there is, in words."""
    if head is None:
        return NOTHING
    out = settings.out
    if out.exists() and STOPPED not in load_about(out):
        out = out.with_stem(f"{out.stem}-stopped")
        _require_place_for_head(out)
    save(head, out, table, typical, **{STOPPED: int(head.n_iter_)})
    whole = "1 whole pass" if head.n_iter_ == 1 else f"{head.n_iter_} whole passes"
    spared = "" if out == settings.out else f"; {settings.out} is as it was"
    return (
        f"interrupted; the head after {whole} is in {out}, marked as stopped early and not measured{spared}. The same "
        "command trains it to the end."
    )


def save(head: PolyReLUClassifier, path: Path, table: Table, typical: float, **marks: int) -> None:
    """Write the head with the names of its columns and of its labels, and the norm that fractions are of."""
    more = {
        **marks,
        "features": None if table.features is None else list(table.features),
        "label": table.label,
        "median_centred_norm": typical,
    }

    def write(temporary: Path) -> None:
        head.save(temporary)
        save_net(head.net_, temporary, about={**load_about(temporary), **more})

    write_atomically(path, write)


def _require_place_for_head(out: Path) -> None:
    """A head may be written there: nothing is there yet, or a net."""
    require(out.suffix == ".safetensors", "out", out, "a name that ends in .safetensors")
    require_replaceable(out, _is_net, "is no net of polyrelu")


def _is_net(path: Path) -> bool:
    try:
        load_net(path)
    except InputError:
        return False
    return True


def _check_classes(table: Table, data: str) -> None:
    """Refuse labels that are no classes."""
    y = table.y
    if y is None:
        raise InputError(f"data={data}: has no labels: expected y (n,) inside, or its name in --label.")
    found = np.unique(y)
    if len(found) < 2:
        raise InputError(f"data={data}: has one class only, {found[0]} in all {len(y)} rows: expected at least two.")
    column = f"column {table.label!r}" if table.label else "the labels"
    if y.dtype.kind == "f" and len(found) <= len(y) / 2:
        raise InputError(
            f"data={data}: {column} holds numbers that are not whole, such as {found[0]:g} and {found[1]:g}: expected "
            "classes, whole numbers or text; y.astype(str) makes text of numbers."
        )
    if y.dtype.kind == "f" or len(found) > len(y) / 2:
        raise InputError(
            f"data={data}: {column} holds {len(found)} different values in {len(y)} rows, such as {found[0]} and "
            f"{found[1]}: expected classes with several rows each; --label NAME names another column."
        )


def _parts(table: Table, settings: FitSettings) -> tuple[NDArray[np.int64], Table]:
    """Numbers of the rows to train on, and (at most `MEASURED`) rows to measure on."""
    if settings.test is not None:
        takes = InputSchema(table.X.shape[1], table.features, table.label)
        test = read_table(settings.test, label=settings.label, takes=takes)
        require(test.y is not None, "test", settings.test, "labels, there are none in it")
        if len(test) > MEASURED:
            test = test.take(np.sort(np.random.default_rng(settings.seed).permutation(len(test))[:MEASURED]))
        return np.arange(len(table)), test
    train, held_out = (split_rows(len(table), part, settings.data).numpy() for part in ("train", "test"))
    assert table.y is not None
    lost = sorted(set(table.y.tolist()) - set(table.y[train].tolist()))
    if lost:
        raise InputError(
            f"data={settings.data}: all rows of class {lost[0]!r} fall into the held-out fifth: expected more of them, "
            "or other rows to measure on in --test."
        )
    return np.sort(train), table.take(np.sort(held_out[:MEASURED]))


def _train(head: PolyReLUClassifier, table: Table, rows: NDArray[np.int64], fine: Any, progress: Progress) -> None:
    """Rows in a file are not copied: those held out weigh nothing."""
    if is_memory_mapped(table.X):
        weights = np.zeros(len(table)) if len(rows) < len(table) else None
        if weights is not None:
            weights[rows] = 1
        head.fit(table.X, table.y, fine_labels=fine, sample_weight=weights, progress=progress)
        return
    part = table.take(rows)
    head.fit(part.X, part.y, fine_labels=fine if isinstance(fine, str) else part.fine, progress=progress)
