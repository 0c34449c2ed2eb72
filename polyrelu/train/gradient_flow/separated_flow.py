"""A run after separation: the steps of separated_step.py to the target, with their length controlled by the error."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn

import polyrelu.train.margin_gradients as gradients
from polyrelu.nets import Polar, PolyReLUNet
from polyrelu.train.gradient_flow.separated_step import SeparatedState, SeparatedStepper, all_margins, length
from polyrelu.train.stopping import Status, StepTargets
from polyrelu.train.training_run import FlowOptions, GradientFlow, ReferenceDirections
from polyrelu.train.trajectory import Trajectory

SMALLEST_LOG_NORM = math.log(1e-130)  # neurons below stay as they are: no output of a float64 net depends on them
GATES_AFTER = 5  # rejected steps, beyond one for every second accepted, before gates become unknowns
GIVE_UP_AFTER = 20  # rejected steps, beyond one for each accepted, before the early methods take over again


class SeparatedFlow(GradientFlow):
    """The separated phase under way: on from ``before``, whose net is `ready`, by steps implicit in the margins.

    It gives up where steps become too short: where neurons slide along gates of single samples (p = 1, few data),
    which the tangent cannot see.
    """

    point: SeparatedState

    def __init__(self, before: Trajectory, options: FlowOptions) -> None:
        super().__init__(options, before, [level for level in options.checkpoints if level not in before.checkpoints])
        self.before = before
        self.targets = StepTargets(options.until, options.record, options.checkpoints)
        net, self.kept = float64_net(before.net)
        names = tuple(name for name, value in net.named_parameters() if value.requires_grad)
        q = all_margins(net, self.data)
        weights = torch.softmax(-q.flatten(), 0).view_as(q)
        self.point = SeparatedState(net, names, q, options.loss, *self.start, weights)
        self.stepper = SeparatedStepper(self.data, self.degree())
        self.dt = 0.02 * math.exp(self.point.log_rho) / length(self.velocity(weights))
        if isinstance(before.net, PolyReLUNet):
            self.reference = ReferenceDirections.from_net(before.net, self.data)
        self.counts = before.counts | {name: before.counts.get(name, 0.0) for name in ("late_steps", "late_rejected")}
        self.gave_up = False

    def degree(self) -> float | None:
        """The degree L of a homogeneous net in theta, else None: by Euler, <theta, grad q> = L q for every q."""
        q, weights, theta = self.point.q, self.point.weights, gradients.theta(self.point)

        def along(weights: Tensor) -> float:
            velocity = self.velocity(weights)
            return sum(float((theta[name] * velocity[name]).sum()) for name in self.point.names)

        degree = along(weights) / float((weights * q.nan_to_num(posinf=0.0)).sum())
        smallest = torch.zeros_like(weights).flatten()
        smallest[q.flatten().argmin()] = 1.0
        again = along(smallest.view_as(q)) / float(q.min())
        return degree if abs(degree - again) < 1e-6 * degree else None

    def velocity(self, weights: Tensor) -> dict[str, Tensor]:
        """theta' at the point, were these the weights (n, C) of the constraints."""
        flat = weights.flatten()
        some = (flat > 1e-14).nonzero()[:, 0]
        X, E = gradients.constraints(self.data, some, weights.shape[1])
        return gradients.total(self.point, X, E * flat[some][:, None])

    @property
    def evaluations(self) -> float:
        """Passes over the data so far."""
        return self.before.evaluations + self.stepper.work

    def exhausted(self) -> Status | None:
        """Also where steps are rejected too often for the method to be worth it."""
        status = super().exhausted()
        if status is None and self.counts["late_rejected"] > self.counts["late_steps"] + GIVE_UP_AFTER:
            self.gave_up, status = True, Status.STEP_UNDERFLOW
        return status

    def advance(self) -> Status | None:
        """One accepted step; a status if none can be found."""
        dt, tiny = self.dt, 1e-12 * self.dt
        while dt > tiny:
            new, error = self.stepper.step(self.point, dt)
            growth = 0.9 * (self.rtol / max(error, 1e-300)) ** 0.5
            if error > self.rtol or self.stepper.falls(self.point, new):
                self.counts["late_rejected"] += 1
                often = self.counts["late_rejected"] > self.counts["late_steps"] / 2 + GATES_AFTER
                self.stepper.unknown_gates |= often
                dt = self.dt = dt * min(0.5, max(0.1, growth))
                continue
            cut = self.targets.shortened(self.point, new)
            if cut < 1:  # a shorter step to end on a target, after which the old length is tried again
                dt *= cut
                continue
            self.point = new
            self.counts["late_steps"] += 1
            self.record(new, new.log_rho, self.neuron_values(self.network()))
            self.keep_copies(new, self.network)
            self.dt = max(self.dt, dt * min(3.0, max(0.5, growth)))
            return None
        return Status.STEP_UNDERFLOW

    def network(self) -> nn.Module:
        """The net in the type it came in, with the neurons that stayed as they were."""
        return restore_dtype(self.point.net, self.before.net, self.kept)


def float64_net(net: nn.Module) -> tuple[nn.Module, Tensor | None]:
    """A float64 copy; of a PolyReLUNet only those neurons whose weights a float64 can represent."""
    polar = gradients.neurons(net)
    if polar is None or not isinstance(net, PolyReLUNet):
        return copy.deepcopy(net).double(), None
    kept = torch.minimum(polar.log_r, polar.log_s) > SMALLEST_LOG_NORM
    some = Polar(polar.u[kept], polar.q[kept], polar.log_r[kept], polar.log_s[kept])
    return PolyReLUNet.from_polar(some, like=copy.deepcopy(net).double()), kept


def restore_dtype(moved: nn.Module, like: nn.Module, kept: Tensor | None) -> nn.Module:
    """The inverse of `float64_net`: ``moved`` in the type of ``like``, with its other neurons."""
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
