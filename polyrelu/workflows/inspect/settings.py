"""Everything that decides an inspection, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from polyrelu.errors import require
from polyrelu.workflows.records import to_argv


@final
@dataclass(frozen=True)
class InspectionSettings:
    """What is inspected, as typed; ``limit``: only the first so many rows."""

    net: str
    data: str
    trajectory: str | None = None
    limit: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Check all that needs neither the net nor the data."""
        require(self.seed >= 0, "seed", self.seed, "a whole number >= 0")
        require(self.limit is None or self.limit >= 2, "limit", self.limit, "a whole number >= 2")

    def command(self, out: str) -> str:
        """The command that makes this inspection again."""
        options = {"trajectory": self.trajectory, "limit": self.limit, "seed": self.seed}
        return to_argv("inspect", self.net, self.data, **options, out=out)
