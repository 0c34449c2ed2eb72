"""Stationary directions: the attractors of du/dt = sign P_u x^(p)(u) (Min & Vidal 2024)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyrelu.bias.alignment import Preprocess, cosine_preprocess, field_sum, label_weights, tangent_part
from polyrelu.checks import checked, checked_output, finite_number, whole_number
from polyrelu.data import Dataset
from polyrelu.errors import require

MAX_STEPS = 300  # at most
STEP_ANGLE = 0.02  # radians: error of a step, and the way a start at rest goes in ten steps
REST_SINE = 1e-4  # |P field|/|field| of a start at rest
CONVERGED_SINE = 1e-9  # |P field|/|field| of an end point that needs no more work


@final
@dataclass(frozen=True)
class StationaryDirections:
    """Where starts on the sphere end, m directions, most visited first.

    ``residual``: |P field|/|field|, the sine of the angle between direction and field; for p = 1, where a direction may
    rest on the kinks of opposite rows and the field is a set, a bound on the angle to the exact resting point.
    ``growth``: the fastest rate at which a small displacement grows, in units of <u, field>: -1 at an ideal attractor,
    positive where it is not stable. ``dead``: starts that end where no row activates them.
    """

    directions: Tensor
    counts: Tensor
    residual: Tensor
    growth: Tensor
    dead: int

    @property
    def stable(self) -> Tensor:
        """Which directions attract all their neighbours."""
        return self.growth < 0


@checked
def stationary_directions(
    data: Dataset,
    p: float,
    starts: int = 500,
    seed: int = 0,
    sign: int = 1,
    *,
    preprocess: Preprocess | None = None,
    target: int | None = None,
    same: float = 0.1,
) -> StationaryDirections:
    """End points of du/dt = sign P_u x^(p)(u) on the sphere, from ``starts`` uniform directions (Min & Vidal 2024).

    Starts are drawn in all of R^D; their part outside the span of the rows decays. Each follows the flow
    with steps of its own, exact for a field that stands still during the step (a great circle towards it), until it
    rests; starts that met are merged. End points within ``same`` radians of a higher one are one, which is then
    brought to rest exactly (L-BFGS on G; for p = 1 bounded least squares over the rows that push away, all kept
    in float64). ``preprocess``, ``target``: as for `alignment_field`. O(steps n starts D + m n D^2), steps about 10-30.

    Rows without any noise are not generic: for p < 2 a start then keeps the average of the centres that activate it
    (each a resting point, not a stable one), at p = 2 it stays wherever it is in their span.
    """
    p, starts = finite_number("p", p, least=1), whole_number("starts", starts)
    require(0 < same < math.inf, "same", same, "an angle > 0")
    require(sign in (1, -1), "sign", sign, "1 or -1, the sign of the output weight")
    raw_preprocess = preprocess or cosine_preprocess(p)
    rows = (checked_output(raw_preprocess, x.double(), "preprocess") for _, x in data.blocks())
    longest = max(float(torch.linalg.vector_norm(x, dim=x.ndim - 1).max()) for x in rows)
    require(longest > 0, "data", "rows that are all preprocessed to 0", "at least one that is not")
    weight = sign * label_weights(data, target)
    source = torch.Generator().manual_seed(whole_number("seed", seed, least=0))
    u = normalised(torch.randn(starts, data.dim, generator=source, dtype=torch.float64)).to(data.y.device)

    def scaled(X: Tensor) -> Tensor:
        return raw_preprocess(X) / longest  # so that no power of a row leaves the type

    def field(u: Tensor) -> Tensor:
        return field_sum(data, u, p, scaled, lambda rows: weight[rows, None].to(u.dtype))

    ends, dead = flow_to_rest(field, u if data.dtype == torch.float64 else u.float())
    ends = ends[~dead].double()
    first, group = merge_within(ends, _height(field, ends), same)
    leaders = ends[first] if p == 1 else _iterate_to_fixed_point(field, ends[first])
    polish = _rest_on_kinks if p == 1 else _maximise
    exact = [polish(data, weight, p, scaled, u) for u in leaders]
    points = torch.stack([u for u, _ in exact]) if exact else leaders
    before, after = _height(field, leaders), _height(field, points)
    gone = (after <= 0) & (after >= 1e-6 * before)  # climbed out of the reach of every row
    _, again = merge_within(points, after, same / 10)
    visits = torch.bincount(again[group][~gone[group]], minlength=len(points))
    by_visits = [k for k in visits.argsort(descending=True, stable=True).tolist() if visits[k] > 0]
    first_of = [int(((again == k) & ~gone).nonzero()[0]) for k in by_visits]
    return StationaryDirections(
        points[first_of],
        visits[by_visits],
        torch.tensor([exact[k][1] for k in first_of], dtype=torch.float64),
        torch.tensor([_growth_rate(data, weight, p, scaled, points[k]) for k in first_of], dtype=torch.float64),
        starts - int(visits.sum()),
    )


def _height(field: Callable[[Tensor], Tensor], u: Tensor) -> Tensor:
    """p G."""
    return (u * field(u)).sum(1)


def _iterate_to_fixed_point(field: Callable[[Tensor], Tensor], u: Tensor) -> Tensor:
    """Of u, field/|field|, its field/|field|, ..., all rows at once, the best at rest: near most attractors exact."""
    best, least = u, torch.full((len(u),), 0.1, dtype=u.dtype, device=u.device)
    for _ in range(8):
        v = field(u)
        sine = sine_to_field(v, u)
        better = (sine < least) & ((u * v).sum(1) > 0)
        best, least = torch.where(better[:, None], u, best), torch.where(better, sine, least)
        u = torch.where(better[:, None], normalised(v), u)
    return best


def _maximise(data: Dataset, weight: Tensor, p: float, preprocess: Preprocess, u: Tensor) -> tuple[Tensor, float]:
    """The maximum of G on the sphere next to u, p > 1, and |P field|/|field| there."""
    from scipy.optimize import minimize

    field = _field_at(data, weight, p, preprocess, u)
    scale, sine = float(torch.linalg.vector_norm(field)), float(sine_to_field(field[None], u[None]))
    if sine < CONVERGED_SINE:
        return u, sine

    def down(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        size, u = float(np.linalg.norm(w)), torch.as_tensor(w / np.linalg.norm(w), device=weight.device)
        field = _field_at(data, weight, p, preprocess, u) / scale
        return -float(field @ u) / p, -(tangent_part(field[None], u[None])[0] / size).cpu().numpy()

    options = {"maxiter": 300, "ftol": 0.0, "gtol": 1e-10}
    found = minimize(down, u.cpu().numpy(), jac=True, method="L-BFGS-B", options=options).x
    u = normalised(torch.as_tensor(found, device=weight.device)[None])[0]
    return u, float(sine_to_field(_field_at(data, weight, p, preprocess, u)[None], u[None]))


def _rest_on_kinks(data: Dataset, weight: Tensor, p: float, preprocess: Preprocess, u: Tensor) -> tuple[Tensor, float]:
    """The maximum of G on the sphere next to u, p = 1, and the angle within which it certainly lies.

    For a constant set of active rows that pull, a their sum: G(u) = <a, u> - sum_i relu(<b_i, u>), b_i the rows that
    push times their weights, and max_{|u| <= 1} G = min |a - sum_i c_i b_i| over 0 <= c_i <= 1, at the unit residual.
    A feasible c whose value exceeds G(u) by a share e leaves 1 - cos <= e to the maximum.
    """
    from scipy.optimize import minimize

    push = (weight < 0).nonzero()[:, 0]
    B = torch.cat([weight[i : i + len(x), None] * preprocess(x.double()) for i, x in data.blocks()])
    pull, B = B[weight > 0], -B[push]
    gap = 2.0
    for _ in range(10):  # until the rows that pull stay the same
        active = pull @ u > 0
        a = pull[active].sum(0)
        size = float(torch.linalg.vector_norm(a))

        def down(c: NDArray[np.float64], a: Tensor = a, size: float = size) -> tuple[float, NDArray[np.float64]]:
            left = (a - torch.as_tensor(c, device=a.device) @ B) / size
            return 0.5 * float(left @ left), -(B @ left / size).cpu().numpy()

        start = (B @ u > 0).double().cpu().numpy()
        options = {"maxiter": 3000, "maxfun": 4000, "maxcor": 30, "ftol": 0.0, "gtol": 1e-12}
        c = minimize(down, start, jac=True, method="L-BFGS-B", bounds=[(0, 1)] * len(B), options=options).x
        left = a - torch.as_tensor(c, device=a.device) @ B
        value = float(torch.linalg.vector_norm(left))
        u = left / value
        gap = max(0.0, 1 - float(a @ u - (B @ u).relu().sum()) / value)
        if bool((active == (pull @ u > 0)).all()):
            break
    return u, float(np.arccos(max(-1.0, 1 - gap)))


def _field_at(data: Dataset, weight: Tensor, p: float, preprocess: Preprocess, u: Tensor) -> Tensor:
    """The field at one direction."""
    return field_sum(data, u[None], p, preprocess, lambda rows: weight[rows, None])[0]


def _growth_rate(data: Dataset, weight: Tensor, p: float, preprocess: Preprocess, u: Tensor) -> float:
    """Largest eigenvalue of P (d field/du) P - <u, field> on the tangent space, over <u, field>; O(n D^2).

    Rows on a kink count as what they are: those that push keep the direction there, those that pull (p < 2) do not.
    """
    slope = torch.zeros(data.dim, data.dim, dtype=torch.float64, device=u.device)
    work = torch.float64 if data.dtype == torch.float64 else torch.float32
    for start, block in data.blocks():
        x = preprocess(block.double())
        z, w = x @ u, weight[start : start + len(x)]
        kink = (z.abs() <= 1e-9 * torch.linalg.vector_norm(x, dim=1)) & (w > 0)
        if p < 2 and bool(kink.any()):
            return float("inf")
        on = (z > 0) | kink
        x, bend = x[on].to(work), (p * (p - 1) * w[on] * z[on].clamp(min=0).pow(p - 2)).to(work)
        if p > 1:
            slope += x.T @ (bend[:, None] * x)
    along = float(u @ _field_at(data, weight, p, preprocess, u))
    projection = torch.eye(len(u), dtype=u.dtype, device=u.device) - torch.outer(u, u)
    aside = 3 * float(torch.linalg.matrix_norm(slope)) + 3 * abs(along)  # u itself is no tangent: far below the others
    shaped = projection @ slope @ projection - aside * torch.outer(u, u)
    return (float(torch.linalg.eigvalsh(shaped)[-1]) - along) / abs(along)


def normalised(rows: Tensor) -> Tensor:
    """Unit rows, whatever their size; a zero row stays zero."""
    tiny = torch.finfo(rows.dtype).tiny
    rows = rows / rows.abs().amax(dim=1, keepdim=True).clamp(min=tiny)
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return rows / norms.clamp(min=tiny)


def sine_to_field(field: Tensor, u: Tensor) -> Tensor:
    """|P_u field|/|field| of each row."""
    sine: Tensor = torch.linalg.vector_norm(tangent_part(normalised(field), u), dim=1)
    return sine


def great_circle_step(u: Tensor, field: Tensor, time: Tensor) -> Tensor:
    """u' = P_u field with a constant field: tan(angle/2) to it falls as exp(-|field| t)."""
    size = torch.linalg.vector_norm(field, dim=1, keepdim=True)
    ahead = normalised(field)
    side = tangent_part(ahead, u)
    sine = torch.linalg.vector_norm(side, dim=1, keepdim=True)
    angle = torch.atan2(sine, (ahead * u).sum(1, keepdim=True))
    turn = angle - 2 * torch.atan(torch.tan(angle / 2) * torch.exp(-size * time[:, None]))
    return normalised(u * turn.cos() + normalised(side) * turn.sin())


