"""Means over repeats: the caption's noise against that of the code."""

import pytest

from polyrelu.claims import Quantity, Values, Verdict, catalogue
from polyrelu.claims.errata.training import attacked_alpha

CLAIM = catalogue()["I6"]


def test_repeats_and_alphas(verdict, without_combining):
    radii = {0.1: (0.30, 0.32), 0.01: (0.306,)}
    values = Values(
        {
            Quantity("median radius", p=p, alpha=alpha, repeat=i): p * radius
            for p in (1, 3)
            for alpha, found in radii.items()
            for i, radius in enumerate(found, start=1)
        }
    )
    found = attacked_alpha.combine(values)
    assert found == pytest.approx(
        {
            Quantity("median radius at α = .1 minus at .01", p=1): 0.004,
            Quantity("median radius over all repeats minus over half", p=1): 0.01,
            Quantity("median radius at α = .1 minus at .01", p=3): 0.012,
            Quantity("median radius over all repeats minus over half", p=3): 0.03,
        }
    )
    assert verdict(CLAIM, "quick", found) is Verdict.DIFFERS
    assert verdict(CLAIM, "quick", {name: value / 10 for name, value in found.items()}) is Verdict.REPRODUCED
    parts = [part["alpha"] for part in attacked_alpha.parts("paper") if part["p"] == 3]
    assert parts.count(0.1) == 10 and parts.count(0.01) == 5
