"""One evaluation and its folder: every point's bracket, in parts that survive an interruption, then what they show.

DIR/parts/*.npz, each a hundred points; at the end radii.csv, curve.png, curve.svg, adversarial.npz, evaluation.json.
"""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from rich.table import Table as Grid
from rich.text import Text
from torch import Tensor

from polyrelu import robust
from polyrelu.arrays import write_npz
from polyrelu.data import Dataset
from polyrelu.errors import require
from polyrelu.files import output_folder, writing
from polyrelu.nets import Net
from polyrelu.progress import PartProgress, Progress
from polyrelu.robust import Bracket, Budget, RobustCurve, check_norm, crosscheck, curve, relative_gaps
from polyrelu.workflows.evaluate.checkpoints import SIZE, BracketedRows, join, read_part, write_part
from polyrelu.workflows.evaluate.inputs import fitted, identity_of, read_net, read_points
from polyrelu.workflows.evaluate.settings import EvaluationSettings
from polyrelu.workflows.evaluate.table import EvaluationTable, by_radius, overall, peers, theory_marks
from polyrelu.workflows.records import plain, read_record, versions, write_csv, write_record

FORMAT = "polyrelu-evaluation-1"
RECORD, RADII, ADVERSARIAL, PICTURES = "evaluation.json", "radii.csv", "adversarial.npz", ("curve.png", "curve.svg")
PATIENCE = 10  # seconds that an interruption leaves the points under way


@final
@dataclass(frozen=True)
class Evaluation:
    """A finished evaluation: where it lives, what was asked, what came out."""

    folder: Path
    settings: EvaluationSettings
    net: Net
    data: Dataset
    X: Tensor
    y: Tensor
    identity: dict[str, Any]
    bracket: Bracket
    seconds: float
    checks: tuple[crosscheck.CrossCheck, ...] = ()

    @cached_property
    def curve(self) -> RobustCurve:
        """Both lines."""
        return curve(self.bracket)

    @property
    def marks(self) -> dict[str, float]:
        """What theory says about data like these."""
        return theory_marks(self.data, self.bracket.norm)

    @cached_property
    def table(self) -> EvaluationTable:
        """The numbers a person reads first."""
        return EvaluationTable.from_bracket(self.bracket, self.curve, self.settings.radii, self.marks)

    @property
    def title(self) -> str:
        """What the table and the picture are called."""
        return f"{Path(self.settings.net).name or self.settings.net} on {self.data.name}, {len(self.X)} points"

    def record(self) -> dict[str, Any]:
        """What evaluation.json holds: enough to make it again, and what it gave."""
        return {
            **_about(self.settings, self.folder, self.identity, len(self.X)),
            "status": "done",
            "table": self.table.as_json(),
            "cross_check": [plain(asdict(check)) for check in self.checks],
            "seconds": round(self.seconds, 3),
        }

    def save(self) -> None:
        """Write the results, each file whole or not at all; the record last, for it says that the others are there."""
        from polyrelu.report.figures import robust_figure, save_figure

        with _writing(self.folder, len(self.X)):
            self._write_radii()
            write_npz(self.folder / ADVERSARIAL, self._adversarial())
            figure = robust_figure(self.curve, marks=self.marks, title=self._heading())
            for name in PICTURES:
                save_figure(figure, self.folder / name)
            write_record(self.folder / RECORD, self.record())

    def _heading(self) -> str:
        """The title over two lines, each no longer than the picture is wide."""
        lines = (f"{Path(self.settings.net).name or 'net'}, {len(self.X)} points", self.data.name)
        return "\n".join(line if len(line) <= 62 else line[:61] + "…" for line in lines)

    def _write_radii(self) -> None:
        found, labels = self.bracket, [int(label) for label in self.y]
        numbers = (found.lower.tolist(), found.upper.tolist(), relative_gaps(found).tolist())
        status = [status.name for status in found.status]
        rows = zip(range(len(found)), labels, *numbers, status, found.nodes.tolist(), strict=True)
        write_csv(self.folder / RADII, ("row", "label", "lower", "upper", "gap", "status", "nodes"), rows)

    def _adversarial(self) -> dict[str, Any]:
        """Of every point with a finite upper bound: the broken point itself, in float64."""
        row = self.bracket.upper.isfinite().nonzero()[:, 0]
        perturbation = self.bracket.perturbation[row].double()
        return {
            "X_adv": (self.X[row].double() + perturbation).numpy(),
            "perturbation": perturbation.numpy(),
            "y": self.y[row].to(torch.int64).numpy(),
            "radius": self.bracket.upper[row].numpy(),
            "row": row.numpy(),
        }


def evaluation_tables(result: Evaluation) -> list[Grid | Text]:
    """The heading, accuracies by radius where there are any, the whole, and the cross-check if there was one."""
    by_radii = [by_radius(result.table)] if result.table.lines else []
    checks = [peers(result.checks)] if result.checks else []
    return [Text(result.title, style="bold"), *by_radii, overall(result.table), *checks]


