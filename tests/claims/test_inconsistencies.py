"""The contradictions between sources: every claim runs, says what it should, and can fail."""

import math
from dataclasses import replace
from functools import partial
from itertools import product
from types import SimpleNamespace

import pytest
import torch

from polyrelu.claims import inconsistencies_estimators, inconsistencies_trained
from polyrelu.claims.claim import Verdict
from polyrelu.claims.experiment import Measured
from polyrelu.claims.inconsistencies import CLAIMS, _degree
from polyrelu.claims.inconsistencies_estimators import _climb
from polyrelu.claims.inconsistencies_trained import _caption_and_code, _gaps
from polyrelu.claims.judge import Outcome, judge
from polyrelu.claims.papers import PAPERS
from polyrelu.claims.profile import PROFILES, for_profile
from polyrelu.claims.setups import mixture_nets as nets_of_mixtures
from polyrelu.data import OrthonormalMixture
from polyrelu.errors import InputError
from polyrelu.nets import AverageClassifier, CentreClassifier
from polyrelu.robust.attacks import APGD, PGD, PublishedPGD
from polyrelu.robust.core import unit

BY_ID = {claim.id: claim for claim in CLAIMS}
UNMEASURED = ("I22", "I24")
IMAGES = ("I8", "I19")  # in test_digits.py
SLOW = ("I2", "I3", "I5", "I6", "I7", "I15", "I18", "I20", "I25")


def run(claim):
    parts = claim.experiment.parts("quick")
    found = {name: value for part in parts for name, value in claim.experiment.run("quick", 0, **part).values.items()}
    return {**found, **claim.experiment.combine(found)}


def judged(claim, values):
    plain = replace(claim, experiment=replace(claim.experiment, combine=lambda values: {}))
    return judge(plain, "quick", [Outcome(0, {}, Measured(values))])


def stand_in_trained(profile, p, seed, alpha=0.1):
    mixture = OrthonormalMixture(20, 6, 4, alpha, dtype=torch.float64)
    net = nets_of_mixtures.ideal(mixture, p).as_polyrelu_net()
    return SimpleNamespace(
        mixture=mixture, data=mixture.sample(10, seed), net=net, test=lambda n: mixture.sample(10, 1)
    )


@pytest.fixture
def shrunk(monkeypatch):
    """No training, few points and steps: the values have names and no meaning."""
    sample = OrthonormalMixture.sample
    monkeypatch.setattr(
        OrthonormalMixture, "sample", lambda self, n, seed, *a, **k: sample(self, min(n, 10), seed, *a, **k)
    )
    monkeypatch.setattr(inconsistencies_trained, "trained", stand_in_trained)
    for training in ("flow", "descend"):
        monkeypatch.setattr(inconsistencies_trained, training, lambda net, data, **_: SimpleNamespace(net=net))
    for room, attack in product((inconsistencies_trained, inconsistencies_estimators), (APGD, PGD, PublishedPGD)):
        monkeypatch.setattr(room, attack.__name__, partial(attack, steps=1), raising=False)
    monkeypatch.setattr(inconsistencies_estimators, "PGD", lambda steps, **k: PGD(steps=1, **k))
    published = inconsistencies_estimators.published_dist
    monkeypatch.setattr(inconsistencies_estimators, "published_dist", lambda *a, **k: published(*a, **k | {"steps": 1}))
    monkeypatch.setattr(inconsistencies_estimators, "_climb", lambda *_: 1.0)


def test_all_twenty_five_are_there():
    assert sorted(BY_ID, key=lambda name: int(name[1:])) == [f"I{i}" for i in range(1, 26)]
    assert len({claim.experiment.name for claim in CLAIMS}) == len(CLAIMS) == 25


@pytest.mark.parametrize("claim", CLAIMS, ids=BY_ID)
def test_words(claim):
    assert claim.sentence.endswith(".") and claim.published and claim.where and claim.paper in PAPERS
    for profile in PROFILES:
        assert for_profile(claim.settings, profile).endswith(".")
        assert claim.id in IMAGES or bool(claim.experiment.needs(profile)) == (claim.id in UNMEASURED)
        if for_profile(claim.expects, profile) is Verdict.ARTEFACT:
            assert (
                for_profile(claim.checks, profile)
                and for_profile(claim.why, profile)
                and for_profile(claim.reason, profile).endswith(".")
            )


@pytest.mark.parametrize("name", UNMEASURED)
def test_what_cannot_be_measured_says_why(name):
    verdict = judge(BY_ID[name], "paper", [])
    assert verdict.verdict is Verdict.NOT_RUN and verdict.reason.endswith(".") and verdict.as_expected
    with pytest.raises(InputError):
        BY_ID[name].experiment.run("quick", 0)


