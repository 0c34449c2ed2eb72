"""An evaluation as it goes: a bar with points, time left and the median gap, and a Ctrl-C that keeps what is done."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from polyrelu.interrupt import CtrlC
from polyrelu.robust import Bracket, relative_gaps
from polyrelu.workflows.evaluate.checkpoints import SIZE
from polyrelu.workflows.flow.progress import Watched

PATIENCE = 10  # seconds that Ctrl-C leaves the points under way


class EvaluationLive(Watched):
    """Progress on stderr (a terminal, or nothing is shown) and a way to stop.

    The first Ctrl-C ends the evaluation when the part under way is finished and on disk, or dropped because it took
    longer than PATIENCE; a second one at once.
    Finished parts are kept either way, and ``again`` is the command that goes on from there.
    """

    def __init__(self, quiet: bool, again: str) -> None:
        finishing = f"finishing the points under way ({SIZE} at most), dropping them after {PATIENCE} s"
        super().__init__(quiet, CtrlC(self.kept, finishing))
        self.since = math.inf  # when Ctrl-C was first seen
        self.ctrl_c.waits = False  # while net and data are read
        self.total = self.done = 0
        self.again = again
        self.gaps: list[float] = []

    def kept(self) -> str:
        """How many points are on disk, and the command."""
        kept = f"{self.done} of {self.total} points are kept" if self.total else "nothing was done yet"
        return f"interrupted; {kept}. Go on with: {self.again}"

    @property
    def inner(self) -> EvaluationLive:
        """What `polyrelu.robust.bracketing.bracket` reports to within a part."""
        return self

    def begin(self, total: int, done: int) -> None:
        """Show the bar; points done before do not count for the time left."""
        self.total, self.done = total, done
        if self.shown:
            self.bar = _bar()
            self.line = self.bar.add_task("points", total=total, completed=done, numbers="")
            self.bar.start()
        self.ctrl_c.waits = done < total

    def part(self, bracket: Bracket) -> None:
        """A part is done and on disk; stop here if that was asked."""
        self.done += len(bracket)
        self.gaps += relative_gaps(bracket).tolist()
        if self.bar is not None:
            numbers = f"median gap {100 * float(np.median(self.gaps)):.2g} %"
            self.bar.update(self.line, completed=self.done, numbers=numbers)
        self.ctrl_c.answer()

    def update(self, done: int = 0, **_: object) -> None:
        """Within a part: so many of its points are done. They are not on disk: whoever stops here drops them."""
        if self.ctrl_c.asked:
            self.since = min(self.since, time.monotonic())
            if time.monotonic() - self.since >= PATIENCE:
                self.ctrl_c.answer()
        if self.bar is not None:
            self.bar.update(self.line, completed=min(self.done + int(done), self.total))

    def saving(self) -> None:
        """The results are being written: nothing is lost by ending here, for all parts are on disk."""
        self.ctrl_c.waits = False
        if self.bar is not None:
            self.bar.update(self.line, numbers="drawing and writing the results")

    def checking(self) -> None:
        """The cross-check can be left anywhere: everything else is written."""
        if self.bar is not None:
            self.bar.update(self.line, numbers="attacks of other libraries")


def _bar() -> Any:
    """Points done, time left and the gap; it vanishes when the evaluation ends."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Left

    columns = (
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("points"),
        TextColumn("{task.fields[numbers]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        Left(),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=600)
