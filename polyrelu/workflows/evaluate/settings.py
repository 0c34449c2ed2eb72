"""Everything that decides an evaluation, as plain values, refused before anything heavy is imported."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, final

from polyrelu.errors import InputError, require
from polyrelu.workflows.records import text, to_argv


@final
@dataclass(frozen=True)
class EvaluationSettings:
    """What is evaluated (``net`` and ``data`` as typed), how hard, and at which radii the table looks.

    ``p`` says that ``net`` is a checkpoint of the published code, which does not hold its power. ``nodes`` and
    ``seconds`` are the budget of one point. ``radii``, ``limit`` and ``cross_check`` change what is shown
    of the points, or how many there are, never the numbers of one of them.
    """

    net: str
    data: str
    norm: str = "2"
    tol: float = 1e-3
    nodes: int = 300
    seconds: float | None = None
    seed: int = 0
    limit: int | None = None
    radii: tuple[float, ...] = ()
    cross_check: bool = False
    p: float | None = None

    def __post_init__(self) -> None:
        """Check all that needs neither the net nor the data."""
        require(0 < self.tol < 1, "tol", self.tol, "a number between 0 and 1")
        require(self.nodes >= 1, "budget-nodes", self.nodes, "a whole number >= 1")
        good = self.seconds is None or (self.seconds > 0 and math.isfinite(self.seconds))
        require(good, "budget-seconds", self.seconds, "a finite number > 0")
        require(self.seed >= 0, "seed", self.seed, "a whole number >= 0")
        require(self.limit is None or self.limit >= 1, "limit", self.limit, "a whole number >= 1")
        for radius in self.radii:
            require(radius >= 0 and math.isfinite(radius), "radius", radius, "finite numbers >= 0")

    def command(self, out: str) -> str:
        """The command that makes this evaluation again, every setting spelled out."""
        reference = {"reference": self.net, "p": self.p, "data": self.data}
        return to_argv(
            "evaluate",
            *([self.net, self.data] if self.p is None else []),
            **(reference if self.p is not None else {}),
            norm=self.norm,
            tol=self.tol,
            budget_nodes=self.nodes,
            budget_seconds=self.seconds,
            seed=self.seed,
            limit=self.limit,
            radius=",".join(text(radius) for radius in self.radii),
            cross_check=self.cross_check,
            out=out,
        )

    def as_json(self) -> dict[str, Any]:
        """Plain values by name."""
        return {**asdict(self), "radii": list(self.radii)}


def parse_radii(texts: list[str] | None) -> tuple[float, ...]:
    """``["0.1,0.2", "0.3"] -> (0.1, 0.2, 0.3)``: one option for each, or one for all, sorted, each once."""
    found = set()
    for part in (part.strip() for given in texts or [] for part in given.split(",")):
        try:
            found.add(float(part))
        except ValueError:
            raise InputError(f"radius={part}: expected finite numbers >= 0, such as --radius 0.1,0.2.") from None
    return tuple(sorted(found))
