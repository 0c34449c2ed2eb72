"""An inspection as it goes: one line that says what is being measured, and a Ctrl-C that stops at once."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from polyrelu.runs import live


class InspectionLive:
    """Progress on stderr (a terminal, or nothing is shown). Every file is whole, so Ctrl-C may come at any time."""

    def __init__(self, quiet: bool) -> None:
        self.shown = not quiet and sys.stderr.isatty()
        self.ctrl_c = live.CtrlC("", "")
        self.ctrl_c.at_once = True
        self.now = "reading the net and the data"
        self.begun = False
        self.pictures: list[str] = []
        self.bar: Any = None

    def __enter__(self) -> InspectionLive:
        self.ctrl_c.__enter__()
        if self.shown:
            self.bar = live._bar()
            self.line = self.bar.add_task("inspect", total=None, numbers=self.now)
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self.ctrl_c.__exit__(kind, error, trace)

    def close(self) -> None:
        """Take the line away."""
        if self.bar is not None:
            self.bar.stop()

    def doing(self, what: str) -> None:
        """This is being measured or drawn now."""
        self.now, self.begun = what, True
        if self.bar is not None:
            self.bar.update(self.line, numbers=what)

    def drawn(self, name: str) -> None:
        """This picture is there."""
        self.pictures.append(name)
