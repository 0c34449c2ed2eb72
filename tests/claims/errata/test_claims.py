"""The inconsistencies of the sources: every claim runs, says what it should, and can fail."""

import math
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from polyrelu.claims import PAPERS, PROFILES, Measured, Outcome, Verdict, for_profile, judge, load_experiment
from polyrelu.claims.errata import procedures, training
from polyrelu.claims.errata.claims import CLAIMS
from polyrelu.claims.setups import mixture_nets
from polyrelu.data import OrthonormalMixture
from polyrelu.errors import InputError
from polyrelu.robust.attacks import APGD, PGD, PublishedPGD

BY_ID = {claim.id: claim for claim in CLAIMS}
UNMEASURED = ("I22", "I24")
IMAGES = ("I8", "I19")
SLOW = ("I2", "I3", "I5", "I6", "I7", "I15", "I18", "I20", "I25")


def judged(claim, values):
    return judge(claim, "quick", [Outcome(0, {}, Measured(values))])


def stand_in_trained(size, p, seed):
    mixture = OrthonormalMixture(20, 6, 4, size.alpha, dtype=torch.float64)
    net = mixture_nets.ideal(mixture, p).as_polyrelu_net()
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
    for module in (training, procedures):
        monkeypatch.setattr(module, "trained", stand_in_trained)
    monkeypatch.setattr(training, "flow", lambda net, data, **_: SimpleNamespace(net=net))
    published_head = procedures.published_head
    monkeypatch.setattr(
        procedures, "published_head", lambda data, p, **k: published_head(data, p, **k | {"epochs": 1, "width": 4})
    )
    for attack in (APGD, PGD, PublishedPGD):
        monkeypatch.setattr(procedures, attack.__name__, partial(attack, steps=1))
    monkeypatch.setattr(procedures, "PGD", lambda steps, **k: PGD(steps=1, **k))
    published = procedures.published_dist
    monkeypatch.setattr(procedures, "published_dist", lambda *a, **k: published(*a, **k | {"steps": 1}))
    monkeypatch.setattr(procedures, "climb", lambda *_: 1.0)


def test_all_twenty_five_are_there():
    assert sorted(BY_ID, key=lambda name: int(name[1:])) == [f"I{i}" for i in range(1, 26)]
    assert len(CLAIMS) == 25
    assert len({claim.experiment for claim in CLAIMS if claim.id not in UNMEASURED}) == 23


@pytest.mark.parametrize("claim", CLAIMS, ids=BY_ID)
def test_words(claim):
    assert claim.sentence.endswith(".") and claim.published and claim.where and claim.paper in PAPERS
    assert (claim.experiment == "") == (claim.id in UNMEASURED)
    for profile in PROFILES:
        assert for_profile(claim.settings, profile).endswith(".")
        if claim.experiment and claim.id not in IMAGES:
            assert not load_experiment(claim.experiment).needs(profile)
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
        load_experiment(BY_ID[name].experiment)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in BY_ID if name not in (*UNMEASURED, *IMAGES, *SLOW)])
def test_verdict_and_its_failure(name, run, without_combining):
    claim = BY_ID[name]
    values, _ = run(load_experiment(claim.experiment))
    verdict = judged(claim, values)
    assert verdict.verdict is for_profile(claim.expects, "quick"), [
        (n.name, n.values, n.holds) for n in verdict.numbers
    ]
    breaks(claim, values)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_checks_name_measured_values(name, shrunk, run, quantities):
    values, _ = run(load_experiment(BY_ID[name].experiment))
    assert quantities(BY_ID[name], "quick") <= values.keys()


@pytest.mark.parametrize("name", SLOW)
def test_verdict_of_numbers_as_expected(name, inside, without_combining):
    claim = BY_ID[name]
    wanted = for_profile(claim.why, "quick") or for_profile(claim.checks, "quick")
    values = {check.quantity: inside(check) for check in wanted}
    assert judged(claim, values).verdict is for_profile(claim.expects, "quick")
    breaks(claim, values)


def breaks(claim, values):
    """Any number that should hold, moved out of its place, turns the verdict."""
    for check in for_profile(claim.why, "quick") or for_profile(claim.checks, "quick"):
        away = check.high + 1 if math.isfinite(check.high) else check.low - 1
        assert not judged(claim, values | {check.quantity: away}).as_expected, check.quantity
        assert not judged(claim, values | {check.quantity: math.nan}).as_expected, check.quantity
