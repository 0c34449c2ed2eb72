"""Lengths of stored rows without rounding: every float is a fraction."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def inside(changed: Array, row: Array, radius: float, norm: float) -> bool:
    """|changed - row| < radius, decided exactly; rows of any float type."""
    if math.isinf(radius):
        return True
    step = _step(changed, row)
    if norm == 2:
        return sum((one * one for one in step), Fraction(0)) < Fraction(radius) ** 2
    return (sum(step, Fraction(0)) if norm == 1 else max(step)) < Fraction(radius)


def length(changed: Array, row: Array, norm: float) -> float:
    """|changed - row|, correct to a few rounding errors of float64 whatever cancels."""
    step = np.array([float(one) for one in _step(changed, row)])
    largest = step.max()
    return float(largest * np.linalg.norm(step / largest, norm)) if largest > 0 else 0.0


def linear_radius(weight: Array, bias: float, row: Array, norm: float) -> float:
    """|<weight, row> + bias| / |weight|_dual, the real number rounded down: the radius of sign(<weight, x> + bias)."""
    entries = [Fraction(float(one)) for one in weight]
    value = sum((w * Fraction(float(x)) for w, x in zip(entries, row, strict=True)), Fraction(float(bias)))
    if norm != 2:
        size = sum(map(abs, entries)) if norm == math.inf else max(map(abs, entries))
        return _below(abs(value) / size, lambda radius: radius * size <= abs(value))
    square = sum(w * w for w in entries)
    guess = Fraction(math.sqrt(value * value / square))
    return _below(guess, lambda radius: radius * radius * square <= value * value)


def _below(guess: Fraction, fits: Any) -> float:
    found = float(guess)
    while not fits(Fraction(found)):
        found = math.nextafter(found, 0.0)
    return found


def _step(changed: Array, row: Array) -> list[Fraction]:
    pairs = zip(changed.tolist(), row.tolist(), strict=True)  # float64 holds every float32 exactly
    return [abs(Fraction(a) - Fraction(b)) for a, b in pairs]
