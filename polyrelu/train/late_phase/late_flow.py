"""A run in its late phase: steps of late.py to the target, recorded like any other run."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from polyrelu.data import Dataset
from polyrelu.nets import Polar, PolyReLUNet
from polyrelu.progress import Progress
from polyrelu.train import margin_gradients as gradients
from polyrelu.train.late_phase.late_step import Late, Stand, Step, all_margins
from polyrelu.train.recorder import ReferenceDirections, look, met
from polyrelu.train.stopping import Landing, Status, Until
from polyrelu.train.trajectory import History, Trajectory, thinned

SMALLEST = math.log(1e-130)  # neurons below stay as they are: nothing a float64 net computes depends on them
SOON = 5  # rejected steps, beyond one for every second accepted, before gates become unknowns
PATIENCE = 20  # rejected steps, beyond one for each accepted, before the early methods take over again


def finish(
    before: Trajectory,
    data: Dataset,
    *,
    loss: str,
    until: Until,
    rtol: float,
    record: Sequence[float],
    checkpoints: Sequence[float],
    max_evaluations: float,
    progress: Progress,
) -> tuple[Trajectory, bool]:
    """Go on from ``before``, whose net is `ready`, by steps implicit in the margins; False if they became too short.

    They do where neurons slide along gates of single samples (p = 1, few data), which the tangent cannot see.
    """
    run = Finish(before, data, loss, Landing(until, record, checkpoints), checkpoints)
    status = run.verdict(until, max_evaluations)
    try:
        while status is None and not run.stuck:
            status = run.advance(rtol)
            progress.update(
                time=math.exp(min(run.stand.log_t, 700.0)),
                log_loss=run.stand.log_loss,
                evaluations=run.evaluations,
                neurons=0,
            )
            status = status or run.verdict(until, max_evaluations)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return run.trajectory(status or Status.STEP_UNDERFLOW), status is not None


class Finish:
    """The late phase of one run under way."""

    def __init__(self, before: Trajectory, data: Dataset, loss: str, landing: Landing, levels: Sequence[float]) -> None:
        self.before, self.data, self.landing, self.began = before, data, landing, time.perf_counter()
        net, self.kept = whole_numbers(before.net)
        names = tuple(name for name, value in net.named_parameters() if value.requires_grad)
        history = before.history
        self.stand = Stand(
            net, names, all_margins(net, data), loss, float(history.clock[-1]), float(history.log_time[-1])
        )
        self.weights = torch.softmax(-self.stand.q.flatten(), 0).view_as(self.stand.q)
        self.late = Late(data, None)
        pull = self.pull(self.weights)
        theta = gradients.theta(self.stand)
        along = sum(float((theta[name] * pull[name]).sum()) for name in names)
        mean = float((self.weights * self.stand.q.nan_to_num(posinf=0.0)).sum())
        degree = along / mean
        one = torch.zeros_like(self.weights).flatten()
        one[self.stand.q.flatten().argmin()] = 1.0
        alone = self.pull(one.view_as(self.weights))
        again = sum(float((theta[name] * alone[name]).sum()) for name in names) / float(self.stand.q.min())
        whole = abs(degree - again) < 1e-6 * degree  # Euler: <theta, grad q> = L q for every q, and only then
        self.late.degree = degree if whole else None
        speed = math.sqrt(sum(float(part.square().sum()) for part in pull.values()))
        self.dt = 0.02 * math.exp(self.stand.log_rho) / speed
        self.probes = ReferenceDirections.from_net(before.net, data) if isinstance(before.net, PolyReLUNet) else None
        self.moments = history.moments()
        self.counts = {name: before.counts.get(name, 0.0) for name in ("late_steps", "late_rejected")}
        self.snapshots, self.checkpoints = dict(before.snapshots), dict(before.checkpoints)
        self.levels = [level for level in levels if level not in self.checkpoints]

    def pull(self, weights: Tensor) -> dict[str, Tensor]:
        """theta' at the current stand, were these the weights (n, C) of the constraints."""
        flat = weights.flatten()
        some = (flat > 1e-14).nonzero()[:, 0]
        X, E = gradients.constraints(self.data, some, weights.shape[1])
        return gradients.total(self.stand, X, E * flat[some][:, None])

    @property
    def evaluations(self) -> float:
        """Passes over the data so far."""
        return self.before.evaluations + self.late.work

    @property
    def stuck(self) -> bool:
        """Whether steps are rejected too often to be worth it."""
        return self.counts["late_rejected"] > self.counts["late_steps"] + PATIENCE

    def advance(self, rtol: float) -> Status | None:
        """One accepted step; a status if none can be found."""
        dt, tiny = self.dt, 1e-12 * self.dt
        while dt > tiny:
            step = self.late.step(self.stand, dt, self.weights)
            growth = 0.9 * (rtol / max(step.error, 1e-300)) ** 0.5
            if step.error > rtol or self.late.falls(self.stand, step.end):
                self.counts["late_rejected"] += 1
                self.late.sliding |= self.counts["late_rejected"] > self.counts["late_steps"] / 2 + SOON
                dt = self.dt = dt * min(0.5, max(0.1, growth))
                continue
            cut = min(self.landing.cut(self.stand, step.end), self.landing.snap(self.stand, step.end))
            if cut < 1:  # a shorter step to land, after which the old length is tried again
                dt *= cut
                continue
            self.commit(step)
            self.dt = max(self.dt, dt * min(3.0, max(0.5, growth)))
            return None
        return Status.STEP_UNDERFLOW

    def commit(self, step: Step) -> None:
        """Take a step."""
        self.stand, self.weights = step.end, step.weights
        self.counts["late_steps"] += 1
        self.note()
        for log_time in self.landing.times:
            if abs(self.stand.log_t - log_time) <= 2e-6:
                self.snapshots[math.exp(log_time)] = self.network()
        for level in [level for level in self.levels if self.stand.log_loss <= level * math.log(10)]:
            self.checkpoints[level] = self.network()
            self.levels.remove(level)

    def note(self) -> None:
        """Record where it stands."""
        moment: dict[str, Any] = {
            "clock": self.stand.tau,
            "log_time": self.stand.log_t,
            "log_loss": self.stand.log_loss,
            "accuracy": float((self.stand.q > 0).all(dim=1).double().mean()),
            "log_rho": self.stand.log_rho,
            "min_margin": float(self.stand.q.min()),
        }
        net = self.network()
        if self.probes is not None and isinstance(net, PolyReLUNet):
            moment |= look(net, self.probes)
        self.moments = thinned([*self.moments, moment])

    def verdict(self, until: Until, max_evaluations: float) -> Status | None:
        """The first stop condition that holds."""
        here = self.moments[-1]
        found = met(until, self.stand.log_loss, self.stand.log_t, float(here["accuracy"]), here)
        return found or (Status.BUDGET if self.evaluations >= max_evaluations else None)

    def network(self) -> nn.Module:
        """The net in the type it came in, with the neurons that stayed as they were."""
        return back(self.stand.net, self.before.net, self.kept)

    def trajectory(self, status: Status) -> Trajectory:
        """What is left of the run."""
        return replace(
            self.before,
            net=self.network(),
            status=status,
            history=History.of(self.moments),
            evaluations=self.evaluations,
            seconds=self.before.seconds + time.perf_counter() - self.began,
            counts=self.before.counts | self.counts,
            snapshots=self.snapshots,
            checkpoints=self.checkpoints,
        )


