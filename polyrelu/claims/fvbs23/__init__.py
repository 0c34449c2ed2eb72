"""Frei, Vardi, Bartlett & Srebro, NeurIPS 2023: one direction that breaks nearly all points of a mixture."""

from polyrelu.claims.fvbs23.claims import CLAIMS

__all__ = ["CLAIMS"]
