"""A published figure drawn again, from the results of the claims it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from polyrelu.claims import Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Results = Mapping[str, Sequence[Outcome]]  # by the name of the experiment, "module.function"
Run = Mapping[str, Any]  # the data of one run of an experiment, by name


@final
@dataclass(frozen=True)
class PaperFigure:
    """``draw(results)`` makes it from the experiments of ``claims``; ``id`` is what --only takes."""

    id: str
    title: str
    paper: str
    caption: str
    claims: tuple[str, ...]
    draw: Callable[[Results], Figure]
