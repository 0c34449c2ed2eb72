"""Lyu & Li, ICLR 2020: the margin of a homogeneous net grows for ever."""

from polyrelu.claims.ll20.claims import CLAIMS
from polyrelu.claims.ll20.published import MODELS, PublishedModel

__all__ = ["CLAIMS", "MODELS", "PublishedModel"]
