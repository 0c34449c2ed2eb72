"""Fitting and predicting as they go: one line that stays where it is, and a Ctrl-C that leaves nothing half-written."""

from __future__ import annotations

import math
from typing import Any

from polyrelu.interrupt import CtrlC
from polyrelu.workflows.fit.fit import NOTHING
from polyrelu.workflows.flow.progress import Watched

ONE = 1 - 1e-6  # a whole pass, summed batch by batch


class HeadsLive(Watched):
    """Progress on stderr (a terminal, or nothing is shown), and what Ctrl-C means just now."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet, CtrlC(lambda: self.left))
        self.left = NOTHING
        self.line: Any = None

    def kept(self, left: str, finishing: str = "") -> None:
        """From here on Ctrl-C leaves this, after ``finishing`` what can be kept; without it, it waits for nothing."""
        self.left, self.ctrl_c.finishing, self.ctrl_c.waits = left, finishing, bool(finishing)

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
        """``done`` of a total, or passes and loss of a training; stop here if that was asked and is waited for."""
        if numbers.get("evaluations", 0.0) > ONE and not self.ctrl_c.waits:
            self.kept(NOTHING, "keeping the head of the last whole pass")
        if self.ctrl_c.waits:
            self.ctrl_c.answer()
        if self.bar is None:
            return
        if "done" in numbers:
            self.bar.update(self.line, completed=numbers["done"], numbers=f"{numbers['done']}")
        else:
            loss = math.exp(min(numbers["log_loss"], 700.0))
            self.bar.update(self.line, numbers=f"{numbers['evaluations']:.1f} passes  loss {loss:.3g}")


def _bar() -> Any:
    """What is done, the numbers and the time elapsed; it vanishes at the end."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.fields[numbers]}"))
    return Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
