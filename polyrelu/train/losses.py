"""Losses in log domain: ``log l`` and the slope ``-dl/df`` as (log size, direction), so 1e-800 is a number.

    exponent          a = -y f                          (one logit, y = +-1)
                      a = log sum_{c != y} e^(f_c - f_y)  (C classes)
    exp               l = e^a             |dl/df| = e^a
    logistic,         l = log(1 + e^a)    |dl/df| = 1 / (1 + e^-a)
    cross_entropy     the same: with C classes, log(1 + e^a) is the cross-entropy
    squared           l = |target - f|^2 / 2,  -dl/df = target - f;  target = y or the one-hot of y

The clock of exp and logistic flows is loss time, d tau = L dt (Lyu & Li 2020 use its discrete form as a
learning rate): in it margins grow exponentially and any loss is a few steps away. A squared-loss flow
converges, so it keeps ordinary time.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from polyrelu.errors import InputError

LOSSES = ("exp", "logistic", "cross_entropy", "squared")


class LossSlopes(NamedTuple):
    """Per sample: ``log l``, and ``-dl/df = exp(log_size) * direction``."""

    log_loss: Tensor  # (n,)
    log_size: Tensor  # (n,)
    direction: Tensor  # (n, C)


def check_loss(name: str) -> str:
    """Return ``name`` if it is one of LOSSES, else say which there are."""
    if name not in LOSSES:
        raise InputError(f"loss={name}: expected one of {', '.join(LOSSES)}.")
    return name


def in_loss_time(name: str) -> bool:
    """Whether the flow of this loss is integrated in ``tau`` with ``d tau = L dt``."""
    return name != "squared"


def log_add(a: float, b: float) -> float:
    """``log(e^a + e^b)``; NaN if either is."""
    if math.isnan(a) or math.isnan(b):
        return math.nan
    gap = abs(a - b) if math.isfinite(a) and math.isfinite(b) else math.inf
    return max(a, b) + math.log1p(math.exp(-gap))


def log_mean_exp(start: float, middle: float, end: float, pieces: int = 128) -> float:
    """``log of the mean of e^g over [0, 1]``, g the parabola through its values at 0, 1/2 and 1.

    Exact for straight pieces of g, so it holds when e^g grows by hundreds of decades over a step.
    """
    if start == middle == end:
        return start
    if not math.isfinite(start + middle + end):
        return math.nan
    x = np.linspace(0, 1, pieces + 1)
    g = start * (2 * x - 1) * (x - 1) + middle * 4 * x * (1 - x) + end * x * (2 * x - 1)
    rise = np.maximum(np.abs(np.diff(g)), 1e-12)
    pieces_log = np.maximum(g[1:], g[:-1]) + np.log(-np.expm1(-rise) / rise)
    return float(np.logaddexp.reduce(pieces_log)) - math.log(pieces)


def log_softplus(a: Tensor) -> Tensor:
    """``log(log(1 + e^a))`` without underflow: ``a - e^a/2`` far left."""
    return torch.where(a < -15, a - a.clamp(max=-15).exp() / 2, functional.softplus(a.clamp(min=-15)).log())


def exponent(f: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """``a`` (n,) of the module docstring and the direction (n, C) in which the logits move to lower it."""
    if f.shape[1] == 1:
        return -y * f[:, 0], y[:, None]
    own = functional.one_hot(y, f.shape[1]).bool()
    others = f - f.gather(1, y[:, None])
    a = others.masked_fill(own, -torch.inf).logsumexp(1)
    return a, torch.where(own, torch.ones_like(f), -(others - a[:, None]).exp())


def class_margins(f: Tensor, y: Tensor) -> Tensor:
    """Margins of every sample: y f, (n, 1), or f_y - f_c for every class c, (n, C), infinite for c = y."""
    if f.shape[1] == 1:
        return y[:, None] * f
    return (f.gather(1, y[:, None]) - f).scatter(1, y[:, None], torch.inf)


def loss_slopes(name: str, f: Tensor, y: Tensor) -> LossSlopes:
    """log l and -dl/df of every sample; ``f`` is (n, C), ``y`` is +-1 for C = 1 and 0..C-1 otherwise."""
    if name == "squared":
        target = y[:, None] if f.shape[1] == 1 else functional.one_hot(y, f.shape[1]).to(f.dtype)
        gap = target - f
        return LossSlopes(gap.square().sum(1).log() - math.log(2), torch.zeros_like(f[:, 0]), gap)
    a, direction = exponent(f, y)
    if name == "exp":
        return LossSlopes(a, a, direction)
    return LossSlopes(log_softplus(a), -functional.softplus(-a), direction)
