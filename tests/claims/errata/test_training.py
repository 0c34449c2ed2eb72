"""Means over repeats; splits and tasks of the images as in the sources, wrong, without MNIST, and in few epochs."""

import dataclasses
import importlib
import math

import pytest

from polyrelu.claims import PROFILES, Quantity, Values, Verdict, catalogue, for_profile, judge, load_experiment
from polyrelu.claims.errata import training
from polyrelu.claims.judge import GOOD
from polyrelu.claims.setups import digit_nets

CLAIMS = {id: catalogue()[id] for id in ("I8", "I19")}
WRONG = {
    "I8": {Quantity("accuracy", p=4, split="validation minus test"): 0.02},
    "I19": {
        Quantity(training.ROBUST, radius=0.05, task="ten digits"): 0.2,
        Quantity("parity minus ten digits", radius=0.05): 0.1,
    },
}


@pytest.fixture
def images_are_there(monkeypatch):
    free = {name: dataclasses.replace(load_experiment(name), needs=lambda profile: "") for name in
            (claim.experiment for claim in CLAIMS.values())}  # fmt: skip
    monkeypatch.setattr(importlib.import_module("polyrelu.claims.judge"), "load_experiment", free.__getitem__)


@pytest.mark.parametrize("id", CLAIMS)
@pytest.mark.parametrize("profile", PROFILES)
def test_numbers_as_published_are_as_expected_and_others_are_not(
    id, profile, inside, verdict, images_are_there, without_combining
):
    claim = CLAIMS[id]
    assert claim.sentence.endswith(".") and for_profile(claim.settings, profile).endswith(".")
    wanted = for_profile(claim.why, profile) or for_profile(claim.checks, profile)
    values = {check.quantity: inside(check) for check in wanted}
    found, expected = verdict(claim, profile, values), for_profile(claim.expects, profile)
    assert found in GOOD and expected in (found, Verdict.NOT_RUN)
    wrong = {quantity: value for quantity, value in WRONG[id].items() if quantity in values}
    assert wrong and verdict(claim, profile, values | wrong) is Verdict.DIFFERS


def test_without_mnist_the_published_size_is_not_run(monkeypatch, tmp_path):
    monkeypatch.setenv("POLYRELU_DATA", str(tmp_path))
    for claim in CLAIMS.values():
        found = judge(claim, "paper", [])
        assert found.verdict is Verdict.NOT_RUN and "polyrelu data fetch mnist" in found.reason
    assert "without validation" in judge(CLAIMS["I8"], "quick", []).reason


def test_a_short_run_gives_every_number(monkeypatch, run):
    monkeypatch.setitem(digit_nets.RECIPES, "quick", {"width": 6, "epochs": 3, "rate": 1e-2, "batch": 130})
    monkeypatch.setitem(digit_nets.APGD_STEPS, "quick", 5)
    digit_nets.trained.cache_clear()
    _, kept = run(training.parity_or_digits)
    digit_nets.trained.cache_clear()
    found = judge(CLAIMS["I19"], "quick", kept)
    assert not any(math.isnan(value) for number in found.numbers for value in number.values)
    assert len(found.numbers) == 7


def test_both_splits_are_measured(monkeypatch, run, quantities):
    head = digit_nets.Head(None, None, "validation", None, None, 0, None)
    monkeypatch.setattr(digit_nets, "trained", lambda profile, p, seed: head)
    monkeypatch.setattr(training, "read", lambda name: name)
    monkeypatch.setattr(training, "accuracy", lambda net, data: {"validation": 0.98, "mnist:test": 0.97}[data])
    share = {"validation": 1.0, "mnist:test": 0.0}
    monkeypatch.setattr(training, "published_accuracy", lambda head, data, norm, radius, seed: radius * share[data])
    values, _ = run(training.validation_split)
    assert quantities(CLAIMS["I8"], "paper") <= values.keys()
    assert values[Quantity("accuracy", p=4, split="validation minus test")] == pytest.approx(0.01)
    assert values[Quantity(training.ROBUST, p=1, radius=0.05, split="validation minus test")] == 0.05


def test_repeats_and_alphas(verdict, without_combining):
    radii = {0.1: (0.30, 0.32), 0.01: (0.306,)}
    values = Values(
        {
            Quantity("median radius", p=p, alpha=alpha, repeat=i): p * radius
            for p in (1, 3)
            for alpha, found in radii.items()
            for i, radius in enumerate(found, start=1)
        }
    )
    found = training.attacked_alpha.combine(values)
    assert found == pytest.approx(
        {
            Quantity("median radius at α = .1 minus at .01", p=1): 0.004,
            Quantity("median radius over all repeats minus over half", p=1): 0.01,
            Quantity("median radius at α = .1 minus at .01", p=3): 0.012,
            Quantity("median radius over all repeats minus over half", p=3): 0.03,
        }
    )
    assert verdict(catalogue()["I6"], "quick", found) is Verdict.DIFFERS
    assert (
        verdict(catalogue()["I6"], "quick", {name: value / 10 for name, value in found.items()}) is Verdict.REPRODUCED
    )
    parts = [part["alpha"] for part in training.attacked_alpha.parts("paper") if part["p"] == 3]
    assert parts.count(0.1) == 10 and parts.count(0.01) == 5
