"""What neurons are said to point at: the ideal tables are exact, every number can turn a verdict."""

import math

import pytest
import torch

from polyrelu.claims import (
    PAPERS,
    PROFILES,
    Measured,
    Outcome,
    Quantity,
    Standing,
    Verdict,
    for_profile,
    judge,
    load_experiment,
)
from polyrelu.claims.mv24 import neurons
from polyrelu.claims.mv24.claims import mixture
from polyrelu.claims.setups.mixture_nets import FLOW_TIME, trained

ALL = {claim.id: claim for claim in mixture.CLAIMS if claim.experiment.split(".")[1] != "fig1"}
each = pytest.mark.parametrize("claim", ALL.values(), ids=list(ALL))


def small(size, p, seed):
    """A net of the same kind that takes a fraction of a second."""
    return trained(size._replace(dim=50, samples=500, width=100), p, seed, until=1e-2)


@pytest.fixture
def shrunken(monkeypatch):
    monkeypatch.setattr(neurons, "trained", small)


def test_these_are_the_claims():
    wanted = "B1 B2 B3 B4 B5 B6 B7 B18 B24 B25 B26 B29 B31 B32"
    assert sorted(ALL, key=lambda id: int(id[1:])) == wanted.split()


@each
def test_a_claim_is_complete(claim):
    assert claim.sentence.endswith(".")
    assert claim.paper in PAPERS or claim.paper == "ours"
    for profile in PROFILES:
        assert for_profile(claim.settings, profile).endswith(".")
        assert for_profile(claim.checks, profile)
        assert load_experiment(claim.experiment).needs(profile) == ""
        assert load_experiment(claim.experiment).parts(profile)
        assert (for_profile(claim.expects, profile) is Verdict.ARTEFACT) == bool(
            for_profile(claim.why, profile) and claim.reason
        )


@each
@pytest.mark.parametrize("profile", PROFILES)
def test_any_number_that_is_off_turns_the_verdict(claim, profile, without_combining, values_for):
    checks = for_profile(claim.why, profile) or for_profile(claim.checks, profile)
    good = Verdict.MEASURED if claim.standing is Standing.UNKNOWN else for_profile(claim.expects, profile)
    assert judge(claim, profile, [Outcome(0, {}, Measured(values_for(checks)))]).verdict is good
    for wrong in range(len(checks)):
        broken = judge(claim, profile, [Outcome(0, {}, Measured(values_for(checks, wrong)))])
        assert broken.verdict is Verdict.DIFFERS, checks[wrong].quantity
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


@pytest.mark.slow
def test_neurons_are_looked_at(shrunken, run, quantities):
    values, kept = run(neurons.learned)
    for id in ("B4", "B5", "B24", "B25"):
        assert quantities(ALL[id], *PROFILES) <= set(values)
    assert values[Quantity("centres covered", p=3)] == 10
    average, centre = (values[Quantity(f"median cosine to a {goal}", p=1)] for goal in ("class average", "centre"))
    assert average > 0.98 > centre
    data = kept[0].measured.data
    assert len(data["cosines"][0]) == 12
    assert data["contributions"] == sorted(data["contributions"], reverse=True)
    assert data["carriers"] == values[Quantity("neurons with 99 %", p=1)]


@pytest.mark.slow
def test_twenty_clusters_are_looked_at(shrunken, run, quantities):
    values, kept = run(neurons.twenty, [{"p": 1.0}])
    wanted = {key for id in ("B3", "B26") for key in quantities(ALL[id], *PROFILES) if dict(key.where)["p"] == 1}
    assert wanted <= set(values)
    assert kept[0].measured.data["clusters"] == [8, 12]
    certified, attacked = (values[Quantity(f"median radius, {side}", p=1)] for side in ("certified", "attacked"))
    assert certified <= attacked
    assert attacked == pytest.approx(20**-0.5, abs=0.03)


def test_every_p_has_its_numbers(shrunken, run, quantities):
    values, _ = run(neurons.powers, [{"p": 1.0}, {"p": 3.0}])
    assert {key for key in quantities(ALL["B18"], *PROFILES) if dict(key.where)["p"] in (1, 3)} <= set(values)
    assert {part["p"] for part in neurons.powers.parts("quick")} >= {1.0, 2.5, 3.0, 4.0}
    certified, attacked = Quantity("median radius, certified", p=3), Quantity("median radius, attacked", p=1)
    assert values[attacked] < 0.4 < 0.6 < values[certified]


@pytest.mark.slow
def test_large_p_stalls(run, quantities):
    values, kept = run(neurons.steep)
    assert quantities(ALL["B32"], *PROFILES) <= set(values)
    assert judge(ALL["B32"], "quick", kept).verdict is Verdict.REPRODUCED
    assert values[Quantity("log10 loss", p=3)] < -1
