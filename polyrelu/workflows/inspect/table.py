"""Rows of an inspection's table, numbers in words that stay true when they are rounded, and the table on a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from rich.box import SIMPLE_HEAD
from rich.table import Table as Grid

from polyrelu.workflows.records import plain

MEASURED, DOES_NOT_APPLY, FAILED = "measured", "does not apply", "failed"
NOTHING = "–"


@final
@dataclass(frozen=True)
class Measurement:
    """One measurement: its value as shown, a clause about it that becomes a sentence, and the numbers behind both."""

    name: str
    value: str
    words: str
    numbers: Mapping[str, Any] = field(default_factory=dict)
    status: str = MEASURED

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", sentence(self.words))

    def as_json(self) -> dict[str, Any]:
        """Plain values; null stands for what is infinite or undefined."""
        return {
            "measurement": self.name,
            "status": self.status,
            "value": self.value,
            "words": self.words,
            "numbers": plain(self.numbers),
        }


def does_not_apply(name: str, why: str) -> Measurement:
    """What cannot be measured of this net or these data, and why."""
    return Measurement(name, NOTHING, why, status=DOES_NOT_APPLY)


def fields_of(record: object, *names: str) -> dict[str, Any]:
    """Some of its fields, by name."""
    return {name: getattr(record, name) for name in names}


def inspection_table(rows: list[Measurement]) -> Grid:
    """The table: what does not apply is dim."""
    table = Grid(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("measurement", max_width=24)
    table.add_column("value", max_width=30)
    table.add_column("in plain words", ratio=1)
    for row in rows:
        table.add_row(row.name, row.value, row.words, style=None if row.status == MEASURED else "dim")
    return table


def short(value: float) -> str:
    """Three digits."""
    if not math.isfinite(value):
        return "undefined" if math.isnan(value) else "infinite"
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.3g}"


def unit(value: float) -> str:
    """A number between 0 and 1 with three decimals; 0 and 1 only for what is 0 or 1 to rounding."""
    if math.isnan(value):
        return "undefined"
    if value <= 1e-12 or value >= 1 - 1e-12:
        return f"{value:.0f}"
    return "under 0.001" if value < 0.001 else "over 0.999" if value > 0.999 else f"{value:.3f}"


def cosine(value: float) -> str:
    """Four decimals; 1.0000 only for what is 1 to rounding."""
    return f"{math.copysign(min(abs(value), 0.9999), value):.4f}" if abs(value) < 1 - 1e-12 else f"{value:.4f}"


def at_most(value: float) -> str:
    """Three digits, never less than the value."""
    return short(-_down(-value))


def at_least(value: float) -> str:
    """Three digits, never more than the value."""
    return short(_down(value))


def _down(value: float) -> float:
    if not math.isfinite(value) or value == 0:
        return value
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    return math.floor(value / step + 1e-9) * step


def counted(count: int, noun: str) -> str:
    """``1 neuron``, ``2 neurons``."""
    return f"{count:,} {noun}" + ("s" if count != 1 else "")


def of(part: int, whole: int, noun: str) -> str:
    """``all 10 centres``, ``none of the 10 centres``, ``3 of the 10 centres``; ``the one centre``, ``no centre``."""
    if whole == 1:
        return f"the one {noun}" if part else f"no {noun}"
    return f"all {whole:,} {noun}s" if part == whole else f"{f'{part:,}' if part else 'none'} of the {whole:,} {noun}s"


def sentence(text: str) -> str:
    """With a full stop and a capital letter (but for the name of an argument, as in ``net=MLP: expected ..``)."""
    named = "=" in text.split(" ")[0]
    return (text[:1] if named else text[:1].upper()) + text[1:].rstrip(".") + "."
