"""Nets on mirrored data and on slabs: the net written down has its margin, the slabs lie right, claims can fail."""

import pytest
import torch

from polyrelu.bias import margins
from polyrelu.claims import Verdict, judge, load_experiment
from polyrelu.claims.llwa21.claims import CLAIMS
from polyrelu.claims.llwa21.simplicity import hand_built, mirrored, slab_data
from polyrelu.data import SymmetricSeparable


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_the_claim_holds_and_a_wrong_number_turns_it(claim, run, assert_complete, assert_can_fail):
    assert_complete(claim)
    _, kept = run(load_experiment(claim.experiment))
    assert judge(claim, "quick", kept).verdict is Verdict.REPRODUCED
    assert_can_fail(claim, kept)


def test_all_claims_are_there():
    assert [claim.id for claim in CLAIMS] == ["E15", "E16", "E25"]


def test_the_same_seed_gives_the_same_numbers():
    assert mirrored("quick", 0).values == mirrored("quick", 0).values


def test_the_hand_built_net_has_the_margin_of_its_formula():
    # 1/4 / (1/((1-a) reach) + 1/((1+a) margin)) with a = 1/2, reach 2, margin 1: 0.15
    recipe = SymmetricSeparable(5, extra=3, rotate=2, dtype=torch.float64)
    found = margins(hand_built(recipe), recipe.sample(20, 0), "logistic")
    assert found.normalised == pytest.approx(0.15, rel=1e-12)


def test_slabs_and_line_lie_where_they_should():
    data = slab_data(400, 3)
    x1, x2, one = data.rows().T
    assert bool((one == 1).all())
    assert float((data.y * x1).min()) >= 0.1
    assert float(x2[data.y > 0].abs().min()) >= 0.6
    assert float(x2[data.y < 0].abs().max()) <= 0.2
    assert {-1.0, 1.0} == set(x2[data.y > 0].sign().tolist())
