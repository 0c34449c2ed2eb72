"""The exponent of a measured power law."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def slope(x: Iterable[float], y: Iterable[float]) -> float:
    """d log y / d log x, by least squares."""
    return float(np.polyfit(np.log([*x]), np.log([*y]), 1)[0])
