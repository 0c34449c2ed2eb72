"""What Li et al. (ICLR 2025) say, and where our numbers must lie for it to hold."""

from polyrelu.claims.lpll25.claims import talk

CLAIMS = (*talk.CLAIMS,)

__all__ = ["CLAIMS"]
