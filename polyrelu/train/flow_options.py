"""What `flow` was asked for, as the ways to integrate it take it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polyrelu.data import Dataset
from polyrelu.progress import Progress
from polyrelu.train.stopping import Until

if TYPE_CHECKING:
    from polyrelu.train.gradient_flow.polar_state import PolarState

Watch = Callable[[dict[str, Any], "PolarState"], None]  # called with every moment as it is recorded, and all neurons


@dataclass(frozen=True, eq=False)
class FlowOptions:
    """The arguments of `flow`, checked; it explains them."""

    data: Dataset
    loss: str
    until: Until
    rtol: float
    record: Sequence[float]
    checkpoints: Sequence[float]
    surrogate: int
    merge: bool
    drop: bool
    max_evaluations: float
    progress: Progress
    watch: Watch | None
