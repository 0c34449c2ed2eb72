"""The record of a run: loss, accuracy and, neuron by neuron, contribution and cosines to what could be learned."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from polyrelu.data import Dataset
from polyrelu.nets import PolyReLUNet
from polyrelu.train.stopping import RunPoint, Status
from polyrelu.train.trajectory import History, Trajectory, thinned

LN10 = math.log(10)
SAME_TIME = 2e-6  # relative difference of two flow times that are taken for one

Products = Callable[[Tensor, Tensor], Tensor]


class Recorder:
    """Moments and copies of the net as a run goes on, perhaps from an earlier one (``after``).

    times : flow times at which to keep a copy
    levels : log10 losses at which, or just below which, to keep a copy
    """

    def __init__(self, after: Trajectory | None, times: Sequence[float] = (), levels: Sequence[float] = ()) -> None:
        self.began, self.after = time.perf_counter(), after
        self.moments: list[dict[str, Any]] = [] if after is None else after.history.moments()
        self.snapshots: dict[float, nn.Module] = {} if after is None else dict(after.snapshots)
        self.checkpoints: dict[float, nn.Module] = {} if after is None else dict(after.checkpoints)
        self.times, self.levels = times, sorted(levels, reverse=True)

    def note(self, point: RunPoint, log_rho: float, neurons: Mapping[str, Any] | None = None) -> None:
        """Record a point, log |theta| and values per neuron."""
        moment = {
            "clock": point.tau,
            "log_time": point.log_t,
            "log_loss": point.log_loss,
            "accuracy": point.accuracy,
            "log_rho": log_rho,
            "min_margin": point.margin,
        }
        self.moments = thinned([*self.moments, {**moment, **(neurons or {})}])

    def keep_copies(self, point: RunPoint, network: Callable[[], nn.Module]) -> None:
        """Keep the net at the times and losses asked for that are reached."""
        for moment in self.times:
            if abs(point.log_t - math.log(moment)) <= SAME_TIME:
                self.snapshots[moment] = network()
        while self.levels and point.log_loss <= self.levels[0] * LN10:
            self.checkpoints[self.levels.pop(0)] = network()

    def trajectory(
        self,
        net: nn.Module,
        status: Status,
        *,
        evaluations: float,
        counts: dict[str, float],
        settings: dict[str, Any],
    ) -> Trajectory:
        """What is left of the run."""
        earlier = 0.0 if self.after is None else self.after.seconds
        return Trajectory(
            net=net,
            status=status,
            history=History.from_moments(self.moments),
            evaluations=evaluations,
            seconds=earlier + time.perf_counter() - self.began,
            counts=counts,
            settings=settings,
            snapshots=self.snapshots,
            checkpoints=self.checkpoints,
        )


def inner_products(u: Tensor, vectors: Tensor) -> Tensor:
    """Inner products of all rows of u and all rows of ``vectors``."""
    return u @ vectors.T


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
            moved = points.to(net.weight.dtype) - shift
            norm: Tensor = torch.linalg.vector_norm(moved, dim=1, keepdim=True)
            return moved / norm.clamp(min=1e-30)

        return cls(seen(data.class_means()), None if data.centres is None else seen(data.centres))

    def cosines(self, u: Tensor, products: Products = inner_products) -> dict[str, Tensor]:
        """Largest cosine of each row of u to a direction of each kind; ``products`` gives all inner products."""
        found = {"cos_average": products(u, self.averages).amax(1)}
        if self.centres is not None:
            found["cos_centre"] = products(u, self.centres).amax(1)
        return found


def reference_directions(net: nn.Module, data: Dataset) -> ReferenceDirections | None:
    """Those of a PolyReLUNet; other nets have no such neurons."""
    return ReferenceDirections.from_net(net, data) if isinstance(net, PolyReLUNet) else None


def neuron_values(net: nn.Module, reference: ReferenceDirections | None) -> dict[str, Any]:
    """Contribution and cosines of every neuron of a PolyReLUNet, as a moment records them."""
    if reference is None or not isinstance(net, PolyReLUNet):
        return {}
    with torch.no_grad():
        found = reference.cosines(net.directions()) | {"log_contribution": net.log_contributions()}
    return {name: values.cpu().numpy() for name, values in found.items()}


def recorded_alignment(moment: Mapping[str, Any], moving: Tensor | None = None) -> float:
    """Median over neurons (those ``moving``) of the largest cosine to any reference direction at a recorded moment."""
    best = torch.as_tensor(moment["cos_average"])
    if len(moment.get("cos_centre", ())):
        best = torch.maximum(best, torch.as_tensor(moment["cos_centre"]))
    best = best if moving is None else best[moving]
    return float(best.median()) if len(best) else 0.0
