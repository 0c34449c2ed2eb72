"""Min & Vidal, ICML 2024: what small starts make nets learn, and how robust that is."""

from polyrelu.claims.mv24.claims import CLAIMS
from polyrelu.claims.mv24.published import CENTRE_DISTANCE, RELU_DISTANCE, ROBUST_ACCURACY

__all__ = ["CENTRE_DISTANCE", "CLAIMS", "RELU_DISTANCE", "ROBUST_ACCURACY"]
