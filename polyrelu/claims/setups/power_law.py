"""The exponent of a measured power law."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def slope(values: Mapping[float, float]) -> float:
    """d log value / d log place over the values by place, by least squares."""
    x, y = np.log(np.array(list(values.items()))).T
    return float(np.polyfit(x, y, 1)[0])
