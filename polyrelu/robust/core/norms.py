"""The three norms: lengths, duals, projections."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from polyrelu.errors import require

NORMS = (1.0, 2.0, math.inf)
BOX_ROUNDS = 8  # l2 in a box: in each round the coordinates that reached a face stop, and the others go farther


def check_norm(norm: float | str) -> float:
    """1, 2 or inf ("inf" and "linf" are understood), as a float."""
    names = {"1": 1.0, "l1": 1.0, "2": 2.0, "l2": 2.0, "inf": math.inf, "linf": math.inf}
    try:
        value = names.get(norm.lower(), math.nan) if isinstance(norm, str) else float(norm)
    except (TypeError, ValueError):
        value = math.nan
    require(value in NORMS, "norm", norm, "1, 2 or inf")
    return value


def dual(norm: float) -> float:
    """The norm q with |<a, b>| <= |a|_norm |b|_q: 1 and inf change places, 2 is its own."""
    return {1.0: math.inf, 2.0: 2.0, math.inf: 1.0}[norm]


def lengths(rows: Tensor, norm: float, dtype: torch.dtype | None = None) -> Tensor:
    """|row| for each row (over the last dimension), computed in ``dtype`` if given.

    Where squares under- or overflow, the largest entry times the length of row / largest entry.
    """
    length: Tensor = torch.linalg.vector_norm(rows, ord=norm, dim=-1, dtype=dtype)
    if norm != 2 or not rows.numel():
        return length
    kind = torch.finfo(length.dtype)
    lost = ~(length > math.sqrt(rows.shape[-1] * kind.tiny / kind.eps)) | length.isinf()
    if not bool(lost.any()):
        return length
    largest = rows.abs().amax(dim=-1, keepdim=True)
    largest = torch.where((largest > 0) & largest.isfinite(), largest, 1.0).to(length.dtype)
    return torch.where(lost, torch.linalg.vector_norm(rows / largest, dim=-1) * largest[..., 0], length)


def unit(rows: Tensor) -> Tensor:
    """row / |row|_2, exactly: no guard in the denominator, nothing under- or overflows; a zero row stays zero."""
    largest = rows.abs().amax(dim=-1, keepdim=True)
    scaled = rows / torch.where(largest > 0, largest, 1.0)
    length: Tensor = torch.linalg.vector_norm(scaled, dim=-1, keepdim=True)
    return scaled / length.clamp(min=1)  # it is >= 1 unless the row is zero


def steepest(slopes: Tensor, norm: float) -> Tensor:
    """argmax <slope, d> over |d|_norm <= 1: g/|g|_2, sign(g), or the largest entry's signed basis vector (l1).

    A zero slope gives a zero row: there is nowhere to go.
    """
    if norm == 2:
        return unit(slopes)
    if norm == math.inf:
        return slopes.sign()
    top = slopes.abs().argmax(dim=-1, keepdim=True)
    return torch.zeros_like(slopes).scatter(-1, top, slopes.gather(-1, top).sign())


def project(rows: Tensor, radius: Tensor, norm: float) -> Tensor:
    """The point of the ball {|d|_norm <= radius} nearest to each row in l2; rows inside are not touched.

    l2 scales, l-infinity clamps, l1 shrinks every entry by the same theta >= 0 (Duchi et al., ICML 2008).
    """
    radius = radius[:, None]
    if norm == math.inf:
        return torch.minimum(torch.maximum(rows, -radius), radius)
    length = lengths(rows, norm)[:, None]
    if norm == 2:
        return torch.where(length > radius, unit(rows) * radius, rows)
    sizes = rows.abs().sort(dim=1, descending=True).values
    count = torch.arange(1, rows.shape[1] + 1, device=rows.device)
    thetas = (sizes.cumsum(dim=1) - radius) / count
    last = (sizes > thetas).sum(dim=1, keepdim=True).clamp(min=1) - 1
    shrunk = rows.sign() * (rows.abs() - thetas.gather(1, last)).clamp(min=0)
    return torch.where(length > radius, shrunk, rows)


def linear_minimiser(slopes: Tensor, radius: Tensor, norm: float, slack: tuple[Tensor, Tensor] | None = None) -> Tensor:
    """argmin <slope, d> over |d|_norm <= radius and, with ``slack`` = (below, above), -below <= d <= above.

    l-infinity: every coordinate as far as it may go. l1: the steepest coordinates first, each up to the box, until the
    radius is used up. l2: d = -min(t |g|, slack) sign(g), t raised from r/|g| until |d| = r; never beyond.
    """
    radius = radius[:, None]
    if slack is None:
        return -radius * steepest(slopes, norm)
    size = slopes.abs()
    free = torch.where(slopes > 0, *slack) * (size > 0)
    if norm == math.inf:
        return -slopes.sign() * torch.minimum(free, radius)
    if norm == 1:
        order = (size * (free > 0)).argsort(dim=1, descending=True)
        most = free.gather(1, order)
        share = torch.minimum(most, (radius - (most.cumsum(dim=1) - most)).clamp(min=0))
        return -slopes.sign() * torch.zeros_like(free).scatter(1, order, share)
    size = unit(size)
    time = radius
    for _ in range(BOX_ROUNDS):
        stopped = time * size >= free
        left = radius.square() - (free * stopped).square().sum(dim=1, keepdim=True)
        going = (size * ~stopped).square().sum(dim=1, keepdim=True)
        time = torch.where(
            (left > 0) & (going > 0), (left / torch.where(going > 0, going, 1.0)).clamp(min=0).sqrt(), time
        )
    return -slopes.sign() * torch.minimum(time * size, free)


def to_hyperplane(slopes: Tensor, values: Tensor, norm: float, slack: tuple[Tensor, Tensor] | None = None) -> Tensor:
    """The shortest d in ``norm`` with value + <slope, d> = 0 (Croce & Hein, ICML 2020: FAB, eq. 4-6).

    ``slack`` = (below, above), both >= 0 and shaped like the slopes, keeps -below <= d <= above; where the plane is
    out of reach, d goes as far towards it as the box lets it. Zero slopes give zero rows.
    """
    size = lengths(slopes, dual(norm))
    size = torch.where(size > 0, size, torch.inf)
    toward = -values.sign()[:, None] * slopes
    if slack is None:
        return (values.abs() / size)[:, None] * steepest(toward, norm)
    w = toward.abs() / size[:, None]
    need = (values.abs() / size)[:, None]
    free = torch.where(toward > 0, slack[1], slack[0]) * (w > 0)
    if norm == 1:  # fill the steepest coordinates first, up to the box
        order = w.argsort(dim=1, descending=True)
        gain = (w * free).gather(1, order)
        missing = (need - (gain.cumsum(dim=1) - gain)).clamp(min=0)
        share = torch.minimum(gain, missing) / w.gather(1, order).clamp(min=torch.finfo(w.dtype).tiny)
        return toward.sign() * torch.zeros_like(w).scatter(1, order, share)
    speed = w if norm == 2 else (w > 0).to(w)  # d = min(free, time * speed): find the time
    stop = free / torch.where(w > 0, speed, 1.0)
    order = stop.argsort(dim=1)
    gain, rate = (w * free).gather(1, order), (w * speed).gather(1, order)
    before, going = gain.cumsum(dim=1) - gain, rate.flip(1).cumsum(dim=1).flip(1)
    reached = before + stop.gather(1, order) * going >= need
    first = torch.where(reached.any(dim=1), reached.int().argmax(dim=1), w.shape[1] - 1)[:, None]
    going = going.gather(1, first)
    time = (need - before.gather(1, first)) / torch.where(going > 0, going, torch.inf)
    return toward.sign() * torch.minimum(free, time * speed)
