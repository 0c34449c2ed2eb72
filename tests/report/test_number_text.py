"""Numbers as people read them."""

import math

import pytest

from polyrelu.report import number_text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.31622776, "0.3162"), (1.2e-5, "1.2e-5"), (-0.0, "0"), (20000.0, "20000"), (-3e-10, "−3e-10"), (1e7, "1e7"),
     (math.nan, "no number"), (2.0, "2")],
)  # fmt: skip
def test_numbers_as_people_read_them(value, text):
    assert number_text(value) == text
