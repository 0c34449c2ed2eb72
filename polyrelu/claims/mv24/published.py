"""What the figures of Min & Vidal (ICML 2024) show, read off."""

from __future__ import annotations

from collections.abc import Mapping

Curve = Mapping[float, float]

RELU_DISTANCE: Curve = {  # Fig. 2a, p = 1, by alpha
    0.01: 0.028, 0.05: 0.035, 0.1: 0.046, 0.15: 0.055, 0.2: 0.066, 0.25: 0.078, 0.3: 0.090,
}  # fmt: skip
CENTRE_DISTANCE: Curve = {0.01: 0.76e-5, 0.05: 0.95e-5, 0.1: 1.1e-5, 0.2: 1.9e-5, 0.25: 2.2e-5, 0.3: 2.7e-5}  # p = 3
ROBUST_ACCURACY: Mapping[float, Curve] = {  # Fig. 2e, by radius, for each p
    1.0: {0.30: 1.0, 0.32: 0.51, 0.34: 0.13, 0.40: 0.03},
    3.0: {0.70: 1.0, 0.75: 1.0, 0.85: 1.0, 0.88: 0.98, 0.90: 0.80, 0.93: 0.40, 0.98: 0.035},
}
