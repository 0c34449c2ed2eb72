"""Everything that decides a diagnosis, as plain values."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import final

from polyrelu.workflows.records import to_argv


@final
@dataclass(frozen=True)
class DiagnosisSettings:
    """DATA as typed, and what was asked."""

    data: str
    out: Path
    label: str | None = None
    fine: str | None = None
    model: str | None = None
    points: int = 200
    seed: int = 0

    def command(self) -> str:
        """What makes the page again."""
        points, seed = self.points if self.points != 200 else None, self.seed or None
        options = {"label": self.label, "fine": self.fine, "model": self.model, "points": points, "seed": seed}
        return f"{to_argv('diagnose', self.data, **options)} -o {shlex.quote(str(self.out))}"

    def next_commands(self, discover: bool) -> list[str]:
        """A head of one's own, and its certified predictions."""
        fit = to_argv("fit", self.data, label=self.label, fine="discover" if discover else None)
        predict = to_argv("predict", "head.safetensors", self.data, radius=True)
        return [f"{fit} -o head.safetensors", f"{predict} -o predictions.csv"]
