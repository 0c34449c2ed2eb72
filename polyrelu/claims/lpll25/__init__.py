"""Li et al., ICLR 2025: averages of features or single clusters, and the talk on what training maximises."""

from polyrelu.claims.lpll25.published import DIM, FIG3, FIG3_IMAGES
from polyrelu.claims.lpll25.sizes import (
    AVERAGED,
    CLUSTERS,
    DECOUPLED,
    LOGIT,
    NETS,
    ODDS,
    OWN,
    READ_OUT,
    STRONGEST,
    SUM,
    SUMMED,
    TEN,
    TWO,
)

__all__ = [
    "AVERAGED",
    "CLUSTERS",
    "DECOUPLED",
    "DIM",
    "FIG3",
    "FIG3_IMAGES",
    "LOGIT",
    "NETS",
    "ODDS",
    "OWN",
    "READ_OUT",
    "STRONGEST",
    "SUM",
    "SUMMED",
    "TEN",
    "TWO",
]
