"""Gradient flow of a PolyReLUNet, error-controlled, indifferent to the initial scale.

Integrated in polar coordinates (polar_field.py) by an adaptive Runge-Kutta pair (exponential_rk.py): on the full data
when they are few, otherwise on a surrogate whose defect the full data correct (surrogate_steps.py). Neurons whose
directions agree are merged, and those that no sample activates are left out (merging.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from polyrelu.data import BLOCK, Dataset
from polyrelu.nets import PolyReLUNet
from polyrelu.train.gradient_flow.exponential_rk import PolarPoint, StepUnderflowError
from polyrelu.train.gradient_flow.merging import MergeState
from polyrelu.train.gradient_flow.polar_field import Field, PolarState, distance, error_size
from polyrelu.train.gradient_flow.surrogate_steps import OneLevel, ReducedBasis, TrialStep, TwoLevel, idle, lifted
from polyrelu.train.stopping import TIME_TOLERANCE, Status
from polyrelu.train.training_run import FlowOptions, GradientFlow, ReferenceDirections
from polyrelu.train.trajectory import Trajectory

FIRST_TURN = 0.1  # radians by which the first step may turn the neurons
LONGEST_STEP = 1e6  # clock that may pass in one step, in units of 1 / max |x|^p, the fastest a neuron can grow
STALL_STEPS = 20  # steps that must move something
SHORT_STEPS = 4  # useless steps of the surrogate before it is given up
SLOW_SHARE = 0.3  # merging is tried once this share of the neurons turns slowly


class PolarFlow(GradientFlow):
    """The flow of a PolyReLUNet, under way: its moving neurons, and how all others follow from them."""

    point: PolarPoint
    reference: ReferenceDirections
    time_tolerance = TIME_TOLERANCE

    def __init__(self, net: PolyReLUNet, options: FlowOptions, after: Trajectory | None) -> None:
        super().__init__(options, after)
        self.net = net
        rows, y = source(net, options.data)
        full = Field(rows, y, loss=options.loss, p=net.p, biased=net.bias is not None)
        few = options.surrogate == 0 or len(y) < 8 * options.surrogate
        self.solver = OneLevel(full) if few else TwoLevel(full, options.surrogate)
        self.reference = ReferenceDirections.from_net(net, options.data)
        bias = net.weight.new_zeros(net.outputs) if net.bias is None else net.bias
        state = PolarState.from_polar(net.polar(), bias.detach().clone())
        self.merging = MergeState.unmerged(state)
        self.counts = {"steps": 0.0, "rejected": 0.0}
        self.earlier: tuple[PolarState, float] | None = None  # state and log loss some steps ago,
        self.still = False  # and whether they are the same now
        self.exact = True  # the slope at the point comes from the data, not from the surrogate
        self.short = 0  # steps of the surrogate in a row that were no longer than the pair's own
        self.last: TrialStep | None = None
        slope = full(state)
        self.point, self.known = PolarPoint(*self.start, state, slope), self.solver.known(state, slope)
        if after is None:
            self.note(self.point, ReducedBasis())
        if options.drop:
            self.drop(idle(slope))
        size = float(torch.linalg.vector_norm(rows(0, min(len(y), BLOCK)), dim=1).max())
        self.longest = LONGEST_STEP / max(size, 1e-30) ** net.p
        self.span = FIRST_TURN / max(self.speed(), FIRST_TURN / self.longest)

    def advance(self) -> Status | None:
        """Steps of the solver until one is accepted."""
        rtol = self.rtol
        while True:
            self.judge_surrogate()
            span = min(self.span, self.longest)
            try:
                trial = self.solver.step(self.point, self.known, span=span, tol=rtol, targets=self.targets)
            except StepUnderflowError:
                return Status.STEP_UNDERFLOW
            self.last = trial
            growth = 0.9 * (rtol / max(trial.error, 1e-300)) ** (1 / 3) if trial.error <= 1e9 else 0.1
            if trial.error <= rtol:
                self.span = trial.span * (min(8.0, growth) if isinstance(self.solver, TwoLevel) else 1.0)
                self.commit(trial)
                return None
            self.counts["rejected"] += 1
            self.span = trial.span * min(0.7, max(0.1, growth))

    def commit(self, trial: TrialStep) -> None:
        """Take an accepted step, then drop and merge neurons."""
        for inner in trial.inner:
            if inner.tau > self.point.tau:
                self.note(inner, trial.basis)
            self.keep_copies(inner, partial(self.network, inner, trial.basis))
        self.point, self.known = trial.point, trial.known
        self.exact = isinstance(self.solver, OneLevel)
        self.counts["steps"] += 1
        if self.options.drop:
            self.drop(trial.idle)
        if self.options.merge:
            self.merge()
        if self.counts["steps"] % STALL_STEPS == 0:
            self.look_for_stall()
        self.moving_neurons = len(self.point.state.kappa)

    def note(self, point: PolarPoint, basis: ReducedBasis) -> None:
        """Record a point, whose directions are in the coordinates of ``basis``, for all neurons."""
        merging = self.merging
        neurons = {"log_contribution": merging.log_contribution(point.state).cpu().numpy()}
        inactive = self.reference.cosines(merging.reference.u[merging.row < 0])
        for name, values in self.reference.cosines(point.state.u, basis.products).items():
            neurons[name] = merging.spread(values, inactive[name]).cpu().numpy()
        self.record(point, merging.log_rho(point.state), neurons)
        if self.options.watch is not None:
            self.options.watch(self.moments[-1], merging.whole(lifted(point, basis).state))

    def look_for_stall(self) -> None:
        """Whether state and loss are, within the tolerance, what they were STALL_STEPS ago."""
        state, loss = self.point.state, self.point.slope.log_loss
        if self.earlier is not None and len(self.earlier[0].kappa) == len(state.kappa):
            self.still = distance(state, self.earlier[0]) < self.rtol and abs(loss - self.earlier[1]) < self.rtol / 100
        self.earlier = (state, loss)

    def judge_surrogate(self) -> None:
        """Step on the data themselves from here on, once the surrogate's steps are no longer than the pair's own."""
        if self.last is None or not isinstance(self.solver, TwoLevel):
            return
        self.short = self.short + 1 if len(self.last.inner) <= 3 else 0
        if self.short == SHORT_STEPS:
            self.counts["inside"] = self.solver.inside
            self.confirm()
            self.solver = OneLevel(self.solver.full)

    def drop(self, idle_rows: Tensor) -> None:
        """Leave out those of the rows that nothing pulls which no sample activates: they never move again."""
        if not idle_rows.any():
            return
        inactive = idle_rows.clone()
        inactive[idle_rows] = self.solver.full.inactive(self.point.state.u[idle_rows])
        if inactive.any() and not inactive.all():
            state, merging = self.merging.without(self.point.state, inactive)
            self.merging, self.point = merging, replace(self.point, state=state, slope=self.point.slope[~inactive])
            self.known = self.known.map(lambda slope: slope[~inactive])

    def merge(self) -> None:
        """Merge neurons whose directions agree, once enough of them turn slowly for that to be likely."""
        slope, p = self.point.slope, self.net.p
        slow = torch.linalg.vector_norm(slope.u, dim=1) <= 0.1 * p * slope.kappa
        if slow.double().mean() < SLOW_SHARE:
            return
        state, merging, groups = self.merging.merged(self.point.state, p, self.rtol)
        if len(state.kappa) <= 0.9 * len(slope.kappa):
            self.merging, self.point = merging, replace(self.point, state=state, slope=groups.mean_slope(slope))
            self.known = self.known.map(groups.mean_slope)

    def confirm(self) -> bool:
        """Replace an estimated slope by that of the data; False if it already is."""
        if self.exact:
            return False
        state = self.point.state
        slope = self.solver.full(state)
        self.point, self.known, self.exact = replace(self.point, slope=slope), self.solver.known(state, slope), True
        self.moments[-1] |= {
            "log_loss": slope.log_loss,
            "accuracy": slope.accuracy,
            "min_margin": slope.margin,
        }
        return True

    def stop(self) -> Status | None:
        """A stop condition that holds on the data, not only by the estimate of the surrogate."""
        status = super().stop()
        return super().stop() if status is not None and self.confirm() else status

    def exhausted(self) -> Status | None:
        """Also where nothing moves any more."""
        return Status.STALLED if self.still else super().exhausted()

    def interrupted(self) -> None:
        """The record may be ahead of the point."""
        self.moments = [moment for moment in self.moments if moment["clock"] <= self.point.tau]

    def alignment(self, moving: Tensor | None = None) -> float:
        """Median alignment of the neurons still moving."""
        return super().alignment(self.merging.row >= 0)

    @property
    def evaluations(self) -> float:
        """Passes over the data so far, in units of all neurons."""
        earlier = 0.0 if self.after is None else self.after.evaluations
        return earlier + self.solver.full.neuron_passes / len(self.merging.row)

    def speed(self) -> float:
        """How fast the state moves per unit of its clock."""
        slope = self.point.slope
        return error_size(self.point.state.importance(), slope.u, slope.q, slope.kappa, slope.bias)

    def totals(self) -> dict[str, float]:
        """Also evaluations of the surrogate, rows still moving and neurons left out."""
        inside = {"inside": float(self.solver.inside)} if isinstance(self.solver, TwoLevel) else {}
        rows = {"moving": float(len(self.point.state.kappa)), "inactive": float((self.merging.row < 0).sum())}
        return self.counts | inside | rows

    def network(self, inner: PolarPoint | None = None, basis: ReducedBasis | None = None) -> PolyReLUNet:
        """A network of all neurons at the point, or at one inside a step, in the coordinates of ``basis``."""
        state = self.point.state if inner is None or basis is None else lifted(inner, basis).state
        state = self.merging.whole(state)
        net = PolyReLUNet.from_polar(state.polar(), like=self.net)
        if net.bias is not None:
            net.bias.data.copy_(state.bias)
        return net


def source(net: PolyReLUNet, data: Dataset) -> tuple[Callable[[int, int], Tensor], Tensor]:
    """Preprocessed rows by number, in memory if the data are, and the labels."""
    dtype = net.weight.dtype
    y = data.y.to(dtype) if data.binary else data.y
    with torch.no_grad():
        if isinstance(data.X, Tensor):
            X = net.preprocess(data.X.to(dtype))
            return lambda start, stop: X[start:stop], y
    return lambda start, stop: net.preprocess(data.rows(start, stop).to(dtype)).detach(), y
