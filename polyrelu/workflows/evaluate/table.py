"""What an evaluation comes to: accuracies at a few radii, the median radius, the largest gap; and on a terminal.

Numbers on a terminal are rounded so that they stay true: proofs down, attacks up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any, final

import torch
from rich.box import SIMPLE_HEAD
from rich.table import Table as Grid

from polyrelu.data import Dataset
from polyrelu.robust import Bracket, BracketStatus, RadiusRange, RobustCurve, relative_gaps
from polyrelu.robust.crosscheck import CrossCheck
from polyrelu.workflows.records import plain

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
            "radii": [asdict(line) for line in self.lines],
            "median_radius": {"lower": plain(self.median.lower), "upper": plain(self.median.upper)},
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
    square = float(gram.diagonal().mean())
    apart = gram - square * torch.eye(len(centres), dtype=gram.dtype, device=gram.device)
    if square <= 0 or float(apart.abs().max()) > 1e-3 * square:
        return {}
    length = math.sqrt(square)
    unit = abs(length - 1) < 1e-6
    average, best = ("1/√K", "√2/2") if unit else (f"{length:.3g}/√K", f"{length:.3g}·√2/2")
    return {average: length / math.sqrt(len(centres)), best: length * math.sqrt(0.5)}


def by_radius(table: EvaluationTable) -> Grid:
    """Certified and attacked accuracy at each radius."""
    marked = any(line.mark for line in table.lines)
    grid = Grid(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("radius", "certified", "attacked", "unproven"):
        grid.add_column(name, justify="right", no_wrap=True)
    if marked:
        grid.add_column("theory")
    for line in table.lines:
        cells = [
            f"{line.radius:.4g}",
            percent_down(line.certified),
            percent_up(line.attacked),
            percent_up(line.attacked - line.certified),
        ]
        grid.add_row(*cells, *([line.mark] if marked else []))
    return grid


def overall(table: EvaluationTable) -> Grid:
    """Clean accuracy, median radius, largest gap, and how the points went."""
    grid = Grid.grid(padding=(0, 3, 0, 0))
    low, high = table.median.lower, table.median.upper
    above = rounded_up(high) if math.isfinite(high) else "beyond what was found"
    median = f"{rounded_down(low)} proven, {above} attacked" if math.isfinite(low) else "infinite, proven"
    grid.add_row("clean accuracy", percent_down(table.clean))
    grid.add_row("median radius", median)
    gap = f"{rounded_up(100 * table.gap, digits=2)} % (row {table.gap_row})" if table.gap else "none"
    grid.add_row("largest relative gap", gap)
    for name, count in table.status.items():
        grid.add_row(f"{name.lower()} points", f"{count}: {BracketStatus[name].value}")
    return grid


def peers(checks: Sequence[CrossCheck]) -> Grid:
    """The attacks of other libraries beside ours."""
    grid = Grid(box=SIMPLE_HEAD, pad_edge=False, title="Attacks of other libraries", title_justify="left")
    for name in ("attack", "library", "median radius", "smaller", "seconds"):
        grid.add_column(name, justify="left" if name in ("attack", "library") else "right", no_wrap=True)
    notes: dict[str, list[str]] = {}
    for check in checks:
        radius, seconds = f"{check.median_radius:.4g}", f"{check.seconds:.1f}"
        grid.add_row(check.name, check.library, radius, str(check.smaller), seconds)
        notes.setdefault(check.note, []).append(check.name)
    lines = [note if len(notes) == 1 else f"{', '.join(names)}: {note}" for note, names in notes.items()]
    grid.caption = "\n".join(["smaller: points where it beats our attack; none is below a proof", *lines])
    grid.caption_justify = "left"
    return grid


def rounded_down(radius: float, digits: int = 4) -> str:
    """Never more than it is: 0.70707 is 0.707."""
    return f"{float(Context(digits, ROUND_FLOOR).create_decimal(radius)):.{digits}g}"


def rounded_up(radius: float, digits: int = 4) -> str:
    """Never less than it is."""
    return f"{float(Context(digits, ROUND_CEILING).create_decimal(radius)):.{digits}g}"


def percent_down(share: float) -> str:
    """Never more than it is: 0.99999 is 99.9 %."""
    return f"{math.floor(1000 * share + 1e-9) / 10:g} %"


def percent_up(share: float) -> str:
    """Never less than it is."""
    return f"{math.ceil(1000 * share - 1e-9) / 10:g} %"
