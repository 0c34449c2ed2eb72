"""Penalised solutions, and the radius of the nearest centre, are those of formulas; the claims hold and can fail."""

import math

import pytest
import torch

from polyrelu.claims import Verdict, judge
from polyrelu.claims.lpll25 import linear_models
from polyrelu.claims.lpll25.claims import talk
from polyrelu.claims.lpll25.linear_models import DECADES, cloud, nearest_centre_radius, penalised
from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.nets import NearestCentre

CLAIMS = [claim for claim in talk.CLAIMS if claim.experiment.startswith("lpll25.linear_models.")]


@pytest.fixture(scope="module")
def kept(run):
    experiments = (linear_models.separable, linear_models.linear_rule)
    return {experiment.name: run(experiment)[1] for experiment in experiments}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_the_claim_holds_and_a_wrong_number_turns_it(claim, kept, assert_complete, assert_can_fail):
    assert_complete(claim)
    assert judge(claim, "quick", kept[claim.experiment]).verdict is Verdict.REPRODUCED
    assert_can_fail(claim, kept[claim.experiment])


def test_all_claims_are_there():
    assert [claim.id for claim in CLAIMS] == ["E11", "E12", "E24"]


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
