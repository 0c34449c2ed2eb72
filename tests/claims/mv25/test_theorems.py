"""Nets at a known distance, a known slope; verdicts turn with their numbers."""

import math

import pytest
import torch

from polyrelu.claims import PROFILES, Measured, Outcome, Quantity, Values, Verdict, for_profile, judge
from polyrelu.claims.mv25 import claims, sizes, theorems
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import CentreClassifier
from polyrelu.robust import dist

CLAIMS = {claim.id: claim for claim in claims.CLAIMS if claim.id in ("B16", "B21")}


def test_every_claim_is_said_in_full():
    assert {claim.experiment.rpartition(".")[0] for claim in CLAIMS.values()} == {"mv25.theorems"}
    assert set(CLAIMS) == {"B16", "B21"}
    for claim in CLAIMS.values():
        assert claim.sentence.endswith(".")
        for profile in PROFILES:
            assert for_profile(claim.checks, profile)
            assert for_profile(claim.settings, profile)


def test_the_slope_of_a_power_law_is_its_power():
    values = Values({Quantity("smallest distance", alpha=alpha): 3 * alpha**2 for alpha in (0.05, 0.1, 0.2)})
    assert theorems.rate.combine(values)["slope of log distance against log α"] == pytest.approx(2)


def test_nets_lie_exactly_nu_from_the_ideal_one():
    mixture = OrthonormalMixture(30, 3, 2, 0.1, dtype=torch.float64)
    ideal = CentreClassifier(mixture.centres, mixture.labels, 3.0)
    for net in theorems.near_ideal(mixture, 0.01, 0).values():
        assert dist(net, ideal, c=1.0).value == pytest.approx(0.01, rel=1e-6)


def test_a_linear_error_is_not_a_quadratic_one():
    claim = CLAIMS["B16"]
    for power, told in ((2, Verdict.REPRODUCED), (1, Verdict.DIFFERS)):
        kept = [
            Outcome(0, {"alpha": alpha}, Measured({Quantity("smallest distance", alpha=alpha): alpha**power}))
            for alpha in sizes.ALPHAS["quick"]
        ]
        assert judge(claim, "quick", kept).verdict is told


@pytest.mark.slow
def test_the_distance_falls_with_the_noise():
    far = [theorems.rate.run("quick", 0, alpha).values["smallest distance"] for alpha in (0.2, 0.3)]
    assert 0.01 < far[0] < 0.08
    assert far[0] < far[1]


@pytest.mark.slow
def test_closeness_is_measured_and_a_broken_promise_noticed(monkeypatch):
    monkeypatch.setattr(theorems, "NUS", (1e-3, 5e-3))
    claim, found = CLAIMS["B21"], theorems.closeness("quick", 0)
    assert judge(claim, "quick", [Outcome(0, {}, found)]).verdict is Verdict.REPRODUCED
    for check in for_profile(claim.checks, "quick"):
        wrong = check.low - 0.01 if math.isfinite(check.low) else check.high + 0.01
        changed = [Outcome(0, {}, Measured({**found.values, check.quantity: wrong}))]
        assert judge(claim, "quick", changed).verdict is Verdict.DIFFERS
    monkeypatch.setattr(theorems, "near_ideal", lambda mixture, nu, seed: {"far": _far(mixture)})
    broken = [Outcome(0, {}, theorems.closeness("quick", 0))]
    assert judge(claim, "quick", broken).verdict is Verdict.DIFFERS


def _far(mixture):
    """A net that one class rules: half of the points break at once."""
    return theorems._net(mixture.centres, torch.where(mixture.labels > 0, 1.0, -1e-9).double())
