"""Claims about linear rules: complete, able to fail, and made of formulas that are right."""

import math

import pytest
import torch

from polyrelu.bias import margins
from polyrelu.claims.claim import Verdict
from polyrelu.claims.experiment import Measured
from polyrelu.claims.judge import Outcome, judge
from polyrelu.claims.linear import CLAIMS
from polyrelu.claims.papers import PAPERS
from polyrelu.claims.profile import PROFILES, for_profile
from polyrelu.claims.setups.separable import DECADES, cloud, hand_built, nearest_centre_radius, penalised, slab_data
from polyrelu.data import Dataset, OrthonormalMixture, SymmetricSeparable
from polyrelu.nets import NearestCentre

BY_ID = {claim.id: claim for claim in CLAIMS}
each = pytest.mark.parametrize("claim", CLAIMS, ids=BY_ID)


@pytest.fixture(scope="module")
def outcomes():
    found = {}
    for experiment in {claim.experiment.name: claim.experiment for claim in CLAIMS}.values():
        parts = experiment.parts("quick")
        found[experiment.name] = [Outcome(0, part, experiment.run("quick", 0, **part)) for part in parts]
    return found


@each
def test_a_claim_is_complete(claim):
    assert claim.sentence.endswith(".")
    assert claim.paper in PAPERS
    for profile in PROFILES:
        assert for_profile(claim.checks, profile)
        assert for_profile(claim.settings, profile)
        assert claim.experiment.needs(profile) == ""


@each
def test_the_claim_holds_and_a_wrong_number_turns_it(claim, outcomes):
    mine = outcomes[claim.experiment.name]
    assert judge(claim, "quick", mine).verdict is Verdict.REPRODUCED
    for check in for_profile(claim.checks, "quick"):
        wrong = check.low - 0.01 if math.isfinite(check.low) else check.high + 0.01
        for bad in (wrong, math.nan):
            broken = [Outcome(0, o.part, Measured({**o.measured.values, check.quantity: bad})) for o in mine]
            assert judge(claim, "quick", broken).verdict is Verdict.DIFFERS


def test_the_same_seed_gives_the_same_numbers(outcomes):
    again = BY_ID["E15"].experiment.run("quick", 0)
    assert again.values == outcomes["linear.mirrored"][0].measured.values


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


def test_the_hand_built_net_has_the_margin_of_its_formula():
    # 1/4 / (1/((1-a) reach) + 1/((1+a) margin)) with a = 1/2, reach 2, margin 1: 0.15
    recipe = SymmetricSeparable(5, extra=3, rotate=2, dtype=torch.float64)
    found = margins(hand_built(recipe), recipe.sample(20, 0), "logistic")
    assert found.normalised == pytest.approx(0.15, rel=1e-12)


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


def test_slabs_and_line_lie_where_they_should():
    data = slab_data(400, 3)
    x1, x2, one = data.rows().T
    assert bool((one == 1).all())
    assert float((data.y * x1).min()) >= 0.1
    assert float(x2[data.y > 0].abs().min()) >= 0.6
    assert float(x2[data.y < 0].abs().max()) <= 0.2
    assert {-1.0, 1.0} == set(x2[data.y > 0].sign().tolist())
