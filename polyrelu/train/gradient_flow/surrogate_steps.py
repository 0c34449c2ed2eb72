"""Two-level steps: integrate a small surrogate, and take from the full data only the surrogate's defect.

    y' = F(y) = S(y) + e,   e = F - S   (S: field of a few hundred weighted rows)

    predict   y' = S(y) + e_0 + (tau - tau_0) e_0'         with the defect extrapolated from what is known,
    evaluate  e_1 = F - S at the predicted end             the only pass over the data,
    correct   y' = S(y) + linear interpolation of e_0, e_1
    error     distance of the two ends over 3 + 3/w, w the ratio of this span to the last: by Milne's device the share
              of the corrector (1/12 of dt^3 e'') in their distance (1/12 + 1/6 + 1/(4w)); all of it without a trend

S carries the fast and stiff part (neurons in transit, contraction to reached directions), so the step is limited
only by how the small defect bends: of second order, with the surrogate free to be poor, which costs steps, never
accuracy. Rows of the surrogate are means of groups around a stratified random choice (one pass of k-means, within
classes), with their shares and scatter. Between passes nothing leaves the span of these m rows and, per neuron, of its
own direction and the two defects: m + 3 coordinates instead of D.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from polyrelu.data import BLOCK
from polyrelu.train.gradient_flow.exponential_rk import Cut, PolarPoint, march
from polyrelu.train.gradient_flow.polar_field import Field, PolarState, Slope, distance, tangent, unit
from polyrelu.train.stopping import StepTargets, gain

MICRO = 0.1  # share of the tolerance that the steps inside may spend: they are cheap


@dataclass(frozen=True)
class Surrogate:
    """Group means (m, D), their labels, shares and scatter (standard deviation per direction), and a basis (D, m)."""

    rows: Tensor
    y: Tensor
    weight: Tensor
    noise: Tensor
    basis: Tensor


def summarise(rows: Callable[[int, int], Tensor], y: Tensor, size: int, seed: int = 0) -> Surrogate:
    """Summarise n rows by at most about ``size`` groups; two passes over the data, O(n size D)."""
    chosen = stratified(y, size, torch.Generator().manual_seed(seed))
    n = len(y)
    spans = [(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]
    seeds = torch.cat([rows(a, b)[chosen[(chosen >= a) & (chosen < b)] - a] for a, b in spans])
    labels, squares = y[chosen], seeds.square().sum(1)
    total, share, spread = torch.zeros_like(seeds), torch.zeros_like(squares), torch.zeros_like(squares)
    for a, b in spans:
        x = rows(a, b)
        distance = torch.addmm(squares, x, seeds.T, alpha=-2)
        distance.masked_fill_(labels != y[a:b, None], math.inf)
        group = distance.argmin(1)
        total.index_add_(0, group, x)
        share.index_add_(0, group, torch.ones_like(x[:, 0]))
        spread.index_add_(0, group, x.square().sum(1))
    kept = share > 0
    total, share, spread, labels = total[kept], share[kept], spread[kept], labels[kept]
    mean = total / share[:, None]
    scatter = (spread / share - mean.square().sum(1)).clamp(min=1e-12) / mean.shape[1]
    basis = torch.linalg.qr(mean.T.double())[0].to(mean.dtype)
    return Surrogate(mean, labels, share / n, scatter.sqrt(), basis)


def stratified(y: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Sorted row numbers, about ``size`` of them, drawn from each class in proportion and at least one from each."""
    picks = []
    for label in torch.unique(y):
        members = torch.nonzero(y == label)[:, 0]
        count = max(1, round(size * len(members) / len(y)))
        picks.append(members[torch.randperm(len(members), generator=generator).to(y.device)[:count]])
    return torch.cat(picks).sort().values


def combined(a: Slope, b: Slope, factor: float) -> Slope:
    """``a + factor b``, part by part."""

    def sum_of(x: Any, y: Any) -> Any:
        return torch.add(x, y, alpha=factor) if isinstance(x, Tensor) else x + factor * y

    return Slope(*map(sum_of, vars(a).values(), vars(b).values()))


