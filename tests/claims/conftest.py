"""Experiments run in a test, and claims judged by numbers made up for it."""

from __future__ import annotations

import importlib
import math

import pytest

from polyrelu.claims import Measured, Outcome, for_profile, judge
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
