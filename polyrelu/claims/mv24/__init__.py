"""Min & Vidal, ICML 2024: what small starts make nets learn, and how robust that is."""

from polyrelu.claims.mv24.claims import CLAIMS
from polyrelu.claims.mv24.published import (
    CENTRE_DISTANCE,
    FIRST_RANKS,
    LAST_RANKS,
    POSTER,
    POSTER_RADII,
    RELU_DISTANCE,
    ROBUST_ACCURACY,
    TABLE1,
)

__all__ = [
    "CENTRE_DISTANCE",
    "CLAIMS",
    "FIRST_RANKS",
    "LAST_RANKS",
    "POSTER",
    "POSTER_RADII",
    "RELU_DISTANCE",
    "ROBUST_ACCURACY",
    "TABLE1",
]
