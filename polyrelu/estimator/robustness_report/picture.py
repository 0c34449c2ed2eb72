"""The picture of a diagnosis: robust accuracy of each classifier against the radius, and bars of the sub-classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from polyrelu.estimator.robustness_report.measurement import UNPROVEN
from polyrelu.estimator.robustness_report.report_rows import ClassifierReport
from polyrelu.estimator.robustness_report.structure import Structure

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


def picture_values(
    parts: Sequence[ClassifierReport], model: ClassifierReport, head: ClassifierReport | None, structure: Structure,
    radii: list[float], typical: float,
) -> dict[str, Any]:  # fmt: skip
    """What the template draws: lines of the classifiers, marks at the radii, ticks, and bars of the sub-classes."""
    end = _end(parts, radii, typical)
    return {
        "drawn": _drawn(parts, model, head, end),
        "radii": radii,
        "marks": [100 * radius / end for radius in radii if radius <= end],
        "ticks": _ticks(end / typical),
        "classes": _classes(structure),
    }


def _end(parts: Sequence[ClassifierReport], radii: list[float], typical: float) -> float:
    """Where the picture ends: where the last classifier has lost nearly all points, and beyond all radii asked for."""
    ends = [radii[-1] * 1.1]
    for part in parts:
        upper = np.sort(part.measured.bracket.upper.numpy())
        finite = upper[np.isfinite(upper)]
        ends.append(float(np.quantile(finite, 0.98)) if len(finite) else 0.0)
    return min(max(ends), 1.5 * typical + radii[-1])


def _drawn(
    parts: Sequence[ClassifierReport], model: ClassifierReport, head: ClassifierReport | None, end: float
) -> list[DrawnClassifier]:
    colours, found, radii = iter(COLOURS), [], np.linspace(0, end, CORNERS + 1)
    for part in parts:
        colour = "head" if part is head else "model" if part is model else next(colours, COLOURS[-1])
        curve = part.measured.curve
        attacked = [*zip(radii, curve.attacked(radii), strict=True)]
        certified = [*zip(radii, curve.certified(radii), strict=True)] if part.measured.proof != UNPROVEN else []
        band = [*attacked, *certified[::-1]] if certified else []
        found.append(DrawnClassifier(part, colour, *(_path(line, end) for line in (attacked, certified, band))))
    return found


def _path(corners: Any, end: float) -> str:
    return " ".join(f"{BOX * float(r) / end:.1f},{BOX * (1 - float(a)):.1f}" for r, a in corners)


def _ticks(end: float) -> list[tuple[float, str]]:
    """Places in % and names of round fractions of the typical norm."""
    step = next(step for step in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, math.inf) if end / step <= 8)
    numbers = [step * number for number in range(int(end / step) + 1)] if math.isfinite(step) else [0.0]
    return [
        (100 * number / end, f"{number:.2f}".rstrip("0").rstrip(".").removeprefix("0") or "0") for number in numbers
    ]


def _classes(structure: Structure) -> list[tuple[str, list[tuple[float, int]], int]]:
    """Name, (width in %, rows) of each sub-class, largest first, and how many are not drawn."""
    found = []
    for name in structure.classes:
        sizes = sorted(structure.sizes[structure.labels == name].tolist(), reverse=True)
        widths = [(100 * size / max(1, sum(sizes)), size) for size in sizes[:BARS]]
        found.append((str(name), widths, len(sizes) - len(widths)))
    return found
