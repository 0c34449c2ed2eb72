"""Fitting and predicting as they go: one line that stays where it is, and a Ctrl-C that leaves nothing half-written."""

from __future__ import annotations

import math
from typing import Any

from polyrelu.runs.live import CtrlC, Watched


class HeadsLive(Watched):
    """Progress on stderr (a terminal, or nothing is shown); the first Ctrl-C stops at the next step."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet, CtrlC("stopping; Ctrl-C again stops at once", "stopped; nothing was written"))
        self.ctrl_c.at_once = True  # files are written whole or not at all
        self.line: Any = None

    def stage(self, what: str, total: int | None) -> None:
        """``what`` begins."""
        if not self.shown:
            return
        if self.bar is None:
            self.bar = _bar()
            self.bar.start()
        elif self.line is not None:
            self.bar.remove_task(self.line)
        self.line = self.bar.add_task(what, total=total, numbers="")

    def update(self, **numbers: Any) -> None:
        """``done`` of a total, or passes and loss of a training."""
        if self.bar is None:
            return
        if "done" in numbers:
            self.bar.update(self.line, completed=numbers["done"], numbers=f"{numbers['done']}")
        else:
            loss = math.exp(min(numbers["log_loss"], 700.0))
            self.bar.update(self.line, numbers=f"{numbers['evaluations']:.0f} passes  loss {loss:.3g}")


def _bar() -> Any:
    """What is done, the numbers and the time elapsed; it vanishes at the end."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.fields[numbers]}"))
    return Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
