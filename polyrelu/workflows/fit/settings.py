"""Everything that decides a fit, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

from polyrelu.errors import require
from polyrelu.workflows.records import to_argv


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
        from polyrelu.data import TABLE_SUFFIXES

        data, out = self.data, str(self.out)
        file = Path(data).suffix.lower() in TABLE_SUFFIXES
        rows = self.test or (f"{data}:test" if file else data)
        seen = "" if file or self.test else "  # rows it was trained on are among them"
        return [
            to_argv("evaluate", out, rows, limit=500, out="out/head") + seen,
            to_argv("predict", out, data, "--radius", "-o", "predictions.csv"),
            to_argv("diagnose", data, "--model", out, "-o", "diagnosis.html"),
        ]
