"""Experiments run in a test, and claims judged by numbers made up for it."""

from __future__ import annotations

import dataclasses
import importlib
import math

import pytest

from polyrelu.claims import PAPERS, PROFILES, Measured, Outcome, Verdict, for_profile, judge, load_experiment
from polyrelu.claims.experiment import together


@pytest.fixture(scope="session")
def run():
    """run(experiment, parts=None) -> (its values, its outcomes), one seed at quick size."""

    def run(experiment, parts=None):
        parts = experiment.parts("quick") if parts is None else parts
        kept = [Outcome(0, part, experiment("quick", 0, **part)) for part in parts]
        return together(experiment, [one.measured for one in kept]), kept

    return run


@pytest.fixture(scope="session")
def quantities():
    """quantities(claim, *profiles): what its checks are about."""

    def quantities(claim, *profiles):
        checks = [c for p in profiles for c in (*for_profile(claim.checks, p), *for_profile(claim.why, p))]
        return {check.quantity for check in checks}

    return quantities


@pytest.fixture(scope="session")
def verdict():
    """verdict(claim, profile, values): that of one seed with these values."""
    return lambda claim, profile, values: judge(claim, profile, [Outcome(0, {}, Measured(values))]).verdict


@pytest.fixture
def without_combining(monkeypatch):
    """Values are judged as they are, so that a test can make up what is combined from several parts."""
    module = importlib.import_module("polyrelu.claims.judge")
    monkeypatch.setattr(module, "together", lambda experiment, parts: parts[0].values)


@pytest.fixture
def nothing_needed(monkeypatch):
    """Claims are judged as if everything that they need were there."""
    module = importlib.import_module("polyrelu.claims.judge")
    free = {"needs": lambda profile: ""}
    monkeypatch.setattr(module, "load_experiment", lambda name: dataclasses.replace(load_experiment(name), **free))


@pytest.fixture(scope="session")
def values_for():
    """values_for(checks, wrong=None): values inside every check but the one numbered ``wrong``, just outside."""

    def values_for(checks, wrong=None):
        values = {}
        for number, check in enumerate(checks):
            bounds = [bound for bound in (check.low, check.high) if math.isfinite(bound)]
            out = check.low - 1e-3 * (1 + abs(check.low)) if math.isfinite(check.low) else check.high + 1e-3
            values[check.quantity] = out if number == wrong else sum(bounds) / len(bounds)
        return values

    return values_for


@pytest.fixture(scope="session")
def assert_complete():
    """assert_complete(claim): a sentence, a known paper, checks and settings for both profiles, nothing to fetch."""

    def assert_complete(claim):
        assert claim.sentence.endswith(".")
        assert claim.paper in PAPERS
        for profile in PROFILES:
            assert for_profile(claim.checks, profile)
            assert for_profile(claim.settings, profile)
            assert load_experiment(claim.experiment).needs(profile) == ""

    return assert_complete


@pytest.fixture(scope="session")
def assert_can_fail():
    """assert_can_fail(claim, kept, skip=()): a number just outside its check, or NaN, turns the verdict."""

    def assert_can_fail(claim, kept, skip=()):
        for check in for_profile(claim.checks, "quick"):
            for bad in (outside(check), math.nan):
                if check.quantity not in skip:
                    assert judge(claim, "quick", with_value(kept, check.quantity, bad)).verdict is Verdict.DIFFERS

    return assert_can_fail


def with_value(kept, quantity, value):
    """The outcomes with another value of one quantity: in those that measured it, or in all if none did."""
    having = [one for one in kept if quantity in one.measured.values] or kept
    return [
        Outcome(one.seed, one.part, Measured({**one.measured.values, quantity: value})) if one in having else one
        for one in kept
    ]


def inside(check):
    """A number for which the check holds."""
    return check.low if math.isfinite(check.low) else check.high


def outside(check):
    """A number for which it does not."""
    return check.low - 0.01 if math.isfinite(check.low) else check.high + 0.01


@pytest.fixture(name="inside", scope="session")
def inside_fixture():
    """inside(check)."""
    return inside


@pytest.fixture(name="outside", scope="session")
def outside_fixture():
    """outside(check)."""
    return outside
