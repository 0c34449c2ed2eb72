"""An inspection as it goes: one line that says what is being measured, and a Ctrl-C that hardly waits."""

from __future__ import annotations

import time
from types import FrameType
from typing import TYPE_CHECKING

from polyrelu.runs import live

if TYPE_CHECKING:
    from typing_extensions import Self


class StopSoon(live.CtrlC):
    """Stops a measurement at once, a picture when it is drawn: inside the drawing library an exception may get lost."""

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.at_once:
            self.asked = time.monotonic()  # remembered, should a measurement take it for a failure of its own
            raise KeyboardInterrupt
        super()._interrupt(number, frame)


class InspectionLive(live.Watched):
    """Progress on stderr (a terminal, or nothing is shown), and a way to stop; every file is whole at any time."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet, StopSoon("stopping when this picture is drawn", "stopped; finished pictures are kept"))
        self.ctrl_c.at_once = True
        self.now = "reading the net and the data"
        self.begun = False
        self.pictures: list[str] = []

    def __enter__(self) -> Self:
        super().__enter__()
        if self.shown:
            self.bar = live._bar()
            self.line = self.bar.add_task("inspect", total=None, numbers=self.now)
            self.bar.start()
        return self

    def doing(self, what: str, drawing: bool = False) -> None:
        """This is being measured or drawn now; stop here if that was asked."""
        self.ctrl_c.at_once = not drawing
        self.ctrl_c.answer()
        self.now, self.begun = what, True
        if self.bar is not None:
            self.bar.update(self.line, numbers=what)

    def state(self) -> str:
        """What was being done, and what there is."""
        kept = f"{len(self.pictures)} picture files and inspection.json are kept" if self.begun else "nothing was done"
        return f"{self.now.split(' (')[0]}; {kept}"

    def drawn(self, name: str) -> None:
        """This picture is there."""
        self.pictures.append(name)
