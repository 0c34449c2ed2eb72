"""What two attacks together break beyond the first one, and the order of p."""

import pytest

from polyrelu.claims import Quantity, Values, Verdict, catalogue
from polyrelu.claims.errata.attacks import ALONE, BOTH, cross_entropy_only

CLAIM = catalogue()["I7"]
GAP, RISE = "largest gap between APGD-CE and both", "by both at .1, p = 4 minus p = 1"


def test_gap_of_attacks(verdict, without_combining):
    values = Values({Quantity(who, p=p, radius=r): 0.5 for who in (ALONE, BOTH) for r in (0.1, 0.15) for p in (1, 4)})
    values[Quantity(BOTH, p=4, radius=0.15)] = 0.44
    values[Quantity(BOTH, p=1, radius=0.1)] = 0.49
    values[Quantity(ALONE, p=4, radius=0.1)] = 0.51
    found = cross_entropy_only.combine(values)
    assert found == pytest.approx({GAP: 0.06, RISE: 0.01})
    assert verdict(CLAIM, "quick", found) is Verdict.DIFFERS  # the order of p is lost
    assert verdict(CLAIM, "quick", found | {RISE: 0.2}) is Verdict.ARTEFACT
    assert verdict(CLAIM, "quick", found | {GAP: 0.01}) is Verdict.REPRODUCED
