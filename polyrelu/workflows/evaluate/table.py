"""What an evaluation comes to: accuracies at a few radii, the median radius, the largest gap."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, final

import torch

from polyrelu.data import Dataset
from polyrelu.robust import Bracket, RadiusRange, RobustCurve, relative_gaps

ROUND = (1.0, 2.0, 2.5, 5.0)
MOST = 10  # round radii in a table that nobody asked for


@final
@dataclass(frozen=True)
class RadiusRow:
    """Accuracies at one radius; ``mark`` says what theory calls it."""

    radius: float
    certified: float
    attacked: float
    mark: str = ""


@final
@dataclass(frozen=True)
class EvaluationTable:
    """The numbers a person reads first. ``gap`` is the largest (upper - lower)/upper, at row ``gap_row``."""

    points: int
    clean: float
    lines: tuple[RadiusRow, ...]
    median: RadiusRange
    gap: float
    gap_row: int
    status: dict[str, int]

    @classmethod
    def from_bracket(
        cls, bracket: Bracket, curve: RobustCurve, radii: tuple[float, ...], marks: dict[str, float]
    ) -> EvaluationTable:
        """Looked at in these radii (round ones that cover all, and the marks, where none are given)."""
        named = {radius: name for name, radius in marks.items()}
        chosen = radii or tuple(sorted({*round_radii(curve), *named}))
        gaps = relative_gaps(bracket)
        lines = tuple(RadiusRow(r, curve.certified(r), curve.attacked(r), named.get(r, "")) for r in chosen)
        counts = Counter(status.name for status in bracket.status)
        worst = int(gaps.argmax())
        return cls(len(bracket), curve.clean, lines, curve.median_radius, float(gaps[worst]), worst, dict(counts))

    def as_json(self) -> dict[str, Any]:
        """Plain values; null stands for infinity (no attack broke half of the points)."""
        return {
            "points": self.points,
            "clean": self.clean,
            "radii": [
                {"radius": line.radius, "certified": line.certified, "attacked": line.attacked, "mark": line.mark}
                for line in self.lines
            ],
            "median_radius": {"lower": finite(self.median.lower), "upper": finite(self.median.upper)},
            "largest_gap": {"relative": self.gap, "row": self.gap_row},
            "status": self.status,
        }


def round_radii(curve: RobustCurve) -> list[float]:
    """At most ten multiples of 1, 2, 2.5 or 5 times a power of ten, up to the largest radius there is."""
    farthest = float(curve.breakpoints[-1]) if len(curve.breakpoints) else 0.0
    if farthest <= 0:
        return []
    power = 10.0 ** math.floor(math.log10(farthest / MOST))
    step = next(s * power for s in (*ROUND, 10.0) if s * power * MOST >= farthest)
    return [float(f"{step * k:.12g}") for k in range(1, math.ceil(farthest / step - 1e-9) + 1)]


def theory_marks(data: Dataset, norm: float) -> dict[str, float]:
    """Where theory expects the radii of data around K orthogonal centres of one length R (l2, two classes).

    R/sqrt(K) is the radius at a centre of a net that learned class averages (any K1 + K2 = K), R sqrt(2)/2 the largest
    any classifier can have, which one that learned the centres reaches (Min & Vidal, ICML 2024).
    """
    centres = data.centres
    if centres is None or norm != 2 or not data.binary or len(centres) < 2:
        return {}
    gram = centres.double() @ centres.double().T
    squares = gram.diagonal()
    square = float(squares.mean())
    off = gram - torch.diag(squares)
    if square <= 0 or float(off.abs().max()) > 1e-3 * square or float((squares - square).abs().max()) > 1e-3 * square:
        return {}
    length = math.sqrt(square)
    unit = abs(length - 1) < 1e-6
    average, best = ("1/√K", "√2/2") if unit else (f"{length:.3g}/√K", f"{length:.3g}·√2/2")
    return {average: length / math.sqrt(len(centres)), best: length * math.sqrt(0.5)}


def finite(value: float) -> float | None:
    """A number as JSON can hold it."""
    return value if math.isfinite(value) else None