def scaled(a: Slope, factor: float) -> Slope:
    """``factor a``."""
    return Slope(*(part * factor for part in vars(a).values()))


def idle(slope: Slope) -> Tensor:
    """Rows that nothing pulls; perhaps because no sample activates them."""
    return (slope.kappa == 0) & ~slope.u.any(1)


class ReducedBasis:
    """Coordinates of each neuron in the surrogate's span and in three directions of its own.

    The own directions are those of the given vectors (state, defect, trend) after the span is taken out of them;
    ``coordinates`` holds the vectors themselves. Without a basis this is the identity.
    """

    def __init__(self, basis: Tensor | None = None, vectors: Sequence[Tensor] = ()) -> None:
        self.basis, self.own = basis, list[Tensor]()
        self.coordinates = list(vectors)
        if basis is None:
            return
        self.coordinates = []
        for vector in vectors:
            inner = vector @ basis
            rest = vector - inner @ basis.T
            along = []
            for direction in self.own:
                along.append((rest * direction).sum(1, keepdim=True))
                rest = rest - along[-1] * direction
            size = torch.linalg.vector_norm(rest, dim=1, keepdim=True)
            size = size.where(size > 1e-6 * torch.linalg.vector_norm(vector, dim=1, keepdim=True), 0)
            self.own.append(torch.where(size > 0, rest / size, 0))
            empty = [torch.zeros_like(size)] * (len(vectors) - len(self.own))
            self.coordinates.append(torch.cat([inner, *along, size, *empty], dim=1))

    def up(self, coordinates: Tensor) -> Tensor:
        """Rows with these coordinates."""
        if self.basis is None:
            return coordinates
        rank = self.basis.shape[1]
        vector = coordinates[:, :rank] @ self.basis.T
        for k, direction in enumerate(self.own):
            vector.addcmul_(direction, coordinates[:, rank + k : rank + k + 1])
        return vector

    def products(self, coordinates: Tensor, vectors: Tensor) -> Tensor:
        """Inner products of the rows with these coordinates and the given vectors (k, D)."""
        if self.basis is None:
            return coordinates @ vectors.T
        rank = self.basis.shape[1]
        found = coordinates[:, :rank] @ (vectors @ self.basis).T
        for k, direction in enumerate(self.own):
            found.addcmul_(direction @ vectors.T, coordinates[:, rank + k : rank + k + 1])
        return found


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

    def __init__(self, full: Field, size: int) -> None:
        self.full, surrogate = full, summarise(full.rows, full.y, size)

        def field(rows: Tensor) -> Field:
            return Field(
                lambda start, stop: rows[start:stop],
                surrogate.y,
                loss=full.loss,
                p=full.p,
                weight=surrogate.weight,
                noise=surrogate.noise,
                biased=full.biased,
            )

        dim, rank = surrogate.basis.shape
        self.basis = surrogate.basis if rank + 3 < dim else None
        self.coarse = self.small = field(surrogate.rows)
        if self.basis is not None:
            own = surrogate.rows.new_zeros(len(surrogate.rows), 3)
            self.small = field(torch.cat([surrogate.rows @ self.basis, own], dim=1))
        self.dt = math.inf  # longest step inside the last one: the next begins with it
        self.inside = 0.0  # evaluations of the surrogate so far

    def known(self, state: PolarState, slope: Slope) -> Defect:
        """The surrogate's defect, from the full slope at a state."""
        return Defect(combined(slope, self.coarse(state), -1.0))

    def _inside(
        self, point: PolarPoint, known: Defect, span: float, tol: float, cut: Cut, ends: Callable[[PolarPoint], bool]
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
        interpolated = Defect(known.slope, trend)
        points, reduced = self._inside(point, interpolated, span, MICRO * tol, targets.snap, lambda _: False)
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
