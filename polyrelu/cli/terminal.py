"""Progress on stderr: a bar or a spinner that vanishes at the end; in a log a line every ten seconds; and Ctrl-C."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from polyrelu.interrupt import PLAIN, CtrlC
from polyrelu.progress import FinishedTask, Progress

LOG_INTERVAL = 10.0  # seconds between two lines of a log
ROWS, WIDE = 8, 90  # of the table of tasks under way


class TerminalProgress(Progress):
    """The one view of all commands, and what Ctrl-C means while they run.

    The first Ctrl-C stops the work in ``update`` or ``keep`` where something is to be finished, else at once.

    kept : what an interruption leaves until ``keep`` says more
    noun, resume : what tasks that run at the same time are called, and the command that goes on with them
    """

    def __init__(self, quiet: bool, kept: str = PLAIN, *, noun: str = "", resume: str = "") -> None:
        self.shown = not quiet and sys.stderr.isatty()
        self.logged = not quiet and not self.shown
        self.resume, self.noun = resume, noun
        self.message = f"interrupted; nothing was done yet. Go on with: {resume}" if resume else kept
        self.ctrl_c = CtrlC(lambda: self.message)
        self.patience, self.interrupted = 0.0, math.inf  # seconds, and when the first Ctrl-C was seen
        self.bar: Any = None
        self.running: dict[str, tuple[str, float]] = {}
        self._begin("", None, 0, 0)

    def _begin(self, what: str, total: int | None, done: int, failed: int) -> None:
        self.what, self.total, self.done, self.failed, self.before = what, total, done, failed, done + failed
        self.began = self.last = time.monotonic()
        self.numbers: Mapping[str, Any] = {}

    def __enter__(self) -> TerminalProgress:
        self.ctrl_c.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        self.ctrl_c.__exit__(kind, error, trace)

    def stage(self, what: str, total: int | None = None, done: int = 0, failed: int = 0) -> None:
        """Show a new bar; what was done before does not count for the time left."""
        self._close()
        self._begin(what, total, done, failed)
        if self.resume:
            self._keep_tasks()
        if self.shown:
            self.bar = _bar(total is not None, self.running)
            self.line = self.bar.add_task(what, total=total, completed=done + failed, text="")
            self.bar.start()

    def update(self, done: float | None = None, **numbers: Any) -> None:
        """Show how far it is; stop here if that was asked for and is waited for."""
        self.done = self.done if done is None else int(done)
        self.numbers = numbers or self.numbers
        now = time.monotonic()
        if self.bar is not None:
            self.bar.update(self.line, completed=self.done + self.failed, text=self.text(now))
        elif self.logged and now - self.last >= LOG_INTERVAL:
            self.last = now
            what = self.what if self.total is None else ""
            print(f"polyrelu: {_joined((what, self.text(now)), ': ')}", file=sys.stderr, flush=True)
        if self.ctrl_c.waits and self.ctrl_c.asked:
            self.interrupted = min(self.interrupted, now)
            if now - self.interrupted >= self.patience:
                self.ctrl_c.answer()

    def started(self, key: str, settings: Mapping[str, Any]) -> None:
        """It is waited for."""
        self.running[key] = (describe(settings), time.monotonic())
        self._keep_tasks()

    def finished(self, task: FinishedTask) -> None:
        """It is kept."""
        self.running.pop(task.key, None)
        self.done += not task.failed
        self.failed += task.failed
        self._keep_tasks()

    def keep(self, message: str, finishing: str = "", patience: float = 0.0) -> None:
        """Take the new meaning of Ctrl-C, and stop here if it was pressed and waited for."""
        self.message = message
        if self.ctrl_c.waits:
            self.ctrl_c.answer()
        self.ctrl_c.finishing, self.ctrl_c.waits, self.patience = finishing, bool(finishing), patience

    def text(self, now: float) -> str:
        """``12 of 75 done, 1 failed, 2 running, 30 a minute, 2 min left``, or the numbers alone."""
        numbers = numbers_text(self.numbers)
        if self.total is None:
            return _joined((f"{self.done}" if self.done else "", numbers), "  ")
        tasks = [f"{self.failed} failed", f"{len(self.running)} running"] if self.resume else []
        parts = [f"{self.done} of {self.total} done", *tasks, numbers]
        finished, elapsed = self.done + self.failed - self.before, max(now - self.began, 1e-9)
        if finished > 0:
            left = (self.total - self.done - self.failed) * elapsed / finished
            parts += [_rate(finished / elapsed), f"{_duration(left)} left"]
        return _joined(parts, ", ")

    def _close(self) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def _keep_tasks(self) -> None:
        """Finished tasks are kept, and those under way are waited for."""
        self.message = f"interrupted; {self.done} of {self.total} {self.noun} are kept. Go on with: {self.resume}"
        self.ctrl_c.finishing = f"finishing the {self.noun} under way, then stopping"
        self.ctrl_c.waits = bool(self.running)


def _bar(steps: bool, running: Mapping[str, tuple[str, float]]) -> Any:
    """A bar where the number of steps is known, else a spinner and the time; under it the tasks that run."""
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress
    from rich.table import Table
    from rich.text import Text

    class Bar(RichProgress):
        """Redrawn by a thread of its own."""

        def get_renderables(self) -> Any:
            yield self.make_tasks_table(self.tasks)
            rows, now = Table.grid(padding=(0, 2)), time.monotonic()
            for text, since in list(running.values())[:ROWS]:
                rows.add_row(Text(f"{now - since:6.0f} s", style="cyan"), Text(text, overflow="ellipsis", no_wrap=True))
            if running:
                yield rows

    columns: list[ProgressColumn] = [TextColumn("{task.description}"), TextColumn("{task.fields[text]}")]
    columns = [BarColumn(bar_width=24), *columns] if steps else [SpinnerColumn(), *columns, TimeElapsedColumn()]
    return Bar(*columns, console=Console(stderr=True), transient=True)


def numbers_text(numbers: Mapping[str, Any]) -> str:
    """What is known of a training or an evaluation, in the words of the field; texts as they are."""
    parts = []
    if "log_loss" in numbers and numbers.get("neurons"):
        parts = [
            f"time {numbers['time']:.4g}",
            f"log10 loss {numbers['log_loss'] / math.log(10):.2f}",
            f"{numbers['evaluations']:.0f} passes",
            f"{numbers['neurons']} active neurons",
        ]
    elif "log_loss" in numbers:
        parts = [f"{numbers['evaluations']:.1f} passes", f"loss {math.exp(min(numbers['log_loss'], 700.0)):.3g}"]
    if "median_gap" in numbers:
        parts.append(f"median gap {100 * numbers['median_gap']:.2g} %")
    return _joined([*parts, *(value for value in numbers.values() if isinstance(value, str))], "  ")


def describe(settings: Mapping[str, Any]) -> str:
    """``p=3 alpha=0.1 seed=0``, cut where a line ends."""
    text = " ".join(f"{name}={value}" for name, value in settings.items() if value not in ("", None, {}, []))
    return text if len(text) <= WIDE else text[: WIDE - 1] + "…"


def _joined(parts: Any, separator: str) -> str:
    return separator.join(part for part in parts if part)


def _rate(per_second: float) -> str:
    return f"{per_second:.1f} a second" if per_second >= 1 else f"{60 * per_second:.1f} a minute"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
