"""How work goes on, for whoever watches it: handed in as ``progress``; the library itself never prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, final


class FinishedTask(Protocol):
    """One of several tasks that run at the same time, after its end."""

    @property
    def key(self) -> str:
        """Its name."""

    @property
    def failed(self) -> bool:
        """Did it end with an error?"""


class Progress:
    """What long work reports; says nothing by itself. Override what is wanted.

    ``update`` and ``keep`` may stop the work by a KeyboardInterrupt: they are called where everything fits together.
    """

    def stage(self, what: str, total: int | None = None, done: int = 0, failed: int = 0) -> None:
        """``what`` begins: ``total`` steps if that is known, of which ``done`` and ``failed`` were made before."""

    def update(self, done: float | None = None, **numbers: Any) -> None:
        """``done`` steps are made (never fewer than before), and what else is known: loss, passes, neurons."""

    def started(self, key: str, settings: Mapping[str, Any]) -> None:
        """One of several tasks at the same time is under way (once more, if its worker died)."""

    def finished(self, task: FinishedTask) -> None:
        """One of several tasks has ended, and its result is on disk."""

    def keep(self, message: str, finishing: str = "", patience: float = 0.0) -> None:
        """From here on ``message`` says what an interruption leaves.

        finishing : what an interruption waits for; without it, it waits for nothing
        patience : seconds that ``update`` goes on after an interruption; the next ``keep`` stops at once
        """


@final
class PartProgress(Progress):
    """Of a part of some work: its steps are counted on from ``before``."""

    def __init__(self, whole: Progress, before: int) -> None:
        self.whole, self.before = whole, before

    def update(self, done: float | None = None, **numbers: Any) -> None:
        """The same, with ``done`` counted in the whole work."""
        self.whole.update(self.before + int(done or 0), **numbers)
