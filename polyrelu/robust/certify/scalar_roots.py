"""Where |t - a|^2/2 + lam t^p and |u - b|^2/2 - lam u^p are stationary, in the scaled form of `_level`.

    s rho + (1-s) rho^(p-1) = a        s ups - (1-s) ups^(p-1) = b        0 <= s <= 1, p > 1, p not 2

Newton's method from the side where convexity makes it monotone: no safeguard is needed, any p will do.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


def _newton(z: Tensor, step: Callable[[Tensor], Tensor]) -> Tensor:
    """z <- step(z) until it stands still; monotone by convexity from the starts used here."""
    for _ in range(100):
        last, z = z, step(z)
        if bool(((z - last).abs() <= 4e-16 * z.abs()).all()):
            break
    return z


def own_root(a: Tensor, S: Tensor, p: float) -> Tensor:
    """rho >= 0 with s rho + (1-s) rho^(p-1) = a; convex in rho for p > 2, in rho^(p-1) for p < 2: from the right."""
    k = p - 1 if p > 2 else 1 / (p - 1)
    A = torch.where(a > 0, a, 1.0)
    one, other = (S, 1 - S) if p > 2 else (1 - S, S)  # one z + other z^k = a

    def step(z: Tensor) -> Tensor:
        power = z.pow(k - 1)
        return ((A + (k - 1) * other * power * z) / (one + k * other * power)).minimum(z)

    z = _newton((A / one).minimum((A / other).pow(1 / k)), step)
    return torch.where(a > 0, z if p > 2 else z.pow(k), 0.0)


def lower_root(b: Tensor, S: Tensor, p: float) -> Tensor:
    """p > 2: the smaller root of s ups - (1-s) ups^(p-1) = b, b > 0; concave: from the left, up to the turn."""
    k, turn = p - 1, _turn(S, p)

    def step(z: Tensor) -> Tensor:
        power = (1 - S) * z.pow(k - 1)
        slope = S - k * power
        return torch.where(slope > 0, (b - (k - 1) * power * z) / slope, turn).minimum(turn).maximum(z)

    return _newton(torch.where(b > 0, b / S, 0.0).minimum(turn), step)


def upper_root(b: Tensor, S: Tensor, cap: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """p < 2: the larger root of s ups - (1-s) ups^(p-1) = b, and whether it is <= ``cap``; convex: from the right."""
    k, turn = p - 1, _turn(S, p)
    found = (cap >= turn) & (S * cap - (1 - S) * cap.pow(k) >= b)

    def step(z: Tensor) -> Tensor:
        power = (1 - S) * z.pow(k - 1)
        slope = S - k * power
        return torch.where(slope > 0, (b + (1 - k) * power * z) / slope, turn).maximum(turn).minimum(z)

    return _newton(torch.where(found, cap, 1.0), lambda z: torch.where(found, step(z), z)), found


def _turn(S: Tensor, p: float) -> Tensor:
    """(s/((1-s)(p-1)))^(1/(p-2)), where s ups - (1-s) ups^(p-1) turns: its maximum for p > 2, its minimum below."""
    return ((S.log() - (1 - S).log() - math.log(p - 1)) / (p - 2)).exp()
