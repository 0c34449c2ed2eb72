"""What neurons are said to point at: the ideal tables are exact, every number can turn a verdict."""

import math

import pytest
import torch

from polyrelu.claims import breaking, distances, neurons
from polyrelu.claims.claim import Standing, Verdict
from polyrelu.claims.experiment import Measured
from polyrelu.claims.judge import Outcome, judge
from polyrelu.claims.papers import PAPERS
from polyrelu.claims.profile import PROFILES, for_profile
from polyrelu.claims.setups.mixture_nets import FLOW_TIME, trained

ALL = {claim.id: claim for room in (distances, neurons, breaking) for claim in room.CLAIMS}
each = pytest.mark.parametrize("claim", ALL.values(), ids=list(ALL))


def small(profile, p, seed, clusters="6+4", **others):
    """A net of the same kind that takes a fraction of a second."""
    return trained("quick", p, seed, clusters=clusters, until=1e-2, size=(50, 500, 100))


@pytest.fixture
def shrunken(monkeypatch):
    monkeypatch.setattr(neurons, "trained", small)


def test_these_are_the_claims():
    wanted = "B1 B2 B3 B4 B5 B6 B7 B8 B9 B18 B24 B25 B26 B29 B31 B32"
    assert sorted(ALL, key=lambda id: int(id[1:])) == wanted.split()


@each
def test_a_claim_is_complete(claim):
    assert claim.sentence.endswith(".")
    assert claim.paper in PAPERS or claim.paper == "ours"
    for profile in PROFILES:
        assert for_profile(claim.settings, profile).endswith(".")
        assert for_profile(claim.checks, profile)
        assert claim.experiment.needs(profile) == ""
        assert claim.experiment.parts(profile)
        assert (for_profile(claim.expects, profile) is Verdict.ARTEFACT) == bool(
            for_profile(claim.why, profile) and claim.reason
        )


def inside(checks, wrong=None):
    """Values inside every check but the one numbered ``wrong``."""
    values = {}
    for number, check in enumerate(checks):
        bounds = [bound for bound in (check.low, check.high) if math.isfinite(bound)]
        out = check.low - 1e-3 * (1 + abs(check.low)) if math.isfinite(check.low) else check.high + 1e-3
        values[check.quantity] = out if number == wrong else sum(bounds) / len(bounds)
    return values


@each
@pytest.mark.parametrize("profile", PROFILES)
def test_any_number_that_is_off_turns_the_verdict(claim, profile, monkeypatch):
    monkeypatch.setattr("polyrelu.claims.judge._by_seed", lambda claim, kept: [kept[0].measured.values])
    checks = for_profile(claim.why, profile) or for_profile(claim.checks, profile)
    good = Verdict.MEASURED if claim.standing is Standing.UNKNOWN else for_profile(claim.expects, profile)
    assert judge(claim, profile, [Outcome(0, {}, Measured(inside(checks)))]).verdict is good
    for wrong in range(len(checks)):
        broken = judge(claim, profile, [Outcome(0, {}, Measured(inside(checks, wrong)))])
        assert broken.verdict is Verdict.DIFFERS, checks[wrong].name
        assert not broken.as_expected


def test_the_pure_table_has_ones_and_inverse_roots():
    nearest = torch.eye(7)[[0, 1, 2, 6]]  # two averages, three centres of class +, two of class -
    third, half = 1 / math.sqrt(3), 1 / math.sqrt(2)
    exact = [
        [1, 0, third, third, third, 0, 0],
        [0, 1, 0, 0, 0, half, half],
        [third, 0, 1, 0, 0, 0, 0],
        [0, half, 0, 0, 0, 0, 1],
    ]
    torch.testing.assert_close(neurons._pure(nearest, 3), torch.tensor(exact, dtype=torch.float64), check_dtype=False)


def test_the_time_is_that_of_the_published_sgd():
    assert pytest.approx(16040) == FLOW_TIME


def given(experiment, parts):
    kept = [Outcome(0, part, experiment.run("quick", 0, **part)) for part in parts]
    values = {name: value for outcome in kept for name, value in outcome.measured.values.items()}
    return values | dict(experiment.combine(values)), kept


def names(claim):
    return {check.quantity for profile in PROFILES for check in for_profile(claim.checks, profile)}


def test_neurons_are_looked_at(shrunken):
    values, kept = given(neurons.LEARNED, neurons.LEARNED.parts("quick"))
    for id in ("B4", "B5", "B24", "B25"):
        assert names(ALL[id]) <= set(values)
    assert values["p = 3: centres covered"] == 10
    assert values["p = 1: median cosine to a class average"] > 0.98 > values["p = 1: median cosine to a centre"]
    data = kept[0].measured.data
    assert len(data["cosines"][0]) == 12
    assert data["contributions"] == sorted(data["contributions"], reverse=True)
    assert data["carriers"] == values["p = 1: neurons with 99 %"]


def test_twenty_clusters_are_looked_at(shrunken):
    values, kept = given(neurons.TWENTY, [{"p": 1.0}])
    wanted = {name for id in ("B3", "B26") for name in names(ALL[id]) if name.startswith("p = 1")}
    assert wanted <= set(values)
    assert kept[0].measured.data["clusters"] == [8, 12]
    assert values["p = 1: median radius, certified"] <= values["p = 1: median radius, attacked"]
    assert values["p = 1: median radius, attacked"] == pytest.approx(20**-0.5, abs=0.03)


def test_every_p_has_its_numbers(shrunken):
    values, _ = given(neurons.POWERS_SWEPT, [{"p": 1.0}, {"p": 3.0}])
    assert {name for name in names(ALL["B18"]) if name.startswith(("p = 1:", "p = 3:"))} <= set(values)
    assert {part["p"] for part in neurons.POWERS_SWEPT.parts("quick")} >= {1.0, 2.5, 3.0, 4.0}
    assert values["p = 1: median radius, attacked"] < 0.4 < 0.6 < values["p = 3: median radius, certified"]


def test_large_p_stalls():
    values, kept = given(neurons.STEEP_ONES, neurons.STEEP_ONES.parts("quick"))
    assert names(ALL["B32"]) <= set(values)
    assert judge(ALL["B32"], "quick", kept).verdict is Verdict.REPRODUCED
    assert values["p = 3: log10 loss"] < -1
