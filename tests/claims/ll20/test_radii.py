"""Radii proven from slopes lie below those found; both claims hold and can fail."""

import math

import pytest

from polyrelu.claims import Verdict, judge, ll20, lpll25
from polyrelu.claims.ll20.radii import sample_radii

CLAIMS = [claim for claim in (*ll20.CLAIMS, *lpll25.CLAIMS) if claim.experiment == sample_radii.name]


@pytest.fixture(scope="module")
def kept(run):
    return run(sample_radii)[1]


def test_a_claim_of_each_paper_is_there():
    assert [claim.id for claim in CLAIMS] == ["E10", "E26"]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_the_claim_holds_and_a_wrong_number_turns_it(claim, kept, assert_complete, assert_can_fail):
    assert_complete(claim)
    judged = judge(claim, "quick", kept)
    assert judged.verdict is Verdict.REPRODUCED
    assert all(not math.isnan(value) for number in judged.numbers for value in number.values)
    assert_can_fail(claim, kept)
