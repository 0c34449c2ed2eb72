"""What all trainers share: when a run stops, what it reports, records and leaves. A trainer's own file is its step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

from torch import nn

from polyrelu.progress import Progress
from polyrelu.train.recorder import Recorder, recorded_alignment
from polyrelu.train.stopping import RunPoint, Status, Until
from polyrelu.train.trajectory import Trajectory


class TrainingRun(ABC):
    """A run under way, at ``point``. A trainer sets it up and takes a step; `run` takes steps until it has to stop."""

    point: RunPoint
    counts: dict[str, float]
    settings: dict[str, Any]
    time_tolerance = 1e-9  # relative error of the flow time at which a run to a time may end
    moving_neurons = 0  # as they are reported

    def __init__(self, recorder: Recorder, until: Until, progress: Progress, max_evaluations: float = math.inf) -> None:
        self.recorder, self.until, self.progress = recorder, until, progress
        self.max_evaluations = max_evaluations
        self.counts, self.settings = {}, {}

    @property
    @abstractmethod
    def evaluations(self) -> float:
        """Passes over the data so far, in units of all samples and all neurons."""

    @abstractmethod
    def advance(self) -> Status | None:
        """Take one step and record it; a status if none can be taken."""

    @abstractmethod
    def network(self) -> nn.Module:
        """A net with the weights at ``point``."""

    def run(self) -> Trajectory:
        """Steps until a stop condition holds, none can be taken, or somebody interrupts."""
        try:
            self.begin()
            status = self.stop()
            while status is None:
                status = self.advance()
                if status is None:
                    self.report(self.point.log_loss)
                    status = self.stop()
        except KeyboardInterrupt:
            self.interrupted()
            status = Status.INTERRUPTED
        return self.recorder.trajectory(
            self.network(),
            status,
            evaluations=self.evaluations,
            counts=self.totals(),
            settings=self.settings,
        )

    def begin(self) -> None:  # noqa: B027
        """What happens before the first step, if anything."""

    def interrupted(self) -> None:  # noqa: B027
        """Make record and state fit together again, if an interruption in the middle of a step leaves them apart."""

    def totals(self) -> dict[str, float]:
        """What was counted on the way."""
        return self.counts

    def stop(self) -> Status | None:
        """The first stop condition that holds at ``point``."""
        return self.until.met(self.point, self.alignment, self.time_tolerance) or self.exhausted()

    def exhausted(self) -> Status | None:
        """Whether something else ends the run: here, as many passes over the data as it may have."""
        return Status.BUDGET if self.evaluations >= self.max_evaluations else None

    def alignment(self) -> float:
        """Median alignment of the neurons at the last recorded moment."""
        return recorded_alignment(self.recorder.moments[-1])

    def report(self, log_loss: float) -> None:
        """Say how far it is."""
        self.progress.update(
            time=math.exp(min(self.point.log_t, 700.0)),
            log_loss=log_loss,
            evaluations=self.evaluations,
            neurons=self.moving_neurons,
        )
