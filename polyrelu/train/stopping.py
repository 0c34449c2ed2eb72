"""Where a run ends: stop conditions as data, one test for all trainers, and steps shortened to end on a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from polyrelu.checks import check_fields
from polyrelu.errors import require

LN10 = math.log(10)  # natural logs per decade
LOSS_TOLERANCE = 0.01  # a run to loss L aims between 0.99 L and L (a last two-level step may be off by 2 rtol of log L)
LEAST_GAIN = 2.0  # nats of loss that one step may win, however little was won before
TIME_TOLERANCE = 1e-6  # relative error of the flow time at which a step that is cut may end


class RunPoint(Protocol):
    """A point of a run, as it is judged and recorded."""

    @property
    def tau(self) -> float:
        """The clock: loss time of a flow, steps of a descent."""

    @property
    def log_t(self) -> float:
        """Natural log of flow time."""

    @property
    def log_loss(self) -> float:
        """Natural log of the mean loss."""

    @property
    def accuracy(self) -> float:
        """Share of the training set on the right side."""

    @property
    def margin(self) -> float:
        """The smallest margin of a sample."""


class Status(Enum):
    """How a run ended; the text is the message for the person."""

    LOSS = "Reached the requested loss."
    TIME = "Reached the requested time."
    ACCURATE = "Every training point is on the right side."
    ALIGNED = "The neurons reached the requested alignment."
    STALLED = "Nothing moves any more: the gradient is zero to working precision."
    BUDGET = "Evaluation budget spent; the last state is returned. Raise max_evaluations, or go on from it."
    STEP_UNDERFLOW = "The step fell below what the clock resolves; the last state is kept. Loosen rtol or use float64."
    INTERRUPTED = "Interrupted; what was reached is kept, and the run can go on from it."
    DIVERGED = "The loss is no longer finite; the last finite state is returned. Lower the learning rate."


@dataclass(frozen=True)
class Until:
    """Stop conditions; the first one met ends the run.

    ``loss``: mean loss below, or ``log10_loss`` for one that no float holds (-881); ``time``: flow time reached;
    ``accurate``: all training points right; ``alignment``: median over neurons (of a flow: those still moving) of
    the largest cosine to a centre or class average.
    """

    loss: float | None = None
    time: float | None = None
    accurate: bool = False
    alignment: float | None = None
    log10_loss: float | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("loss", "time"):
            value = getattr(self, name)
            require(value is None or 0 < value < math.inf, f"until.{name}", value, "a positive number")
        cosine = self.alignment
        require(cosine is None or 0 < cosine < 1, "until.alignment", cosine, "a cosine between 0 and 1")
        log10 = self.log10_loss
        require(log10 is None or math.isfinite(log10), "until.log10_loss", log10, "a finite number")
        given = (self.loss, self.time, self.alignment, self.log10_loss)
        require(
            self.accurate or any(value is not None for value in given),
            "until",
            "nothing",
            "a loss, a time, accurate=True or an alignment",
        )

    @property
    def log_loss(self) -> float:
        """Natural log of the loss to reach; -inf if none was asked for."""
        logs = [] if self.loss is None else [math.log(self.loss)]
        logs += [] if self.log10_loss is None else [self.log10_loss * LN10]
        return max(logs, default=-math.inf)

    def met(self, point: RunPoint, alignment: Callable[[], float], time_tolerance: float) -> Status | None:
        """The first condition that holds at a point; ``alignment`` gives the median, ``time_tolerance`` is relative."""
        if point.log_loss <= self.log_loss:
            return Status.LOSS
        if self.time is not None and point.log_t >= math.log(self.time) - time_tolerance:
            return Status.TIME
        if self.accurate and point.accuracy >= 1:
            return Status.ACCURATE
        if self.alignment is not None and alignment() >= self.alignment:
            return Status.ALIGNED
        return None


def as_until(until: float | Until) -> Until:
    """A bare number means a loss."""
    return until if isinstance(until, Until) else Until(loss=until)


def gain(point: RunPoint) -> float:
    """Log loss that one step from here may win: half of what was won so far, and at least LEAST_GAIN."""
    return max(LEAST_GAIN, -0.5 * point.log_loss)


class StepTargets:
    """Shortens steps so that they end on the target loss or time, and on the times and losses (log10) to record."""

    def __init__(self, until: Until, times: Sequence[float] = (), losses: Sequence[float] = ()) -> None:
        self.log_loss = until.log_loss
        self.log_losses = [until.log_loss, *(level * LN10 for level in losses)]
        self.log_time = math.inf if until.time is None else math.log(until.time)
        self.times = sorted(math.log(t) for t in times)

    def cut(self, old: RunPoint, new: RunPoint) -> float:
        """Fraction of the step to keep so as not to pass a target, nor to win more log loss at once than is known."""
        fraction = self._to_time(old, new, self.log_time)
        won = old.log_loss - new.log_loss
        if won > 1.1 * gain(old):
            fraction = min(fraction, gain(old) / won)
        goal = max((level for level in self.log_losses if level < old.log_loss), default=-math.inf)
        if new.log_loss < goal - LOSS_TOLERANCE and won > 0:
            fraction = min(fraction, (old.log_loss - goal + LOSS_TOLERANCE / 2) / won)
        return max(fraction, 0.01)

    def snap(self, old: RunPoint, new: RunPoint) -> float:
        """Fraction of the step to keep so as to end on the next time to record."""
        ahead = [t for t in self.times if t > old.log_t + TIME_TOLERANCE]
        return max(self._to_time(old, new, ahead[0]), 0.01) if ahead else 1.0

    def shortened(self, old: RunPoint, new: RunPoint) -> float:
        """Fraction of the step to keep for both reasons."""
        return min(self.cut(old, new), self.snap(old, new))

    def _to_time(self, old: RunPoint, new: RunPoint, log_time: float) -> float:
        if new.log_t <= log_time + TIME_TOLERANCE:
            return 1.0
        if old.log_t == -math.inf:
            return math.exp(log_time - new.log_t)
        return math.expm1(log_time - old.log_t) / math.expm1(new.log_t - old.log_t)

    def ends(self, point: RunPoint) -> bool:
        """Whether the target loss or time is reached."""
        return point.log_loss <= self.log_loss or point.log_t >= self.log_time - TIME_TOLERANCE
