"""A run as it goes: one line that stays where it is, and a Ctrl-C that waits for the step under way."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time as clock
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

LN10 = 2.302585092994046
TWICE = 1.0  # seconds within which a second Ctrl-C is a nervous finger, not a wish


class CtrlC:
    """Ctrl-C that waits: the first one is a wish, answered where everything fits together; a second one gives up.

    ``answer()`` is that place: it raises KeyboardInterrupt if the wish was there. A second Ctrl-C, a second later, ends
    the program at once with exit code 130. Both say what they do.
    """

    def __init__(self, first: str, second: str) -> None:
        self.first, self.second = first, second
        self.at_once = False  # nothing is lost by stopping anywhere
        self.asked: float | None = None
        self.before: Any = None

    def __enter__(self) -> CtrlC:
        self.before = self._on_interrupt(self._interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._on_interrupt(self.before)

    def answer(self) -> None:
        """Stop here, if that was asked."""
        if self.asked is not None:
            raise KeyboardInterrupt

    def ignore(self) -> None:
        """From here on Ctrl-C waits for the end."""
        self._on_interrupt(signal.SIG_IGN)

    def _on_interrupt(self, handler: Any) -> Any:
        """Install a handler of Ctrl-C and return the one before; only the main thread may."""
        main = threading.current_thread() is threading.main_thread()
        return signal.signal(signal.SIGINT, handler) if main and handler is not None else None

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.at_once:
            raise KeyboardInterrupt
        if self.asked is None:
            self.asked = clock.monotonic()
            _say(self.first)
        elif clock.monotonic() - self.asked > TWICE:
            _say(self.second)
            raise SystemExit(130)


class Watched:
    """A block of work under a Ctrl-C that waits, with perhaps a bar, which vanishes at the end."""

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
    it has. A second one, a second later, gives up at once with exit code 130: nothing is saved, nothing half-written.
    """

    def __init__(self, label: str, quiet: bool) -> None:
        first = "finishing the step under way, then saving; Ctrl-C again gives up without saving"
        super().__init__(quiet, CtrlC(first, "given up; nothing of this run was saved"))
        self.label = label

    def __enter__(self) -> Self:
        super().__enter__()
        if self.shown:
            self.bar = _bar()
            self.line = self.bar.add_task(self.label, total=None, numbers="first pass over the data")
            self.bar.start()
        return self

    def saving(self) -> None:
        """From here on Ctrl-C waits: a net without its history is of no use."""
        self.ctrl_c.ignore()
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


def _say(message: str) -> None:
    """Straight to the terminal: inside a signal handler the buffered stream may be in use."""
    with contextlib.suppress(OSError):
        os.write(2, f"\npolyrelu: {message}\n".encode())


def _bar() -> Any:
    """A spinner, the label, the numbers and the time elapsed; it vanishes when the run ends."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.fields[numbers]}"))
    return Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
