"""Li et al., ICLR 2025: averages of features or single clusters, and the talk on what training maximises."""

from polyrelu.claims.lpll25.claims import CLAIMS

__all__ = ["CLAIMS"]
