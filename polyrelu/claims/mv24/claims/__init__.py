"""What Min & Vidal (ICML 2024) say, and where our numbers must lie for it to hold."""

from polyrelu.claims.mv24.claims import digits, embeddings, ideal, mixture

CLAIMS = (*ideal.CLAIMS, *mixture.CLAIMS, *digits.CLAIMS, *embeddings.CLAIMS)

__all__ = ["CLAIMS"]