def flow_to_rest(field: Callable[[Tensor], Tensor], u: Tensor) -> tuple[Tensor, Tensor]:
    """Follow the flow to rest: end points, and which of them nothing activates any more. Starts that met are one."""
    u, v = u.clone(), field(u)
    first, tiny = torch.linalg.vector_norm(v, dim=1), torch.finfo(u.dtype).tiny
    dead, live, follows = first == 0, (first > 0).nonzero()[:, 0], torch.arange(len(u))
    time, before = 0.3 / first.clamp(min=tiny), u.clone()
    for step in range(1, MAX_STEPS + 1):
        if not len(live):
            break
        old, slope, h = u[live], v[live], time[live]
        ahead = great_circle_step(old, slope, h)
        there = field(ahead)
        new = great_circle_step(old, (slope + there) / 2, h)
        error = torch.linalg.vector_norm(new - ahead, dim=1) / 2
        good = error < STEP_ANGLE
        u[live[good]], v[live[good]] = new[good], there[good]
        now, slope = u[live], v[live]
        size, height = torch.linalg.vector_norm(slope, dim=1), (now * slope).sum(1)
        growth = (0.8 * (STEP_ANGLE / error.clamp(min=1e-6)).sqrt()).clamp(0.3, 3)
        time[live] = (h * growth).minimum(30 / size.clamp(min=tiny))
        dead[live[size == 0]] = True
        done = (size == 0) | ((sine_to_field(slope, now) <= REST_SINE) & (height > 0))
        if step % 5 == 0:
            leader, group = merge_within(now, height, 2 * STEP_ANGLE)
            lost = (leader[group] != torch.arange(len(live))) & (height > 0)
            follows[live[lost]] = live[leader[group]][lost]
            done |= lost
        if step % 10 == 0:  # to and fro over kinks, or dying away
            done |= torch.linalg.vector_norm(now - before[live], dim=1) < STEP_ANGLE
            before[live] = now
        live = live[~done]
    while bool((follows != follows[follows]).any()):
        follows = follows[follows]
    return u[follows], dead[follows]


def merge_within(points: Tensor, height: Tensor, same: float) -> tuple[Tensor, Tensor]:
    """The points that are not within ``same`` radians of a higher one, and which of them each point belongs to."""
    group = torch.full((len(points),), -1)
    leaders: list[int] = []
    for i in height.argsort(descending=True, stable=True).tolist():
        if group[i] < 0:
            near = torch.linalg.vector_norm(points - points[i], dim=1) < same
            group[near & (group < 0)] = len(leaders)
            leaders.append(i)
    return torch.tensor(leaders, dtype=torch.long), group
