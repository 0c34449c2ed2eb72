"""What `polyrelu predict` runs: rows in, some at a time; for each its class, the probability, and a proven radius."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, final

import numpy as np
from numpy.typing import NDArray

from polyrelu._version import __version__
from polyrelu.data import TABLE_SUFFIXES, InputSchema, Table, class_indices, read_table, read_table_blocks
from polyrelu.errors import InputError, require
from polyrelu.estimator import PolyReLUClassifier
from polyrelu.files import open_file, output_folder, write_atomically
from polyrelu.nets import load_about
from polyrelu.progress import Progress
from polyrelu.robust import Budget
from polyrelu.workflows.predict.certified_rows import CertifiedRows, Decided, file_hash
from polyrelu.workflows.records import require_replaceable

HEADER = ("row", "prediction", "probability")
CERTIFIED = 100  # rows that are certified at a time
TOL, NODES = 0.01, 30  # a radius is worked at until it is within one percent of an attack, or so many nodes are spent


@final
@dataclass(frozen=True)
class Predictions:
    """How many rows there were and how many of them right; ``labelled`` counts labels that are classes of the head.

    ``labelled`` is None if there are no labels, and counts every row if the labels were named.
    """

    rows: int
    labelled: int | None
    right: int
    said: tuple[str, ...]
    radii: NDArray[np.float64]
    typical: float | None


def read_head(path: str) -> tuple[PolyReLUClassifier, InputSchema, float | None]:
    """The head, what it takes, and the median centred norm it was fitted on, if it says so."""
    require(Path(path).is_file(), "head", path, "an existing file written by polyrelu fit")
    try:
        head, about = PolyReLUClassifier.load(path), load_about(path)
    except InputError as error:
        raise InputError(str(error).replace("path=", "head=", 1)) from None
    if hasattr(head, "feature_names_in_"):
        del head.feature_names_in_  # columns are put in order here
    takes = InputSchema.from_json(about, path, head.n_features_in_)
    typical = about.get("median_centred_norm")
    good = typical is None or (isinstance(typical, int | float) and 0 < typical < math.inf)
    require(good, "head", path, f"a median centred norm > 0, it says {typical!r:.40}")
    return head, takes, typical


def run_prediction(
    file: str, data: str, label: str | None, radius: bool, out: Path | None, progress: Progress
) -> Predictions:
    """Write a line for each row of DATA to ``out``, whole or not at all, or to stdout; rows of files come in blocks.

    Certified rows are kept in OUT.partial until ``out`` is whole, and an interrupted run goes on from them.
    """
    head, takes, typical = read_head(file)
    if out is not None:
        require(out.suffix.lower() == ".csv", "out", out, "a name that ends in .csv")
        require_replaceable(out, _holds_predictions, "holds no predictions")
        output_folder(out.parent)
    if Path(data).suffix.lower() in TABLE_SUFFIXES:
        blocks = read_table_blocks(data, label=label, takes=takes)
    else:
        blocks = iter([read_table(data, label=label, takes=takes)])
    first = next(blocks)  # complaints about DATA come before anything is written
    write_to = partial(
        _write, head=head, first=first, others=blocks, label=label, radius=radius, typical=typical, progress=progress
    )
    if out is None:
        require(sys.stdout is not None, "out", None, "--out FILE where there is no stdout")
        return write_to(sys.stdout, to_stdout=True)
    found: list[Predictions] = []
    identity = {"head": file_hash(file), "rows": CERTIFIED, "tol": TOL, "nodes": NODES, "version": __version__}
    kept = CertifiedRows(out, identity, len(head.classes_)) if radius else None

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8", newline="") as stream:
            found.append(write_to(stream, kept=kept))

    try:
        write_atomically(out, write)
    finally:
        if kept is not None:
            kept.close(done=bool(found))
    return found[0]


def _write(
    stream: IO[str], *, head: PolyReLUClassifier, first: Table, others: Iterator[Table], label: str | None,
    radius: bool, typical: float | None, progress: Progress, kept: CertifiedRows | None = None, to_stdout: bool = False,
) -> Predictions:  # fmt: skip
    lines = csv.writer(stream, lineterminator="\n")
    fraction = radius and typical is not None
    lines.writerow((*HEADER, *["radius"] * radius, *["fraction"] * fraction))
    rows = labelled = right = 0
    said = list(first.notes)
    radii: list[NDArray[np.float64]] = []
    progress.stage("rows", None)
    for block in chain([first], others):
        for part, (chosen, probability, proven) in _decided(head, block.X, rows, radius, kept):
            columns: list[Any] = [range(rows, rows + len(chosen)), head.classes_[chosen].tolist(), probability.tolist()]
            if radius:
                radii.append(proven)
                columns += [proven.tolist()] + ([(proven / typical).tolist()] if typical is not None else [])
            lines.writerows(zip(*columns, strict=True))
            if block.y is not None:
                truth = class_indices(block.y[part], head.classes_)
                labelled += int((truth >= 0).sum()) if label is None else len(truth)
                right += int((truth == chosen).sum())
            rows += len(chosen)
            if to_stdout:
                stream.flush()
            _report(progress, rows, radius, kept, to_stdout)
    if kept is not None:
        said += [*kept.said, *[f"{kept.before} rows were certified before."] * (kept.before > 0)]
    proven = np.concatenate(radii) if radii else np.empty(0)
    return Predictions(rows, None if first.y is None else labelled, right, tuple(said), proven, typical)


def _decided(
    head: PolyReLUClassifier, X: NDArray[Any], before: int, radius: bool, kept: CertifiedRows | None
) -> Iterator[tuple[slice, Decided]]:
    """Class, probability and radius of the rows of a block, all at once or, with radii, a chunk at a time."""
    scores: NDArray[Any] | None = None
    for start in range(0, len(X), CERTIFIED if radius else len(X)):
        part = slice(start, min(start + CERTIFIED, len(X)) if radius else len(X))
        found = None if kept is None else kept.take(before + start, X[part])
        if found is None:
            scores = head.decision_function(X) if scores is None else scores
            proven = np.empty(0)
            if radius:
                proven = head.certify(X[part], tol=TOL, budget=Budget(nodes=NODES)).lower.numpy()
            found = (*decide(scores[part]), proven)
            if kept is not None:
                kept.add(before + start, X[part], found)
        yield part, found


def _report(progress: Progress, rows: int, radius: bool, kept: CertifiedRows | None, to_stdout: bool) -> None:
    """So many rows are done; where that leaves an interruption, which cuts no line of stdout in two."""
    if to_stdout:
        other = " With --out FILE certified rows are kept, and the same command goes on from them." if radius else ""
        progress.keep(f"interrupted; the first {rows} rows are written.{other}", "finishing the rows under way")
    elif kept is not None and kept.usable:
        progress.keep(f"interrupted; {rows} rows are certified and kept, and the same command goes on from there")
    progress.update(done=rows)


def decide(scores: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The place of the class with the largest score, as `PolyReLUClassifier.predict`, and its probability."""
    if scores.ndim == 1:
        return (scores > 0).astype(np.int64), 1 / (1 + np.exp(-np.abs(scores.astype(np.float64))))
    chosen = scores.argmax(axis=1)
    above = scores.astype(np.float64) - scores.max(axis=1, keepdims=True)
    return chosen, 1 / np.exp(above).sum(axis=1)


def _holds_predictions(path: Path) -> bool:
    with open_file(path) as stream:
        return stream.read(100).decode("utf-8", "replace").startswith(",".join(HEADER))
