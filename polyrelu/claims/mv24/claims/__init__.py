"""What Min & Vidal (ICML 2024) say, and where our numbers must lie for it to hold."""

from polyrelu.claims.mv24.claims import ideal, mixture

CLAIMS = (*ideal.CLAIMS, *mixture.CLAIMS)

__all__ = ["CLAIMS"]
