"""What all trainers share: when a run stops, what it reports, records and leaves. A trainer's own file is its step."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from polyrelu.data import Dataset
from polyrelu.nets import PolyReLUNet
from polyrelu.progress import Progress
from polyrelu.train.stopping import LN10, RunPoint, Status, StepTargets, Until
from polyrelu.train.trajectory import History, Trajectory, thinned

if TYPE_CHECKING:
    from polyrelu.train.gradient_flow.polar_field import PolarState

SAME_TIME = 2e-6  # relative difference of two flow times that are taken for one

Products = Callable[[Tensor, Tensor], Tensor]
Watch = Callable[[dict[str, Any], "PolarState"], None]  # called with every moment as it is recorded, and all neurons


@dataclass(frozen=True)
class ReferenceDirections:
    """Unit vectors a neuron may align with: the class averages and, where they are known, the sub-class centres."""

    averages: Tensor
    centres: Tensor | None

    @classmethod
    def from_net(cls, net: PolyReLUNet, data: Dataset) -> ReferenceDirections:
        """As the network sees them: its own centre subtracted."""
        shift = 0 if net.centre is None else net.centre

        def seen(points: Tensor) -> Tensor:
            return functional.normalize(points.to(net.weight.dtype) - shift, dim=1, eps=1e-30)

        return cls(seen(data.class_means()), None if data.centres is None else seen(data.centres))

    def cosines(self, u: Tensor, products: Products = lambda u, vectors: u @ vectors.T) -> dict[str, Tensor]:
        """Largest cosine of each row of u to a direction of each kind; ``products`` gives all inner products."""
        found = {"cos_average": products(u, self.averages).amax(1)}
        if self.centres is not None:
            found["cos_centre"] = products(u, self.centres).amax(1)
        return found


class TrainingRun(ABC):
    """A run under way, at ``point``. A trainer sets it up and takes a step; `run` takes steps until it has to stop.

    after : the run it goes on from, if any
    times : flow times at which to keep a copy of the net
    levels : log10 losses at which, or just below which, to keep a copy
    """

    point: RunPoint
    reference: ReferenceDirections | None = None
    passes = 0.0  # over the data
    time_tolerance = 1e-9  # relative error of the flow time at which a run to a time may end
    moving_neurons = 0  # as they are reported

    def __init__(
        self,
        until: Until,
        progress: Progress,
        after: Trajectory | None,
        *,
        times: Sequence[float] = (),
        levels: Sequence[float] = (),
        max_evaluations: float = math.inf,
    ) -> None:
        self.until, self.progress, self.after, self.max_evaluations = until, progress, after, max_evaluations
        self.began = time.perf_counter()
        self.moments: list[dict[str, Any]] = [] if after is None else after.history.moments()
        self.snapshots: dict[float, nn.Module] = {} if after is None else dict(after.snapshots)
        self.checkpoints: dict[float, nn.Module] = {} if after is None else dict(after.checkpoints)
        self.times, self.levels = times, sorted(levels, reverse=True)
        self.counts: dict[str, float] = {}
        self.settings: dict[str, Any] = {}

    @property
    def evaluations(self) -> float:
        """Passes over the data so far, in units of all samples and all neurons."""
        return self.passes

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
        earlier = 0.0 if self.after is None else self.after.seconds
        return Trajectory(
            net=self.network(),
            status=status,
            history=History.from_moments(self.moments),
            evaluations=self.evaluations,
            seconds=earlier + time.perf_counter() - self.began,
            counts=self.totals(),
            settings=self.settings,
            snapshots=self.snapshots,
            checkpoints=self.checkpoints,
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

    def alignment(self, moving: Tensor | None = None) -> float:
        """Median over neurons (those ``moving``) of the largest cosine to a reference direction, as last recorded."""
        moment = self.moments[-1]
        best = torch.as_tensor(moment["cos_average"])
        if len(moment.get("cos_centre", ())):
            best = torch.maximum(best, torch.as_tensor(moment["cos_centre"]))
        best = best if moving is None else best[moving]
        return float(best.median()) if len(best) else 0.0

    def report(self, log_loss: float) -> None:
        """Send time, loss, passes and neurons to ``progress``."""
        self.progress.update(
            time=math.exp(min(self.point.log_t, 700.0)),
            log_loss=log_loss,
            evaluations=self.evaluations,
            neurons=self.moving_neurons,
        )

    def record(self, point: RunPoint, log_rho: float, neurons: Mapping[str, Any]) -> None:
        """Record a point, log |theta| and values per neuron."""
        moment = {
            "clock": point.tau,
            "log_time": point.log_t,
            "log_loss": point.log_loss,
            "accuracy": point.accuracy,
            "log_rho": log_rho,
            "min_margin": point.margin,
        }
        self.moments = thinned([*self.moments, {**moment, **neurons}])

    def neuron_values(self, net: nn.Module) -> dict[str, Any]:
        """Contribution and cosines of every neuron of a PolyReLUNet, as `record` takes them; other nets have none."""
        if self.reference is None or not isinstance(net, PolyReLUNet):
            return {}
        with torch.no_grad():
            found = self.reference.cosines(net.directions()) | {"log_contribution": net.log_contributions()}
        return {name: values.cpu().numpy() for name, values in found.items()}

    def keep_copies(self, point: RunPoint, network: Callable[[], nn.Module]) -> None:
        """Keep the net at the times and losses asked for that are reached."""
        for moment in self.times:
            if abs(point.log_t - math.log(moment)) <= SAME_TIME:
                self.snapshots[moment] = network()
        while self.levels and point.log_loss <= self.levels[0] * LN10:
            self.checkpoints[self.levels.pop(0)] = network()


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


class GradientFlow(TrainingRun):
    """A gradient flow under way: ``targets`` shorten its steps, ``start`` is the clock and log time it begins at."""

    def __init__(self, options: FlowOptions, after: Trajectory | None, levels: Sequence[float] = ()) -> None:
        super().__init__(
            options.until,
            options.progress,
            after,
            times=options.record,
            levels=levels,
            max_evaluations=options.max_evaluations,
        )
        self.options, self.data, self.rtol = options, options.data, options.rtol
        self.targets = StepTargets(options.until, options.record)
        history = None if after is None else after.history
        self.start = (0.0, -math.inf) if history is None else (float(history.clock[-1]), float(history.log_time[-1]))
