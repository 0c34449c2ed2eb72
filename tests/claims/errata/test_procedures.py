"""What two attacks together break beyond the first one, and the order of p; the supremum where it is known."""

import pytest
import torch

from polyrelu.claims import Quantity, Values, Verdict, catalogue
from polyrelu.claims.errata.procedures import ALONE, BOTH, climb, cross_entropy_only
from polyrelu.nets import CentreClassifier
from polyrelu.robust.core import unit

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


def test_ascent_reaches_the_supremum_and_stays_where_nothing_slopes():
    eye, labels = torch.eye(4, dtype=torch.float64), torch.tensor([1.0, 1.0, -1.0, -1.0])
    F = CentreClassifier(eye, labels, 3.0)
    X = unit(torch.tensor([[0.9, 0.1, 0.2, 0.1], [-1.0, -0.1, -0.2, -0.3]], dtype=torch.float64))
    assert climb(lambda Z: 0 * Z.sum(1), F, X, 300) == pytest.approx(1, abs=1e-3)
    assert climb(lambda Z: 0 * Z.sum(1), F, X[1:], 300) == 0
