"""An inspection as it goes: one line that says what is being measured, and a Ctrl-C that does not wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polyrelu.interrupt import CtrlC
from polyrelu.workflows.flow import progress as live

if TYPE_CHECKING:
    from typing_extensions import Self


class InspectionLive(live.Watched):
    """Progress on stderr (a terminal, or nothing is shown), and a way to stop; every file is whole at any time."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet, CtrlC(self.kept))
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

    def doing(self, what: str) -> None:
        """This is being measured or drawn now."""
        self.now, self.begun = what, True
        if self.bar is not None:
            self.bar.update(self.line, numbers=what)

    def kept(self) -> str:
        """What was being done, and what there is."""
        kept = f"{len(self.pictures)} picture files and inspection.json are kept" if self.begun else "nothing was done"
        return f"interrupted while {self.now.split(' (')[0]}; {kept}. Run the same command again."

    def drawn(self, name: str) -> None:
        """This picture is there."""
        self.pictures.append(name)
