"""Gradient flow of a PolyReLUNet, error-controlled, indifferent to the initial scale.

    theta' = -grad L(theta),   L = (1/n) sum_i l(f(x_i), y_i)

integrated in polar coordinates (polar.py) by an adaptive Runge-Kutta pair (pair.py): on the full data when they are
few, otherwise on a surrogate whose defect the full data correct (defect.py). Neurons that have met travel as one and
inactive ones stay at home (groups.py).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from polyrelu.data import BLOCK, Dataset
from polyrelu.nets import PolyReLUNet
from polyrelu.progress import Progress
from polyrelu.train.gradient_flow.exponential_rk import Point, StepUnderflowError
from polyrelu.train.gradient_flow.merging import Roll
from polyrelu.train.gradient_flow.polar_field import Field
from polyrelu.train.gradient_flow.polar_state import State, distance, error_size
from polyrelu.train.gradient_flow.reduced_basis import Frame
from polyrelu.train.gradient_flow.surrogate import summarise
from polyrelu.train.gradient_flow.two_level import Attempt, OneLevel, TwoLevel, idle, lifted
from polyrelu.train.recorder import ReferenceDirections, median_alignment
from polyrelu.train.stopping import Landing, Status, Until
from polyrelu.train.trajectory import History, Trajectory, thinned

Watch = Callable[[dict[str, Any], State], None]  # called with every moment as it is recorded, and all neurons at it

FIRST = 0.1  # radians by which the first step may turn the neurons
LONGEST = 1e6  # clock that may pass in one step, in units of 1 / max |x|^p, the fastest a neuron can grow
STILL = 20  # steps that must move something
SHORT = 4  # useless steps of the surrogate before it is given up
ALIGNED = 0.3  # merging is tried once this share of the neurons turns slowly


def polar_flow(
    net: PolyReLUNet,
    data: Dataset,
    *,
    loss: str,
    until: Until,
    rtol: float,
    record: Sequence[float],
    surrogate: int,
    merge: bool,
    drop: bool,
    max_evaluations: float,
    progress: Progress,
    after: Trajectory | None,
    watch: Watch | None = None,
) -> Trajectory:
    """The flow of a PolyReLUNet (the door, flow.py, explains the arguments and has checked them)."""
    rows, y = source(net, data)
    full = Field(rows, y, loss=loss, p=net.p, biased=net.bias is not None)
    few = surrogate == 0 or len(y) < 8 * surrogate
    landing = Landing(until, record)
    solver = OneLevel(full) if few else TwoLevel(full, summarise(rows, y, surrogate))
    run = Run(net, solver, Recorder(ReferenceDirections.from_net(net, data), record, after, watch), after)
    run.begin(drop)
    longest = LONGEST / max(float(torch.linalg.vector_norm(rows(0, min(len(y), BLOCK)), dim=1).max()), 1e-30) ** net.p
    span = FIRST / max(run.speed(), FIRST / longest)
    status = run.settled(until, landing, max_evaluations)
    try:
        while status is None:
            attempt = run.solver.step(run.point, run.known, span=min(span, longest), tol=rtol, landing=landing)
            growth = 0.9 * (rtol / max(attempt.error, 1e-300)) ** (1 / 3) if attempt.error <= 1e9 else 0.1
            if attempt.error <= rtol:
                run.commit(attempt, rtol, merge=merge, drop=drop)
                run.report(progress)
                status = run.settled(until, landing, max_evaluations)
                span = attempt.span * (min(8.0, growth) if isinstance(run.solver, TwoLevel) else 1.0)
            else:
                run.counts["rejected"] += 1
                span = attempt.span * min(0.7, max(0.1, growth))
            run.weigh(attempt)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    except StepUnderflowError:
        status = Status.STEP_UNDERFLOW
    return run.trajectory(status)


class Recorder:
    """Keeps moments and snapshots as the flow commits its steps."""

    def __init__(
        self, probes: ReferenceDirections, times: Sequence[float], after: Trajectory | None, watch: Watch | None = None
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
            for moment in self.times:
                if abs(inner.log_t - math.log(moment)) <= 2e-6:
                    self.snapshots[moment] = roll.whole(lifted(inner, attempt.frame).state)

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
        at_home = self.probes.cosines(roll.home.u[roll.row < 0])
        for name, values in self.probes.cosines(point.state.u, frame.products).items():
            moment[name] = roll.spread(values, at_home[name]).cpu().numpy()
        self.moments = thinned([*self.moments, moment])
        if self.watch is not None:
            self.watch(moment, roll.whole(lifted(point, frame).state))


class Run:
    """A flow under way: the moving neurons, who travels with whom, what the data said last, and the record."""

    def __init__(
        self, net: PolyReLUNet, solver: OneLevel | TwoLevel, recorder: Recorder, after: Trajectory | None
    ) -> None:
        self.net, self.solver, self.recorder, self.before = net, solver, recorder, after
        self.began = time.perf_counter()
        bias = net.weight.new_zeros(net.outputs) if net.bias is None else net.bias
        self.state = State.of(net.polar(), bias.detach().clone())
        self.roll = Roll.of(self.state)
        self.counts = {"steps": 0.0, "rejected": 0.0}
        self.anchor: tuple[State, float] | None = None  # where it stood a while ago,
        self.still = False  # and whether it stands there still
        self.exact = True  # the slope at the point comes from the data, not from the surrogate
        self.short = 0  # steps of the surrogate in a row that were no longer than the pair's own

    def begin(self, drop: bool) -> None:
        """The first pass over the data."""
        clock, log_t = 0.0, -math.inf
        if self.before is not None:
            clock, log_t = float(self.before.history.clock[-1]), float(self.before.history.log_time[-1])
        slope = self.solver.full(self.state)
        self.point, self.known = Point(clock, log_t, self.state, slope), self.solver.known(self.state, slope)
        if self.before is None:
            self.recorder.note(self.point, Frame(), self.roll)
        if drop:
            self.drop(idle(slope))

    def commit(self, attempt: Attempt, rtol: float, *, merge: bool, drop: bool) -> None:
        """Take an accepted step, then see who need not travel any more, or not alone."""
        self.recorder.keep(attempt, self.roll, self.point.tau)
        self.point, self.known = attempt.point, attempt.known
        self.exact = isinstance(self.solver, OneLevel)
        self.counts["steps"] += 1
        if drop:
            self.drop(attempt.idle)
        if merge:
            self.merge(rtol)
        if self.counts["steps"] % STILL == 0:
            self.rest(rtol)

    def rest(self, rtol: float) -> None:
        """See whether state and loss stand still, within the tolerance, since STILL steps ago."""
        state, loss = self.point.state, self.point.slope.log_loss
        if self.anchor is not None and len(self.anchor[0].kappa) == len(state.kappa):
            self.still = distance(state, self.anchor[0]) < rtol and abs(loss - self.anchor[1]) < rtol / 100
        self.anchor = (state, loss)

    def report(self, progress: Progress) -> None:
        """Tell how far it is."""
        progress.update(
            time=math.exp(min(self.point.log_t, 700.0)),
            log_loss=self.point.slope.log_loss,
            evaluations=self.evaluations(),
            neurons=len(self.point.state.kappa),
        )

    def weigh(self, attempt: Attempt) -> None:
        """Step on the data themselves from here on, once the surrogate's steps are no longer than the pair's own."""
        short = isinstance(self.solver, TwoLevel) and len(attempt.inner) <= 3
        self.short = self.short + 1 if short else 0
        if self.short == SHORT and isinstance(self.solver, TwoLevel):
            self.counts["inside"] = self.solver.inside
            self.confirm()
            self.solver = OneLevel(self.solver.full)

    def drop(self, idle_rows: Tensor) -> None:
        """Leave at home those of the rows that nothing pulls which no sample activates: they never move again."""
        if not idle_rows.any():
            return
        asleep = idle_rows.clone()
        asleep[idle_rows] = self.solver.full.asleep(self.point.state.u[idle_rows])
        if asleep.any() and not asleep.all():
            state, roll = self.roll.without(self.point.state, asleep)
            point = replace(self.point, state=state, slope=self.point.slope[~asleep])
            self.roll, self.point, self.known = roll, point, self.known.map(lambda slope: slope[~asleep])

    def merge(self, bound: float) -> None:
        """Let neurons that have met travel as one, once enough of them turn slowly to be worth the look."""
        slope, p = self.point.slope, self.net.p
        slow = torch.linalg.vector_norm(slope.u, dim=1) <= 0.1 * p * slope.kappa
        if slow.double().mean() < ALIGNED:
            return
        state, roll, groups = self.roll.merged(self.point.state, p, bound)
        if len(state.kappa) <= 0.9 * len(slope.kappa):
            point = replace(self.point, state=state, slope=groups.of(slope))
            self.roll, self.point, self.known = roll, point, self.known.map(groups.of)

    def confirm(self) -> bool:
        """Replace an estimated slope by the data's word; False if it already is."""
        if self.exact:
            return False
        state = self.point.state
        slope = self.solver.full(state)
        self.point, self.known, self.exact = replace(self.point, slope=slope), self.solver.known(state, slope), True
        self.recorder.moments[-1] |= {
            "log_loss": slope.log_loss,
            "accuracy": slope.accuracy,
            "min_margin": slope.margin,
        }
        return True

    def settled(self, until: Until, landing: Landing, max_evaluations: float) -> Status | None:
        """A verdict that the data have confirmed."""
        status = self.verdict(until, landing, max_evaluations)
        return self.verdict(until, landing, max_evaluations) if status is not None and self.confirm() else status

    def verdict(self, until: Until, landing: Landing, max_evaluations: float) -> Status | None:
        """The first stop condition that holds."""
        if self.point.slope.log_loss <= landing.log_loss:
            return Status.LOSS
        if landing.ends(self.point):
            return Status.TIME
        if until.accurate and self.point.slope.accuracy >= 1:
            return Status.ACCURATE
        if until.alignment is not None and self.alignment() >= until.alignment:
            return Status.ALIGNED
        if self.still:
            return Status.STALLED
        return Status.BUDGET if self.evaluations() >= max_evaluations else None

    def alignment(self) -> float:
        """Median alignment of the neurons still under way."""
        return median_alignment(self.recorder.moments[-1], self.roll.row >= 0)

    def evaluations(self) -> float:
        """Passes over the data so far, in units of all neurons."""
        earlier = 0.0 if self.before is None else self.before.evaluations
        return earlier + self.solver.full.neuron_passes / len(self.state.kappa)

    def speed(self) -> float:
        """How fast the state moves per unit of its clock."""
        slope = self.point.slope
        return error_size(self.point.state.importance(), slope.u, slope.q, slope.kappa, slope.bias)

    def network(self, state: State) -> PolyReLUNet:
        """A network of all neurons at a state."""
        net = PolyReLUNet.from_polar(state.polar(), like=self.net)
        if net.bias is not None:
            net.bias.data.copy_(state.bias)
        return net

    def trajectory(self, status: Status) -> Trajectory:
        """What is left of the run."""
        counts = dict(self.counts)
        if isinstance(self.solver, TwoLevel):
            counts["inside"] = self.solver.inside
        counts["moving"] = float(len(self.point.state.kappa))
        counts["at_home"] = float((self.roll.row < 0).sum())
        return Trajectory(
            net=self.network(self.roll.whole(self.point.state)),
            status=status,
            history=History.of([m for m in self.recorder.moments if m["clock"] <= self.point.tau]),
            evaluations=self.evaluations(),
            seconds=time.perf_counter() - self.began + (0.0 if self.before is None else self.before.seconds),
            counts=counts,
            settings={},
            snapshots=({} if self.before is None else dict(self.before.snapshots))
            | {t: self.network(state) for t, state in sorted(self.recorder.snapshots.items())},
        )


def source(net: PolyReLUNet, data: Dataset) -> tuple[Callable[[int, int], Tensor], Tensor]:
    """Preprocessed rows by number, held in memory if the data are, and the labels."""
    dtype = net.weight.dtype
    y = data.y.to(dtype) if data.binary else data.y
    with torch.no_grad():
        if isinstance(data.X, Tensor):
            X = net.preprocess(data.X.to(dtype))
            return lambda start, stop: X[start:stop], y
    return lambda start, stop: net.preprocess(data.rows(start, stop).to(dtype)).detach(), y
