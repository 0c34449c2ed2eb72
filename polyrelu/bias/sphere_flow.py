"""Following a field of directions on the sphere, u' = P_u field(u), from many starts at once until they rest."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from polyrelu.bias.alignment_field import tangent_part

MAX_STEPS = 300  # at most
STEP_ANGLE = 0.02  # radians: error of a step, and the way a start at rest goes in ten steps
REST_SINE = 1e-4  # |P field|/|field| of a start at rest


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
