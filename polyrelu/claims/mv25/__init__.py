"""Min & Vidal, ICML 2025: what gradient flow learns on the orthonormal mixture, and that it is robust."""

from polyrelu.claims.mv25.claims import CLAIMS
from polyrelu.claims.mv25.published import FIG2, FIG5, FIG6, FIG7
from polyrelu.claims.mv25.sizes import GAUSSIAN, HALF, MODELS

__all__ = ["CLAIMS", "FIG2", "FIG5", "FIG6", "FIG7", "GAUSSIAN", "HALF", "MODELS"]
