"""The exponent of a power law is found."""

import pytest

from polyrelu.claims import Quantity, Values
from polyrelu.claims.setups.power_law import slope


def test_slope_of_a_power_law():
    values = Values({Quantity("c", dim=d): 3 * d**-0.7 for d in (10, 40, 300)} | {Quantity("c", m=1, dim=5): 99.0})
    found = values.along("dim", "c")
    assert slope(found, found.values()) == pytest.approx(-0.7, abs=1e-12)
    assert slope([2, 8, 32], [1.0, 0.5, 0.25]) == pytest.approx(-0.5, abs=1e-12)