@pytest.mark.parametrize("name", [name for name in BY_ID if name not in (*UNMEASURED, *IMAGES, *SLOW)])
def test_verdict_and_its_failure(name):
    claim = BY_ID[name]
    values = run(claim)
    verdict = judged(claim, values)
    assert verdict.verdict is for_profile(claim.expects, "quick"), [
        (n.name, n.values, n.holds) for n in verdict.numbers
    ]
    breaks(claim, values)


@pytest.mark.parametrize("name", SLOW)
def test_checks_name_measured_values(name, shrunk):
    claim = BY_ID[name]
    found = run(claim).keys()
    assert {
        check.quantity for check in (*for_profile(claim.checks, "quick"), *for_profile(claim.why, "quick"))
    } <= found


@pytest.mark.parametrize("name", SLOW)
def test_verdict_of_numbers_as_expected(name):
    claim = BY_ID[name]
    wanted = for_profile(claim.why, "quick") or for_profile(claim.checks, "quick")
    values = {check.quantity: check.low if math.isfinite(check.low) else check.high for check in wanted}
    assert judged(claim, values).verdict is for_profile(claim.expects, "quick")
    breaks(claim, values)


def breaks(claim, values):
    """Any number that should hold, moved out of its place, turns the verdict."""
    for check in for_profile(claim.why, "quick") or for_profile(claim.checks, "quick"):
        away = check.high + 1 if math.isfinite(check.high) else check.low - 1
        assert not judged(claim, values | {check.quantity: away}).as_expected, check.quantity
        assert not judged(claim, values | {check.quantity: math.nan}).as_expected, check.quantity


def test_repeats_and_alphas():
    radii = {"0.1": (0.30, 0.32), "0.01": (0.306,)}
    values = {
        f"median radius, p = {p}, α = {alpha}, repeat {i}": p * radius
        for p in (1, 3)
        for alpha, found in radii.items()
        for i, radius in enumerate(found, start=1)
    }
    found = _caption_and_code(values)
    assert found == pytest.approx(
        {
            "median radius at α = .1 minus at .01, p = 1": 0.004,
            "median radius over all repeats minus over half, p = 1": 0.01,
            "median radius at α = .1 minus at .01, p = 3": 0.012,
            "median radius over all repeats minus over half, p = 3": 0.03,
        }
    )
    assert judged(BY_ID["I6"], found).verdict is Verdict.DIFFERS
    assert judged(BY_ID["I6"], {name: value / 10 for name, value in found.items()}).verdict is Verdict.REPRODUCED
    parts = [part["alpha"] for part in BY_ID["I6"].experiment.parts("paper") if part["p"] == 3]
    assert parts.count(0.1) == 10 and parts.count(0.01) == 5


def test_gap_of_attacks():
    values = {f"by {who} at {r}, p = {p}": 0.5 for who in ("APGD-CE", "both") for r in (0.1, 0.15) for p in (1, 4)}
    values |= {"by both at 0.15, p = 4": 0.44, "by both at 0.1, p = 1": 0.49, "by APGD-CE at 0.1, p = 4": 0.51}
    found = _gaps(values)
    assert found == pytest.approx(
        {"largest gap between APGD-CE and both": 0.06, "by both at 0.1, p = 4 minus p = 1": 0.01}
    )
    assert judged(BY_ID["I7"], found).verdict is Verdict.DIFFERS  # the order of p is lost
    assert judged(BY_ID["I7"], found | {"by both at 0.1, p = 4 minus p = 1": 0.2}).verdict is Verdict.ARTEFACT
    assert judged(BY_ID["I7"], found | {"largest gap between APGD-CE and both": 0.01}).verdict is Verdict.REPRODUCED


def test_degree():
    eye, labels = torch.eye(4, dtype=torch.float64), torch.tensor([1.0, 1.0, -1.0, -1.0])
    X = torch.rand(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert _degree(AverageClassifier(eye, labels), X) == pytest.approx(1)
    assert _degree(CentreClassifier(eye, labels, 2.5), X) == pytest.approx(2.5)
    assert _degree(lambda Z: (Z - 1).sum(1) ** 2, X, origin=torch.ones(4)) == pytest.approx(2)


def test_ascent_reaches_the_supremum_and_stays_where_nothing_slopes():
    eye, labels = torch.eye(4, dtype=torch.float64), torch.tensor([1.0, 1.0, -1.0, -1.0])
    F = CentreClassifier(eye, labels, 3.0)
    X = unit(torch.tensor([[0.9, 0.1, 0.2, 0.1], [-1.0, -0.1, -0.2, -0.3]], dtype=torch.float64))
    assert _climb(lambda Z: 0 * Z.sum(1), F, X, 300) == pytest.approx(1, abs=1e-3)
    assert _climb(lambda Z: 0 * Z.sum(1), F, X[1:], 300) == 0
