"""An evaluation on a terminal. Numbers are rounded so that they stay true: proofs down, attacks up."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table as Grid
from rich.text import Text

from polyrelu.robust import BracketStatus
from polyrelu.workflows.evaluate.table import EvaluationTable

if TYPE_CHECKING:
    from polyrelu.workflows.evaluate.run import Evaluation


def evaluation_tables(result: Evaluation) -> list[Grid | Text]:
    """The heading, accuracies by radius where there are any, the whole, and the cross-check if there was one."""
    table = result.table
    shown: list[Grid | Text] = [Text(result.title, style="bold")]
    shown += [by_radius(table)] if table.lines else []
    return [*shown, overall(table), *([peers(result)] if result.checks else [])]


def by_radius(table: EvaluationTable) -> Grid:
    """Certified and attacked accuracy at each radius."""
    marked = any(line.mark for line in table.lines)
    grid = Grid(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("radius", "certified", "attacked", "unproven"):
        grid.add_column(name, justify="right", no_wrap=True)
    if marked:
        grid.add_column("theory")
    for line in table.lines:
        cells = [f"{line.radius:.4g}", down(line.certified), up(line.attacked), up(line.attacked - line.certified)]
        grid.add_row(*cells, *([line.mark] if marked else []))
    return grid


def overall(table: EvaluationTable) -> Grid:
    """Clean accuracy, median radius, largest gap, and how the points went."""
    grid = Grid.grid(padding=(0, 3, 0, 0))
    low, high = table.median.lower, table.median.upper
    above = at_most(high) if math.isfinite(high) else "beyond what was found"
    median = f"{at_least(low)} proven, {above} attacked" if math.isfinite(low) else "infinite, proven"
    grid.add_row("clean accuracy", down(table.clean))
    grid.add_row("median radius", median)
    gap = f"{at_most(100 * table.gap, digits=2)} % (row {table.gap_row})" if table.gap else "none"
    grid.add_row("largest relative gap", gap)
    for name, count in table.status.items():
        grid.add_row(f"{name.lower()} points", f"{count}: {BracketStatus[name].value}")
    return grid


def peers(result: Evaluation) -> Grid:
    """The attacks of other libraries beside ours."""
    grid = Grid(box=SIMPLE_HEAD, pad_edge=False, title="Attacks of other libraries", title_justify="left")
    for name in ("attack", "library", "median radius", "smaller", "seconds"):
        grid.add_column(name, justify="left" if name in ("attack", "library") else "right", no_wrap=True)
    notes: dict[str, list[str]] = {}
    for check in result.checks:
        numbers = (f"{check.median_radius:.4g}", str(check.smaller), f"{check.seconds:.1f}")
        grid.add_row(check.name, check.library, *numbers)
        notes.setdefault(check.note, []).append(check.name)
    lines = [note if len(notes) == 1 else f"{', '.join(names)}: {note}" for note, names in notes.items()]
    grid.caption, grid.caption_justify = (
        "\n".join(["smaller: points where it beats our attack; none is below a proof", *lines]),
        "left",
    )
    return grid


def at_least(radius: float, digits: int = 4) -> str:
    """Never more than it is: 0.70707 is 0.707."""
    return f"{float(Context(digits, ROUND_FLOOR).create_decimal(radius)):.{digits}g}"


def at_most(radius: float, digits: int = 4) -> str:
    """Never less than it is."""
    return f"{float(Context(digits, ROUND_CEILING).create_decimal(radius)):.{digits}g}"


def down(share: float) -> str:
    """Never more than it is: 0.99999 is 99.9 %."""
    return f"{math.floor(1000 * share + 1e-9) / 10:g} %"


def up(share: float) -> str:
    """Never less than it is."""
    return f"{math.ceil(1000 * share - 1e-9) / 10:g} %"
