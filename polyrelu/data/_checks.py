"""Checks that every recipe makes at its door: whole numbers, finite numbers, a seed, a dtype."""

from __future__ import annotations

import math
from numbers import Integral, Real

import torch

from polyrelu.errors import require


def whole(argument: str, given: object, least: int) -> None:
    """``given`` is an integer (Python's or numpy's, not a bool) and at least ``least``."""
    good = isinstance(given, Integral) and not isinstance(given, bool) and int(given) >= least
    require(good, argument, repr(given), f"a whole number >= {least}")


def number(argument: str, given: object, positive: bool = False) -> None:
    """``given`` is a finite real number, >= 0 or (``positive=True``) > 0."""
    value = float(given) if isinstance(given, Real) and not isinstance(given, bool) else math.nan
    good = math.isfinite(value) and (value > 0 if positive else value >= 0)
    require(good, argument, repr(given), f"a finite number {'> 0' if positive else '>= 0'}")


def seeded(argument: str, given: object) -> None:
    """``given`` can seed a random stream: a whole number >= 0 of any size."""
    whole(argument, given, 0)


def drawable(dtype: object) -> None:
    """Random rows are drawn in float32 or float64 only; other types are reached through ``Dataset.to``."""
    good = isinstance(dtype, torch.dtype) and dtype in (torch.float32, torch.float64)
    require(good, "dtype", dtype, "torch.float32 or torch.float64")
