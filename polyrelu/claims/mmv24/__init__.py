"""Min, Mallada & Vidal, ICLR 2024: from small starts neurons of ReLU nets turn first and grow later."""

from polyrelu.claims.mmv24.claims import ALIGNED, CLAIMS, FALLEN

__all__ = ["ALIGNED", "CLAIMS", "FALLEN"]
