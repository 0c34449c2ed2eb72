"""The inconsistencies I1-I25: both readings computed, the true one shown.

`checks` hold what a source prints, judged on the true value; `why` holds the numbers that show the truth and, where it
is known, what made the printed one.
"""

from polyrelu.claims.errata.claims import averages, formulas, procedures, training

CLAIMS = (*formulas.CLAIMS, *averages.CLAIMS, *procedures.CLAIMS, *training.CLAIMS)

__all__ = ["CLAIMS"]
