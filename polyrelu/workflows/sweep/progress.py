"""A sweep as it goes: what is done, running and failed, how fast and how long still; a line now and then in a log."""

from __future__ import annotations

import sys
import time as clock
from collections.abc import Mapping
from typing import Any

from polyrelu.interrupt import CtrlC
from polyrelu.sweep import Record
from polyrelu.workflows.flow.progress import Watched

FRAME = 0.25  # seconds between two pictures of the table
LINE = 10.0  # seconds between two lines of a log
ROWS, WIDE = 8, 90  # of the table of what is running


class SweepLive(Watched):
    """Progress on stderr (a table on a terminal, else a line every ten seconds) and a way to stop.

    The first Ctrl-C ends the sweep when the settings under way are finished and on disk; a second one at once. Finished
    settings are kept either way, and ``again`` is the command that goes on from there.
    """

    def __init__(self, quiet: bool, again: str = "the same command", what: str = "settings") -> None:
        super().__init__(quiet, CtrlC(self.kept, f"finishing the {what} under way, then stopping"))
        self.ctrl_c.waits = False  # nothing is under way yet
        self.again, self.what = again, what
        self.logged = not quiet and not self.shown
        self.total = self.done = self.failed = self.before = 0
        self.running: dict[str, tuple[str, float]] = {}
        self.began = self.last = clock.monotonic()

    def begin(self, total: int, done: int, failed: int) -> None:
        """Show the table; what was done before does not count for the time left."""
        self.total, self.done, self.failed, self.before = total, done, failed, done + failed
        self.began = self.last = clock.monotonic()
        if self.shown:
            from rich.console import Console
            from rich.live import Live

            self.bar = Live(console=Console(stderr=True), transient=True, auto_refresh=False)
            self.bar.start()

    def kept(self) -> str:
        """How many settings are on disk, and the command."""
        kept = f"{self.done} of {self.total} {self.what} are kept" if self.total else "nothing was done yet"
        return f"interrupted; {kept}. Go on with: {self.again}"

    def started(self, key: str, settings: Mapping[str, Any]) -> None:
        """A worker has this setting now."""
        self.running[key] = (describe(settings), clock.monotonic())
        self.ctrl_c.waits = True

    def finished(self, record: Record) -> None:
        """It is on disk."""
        self.running.pop(record.key, None)
        self.ctrl_c.waits = bool(self.running)
        self.done += not record.failed
        self.failed += record.failed

    def tick(self) -> None:
        """Show where the sweep is, if it is time to; stop here if that was asked."""
        now = clock.monotonic()
        if self.bar is not None and now - self.last >= FRAME:
            self.last = now
            self.bar.update(self._table(now), refresh=True)
        elif self.logged and now - self.last >= LINE:
            self.last = now
            print(f"polyrelu: {self.line(now)}", file=sys.stderr, flush=True)
        self.ctrl_c.answer()

    def line(self, now: float) -> str:
        """``12 of 75 done, 1 failed, 2 running, 30 a minute, 2 min left``."""
        finished, elapsed = self.done + self.failed - self.before, max(now - self.began, 1e-9)
        parts = [f"{self.done} of {self.total} done", f"{self.failed} failed", f"{len(self.running)} running"]
        if finished:
            left = (self.total - self.done - self.failed) * elapsed / finished
            parts += [_rate(finished / elapsed), f"{_duration(left)} left"]
        return ", ".join(parts)

    def _table(self, now: float) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        head = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=max(self.total, 1), completed=self.done + self.failed, width=24)
        head.add_row(bar, Text(self.line(now), style="red" if self.failed else ""))
        rows = Table.grid(padding=(0, 2))
        for text, since in list(self.running.values())[:ROWS]:
            rows.add_row(Text(f"{now - since:6.0f} s", style="cyan"), Text(text, overflow="ellipsis", no_wrap=True))
        return Group(head, rows)


def describe(settings: Mapping[str, Any]) -> str:
    """``p=3 alpha=0.1 seed=0``, cut where a line ends."""
    text = " ".join(f"{name}={value}" for name, value in settings.items() if value not in ("", None, {}, []))
    return text if len(text) <= WIDE else text[: WIDE - 1] + "…"


def _rate(per_second: float) -> str:
    return f"{per_second:.1f} a second" if per_second >= 1 else f"{60 * per_second:.1f} a minute"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
