"""The page of a diagnosis: the finding, the curves, the sub-classes, what to do. One file, nothing is fetched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polyrelu._version import __version__
from polyrelu.estimator.robustness_report.measurement import EXACT, UNPROVEN
from polyrelu.estimator.robustness_report.report import RobustnessReport
from polyrelu.estimator.robustness_report.report_rows import ClassifierReport
from polyrelu.estimator.robustness_report.sentences import (
    direction_words,
    findings,
    fraction,
    percent,
)
from polyrelu.report.pages import write_page

BOX = 1000.0  # height and width of the box the curves are drawn in
CORNERS = 400  # corners of a line; more are finer than the eye
COLOURS = ("first", "second", "third")  # names of the colours; the model and the head have their own
BARS = 24  # sub-classes drawn for one class


class DrawnClassifier(NamedTuple):
    """One classifier in the picture: its colour, its lines, and the band between them; "" where nothing is proven."""

    part: ClassifierReport
    colour: str
    attacked: str
    certified: str
    band: str


def write_diagnosis_page(
    path: str | Path, report: RobustnessReport, command: str = "", title: str = "", commands: Sequence[str] = ()
) -> Path:
    """Write the page, whole or not at all, and return its path. Every text is escaped.

    command : makes the page again; title : what the data are called; commands : what to try next
    """
    end, radii = _end(report), report.radii.tolist()
    return write_page(
        path,
        (__package__, "diagnosis"),
        {"percent": percent, "score": _score, "fraction": partial(fraction, typical=report.typical)},
        report=report,
        title=title,
        command=command,
        version=__version__,
        findings=findings(report),
        direction=direction_words(report),
        drawn=_drawn(report, end),
        radii=radii,
        marks=[100 * radius / end for radius in radii if radius <= end],
        ticks=_ticks(end / report.typical),
        classes=_classes(report),
        next=report.advice,
        best=report.best_rival,
        commands=commands
        or [
            "polyrelu fit DATA -o head.safetensors",
            "polyrelu predict head.safetensors DATA --radius -o predictions.csv",
        ],
        uncertain=f"{100 / math.sqrt(len(report.points)):.0f}",
        unproven=UNPROVEN,
        exact=EXACT,
    )


def _end(report: RobustnessReport) -> float:
    """Where the picture ends: where the last classifier has lost nearly all points, and beyond all radii asked for."""
    ends = [float(report.radii[-1]) * 1.1]
    for part in report.parts:
        upper = np.sort(part.measured.bracket.upper.numpy())
        finite = upper[np.isfinite(upper)]
        ends.append(float(np.quantile(finite, 0.98)) if len(finite) else 0.0)
    return min(max(ends), 1.5 * report.typical + float(report.radii[-1]))


def _drawn(report: RobustnessReport, end: float) -> list[DrawnClassifier]:
    colours, found, radii = iter(COLOURS), [], np.linspace(0, end, CORNERS + 1)
    for part in report.parts:
        colour = "head" if part is report.head else "model" if part is report.model else next(colours, COLOURS[-1])
        curve = part.measured.curve
        attacked = [*zip(radii, curve.attacked(radii), strict=True)]
        certified = [*zip(radii, curve.certified(radii), strict=True)] if part.measured.proof != UNPROVEN else []
        band = [*attacked, *certified[::-1]] if certified else []
        found.append(DrawnClassifier(part, colour, *(_path(line, end) for line in (attacked, certified, band))))
    return found


def _score(score: float) -> str:
    return "–" if math.isnan(score) else f"{score:.2f}"


def _path(corners: Any, end: float) -> str:
    return " ".join(f"{BOX * float(r) / end:.1f},{BOX * (1 - float(a)):.1f}" for r, a in corners)


def _ticks(end: float) -> list[tuple[float, str]]:
    """Places in % and names of round fractions of the typical norm."""
    step = next(step for step in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, math.inf) if end / step <= 8)
    numbers = [step * number for number in range(int(end / step) + 1)] if math.isfinite(step) else [0.0]
    return [
        (100 * number / end, f"{number:.2f}".rstrip("0").rstrip(".").removeprefix("0") or "0") for number in numbers
    ]


def _classes(report: RobustnessReport) -> list[tuple[str, list[tuple[float, int]], int]]:
    """Name, (width in %, rows) of each sub-class, largest first, and how many are not drawn."""
    structure, found = report.structure, []
    for name in structure.classes:
        sizes = sorted(structure.sizes[structure.labels == name].tolist(), reverse=True)
        widths = [(100 * size / max(1, sum(sizes)), size) for size in sizes[:BARS]]
        found.append((str(name), widths, len(sizes) - len(widths)))
    return found
