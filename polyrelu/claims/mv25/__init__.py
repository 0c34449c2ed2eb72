"""Min & Vidal, ICML 2025: what gradient flow learns on the orthonormal mixture, and that it is robust.

Here, what the figures show, read off; the same numbers are drawn beside ours.
"""

from __future__ import annotations

from collections.abc import Mapping

from polyrelu.claims.mv25.sizes import GAUSSIAN, HALF, MODELS

__all__ = ["FIG2", "FIG5", "FIG6", "FIG7", "GAUSSIAN", "HALF", "MODELS"]

Curve = Mapping[float, float]

FIG2: Mapping[str, Curve] = {  # robust accuracy by radius, for each classifier
    "ReLU": {0.205: 1.0, 0.231: 0.86, 0.256: 0.08, 0.282: 0.0},
    "MLP(4)": {0.205: 1.0, 0.231: 0.97, 0.256: 0.13, 0.282: 0.0},
    "Tanh": {0.205: 1.0, 0.231: 0.12, 0.256: 0.0},
    "LogReg": {0.205: 1.0, 0.231: 0.12, 0.256: 0.0},
    "pReLU": {0.667: 1.0, 0.692: 0.92, 0.718: 0.0},
    "Bayes": {0.667: 1.0, 0.692: 0.92, 0.718: 0.0},
}
FIG5: Mapping[str, Curve] = {  # by steps of descent
    "cosine": {0: 0.05, 200: 0.2, 240: 0.9, 260: 1.0},
    "loss": {320: 1.0, 460: 0.0},
    "distance": {380: 0.53, 490: 0.0},
}
FIG6: Mapping[str, Curve] = {"cosine": {175: 1.0}, "loss": {310: 1.0, 440: 0.0}, "distance": {460: 0.0}}
FIG7: Mapping[str, Curve] = {  # robust accuracy by radius at D = 2000, for each net and start
    "pReLU, small": {0.2: 1.0, 0.667: 1.0, 0.718: 0.0},
    "pReLU, large": {0.34: 1.0, 0.4: 0.97, 0.45: 0.87, 0.5: 0.75, 0.55: 0.66, 0.6: 0.58, 0.65: 0.36, 0.7: 0.03},
    "polynomial, small": {
        0.02: 0.96, 0.05: 0.88, 0.1: 0.59, 0.15: 0.31, 0.2: 0.16, 0.3: 0.1, 0.5: 0.05, 0.72: 0.0,
    },
    "polynomial, large": {0.05: 1.0, 0.1: 0.91, 0.15: 0.48, 0.2: 0.27, 0.3: 0.17, 0.4: 0.14, 0.5: 0.11, 0.6: 0.06},
}  # fmt: skip
