"""Slabs and line lie where they should; the claim about the boundary holds and can fail."""

from polyrelu.claims import Verdict, judge, llwa21
from polyrelu.claims.llwa21.slabs import boundary, slab_data


def test_the_claim_holds_and_a_wrong_number_turns_it(run, assert_complete, assert_can_fail):
    (claim,) = (claim for claim in llwa21.CLAIMS if claim.experiment == boundary.name)
    assert claim.id == "E25"
    assert_complete(claim)
    _, kept = run(boundary)
    assert judge(claim, "quick", kept).verdict is Verdict.REPRODUCED
    assert_can_fail(claim, kept)


def test_slabs_and_line_lie_where_they_should():
    data = slab_data(400, 3)
    x1, x2, one = data.rows().T
    assert bool((one == 1).all())
    assert float((data.y * x1).min()) >= 0.1
    assert float(x2[data.y > 0].abs().min()) >= 0.6
    assert float(x2[data.y < 0].abs().max()) <= 0.2
    assert {-1.0, 1.0} == set(x2[data.y > 0].sign().tolist())
