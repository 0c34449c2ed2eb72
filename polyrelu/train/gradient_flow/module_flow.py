"""The gradient flow of any module, by autograd and an adaptive Runge-Kutta pair in loss time.

    theta' = -grad log L,   d tau = L dt      (squared loss: theta' = -grad L in ordinary time)

The slopes of deep nets are stiff: curvature far above the speed at which theta turns. Runge-Kutta-Chebyshev steps of
second order (Sommeijer, Shampine & Verwer 1998) are explicit and, with s stages, stable for about s^2/3 times the
step of Euler; s follows from the largest curvature, which a power iteration on differences of slopes finds. The error
allowed is rtol |theta|, so the initial scale does not matter. A PolyReLUNet has a faster way (polar_flow.py), and so
has every net once the data are separated and few constraints decide (separated_flow.py).
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from polyrelu.data import BLOCK
from polyrelu.train.descent.mean_gradient import logit_columns, relative_loss
from polyrelu.train.losses import class_margins, in_loss_time, log_add, log_mean_exp, loss_slopes
from polyrelu.train.stopping import Status
from polyrelu.train.training_run import FlowOptions, GradientFlow
from polyrelu.train.trajectory import Trajectory

MAX_STAGES = 200  # of a step
CURVATURE_STEPS = 25  # after which the curvature is estimated again
STALL_SPEED = 1e-14  # relative change of theta per unit of log L, below which nothing moves


@dataclass(frozen=True)
class ModulePoint:
    """A point of the flow: clock, log flow time, theta, its slope per unit of the clock, and loss and margin there."""

    tau: float
    log_t: float
    theta: Tensor
    slope: Tensor
    log_loss: float
    accuracy: float
    margin: float


class ModuleFlow(GradientFlow):
    """The flow of a module, under way."""

    point: ModulePoint

    def __init__(self, net: nn.Module, options: FlowOptions, after: Trajectory | None) -> None:
        super().__init__(options, after)
        self.net, self.loss = copy.deepcopy(net), options.loss
        self.trained = [p for p in self.net.parameters() if p.requires_grad]
        self.y = self.data.y.to(self.trained[0].dtype) if self.data.binary else self.data.y
        self.passes = 0.0 if after is None else after.evaluations
        self.counts = {"steps": 0.0, "rejected": 0.0}
        self.frame = 0.0 if after is None else after.log_loss
        theta = parameters_to_vector(self.trained).detach().clone()
        self.point = self.at(theta, *self.start)
        if after is None:
            self.note()
        self.curvature, self.age = 0.0, CURVATURE_STEPS
        self.way: Tensor | None = None
        self.estimate_curvature()
        turn = 0.01 * size(theta) / max(size(self.point.slope), 1e-300)
        self.dt = turn or 0.01 / max(self.curvature, 1e-300)  # a start at zero has no direction to turn

    def at(self, theta: Tensor, tau: float, log_t: float) -> ModulePoint:
        """Loss, margin and slope at theta: one pass over the data, gradients relative to the last known loss."""
        vector_to_parameters(theta, self.trained)
        total, correct, margin = -math.inf, 0, math.inf
        for p in self.trained:
            p.grad = None
        for start, x in self.data.blocks(BLOCK):
            y = self.y[start : start + len(x)]
            f = logit_columns(self.net, x.to(theta.dtype))
            relative_loss(self.loss, f, y, self.frame).div(len(self.data)).backward()  # type: ignore[no-untyped-call]
            f = f.detach()
            total = log_add(total, float(loss_slopes(self.loss, f, y).log_loss.double().logsumexp(0)))
            margins = class_margins(f, y).amin(1)
            correct, margin = correct + int((margins > 0).sum()), min(margin, float(margins.min()))
        self.passes += 1
        log_loss = total - math.log(len(self.data))
        rate = log_loss if in_loss_time(self.loss) else 0.0
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.trained]
        slope = parameters_to_vector(grads) * -math.exp(min(self.frame - rate, 700.0))
        return ModulePoint(tau, log_t, theta, slope, log_loss, correct / len(self.data), margin)

    def advance(self) -> Status | None:
        """One accepted step; a status if there is none."""
        old = self.point
        self.frame = old.log_loss
        if size(old.slope) <= STALL_SPEED * size(old.theta):
            return Status.STALLED
        while self.dt > 1e-13 * max(old.tau, 1e-277):
            if self.age >= CURVATURE_STEPS:
                self.estimate_curvature()
            self.dt = min(self.dt, (MAX_STAGES**2 - 1) / (1.6 * max(self.curvature, 1e-300)))
            new, wrong = self.trial(old, self.dt)
            if not math.isfinite(wrong + new.log_loss + new.log_t):
                self.dt, self.age = self.dt / 10, CURVATURE_STEPS
                continue
            growth = 0.9 * (self.rtol / max(wrong, 1e-300)) ** (1 / 3)
            if wrong > self.rtol:
                self.counts["rejected"] += 1
                self.dt, self.age = self.dt * min(0.7, max(0.1, growth)), CURVATURE_STEPS
                continue
            cut = self.targets.shortened(old, new)
            if cut < 1:
                self.dt *= cut
                continue
            self.point, self.age = new, self.age + 1
            self.dt *= min(5.0, max(0.3, growth))
            self.counts["steps"] += 1
            self.note()
            self.keep_copies(new, self.network)
            return None
        return Status.STEP_UNDERFLOW

    def trial(self, old: ModulePoint, dt: float) -> tuple[ModulePoint, float]:
        """A step of length dt, and its estimated error relative to |theta|."""
        length, speed = size(old.theta), size(old.slope)
        new = self.chebyshev(old, dt, max(2, 1 + math.ceil(math.sqrt(1 + 1.6 * dt * self.curvature))))
        wrong = size(0.8 * (old.theta - new.theta) + 0.4 * dt * (old.slope + new.slope)) / max(length, dt * speed)
        passed = math.log(dt)
        if in_loss_time(self.loss):  # log L falls at the rate |slope|^2, so its middle is known to third order
            bend = dt / 8 * (speed**2 - size(new.slope) ** 2)
            passed += log_mean_exp(-old.log_loss, bend - (old.log_loss + new.log_loss) / 2, -new.log_loss)
        return replace(new, log_t=log_add(old.log_t, passed)), wrong

    def chebyshev(self, old: ModulePoint, dt: float, stages: int) -> ModulePoint:
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
            start_slope = -(1 - b[j - 1] * T[j - 1]) * push
            new = (1 - up - back) * old.theta + up * here + back * before
            before, here = here, new + dt * (push * at.slope + start_slope * old.slope)
        return self.at(here, old.tau + dt, old.log_t)

    def estimate_curvature(self) -> None:
        """The largest curvature: power iteration on differences of slopes, beginning where the last one ended."""
        theta, slope = self.point.theta, self.point.slope
        step = 1e-4 if theta.dtype == torch.float32 else 1e-7
        way = slope if self.way is None else self.way
        for _ in range(20):
            length = size(way)
            if not 0 < length < math.inf:
                break
            small = step * (size(theta) or 1.0) / length
            bent = (self.at(theta + small * way, self.point.tau, self.point.log_t).slope - slope) / small
            last, self.curvature, way = self.curvature, size(bent) / length, bent / size(bent)
            if abs(self.curvature - last) < 0.05 * self.curvature:
                break
        self.way, self.curvature, self.age = way, 1.2 * self.curvature, 0

    def note(self) -> None:
        """Add the point and log |theta| to the history."""
        self.record(self.point, math.log(max(size(self.point.theta), 1e-300)), {})

    def network(self) -> nn.Module:
        """A copy of the net at the current point."""
        vector_to_parameters(self.point.theta, self.trained)
        net = copy.deepcopy(self.net)
        for parameter in net.parameters():
            parameter.grad = None
        return net


def size(x: Tensor) -> float:
    """Euclidean norm, in float64."""
    return float(torch.linalg.vector_norm(x, dtype=torch.float64))
