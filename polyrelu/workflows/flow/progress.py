"""A run as it goes: one line that stays where it is, and a Ctrl-C that waits for the step under way."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

from polyrelu.interrupt import CtrlC

if TYPE_CHECKING:
    from typing_extensions import Self

LN10 = 2.302585092994046


class Watched:
    """A block of work with its Ctrl-C and perhaps a bar, which vanishes at the end."""

    def __init__(self, quiet: bool, ctrl_c: CtrlC) -> None:
        self.shown, self.ctrl_c = not quiet and sys.stderr.isatty(), ctrl_c
        self.bar: Any = None

    def __enter__(self) -> Self:
        self.ctrl_c.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self.ctrl_c.__exit__(kind, error, trace)

    def close(self) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.stop()


class Live(Watched):
    """Progress of one run on stderr (a terminal, or nothing is shown), and its way to stop.

    The first Ctrl-C ends the run after the step under way, where everything fits together; ``flow`` then returns what
    it has. A second one gives up at once: nothing is saved, and what was in the folder before is as it was.
    """

    def __init__(self, label: str, quiet: bool) -> None:
        given_up = "given up; nothing of this run was saved, and the same command begins anew"
        super().__init__(quiet, CtrlC(lambda: given_up, "finishing the step under way, then saving"))
        self.label = label

    def __enter__(self) -> Self:
        super().__enter__()
        if self.shown:
            self.bar = _bar()
            self.line = self.bar.add_task(self.label, total=None, numbers="first pass over the data")
            self.bar.start()
        return self

    def saving(self) -> None:
        """The net and its history are being written."""
        if self.bar is not None:
            self.bar.update(self.line, numbers="saving")

    def update(self, *, time: float, log_loss: float, evaluations: float, neurons: int) -> None:
        """Show where the flow is (``polyrelu.train.Progress``), and stop it here if that was asked."""
        if self.bar is not None:
            numbers = (
                f"time {time:.4g}  log10 loss {log_loss / LN10:.2f}  {evaluations:.0f} passes  {neurons} travelling"
            )
            self.bar.update(self.line, numbers=numbers)
        self.ctrl_c.answer()


def _bar() -> Any:
    """A spinner, the label, the numbers and the time elapsed; it vanishes when the run ends."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.fields[numbers]}"))
    return Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
