"""One direction for all points of a mixture: complete, able to fail, the lengths right."""

import math

import pytest
import torch

from polyrelu.claims import Measured, Outcome, Quantity, Verdict, judge
from polyrelu.claims.fvbs23.claims import CLAIMS
from polyrelu.claims.fvbs23.universal import clusters
from polyrelu.claims.setups.biased_nets import flip_lengths, with_ones
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import AverageClassifier
from polyrelu.report.paper_figures import fvbs23 as drawn

HALF = "|z| that flips half over sqrt(d/k)"
SLOPE = "slope of log |z| against log k"


@pytest.fixture(scope="module")
def kept(run):
    return run(clusters)[1]


@pytest.fixture(scope="module")
def claim():
    (found,) = (claim for claim in CLAIMS if claim.experiment == clusters.name)
    assert found.id == "E13"
    return found


def test_the_claim_holds_and_a_wrong_number_turns_it(claim, kept, assert_complete, assert_can_fail):
    assert_complete(claim)
    judged = judge(claim, "quick", kept)
    assert judged.verdict is Verdict.REPRODUCED
    assert all(not math.isnan(value) for number in judged.numbers for value in number.values)
    assert_can_fail(claim, kept, skip=(SLOPE,))


def test_another_power_turns_the_verdict(claim, kept):
    # lengths that do not shrink with k at all, as a robust net would have them
    broken = []
    for outcome in kept:
        half = Quantity(HALF, **outcome.part)
        flat = Measured({**outcome.measured.values, half: math.sqrt(outcome.part["k"])})
        broken.append(Outcome(0, outcome.part, flat))
    assert judge(claim, "quick", broken).verdict is Verdict.DIFFERS


def test_a_column_of_ones_is_a_bias():
    data = OrthonormalMixture(5, 2, 2, 0.1, dtype=torch.float64).sample(8, 0)
    wide = with_ones(data)
    assert torch.equal(wide.rows()[:, :5], data.rows()) and bool((wide.rows()[:, 5] == 1).all())
    assert torch.equal(wide.y, data.y)


def test_flips_of_f_are_at_one_over_root_k():
    # F at its centres breaks along z at |z| = 1/sqrt(K) exactly; the column of ones does not move.
    mixture = OrthonormalMixture(16, 3, 2, 0.0, dtype=torch.float64)
    padded = torch.cat([mixture.centres, torch.zeros(5, 1)], dim=1)
    net = AverageClassifier(padded, mixture.labels)
    found = flip_lengths(net, with_ones(mixture.sample(10, 0)), mixture.labels @ mixture.centres)
    assert found == pytest.approx(1 / math.sqrt(5), rel=1e-9)


def test_the_figure_is_drawn_from_what_there_is(kept):
    figure = drawn.universal
    points = [
        Outcome(0, {}, Measured({}, {"dim": dim, "exponent": 1.0, "points": dim, "c": 2.0})) for dim in (60, 120, 240)
    ]
    picture = figure.draw({clusters.name: kept, "vys22.sphere.margin_points": points})
    assert set(figure.claims) == {"E13", "E14"}
    titles = [axes.get_title(loc="left") for axes in picture.axes]
    assert titles == ["k clusters: fresh points flipped", "k clusters: length of z", "Sphere: smallest c that flips I"]
    half = picture.axes[1].lines[0].get_ydata()[0]  # k = 2
    assert half == pytest.approx(kept[0].measured.values[Quantity(HALF, k=2)] / math.sqrt(2), rel=1e-2)
