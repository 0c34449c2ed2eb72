"""What Li et al. (ICLR 2025) say, and where our numbers must lie for it to hold."""

from polyrelu.claims.lpll25.claims import images, mixture, talk

CLAIMS = (*mixture.CLAIMS, *images.CLAIMS, *talk.CLAIMS)

__all__ = ["CLAIMS"]
