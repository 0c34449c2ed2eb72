"""Penalised solutions are those of formulas and of a peer; the claims hold and can fail."""

import math

import pytest
import torch

from polyrelu.claims import Verdict, judge, lpll25
from polyrelu.claims.lpll25.max_margin import DECADES, cloud, penalised, separable
from polyrelu.data import Dataset

CLAIMS = [claim for claim in lpll25.CLAIMS if claim.experiment == separable.name]


@pytest.fixture(scope="module")
def kept(run):
    return run(separable)[1]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_the_claim_holds_and_a_wrong_number_turns_it(claim, kept, assert_complete, assert_can_fail):
    assert_complete(claim)
    assert judge(claim, "quick", kept).verdict is Verdict.REPRODUCED
    assert_can_fail(claim, kept)


def test_both_claims_are_there():
    assert [claim.id for claim in CLAIMS] == ["E11", "E12"]


def test_penalised_solutions_of_one_point():
    # x = (3, 4), y = +1: w = (s/5) x with s = 5 pull, pull = (1/lambda) / (1 + e^(5 s)), in logs for lambda = 1e-300.
    data = Dataset(torch.tensor([[3.0, 4.0], [-3.0, -4.0]]).double(), torch.tensor([1.0, -1.0]))
    for decade, w in zip(DECADES, penalised(data), strict=True):
        s = float(w.norm())
        assert float(w @ torch.tensor([3.0, 4.0]).double()) == pytest.approx(5 * s, rel=1e-12)
        softplus = 5 * s + math.log1p(math.exp(-5 * s))
        assert math.log(s / 10) == pytest.approx(decade * math.log(10) - softplus, abs=1e-7)  # two equal rows


def test_penalised_agrees_with_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    data = cloud(3, 60, 1)
    for decade, w in zip((1, 3), penalised(data, (1, 3)), strict=True):
        peer = LogisticRegression(C=10.0**decade, fit_intercept=False, tol=1e-12, max_iter=10_000)
        peer.set_params(solver="newton-cholesky").fit(data.X.numpy(), data.y.numpy())
        assert w.numpy() == pytest.approx(peer.coef_[0], rel=1e-6)


def test_the_cloud_has_its_slab():
    data = cloud(4, 500, 0)
    source = torch.Generator().manual_seed(0)
    torch.randn(500, 4, generator=source, dtype=torch.float64)
    w = torch.randn(4, generator=source, dtype=torch.float64)
    assert float((data.y * (data.X @ w / w.norm())).min()) >= 0.2
