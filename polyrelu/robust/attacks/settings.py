"""Checks of the settings of an attack."""

from __future__ import annotations

import math
from numbers import Integral, Real

from polyrelu.errors import require


def whole(*, least: int = 1, **settings: object) -> None:
    """Every setting is a whole number >= ``least``."""
    for name, value in settings.items():
        good = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least
        require(good, name, value, f"a whole number >= {least}")


def positive(**settings: object) -> None:
    """Every setting is a finite number > 0."""
    for name, value in settings.items():
        good = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value) and float(value) > 0
        require(good, name, value, "a finite number > 0")