def run_evaluation(settings: EvaluationSettings, out: str | Path, progress: Progress) -> Evaluation:
    """Bracket every point, a part at a time, going on from the parts that are there; then write the results.

    The whole set is the pool that attacks start from, so a point's numbers do not depend on ``limit`` or on the parts.
    """
    resume = settings.command(str(out))
    keep_points(progress, 0, 0, resume, waits=False)
    norm = check_norm(settings.norm)
    net = read_net(settings.net, settings.p)
    data = read_points(net, settings)
    net, data = fitted(net, data, settings)
    count = min(len(data), settings.limit or len(data))
    X, y = data.rows(0, count), data.y[:count]
    identity = identity_of(net, data, settings, norm)
    folder = output_folder(out)
    known = require_same(folder, identity)
    fingerprint = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    kept = {start: _kept(folder, start, (count, known), fingerprint) for start in range(0, count, SIZE)}
    done = sum(len(part.bracket) for part in kept.values() if part is not None)
    with _writing(folder, done):
        (folder / "parts").mkdir(exist_ok=True)
        if done < count or known == 0:
            write_record(folder / RECORD, {**_about(settings, folder, identity, count), "status": "unfinished"})
    progress.stage("points", count, done)
    keep_points(progress, done, count, resume, waits=done < count)
    budget = Budget(nodes=settings.nodes, seconds=settings.seconds)
    parts: list[BracketedRows] = []
    gaps: list[float] = []
    for start, before in kept.items():
        rows = slice(start + (len(before.bracket) if before else 0), min(start + SIZE, count))
        if rows.start == rows.stop:
            parts += [before] if before else []
            continue
        began = time.perf_counter()
        new = robust.bracket(
            net, X[rows], y[rows], norm=norm, tol=settings.tol, budget=budget, pool=data, seed=settings.seed,
            progress=PartProgress(progress, done),
        )  # fmt: skip
        curve(new, first_row=rows.start)  # a proof above an attack is an error at once, and never kept
        part = BracketedRows(rows.start, new, time.perf_counter() - began)
        if before:
            part = BracketedRows(start, join([before, part]), before.seconds + part.seconds)
        with _writing(folder, done):
            write_part(folder / "parts", part, fingerprint)
        parts.append(part)
        done += len(new)
        gaps += relative_gaps(new).tolist()
        keep_points(progress, done, count, resume, waits=True)
        progress.update(done, median_gap=float(np.median(gaps)))
    keep_points(progress, done, count, resume, waits=False)
    progress.stage("drawing and writing the results")
    result = Evaluation(folder, settings, net, data, X, y, identity, join(parts), sum(part.seconds for part in parts))
    result.save()
    if settings.cross_check:
        progress.stage("attacks of other libraries")
        found = crosscheck.cross_check(net, X, y, result.bracket, norm=result.bracket.norm, seed=settings.seed)
        result = replace(result, checks=tuple(found))
        with _writing(folder, count):
            write_record(folder / RECORD, result.record())
    return result


def keep_points(progress: Progress, done: int, count: int, resume: str, *, waits: bool) -> None:
    """So many points are on disk. An interruption finishes the part under way, or drops it if that takes long."""
    finishing = f"finishing the points under way ({SIZE} at most), dropping them after {PATIENCE} s" if waits else ""
    kept = f"{done} of {count} points are kept" if count else "nothing was done yet"
    progress.keep(f"interrupted; {kept}. Go on with: {resume}", finishing, PATIENCE)


def _kept(folder: Path, start: int, counts: tuple[int, int], fingerprint: str) -> BracketedRows | None:
    """What is there of the part that begins at ``start``, for the points asked for or those of the time before."""
    sizes = [min(SIZE, count - start) for count in counts if count > start]
    parts = (read_part(folder / "parts", start, size, fingerprint) for size in sizes)
    return next((part for part in parts if part is not None), None)


def require_same(folder: Path, identity: dict[str, Any]) -> int:
    """The number of points this evaluation had when it was last run in the folder, 0 if never; another is refused."""
    expected = "an evaluation written by this version of polyrelu; remove it or choose another --out"
    record = read_record(folder / RECORD, FORMAT, expected, identity=dict)
    if record is None:
        return 0
    require(isinstance(record.get("points", 1), int), "out", folder / RECORD, expected)
    there, differ = record["identity"], []
    for key, now in identity.items():
        if there.get(key) != now:
            before = there.get(key)
            differ.append(f"another {key}" if key in ("net", "data") else f"{key} {before} there, {now} now")
    require(not differ, "out", folder, f"an empty folder or this evaluation, it holds one with {_listed(differ)}; "
            "choose another --out")  # fmt: skip
    return int(record.get("points", 1))


def _about(settings: EvaluationSettings, folder: Path, identity: dict[str, Any], points: int) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "command": settings.command(str(folder)),
        "settings": settings.as_json(),
        "identity": identity,
        "versions": versions(),
        "points": points,
    }


def _writing(folder: Path, done: int) -> AbstractContextManager[None]:
    return writing(folder, f"{done} points are done and kept")


def _listed(parts: list[str]) -> str:
    """``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
