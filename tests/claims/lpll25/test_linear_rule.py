"""The radius of the nearest centre is that of its half-spaces; the claim holds and can fail."""

import math

import pytest
import torch

from polyrelu.claims import Verdict, judge, lpll25
from polyrelu.claims.lpll25.linear_rule import linear_rule, nearest_centre_radius
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import NearestCentre


def test_the_claim_holds_and_a_wrong_number_turns_it(run, assert_complete, assert_can_fail):
    (claim,) = (claim for claim in lpll25.CLAIMS if claim.experiment == linear_rule.name)
    assert claim.id == "E24"
    assert_complete(claim)
    _, kept = run(linear_rule)
    assert judge(claim, "quick", kept).verdict is Verdict.REPRODUCED
    assert_can_fail(claim, kept)


def test_radius_of_the_nearest_centre():
    mixture = OrthonormalMixture(20, 3, 2, 0.0, dtype=torch.float64)
    net = NearestCentre(mixture.centres, mixture.labels)
    data = mixture.sample(10, 0)
    assert nearest_centre_radius(net, data.rows(), data.y) == pytest.approx(math.sqrt(0.5))
    x = 0.8 * mixture.centres[0] + 0.3 * mixture.centres[4]  # nearest rival is mu_4: (.8 - .3)/sqrt 2
    assert float(nearest_centre_radius(net, x[None], torch.ones(1))) == pytest.approx(0.5 / math.sqrt(2))
    assert float(nearest_centre_radius(net, x[None], -torch.ones(1))) < 0  # wrong as it is
    step = (mixture.centres[4] - mixture.centres[0]) / math.sqrt(2)
    with torch.no_grad():
        assert net((x + 0.353 * step)[None]) > 0 > net((x + 0.354 * step)[None])
