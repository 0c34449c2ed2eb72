"""One direction for all points at the margin: complete, able to fail; the picture takes what was measured."""

import math

import pytest

from polyrelu.claims import Measured, Outcome, Quantity, Verdict, judge
from polyrelu.claims.vys22.claims import CLAIMS
from polyrelu.claims.vys22.sphere import margin_points

SLOPE = "slope of log c/sqrt(d) against log d"


@pytest.fixture(scope="module")
def kept():
    """In a quarter of the dimensions, called by the true ones."""
    found = []
    for part in margin_points.parts("quick"):
        few = margin_points.run("quick", 0, part["dim"] // 4, part["exponent"])
        values = {Quantity(name, **part): value for name, value in few.values.items()}
        found.append(Outcome(0, part, Measured(values, {**few.data, "dim": part["dim"]})))
    return found


@pytest.fixture(scope="module")
def claim():
    return next(one for one in CLAIMS if one.id == "E14")


def test_the_claim_is_complete_and_a_wrong_number_turns_it(claim, kept, assert_complete, assert_can_fail):
    assert_complete(claim)
    numbers = judge(claim, "quick", kept).numbers
    assert all(not math.isnan(value) for number in numbers for value in number.values)
    assert_can_fail(claim, kept, skip=(SLOPE,))


def test_another_power_turns_the_verdict(claim, kept):
    # lengths that do not shrink with d at all, as a robust net would have them
    broken = []
    for outcome in kept:
        flat = {**outcome.measured.values, Quantity("c over sqrt(d)", **outcome.part): 0.2}
        broken.append(Outcome(0, outcome.part, Measured(flat)))
    assert judge(claim, "quick", broken).verdict is Verdict.DIFFERS


def test_the_figure_draws_the_points_of_every_dimension(kept):
    from polyrelu.report.paper_figures.fvbs23 import universal

    picture = universal.draw({"fvbs23.universal.clusters": CLUSTERS, "vys22.sphere.margin_points": kept})
    assert list(picture.axes[2].lines[0].get_xdata()) == [part["dim"] for part in margin_points.parts("quick")]


CLUSTERS = [Outcome(0, {}, Measured({}, {"k": 2, "norms": [0.1 + k / 100 for k in range(101)]}))]
