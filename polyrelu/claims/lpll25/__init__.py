"""Li et al., ICLR 2025: averages of features or single clusters, and the talk on what training maximises.

Here, what Fig. 3 shows, read off: robust accuracy by l2 radius; and what figures call nets, read-outs and attacks.
"""

from __future__ import annotations

from collections.abc import Mapping

from polyrelu.claims.lpll25.sizes import (
    AVERAGED,
    CLUSTERS,
    DECOUPLED,
    LARGEST,
    LOGIT_READ_OUT,
    NETS,
    ODDS_READ_OUT,
    OWN_LOSS_PGD,
    PUBLISHED_DIM,
    READ_OUT_PGD,
    STRONGEST,
    SUM_READ_OUT,
    SUMMED,
    TEN_LABELS,
    TWO_LABELS,
)

__all__ = [
    "AVERAGED",
    "CLUSTERS",
    "DECOUPLED",
    "FIG3",
    "FIG3_IMAGES",
    "LOGIT_READ_OUT",
    "NETS",
    "ODDS_READ_OUT",
    "OWN_LOSS_PGD",
    "PUBLISHED_DIM",
    "READ_OUT_PGD",
    "STRONGEST",
    "SUMMED",
    "SUM_READ_OUT",
    "TEN_LABELS",
    "TWO_LABELS",
]

_DECOUPLED = {34: 1.0, 36: 0.86, 38: 0.35, 40: 0.15, 42: 0.04, 44: 0.0}
FIG3: Mapping[str, Mapping[int, float]] = {  # left, d = 3072; the curve of cluster labels beside both read-outs
    AVERAGED: {12: 1.0, 14: 0.90, 16: 0.31, 18: 0.02, 20: 0.0},
    SUMMED: _DECOUPLED,
    LARGEST: _DECOUPLED,
}
FIG3_IMAGES: Mapping[str, Mapping[str, Mapping[float, float]]] = {  # middle and right, ResNet-18
    "parity": {
        TEN_LABELS: {0.4: 0.978, 0.8: 0.928, 1.0: 0.878, 1.6: 0.558, 2.0: 0.282},
        TWO_LABELS: {0.4: 0.962, 0.8: 0.864, 1.0: 0.753, 1.6: 0.237, 2.0: 0.070},
    },
    "halves": {
        TEN_LABELS: {0.08: 0.967, 0.24: 0.904, 0.4: 0.791, 0.56: 0.650, 0.8: 0.436},
        TWO_LABELS: {0.08: 0.946, 0.24: 0.845, 0.4: 0.676, 0.56: 0.506, 0.8: 0.312},
    },
}
