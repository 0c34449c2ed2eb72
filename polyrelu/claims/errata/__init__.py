"""Where the sources contradict each other or themselves: both readings computed."""

from polyrelu.claims.errata.claims import CLAIMS

__all__ = ["CLAIMS"]
