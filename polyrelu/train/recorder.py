"""The record of a flow: loss, accuracy and, neuron by neuron, contribution and cosines to what could be learned."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from polyrelu.data import Dataset
from polyrelu.nets import PolyReLUNet
from polyrelu.train.gradient_flow.exponential_rk import Point
from polyrelu.train.gradient_flow.merging import Roll
from polyrelu.train.gradient_flow.polar_state import State
from polyrelu.train.gradient_flow.reduced_basis import Frame
from polyrelu.train.gradient_flow.two_level import Attempt, lifted
from polyrelu.train.stopping import Status, Until
from polyrelu.train.trajectory import Trajectory, thinned

Watch = Callable[[dict[str, Any], State], None]  # told every moment as it is recorded, and all neurons at it


@dataclass(frozen=True)
class Probes:
    """Unit vectors a neuron may align with: the class averages and, where they are known, the sub-class centres."""

    averages: Tensor
    centres: Tensor | None

    @classmethod
    def of(cls, net: PolyReLUNet, data: Dataset) -> Probes:
        """As the network sees them: its own centre subtracted."""
        shift = 0 if net.centre is None else net.centre

        def seen(points: Tensor) -> Tensor:
            moved = points.to(net.weight.dtype) - shift
            norm: Tensor = torch.linalg.vector_norm(moved, dim=1, keepdim=True)
            return moved / norm.clamp(min=1e-30)

        return cls(seen(data.class_means()), None if data.centres is None else seen(data.centres))

    def cosines(self, u: Tensor, frame: Frame) -> dict[str, Tensor]:
        """Largest cosine of each row (in the frame's coordinates) to a probe of each kind."""
        found = {"cos_average": frame.products(u, self.averages).amax(1)}
        if self.centres is not None:
            found["cos_centre"] = frame.products(u, self.centres).amax(1)
        return found


class Recorder:
    """Keeps moments and snapshots as the flow commits its steps."""

    def __init__(
        self, probes: Probes, times: Sequence[float], after: Trajectory | None, watch: Watch | None = None
    ) -> None:
        self.probes = probes
        self.times = times
        self.watch = watch
        self.moments: list[dict[str, Any]] = [] if after is None else after.history.moments()
        self.snapshots: dict[float, State] = {}

    def keep(self, attempt: Attempt, roll: Roll, since: float) -> None:
        """Record the points of an accepted step that lie after clock ``since``."""
        for inner in attempt.inner:
            if inner.tau > since:
                self.note(inner, attempt.frame, roll)
            for time in self.times:
                if abs(inner.log_t - math.log(time)) <= 2e-6:
                    self.snapshots[time] = roll.whole(lifted(inner, attempt.frame).state)

    def note(self, point: Point, frame: Frame, roll: Roll) -> None:
        """Record one moment of all neurons."""
        moment: dict[str, Any] = {
            "clock": point.tau,
            "log_time": point.log_t,
            "log_loss": point.slope.log_loss,
            "accuracy": min(1.0, max(0.0, point.slope.accuracy)),
            "log_rho": roll.log_rho(point.state),
            "min_margin": point.slope.margin,
            "log_contribution": roll.log_contribution(point.state).cpu().numpy(),
        }
        at_home = self.probes.cosines(roll.home.u[roll.row < 0], Frame())
        for name, values in self.probes.cosines(point.state.u, frame).items():
            moment[name] = roll.spread(values, at_home[name]).cpu().numpy()
        self.moments = thinned([*self.moments, moment])
        if self.watch is not None:
            self.watch(moment, roll.whole(lifted(point, frame).state))


def look(net: PolyReLUNet, probes: Probes) -> dict[str, Any]:
    """Contribution and cosines of every neuron of a network, as a moment records them."""
    with torch.no_grad():
        found = probes.cosines(net.directions(), Frame()) | {"log_contribution": net.log_contributions()}
    return {name: values.cpu().numpy() for name, values in found.items()}


def met(until: Until, log_loss: float, log_time: float, accuracy: float, moment: dict[str, Any]) -> Status | None:
    """The first stop condition that holds at a moment of a descent or of the end of a flow."""
    if log_loss <= until.log_loss:
        return Status.LOSS
    if until.time is not None and log_time >= math.log(until.time) - 1e-9:
        return Status.TIME
    if until.accurate and accuracy >= 1:
        return Status.ACCURATE
    if until.alignment is not None and median_alignment(moment) >= until.alignment:
        return Status.ALIGNED
    return None


def median_alignment(moment: dict[str, Any], moving: Tensor | None = None) -> float:
    """Median over neurons (those ``moving``) of the largest cosine to any probe at a recorded moment."""
    best = torch.as_tensor(moment["cos_average"])
    if len(moment.get("cos_centre", ())):
        best = torch.maximum(best, torch.as_tensor(moment["cos_centre"]))
    best = best if moving is None else best[moving]
    return float(best.median()) if len(best) else 0.0
