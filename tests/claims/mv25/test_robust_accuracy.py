"""Six classifiers break where theory says; both kinds of net are one function class; verdicts turn with numbers."""

import pytest
import torch

from polyrelu.claims import PROFILES, Quantity, Verdict, for_profile
from polyrelu.claims.mv25 import claims, robust_accuracy, sizes
from polyrelu.claims.setups.sizes import MixtureSize
from polyrelu.nets import PlainPolyNet
from polyrelu.report.paper_figures import mv25 as drawn

CLAIMS = {one.id: one for one in claims.CLAIMS if one.experiment.startswith("mv25.robust_accuracy.")}


@pytest.fixture
def shrunken(monkeypatch):
    size = MixtureSize(dim=40, positive=3, negative=2, samples=300, width=40, points=10)
    monkeypatch.setattr(sizes, "INITIALISATION", {"quick": size})


def test_every_claim_is_said_in_full():
    assert list(CLAIMS) == ["B8", "B9", "B10", "B11", "B12"]
    for claim in CLAIMS.values():
        assert claim.sentence.endswith(".")
        assert claim.published
        for profile in PROFILES:
            assert for_profile(claim.checks, profile)
            assert for_profile(claim.settings, profile)


def test_a_polynomial_net_is_a_normalised_one_with_other_weights():
    net = PlainPolyNet(5, 7, 3.0, scale=0.5, seed=1, dtype=torch.float64)
    X = torch.randn(20, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    same = robust_accuracy.normalised(net)
    assert torch.allclose(same(X), net(X), rtol=1e-12, atol=1e-14)
    assert robust_accuracy.normalised(same) is same


@pytest.mark.slow
def test_starts_give_the_numbers_they_are_judged_by(shrunken, run, quantities):
    values, kept = run(robust_accuracy.starts)
    for id in ("B10", "B11", "B12"):
        assert quantities(CLAIMS[id], *PROFILES) <= set(values)
    for key, value in values.items():
        if isinstance(key, Quantity) and key.name == "proven":
            assert value <= values[Quantity("not broken", **dict(key.where))]
    assert len(drawn.initialisation.draw({robust_accuracy.starts.name: kept}).axes) == 2


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("id", ["B10", "B11", "B12"])
def test_one_wrong_number_turns_the_verdict(id, profile, verdict, inside, outside):
    claim = CLAIMS[id]
    checks = for_profile(claim.checks, profile)
    good = {check.quantity: inside(check) for check in checks}
    assert verdict(claim, profile, good) is Verdict.REPRODUCED
    for check in checks:
        assert verdict(claim, profile, good | {check.quantity: outside(check)}) is Verdict.DIFFERS


@pytest.mark.slow
def test_six_models_are_compared(monkeypatch, run, quantities, verdict):
    size = MixtureSize(dim=60, positive=12, negative=8, samples=400, width=200, points=20, alpha=0.05)
    monkeypatch.setattr(sizes, "FIG2", {"quick": size})
    values, kept = run(robust_accuracy.models)
    medians = values.along("model", "median radius")
    for model in ("ReLU", "LogReg", "Tanh"):
        assert medians[model] == pytest.approx(20**-0.5, abs=0.03)
    for model in ("Bayes", "pReLU"):
        assert medians[model] == pytest.approx(0.7, abs=0.03)
        data = next(one.measured.data for one in kept if one.measured.data["model"] == model)
        assert data["lower"][-1] > 0.6
    net, bayes = (values.along("radius", "accuracy", model=model) for model in ("pReLU", "Bayes"))
    assert values["largest gap between pReLU and Bayes"] == max(abs(net[r] - bayes[r]) for r in robust_accuracy.EDGE)
    assert quantities(CLAIMS["B8"], *PROFILES) | quantities(CLAIMS["B9"], *PROFILES) <= set(values)
    wrong = {**values, Quantity("accuracy", model="pReLU", radius=0.72): 0.2}
    assert verdict(CLAIMS["B9"], "quick", wrong) is Verdict.DIFFERS
    assert kept[0].measured.data["points"] == len(kept[0].measured.data["upper"])
