"""Min & Vidal, ICML 2024: what small starts make nets learn, and how robust that is.

Here, what is published in figures (read off), in Table 1 and on the poster; the same numbers are drawn beside ours.
"""

from __future__ import annotations

from collections.abc import Mapping

from polyrelu.claims.mv24.sizes import DIGIT_CURVE

__all__ = [
    "CENTRE_DISTANCE",
    "FIRST_RANKS",
    "LAST_RANKS",
    "POSTER",
    "POSTER_RADII",
    "RELU_DISTANCE",
    "ROBUST_ACCURACY",
    "TABLE1",
    "Curve",
]

Curve = Mapping[float, float]

RELU_DISTANCE: Curve = {  # Fig. 2a, p = 1, by alpha
    0.01: 0.028, 0.05: 0.035, 0.1: 0.046, 0.15: 0.055, 0.2: 0.066, 0.25: 0.078, 0.3: 0.090,
}  # fmt: skip
CENTRE_DISTANCE: Curve = {0.01: 0.76e-5, 0.05: 0.95e-5, 0.1: 1.1e-5, 0.2: 1.9e-5, 0.25: 2.2e-5, 0.3: 2.7e-5}  # p = 3
ROBUST_ACCURACY: Mapping[float, Curve] = {  # Fig. 2e, by radius, for each p
    1.0: {0.30: 1.0, 0.32: 0.51, 0.34: 0.13, 0.40: 0.03},
    3.0: {0.70: 1.0, 0.75: 1.0, 0.85: 1.0, 0.88: 0.98, 0.90: 0.80, 0.93: 0.40, 0.98: 0.035},
}
TABLE1: Mapping[tuple[str, float], tuple[float | None, ...]] = {  # ten digits, by norm and radius; p = 1, 2, 3, 4
    ("l∞", 0.05): (0.512, 0.837, 0.887, 0.913),
    ("l∞", 0.1): (0.040, 0.346, 0.521, 0.637),
    ("l2", 1.0): (0.301, None, None, 0.775),
    ("l2", 2.0): (0.007, None, None, 0.239),
    ("l1", 5.0): (0.500, None, None, 0.807),
    ("l1", 10.0): (0.098, None, None, 0.402),
}
POSTER_RADII = DIGIT_CURVE["paper"]
POSTER: Mapping[int, tuple[float, ...]] = {  # robust accuracy in l-infinity at these radii by p, read off within .005
    1: (0.942, 0.844, 0.639, 0.386, 0.203, 0.098, 0.041, 0.013, 0, 0, 0, 0, 0, 0),
    2: (0.965, 0.933, 0.881, 0.790, 0.654, 0.494, 0.346, 0.230, 0.143, 0.086, 0.049, 0.026, 0.013, 0.007),
    3: (0.96, 0.947, 0.915, 0.860, 0.772, 0.653, 0.521, 0.390, 0.285, 0.195, 0.131, 0.085, 0.052, 0.029),
    4: (0.970, 0.955, 0.929, 0.891, 0.828, 0.742, 0.636, 0.531, 0.435, 0.348, 0.268, 0.192, 0.125, 0.075),
}
FIRST_RANKS, LAST_RANKS = (3.1, 5.5, 9.7, 15.9), (3.13, 5.48, 7.21, 8.19)  # stable ranks for p = 1, 2, 3, 4
