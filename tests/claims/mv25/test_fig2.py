"""Six classifiers break where theory says; the verdict turns with one of their numbers."""

import pytest

from polyrelu.claims import PROFILES, Quantity, Verdict
from polyrelu.claims.mv25 import claims, fig2, sizes
from polyrelu.claims.setups.sizes import MixtureSize

CLAIMS = {claim.id: claim for claim in claims.CLAIMS}


def test_six_models_are_compared(monkeypatch, run, quantities, verdict):
    size = MixtureSize(dim=60, positive=12, negative=8, samples=400, width=200, points=20, alpha=0.05)
    monkeypatch.setattr(sizes, "FIG2", {"quick": size})
    values, kept = run(fig2.models)
    medians = values.along("model", "median radius")
    for model in ("ReLU", "LogReg", "Tanh"):
        assert medians[model] == pytest.approx(20**-0.5, abs=0.03)
    for model in ("Bayes", "pReLU"):
        assert medians[model] == pytest.approx(0.7, abs=0.03)
        data = next(one.measured.data for one in kept if one.measured.data["model"] == model)
        assert data["lower"][-1] > 0.6
    net, bayes = (values.along("radius", "accuracy", model=model) for model in ("pReLU", "Bayes"))
    assert values["largest gap between pReLU and Bayes"] == max(abs(net[r] - bayes[r]) for r in fig2.EDGE)
    assert quantities(CLAIMS["B8"], *PROFILES) | quantities(CLAIMS["B9"], *PROFILES) <= set(values)
    wrong = {**values, Quantity("accuracy", model="pReLU", radius=0.72): 0.2}
    assert verdict(CLAIMS["B9"], "quick", wrong) is Verdict.DIFFERS
    assert kept[0].measured.data["points"] == len(kept[0].measured.data["upper"])
