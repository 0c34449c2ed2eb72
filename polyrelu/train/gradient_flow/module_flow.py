"""The gradient flow of any module, by autograd and an adaptive Runge-Kutta pair in loss time.

    theta' = -grad log L,   d tau = L dt      (squared loss: theta' = -grad L in ordinary time)

The slopes of deep nets are stiff: curvature far above the speed at which theta turns. Runge-Kutta-Chebyshev steps of
second order (Sommeijer, Shampine & Verwer 1998) are explicit and, with s stages, stable for about s^2/3 times the
step of Euler; s follows from the largest curvature, which a power iteration on differences of slopes finds. The error
allowed is rtol |theta|, so the initial scale does not matter. A PolyReLUNet has a faster way (polar_flow.py), and so
has every net once the data are separated and few constraints decide (late.py).
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from polyrelu.data import BLOCK, Dataset
from polyrelu.progress import Progress
from polyrelu.train.descent.backward import logits, relative_loss
from polyrelu.train.gradient_flow.polar_field import count_correct
from polyrelu.train.losses import class_margins, in_loss_time, log_add, log_mean_exp, pull
from polyrelu.train.recorder import met
from polyrelu.train.stopping import Landing, Status, Until
from polyrelu.train.trajectory import History, Trajectory, thinned

MOST = 200  # stages of a step
FRESH = 25  # steps after which the curvature is looked at again
STILL = 1e-14  # relative change of theta per unit of log L, below which nothing moves


@dataclass(frozen=True)
class Point:
    """A moment: clock, log flow time, theta, its slope per unit of the clock, and what the data said."""

    tau: float
    log_t: float
    theta: Tensor
    slope: Tensor
    log_loss: float
    accuracy: float
    margin: float


def module_flow(
    net: nn.Module,
    data: Dataset,
    *,
    loss: str,
    until: Until,
    rtol: float,
    record: Sequence[float],
    max_evaluations: float,
    progress: Progress,
    after: Trajectory | None,
) -> Trajectory:
    """The flow of a module (the door, flow.py, explains the arguments and has checked them)."""
    run = ModuleFlow(copy.deepcopy(net), data, loss, after)
    landing = Landing(until, record)
    status = run.verdict(until, max_evaluations)
    try:
        while status is None:
            status = run.advance(rtol, landing)
            point = run.point
            progress.update(
                time=math.exp(min(point.log_t, 700.0)),
                log_loss=point.log_loss,
                evaluations=run.passes,
                neurons=0,
            )
            status = status or run.verdict(until, max_evaluations)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return run.trajectory(status)


class ModuleFlow:
    """A flow under way."""

    def __init__(self, net: nn.Module, data: Dataset, loss: str, after: Trajectory | None) -> None:
        self.net, self.data, self.loss, self.before, self.began = net, data, loss, after, time.perf_counter()
        self.trained = [p for p in net.parameters() if p.requires_grad]
        self.y = data.y.to(self.trained[0].dtype) if data.binary else data.y
        self.passes = 0.0 if after is None else after.evaluations
        self.moments: list[dict[str, Any]] = [] if after is None else after.history.moments()
        self.snapshots: dict[float, nn.Module] = {} if after is None else dict(after.snapshots)
        self.counts = {"steps": 0.0, "rejected": 0.0}
        clock = 0.0 if after is None else float(after.history.clock[-1])
        log_t = -math.inf if after is None else float(after.history.log_time[-1])
        self.frame = 0.0 if after is None else after.log_loss
        theta = parameters_to_vector(self.trained).detach().clone()
        self.point = self.at(theta, clock, log_t)
        if after is None:
            self.note()
        self.curvature, self.age = 0.0, FRESH
        self.way: Tensor | None = None
        self.look()
        turn = 0.01 * self.size(theta) / max(self.size(self.point.slope), 1e-300)
        self.dt = turn or 0.01 / max(self.curvature, 1e-300)  # a start at zero has no direction to turn

    def at(self, theta: Tensor, tau: float, log_t: float) -> Point:
        """Loss, margin and slope at theta: one pass over the data, gradients relative to the last known loss."""
        vector_to_parameters(theta, self.trained)
        total, correct, margin = -math.inf, 0, math.inf
        for p in self.trained:
            p.grad = None
        for start, x in self.data.blocks(BLOCK):
            y = self.y[start : start + len(x)]
            f = logits(self.net, x.to(theta.dtype))
            relative_loss(self.loss, f, y, self.frame).div(len(self.data)).backward()  # type: ignore[no-untyped-call]
            f = f.detach()
            total = log_add(total, float(pull(self.loss, f, y).log_loss.double().logsumexp(0)))
            correct += count_correct(f, y)
            margin = min(margin, float(class_margins(f, y).min()))
        self.passes += 1
        log_loss = total - math.log(len(self.data))
        rate = log_loss if in_loss_time(self.loss) else 0.0
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.trained]
        slope = parameters_to_vector(grads) * -math.exp(min(self.frame - rate, 700.0))
        return Point(tau, log_t, theta, slope, log_loss, correct / len(self.data), margin)

    @staticmethod
    def size(x: Tensor) -> float:
        """Euclidean norm, in float64."""
        return float(torch.linalg.vector_norm(x, dtype=torch.float64))

    def advance(self, rtol: float, landing: Landing) -> Status | None:
        """One accepted step; a status if there is none."""
        old = self.point
        self.frame = old.log_loss
        length, speed = self.size(old.theta), self.size(old.slope)
        if speed <= STILL * length:
            return Status.STALLED
        while self.dt > 1e-13 * max(old.tau, 1e-277):
            if self.age >= FRESH:
                self.look()
            self.dt = min(self.dt, (MOST**2 - 1) / (1.6 * max(self.curvature, 1e-300)))
            dt, stages = self.dt, max(2, 1 + math.ceil(math.sqrt(1 + 1.6 * self.dt * self.curvature)))
            new = self.chebyshev(old, dt, stages)
            wrong = self.size(0.8 * (old.theta - new.theta) + 0.4 * dt * (old.slope + new.slope)) / max(
                length, dt * speed
            )
            passed = math.log(dt)
            if in_loss_time(self.loss):  # log L falls at the rate |slope|^2, so its middle is known to third order
                bend = dt / 8 * (speed**2 - self.size(new.slope) ** 2)
                passed += log_mean_exp(-old.log_loss, bend - (old.log_loss + new.log_loss) / 2, -new.log_loss)
            new = replace(new, log_t=log_add(old.log_t, passed))
            if not math.isfinite(wrong + new.log_loss + new.log_t):
                self.dt, self.age = self.dt / 10, FRESH
                continue
            growth = 0.9 * (rtol / max(wrong, 1e-300)) ** (1 / 3)
            if wrong > rtol:
                self.counts["rejected"] += 1
                self.dt, self.age = self.dt * min(0.7, max(0.1, growth)), FRESH
                continue
            cut = min(landing.cut(old, new), landing.snap(old, new))
            if cut < 1:
                self.dt *= cut
                continue
            self.point, self.age = new, self.age + 1
            self.dt *= min(5.0, max(0.3, growth))
            self.counts["steps"] += 1
            self.note()
            for log_time in landing.times:
                if abs(new.log_t - log_time) <= 2e-6:
                    self.snapshots[math.exp(log_time)] = self.network()
            return None
        return Status.STEP_UNDERFLOW

    def chebyshev(self, old: Point, dt: float, stages: int) -> Point:
        """One step of the method; T_j, T_j', T_j'' are Chebyshev polynomials at w0."""
        w0 = 1 + 2 / 13 / stages**2
        T, first, second = [1.0, w0], [0.0, 1.0], [0.0, 0.0]
        for j in range(2, stages + 1):
            T.append(2 * w0 * T[j - 1] - T[j - 2])
            first.append(2 * T[j - 1] + 2 * w0 * first[j - 1] - first[j - 2])
            second.append(4 * first[j - 1] + 2 * w0 * second[j - 1] - second[j - 2])
        w1 = first[-1] / second[-1]
        b = [second[max(j, 2)] / first[max(j, 2)] ** 2 for j in range(stages + 1)]
        before, here = old.theta, old.theta + b[1] * w1 * dt * old.slope
        for j in range(2, stages + 1):
            at = self.at(here, old.tau, old.log_t)
            up, back, push = 2 * b[j] * w0 / b[j - 1], -b[j] / b[j - 2], 2 * b[j] * w1 / b[j - 1]
            pull = -(1 - b[j - 1] * T[j - 1]) * push
            new = (1 - up - back) * old.theta + up * here + back * before
            before, here = here, new + dt * (push * at.slope + pull * old.slope)
        return self.at(here, old.tau + dt, old.log_t)

    def look(self) -> None:
        """The largest curvature: power iteration on differences of slopes, beginning where the last one ended."""
        theta, slope = self.point.theta, self.point.slope
        step = 1e-4 if theta.dtype == torch.float32 else 1e-7
        way = slope if self.way is None else self.way
        for _ in range(20):
            length = self.size(way)
            if not 0 < length < math.inf:
                break
            small = step * (self.size(theta) or 1.0) / length
            bent = (self.at(theta + small * way, self.point.tau, self.point.log_t).slope - slope) / small
            last, self.curvature, way = self.curvature, self.size(bent) / length, bent / self.size(bent)
            if abs(self.curvature - last) < 0.05 * self.curvature:
                break
        self.way, self.curvature, self.age = way, 1.2 * self.curvature, 0

    def note(self) -> None:
        """Record where it stands."""
        point = self.point
        self.moments = thinned(
            [
                *self.moments,
                {
                    "clock": point.tau,
                    "log_time": point.log_t,
                    "log_loss": point.log_loss,
                    "accuracy": point.accuracy,
                    "log_rho": math.log(max(self.size(point.theta), 1e-300)),
                    "min_margin": point.margin,
                },
            ]
        )

    def verdict(self, until: Until, max_evaluations: float) -> Status | None:
        """The first stop condition that holds."""
        point = self.point
        found = met(until, point.log_loss, point.log_t, point.accuracy, self.moments[-1])
        return found or (Status.BUDGET if self.passes >= max_evaluations else None)

    def network(self) -> nn.Module:
        """A copy of the net at the current point."""
        vector_to_parameters(self.point.theta, self.trained)
        net = copy.deepcopy(self.net)
        for parameter in net.parameters():
            parameter.grad = None
        return net

    def trajectory(self, status: Status) -> Trajectory:
        """What is left of the run."""
        return Trajectory(
            net=self.network(),
            status=status,
            history=History.of(self.moments),
            evaluations=self.passes,
            seconds=time.perf_counter() - self.began + (0.0 if self.before is None else self.before.seconds),
            counts=self.counts,
            settings={},
            snapshots=self.snapshots,
        )
