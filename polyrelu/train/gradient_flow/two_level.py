"""Two-level steps: integrate a small surrogate, and take from the full data only the surrogate's defect.

    y' = F(y) = S(y) + e,   e = F - S   (S: field of a few hundred weighted rows, see surrogate.py)

    predict   y' = S(y) + e_0 + (tau - tau_0) e_0'         with the defect extrapolated from what is known,
    evaluate  e_1 = F - S at the predicted end             the only pass over the data,
    correct   y' = S(y) + linear interpolation of e_0, e_1
    error     distance of the two ends over 3 + 3/w, w the ratio of this span to the last: by Milne's device the share
              of the corrector (1/12 of dt^3 e'') in their distance (1/12 + 1/6 + 1/(4w)); all of it without a trend

S carries the fast and stiff part (neurons in transit, contraction to reached directions), so the step is limited
only by how the small defect bends: of second order, with the surrogate free to be poor, which costs steps, never
accuracy. Between passes nothing leaves the span of the surrogate's rows and, per neuron, of its own direction and
the two defects: m + 3 coordinates instead of D.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

from polyrelu.train.gradient_flow.exponential_rk import Cut, PolarPoint, march
from polyrelu.train.gradient_flow.polar_field import Field
from polyrelu.train.gradient_flow.polar_state import PolarState, Slope, distance, tangent, unit
from polyrelu.train.gradient_flow.reduced_basis import ReducedBasis
from polyrelu.train.gradient_flow.surrogate import Surrogate
from polyrelu.train.stopping import StepTargets, gain

MICRO = 0.1  # share of the tolerance that the steps inside may spend: they are cheap


def combined(a: Slope, b: Slope, factor: float) -> Slope:
    """``a + factor b``, part by part."""
    return Slope(
        u=torch.add(a.u, b.u, alpha=factor),
        q=torch.add(a.q, b.q, alpha=factor),
        kappa=torch.add(a.kappa, b.kappa, alpha=factor),
        bias=torch.add(a.bias, b.bias, alpha=factor),
        log_loss=a.log_loss + factor * b.log_loss,
        log_rate=a.log_rate + factor * b.log_rate,
        accuracy=a.accuracy + factor * b.accuracy,
        margin=a.margin + factor * b.margin,
    )


def scaled(a: Slope, factor: float) -> Slope:
    """``factor a``."""
    return Slope(
        a.u * factor,
        a.q * factor,
        a.kappa * factor,
        a.bias * factor,
        a.log_loss * factor,
        a.log_rate * factor,
        a.accuracy * factor,
        a.margin * factor,
    )


def idle(slope: Slope) -> Tensor:
    """Rows that nothing pulls; perhaps because no sample activates them."""
    return (slope.kappa == 0) & ~slope.u.any(1)


def lifted(point: PolarPoint, basis: ReducedBasis) -> PolarPoint:
    """A point with its directions out of the coordinates of ``basis``."""
    return replace(point, state=replace(point.state, u=unit(basis.up(point.state.u))))


@dataclass(frozen=True)
class Defect:
    """From the last passes over the data: the full slope's defect at the current point, and how it changes."""

    slope: Slope
    trend: Slope | None = None  # d defect / d tau over the last step,
    span: float = 0.0  # which was this long

    def map(self, change: Callable[[Slope], Slope]) -> Defect:
        """The same after neurons were merged or dropped."""
        return Defect(change(self.slope), None if self.trend is None else change(self.trend), self.span)


@dataclass(frozen=True)
class TrialStep:
    """A step: its end, what is known there, the points inside (in the coordinates of ``basis``), span and error."""

    point: PolarPoint
    known: Defect
    inner: list[PolarPoint]
    basis: ReducedBasis
    span: float
    error: float
    idle: Tensor  # rows that nothing pulled at its last pass over the data


