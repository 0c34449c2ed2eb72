"""The page of a diagnosis: the finding, the curves, the sub-classes, what to do. One file, nothing is fetched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from polyrelu._version import __version__
from polyrelu.report.numbers import number_text
from polyrelu.report.pages.diagnosis_words import (
    AHEAD,
    EXACT,
    NONE,
    best_rival,
    direction_words,
    findings,
    fraction,
    percent,
)
from polyrelu.report.pages.html import write_page

if TYPE_CHECKING:
    from polyrelu.estimator.robustness_report import Part, RobustnessReport

HIGH = 1000.0  # height and width of the box the curves are drawn in
STEPS = 400  # corners of a line; more are finer than the eye
SERIES = ("model", "first", "second", "third")  # names of the colours; the head has its own
BARS = 24  # sub-classes drawn for one class


@final
@dataclass(frozen=True)
class Line:
    """One classifier in the picture and in the table."""

    part: Part
    kind: str
    attacked: str
    certified: str
    band: str
    cells: tuple[tuple[str, str], ...]
    half: str
    proven: str
    averaging: str
    direction: tuple[str, ...]


def write_diagnosis_page(
    path: str | Path, report: RobustnessReport, command: str = "", title: str = "", commands: Sequence[str] = ()
) -> Path:
    """Write the page, whole or not at all, and return its path. Every text is escaped.

    command : makes the page again; title : what the data are called; commands : what to try next
    """
    end = _end(report)
    return write_page(
        path,
        "diagnosis",
        {"percent": percent},
        report=report,
        title=title,
        command=command,
        version=__version__,
        findings=findings(report),
        direction=direction_words(report),
        lines=_lines(report, end),
        radii=[(fraction(r, report.typical), number_text(r)) for r in report.radii.tolist()],
        marks=[(100 * r / end, f"{r / report.typical:.2f}".lstrip("0")) for r in report.radii.tolist() if r <= end],
        ticks=_ticks(end / report.typical),
        classes=_classes(report),
        next=_next(report),
        best=best_rival(report),
        commands=commands
        or [
            "polyrelu fit DATA -o head.safetensors",
            "polyrelu predict head.safetensors DATA --radius -o predictions.csv",
        ],
        uncertain=f"{100 / math.sqrt(len(report.points)):.0f}",
        none=NONE,
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


def _lines(report: RobustnessReport, end: float) -> list[Line]:
    kinds, found = iter(SERIES[1:]), []
    for part in report.parts:
        kind = "head" if part is report.head else "model" if part is report.model else next(kinds, "third")
        line, typical = part.measured.curve, report.typical
        radii = np.linspace(0, end, STEPS + 1)
        attacked, certified = line.attacked(radii), line.certified(radii)
        proven = part.measured.proof != NONE
        band = [*zip(radii, attacked, strict=True), *zip(radii[::-1], certified[::-1], strict=True)] if proven else []
        at = zip(line.attacked(report.radii).tolist(), line.certified(report.radii).tolist(), strict=True)
        cells = tuple((percent(a), percent(c) if proven else "–") for a, c in at)
        averaging = part.averaging.score
        found.append(
            Line(
                part,
                kind,
                _path(zip(radii, attacked, strict=True), end),
                _path(zip(radii, certified, strict=True), end) if proven else "",
                _path(band, end),
                cells,
                fraction(part.measured.broken_at, typical),
                fraction(part.measured.proven_to, typical) if proven else "–",
                "–" if math.isnan(averaging) else f"{averaging:.2f}",
                tuple(_share(part.direction.broken(r)) for r in report.radii.tolist()),
            )
        )
    return found


def _share(share: float) -> str:
    return "–" if math.isnan(share) else percent(share)


def _path(corners: Any, end: float) -> str:
    return " ".join(f"{HIGH * float(r) / end:.1f},{HIGH * (1 - float(a)):.1f}" for r, a in corners)


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


def _next(report: RobustnessReport) -> str:
    """What the numbers advise."""
    if report.head is None:
        return ""
    return "train" if report.head.measured.broken_at > AHEAD * best_rival(report).measured.broken_at else "stay"