def whole_numbers(net: nn.Module) -> tuple[nn.Module, Tensor | None]:
    """A float64 copy that steps truly; of a PolyReLUNet those neurons whose weights a float64 holds."""
    polar = gradients.neurons(net)
    if polar is None or not isinstance(net, PolyReLUNet):
        return copy.deepcopy(net).double(), None
    kept = torch.minimum(polar.log_r, polar.log_s) > SMALLEST
    some = Polar(polar.u[kept], polar.q[kept], polar.log_r[kept], polar.log_s[kept])
    return PolyReLUNet.from_polar(some, like=copy.deepcopy(net).double()), kept


def back(moved: nn.Module, like: nn.Module, kept: Tensor | None) -> nn.Module:
    """The inverse of `whole_numbers`: ``moved`` in the type of ``like``, with its other neurons."""
    dtype = next(like.parameters()).dtype
    old, new = gradients.neurons(like), gradients.neurons(moved)
    if old is None or new is None or not isinstance(like, PolyReLUNet):
        return copy.deepcopy(moved).to(dtype)
    for name in ("u", "q", "log_r", "log_s"):
        getattr(old, name)[kept] = getattr(new, name)
    net = PolyReLUNet.from_polar(old, like=copy.deepcopy(like).double())
    if net.bias is not None:
        net.bias.data.copy_(moved.get_parameter("bias"))
    return net.to(dtype)
