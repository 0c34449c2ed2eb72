"""Lyu, Li, Wang & Arora, NeurIPS 2021: the simplest boundary, and the largest margin."""

from polyrelu.claims.llwa21.claims import CLAIMS

__all__ = ["CLAIMS"]