class TwoLevel:
    """Steps of the scheme above for one data set; neurons may be merged or dropped between them."""

    def __init__(self, full: Field, surrogate: Surrogate) -> None:
        self.full = full
        dim, rank = surrogate.basis.shape
        self.basis = surrogate.basis if rank + 3 < dim else None
        self.coarse = self._field(surrogate, surrogate.rows)
        own = surrogate.rows.new_zeros(len(surrogate.rows), 3)
        self.small = (
            self.coarse
            if self.basis is None
            else self._field(surrogate, torch.cat([surrogate.rows @ self.basis, own], dim=1))
        )
        self.dt = math.inf  # longest step inside the last one: the next begins with it
        self.inside = 0.0  # evaluations of the surrogate so far

    def _field(self, surrogate: Surrogate, rows: Tensor) -> Field:
        return Field(
            lambda start, stop: rows[start:stop],
            surrogate.y,
            loss=self.full.loss,
            p=self.full.p,
            weight=surrogate.weight,
            noise=surrogate.noise,
            biased=self.full.biased,
        )

    def known(self, state: PolarState, slope: Slope) -> Defect:
        """The surrogate's defect, from the full slope at a state."""
        return Defect(combined(slope, self.coarse(state), -1.0))

    def _inside(
        self,
        point: PolarPoint,
        known: Defect,
        span: float,
        tol: float,
        cut: Cut,
        ends: Callable[[PolarPoint], bool],
    ) -> tuple[list[PolarPoint], ReducedBasis]:
        """March the surrogate plus the known defect and its trend; the points, in coordinates of a reduced basis."""
        trend = known.trend or scaled(known.slope, 0.0)
        reduced = ReducedBasis(self.basis, [point.state.u, known.slope.u, trend.u])
        u, defect_u, trend_u = reduced.coordinates
        defect, trend = replace(known.slope, u=defect_u), replace(trend, u=trend_u)

        def forced(state: PolarState, tau: float) -> Slope:
            e = combined(defect, trend, tau - point.tau)
            e = replace(e, u=tangent(e.u, state.u), q=tangent(e.q, state.q) if e.q.shape[1] > 1 else e.q)
            self.inside += 1
            return combined(self.small(state), e, 1.0)

        state = replace(point.state, u=u)
        points = [replace(point, state=state, slope=forced(state, point.tau))]
        dt, end = min(self.dt, span), point.tau + span
        for inner, _ in march(forced, points[0], p=self.full.p, tol=tol, dt=dt, end=end, cut=cut):
            points.append(inner)
            if ends(inner):
                break
        self.dt = max(b.tau - a.tau for a, b in pairwise(points))
        return points, reduced

    def step(self, point: PolarPoint, known: Defect, *, span: float, tol: float, targets: StepTargets) -> TrialStep:
        """One predict-evaluate-correct step over ``span``, or up to where ``targets`` or a large gain ends it."""

        def enough(inner: PolarPoint) -> bool:
            return targets.ends(inner) or inner.slope.log_loss < point.slope.log_loss - gain(point)

        points, reduced = self._inside(point, known, span, MICRO * tol, targets.cut, enough)
        guess, span = lifted(points[-1], reduced), points[-1].tau - point.tau
        full = self.full(guess.state)
        after = self.known(guess.state, full).slope
        trend = scaled(combined(after, known.slope, -1.0), 1 / span)
        points, reduced = self._inside(
            point, Defect(known.slope, trend), span, MICRO * tol, targets.snap, lambda _: False
        )
        new = lifted(points[-1], reduced)
        new = replace(new, slope=combined(self.coarse(new.state), after, 1.0))
        share = 3 + 3 * known.span / span if known.trend else 1.0
        error = distance(new.state, guess.state) / share
        return TrialStep(new, Defect(after, trend, span), points, reduced, span, error, idle(full))


class OneLevel:
    """Steps of the pair on the full data, under the same contract as TwoLevel."""

    def __init__(self, full: Field) -> None:
        self.full = full

    def known(self, state: PolarState, slope: Slope) -> Defect:
        """Nothing to know but the slope itself."""
        return Defect(slope)

    def step(self, point: PolarPoint, known: Defect, *, span: float, tol: float, targets: StepTargets) -> TrialStep:
        """One accepted step, of about ``span``."""
        cut = targets.shortened
        new, following = next(march(lambda state, _: self.full(state), point, p=self.full.p, tol=tol, dt=span, cut=cut))
        return TrialStep(new, Defect(new.slope), [new], ReducedBasis(), following, 0.0, idle(new.slope))
