"""The joint Gaussian tail behind F = relu(s) - relu(t)."""

from __future__ import annotations

import math

from scipy.integrate import quad
from scipy.stats import norm

FAR = 12.0  # standard deviations: beyond, 4e-33 is left


def both_above(first: float, second: float, a: float, b: float) -> float:
    """P(s > first, s - t > second) for independent s ~ N(1, a^2), t ~ N(0, b^2), to 1e-12.

    The integral over s = 1 + a z > first of the density of z times Phi((s - second)/b), split where the latter rises.
    """
    low = max((first - 1) / a, -FAR)
    if low >= FAR:
        return 0.0
    rise = (second - 1) / a
    inside = [rise] if low < rise < FAR else None

    def density(z: float) -> float:
        return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) * float(norm.cdf((1 + a * z - second) / b))

    return min(1.0, float(quad(density, low, FAR, points=inside, limit=200, epsabs=1e-13, epsrel=1e-12)[0]))
