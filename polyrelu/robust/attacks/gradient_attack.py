"""What attacks that walk down a loss from several starts have in common."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from polyrelu.checks import whole_number
from polyrelu.robust.attacks.contract import Attack
from polyrelu.robust.attacks.losses import Loss
from polyrelu.robust.attacks.starts import Anchor, Start
from polyrelu.robust.attacks.task import AttackTask


class GradientAttack(Attack):
    """First base of an attack, whose dataclass has these fields."""

    steps: int
    loss: Loss
    starts: tuple[Start, ...]

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        whole_number("starts", len(self.starts))

    @property
    def targeted(self) -> bool:
        """As the loss is."""
        return self.loss.targeted

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """Those of the starts."""
        return chain.from_iterable(start.anchors(task) for start in self.starts)
