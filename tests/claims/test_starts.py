"""Both kinds of net are one function class; a nudge turns what it should; verdicts turn with their numbers."""

import math

import pytest
import torch

from polyrelu.claims import starts
from polyrelu.claims.claim import PROFILES, Measured, Verdict, at
from polyrelu.claims.judge import Outcome, judge
from polyrelu.nets import PlainPolyNet
from polyrelu.report.paper_figures.mv25 import initialisation
from polyrelu.report.paper_figures.mv25 import phases as drawn_phases

CLAIMS = {claim.id: claim for claim in starts.CLAIMS}


def inside(check):
    """A number for which the check holds."""
    return check.low if math.isfinite(check.low) else check.high


def verdict(claim, profile, values):
    part = Measured(values)
    return judge(claim, profile, [Outcome(0, {}, part)]).verdict


@pytest.fixture
def shrunken(monkeypatch):
    monkeypatch.setattr(starts, "SIZES", {"quick": (40, 3, 2, 300, 40, 10)})
    monkeypatch.setattr(starts, "NUDGED", (100, 300, 40))


def test_every_claim_is_said_in_full():
    assert list(CLAIMS) == ["B10", "B11", "B12", "B15"]
    for claim in CLAIMS.values():
        assert claim.sentence.endswith(".")
        assert claim.published
        for profile in PROFILES:
            assert at(claim.checks, profile)
            assert at(claim.settings, profile)


def test_a_polynomial_net_is_a_normalised_one_with_other_weights():
    net = PlainPolyNet(5, 7, 3.0, scale=0.5, seed=1, dtype=torch.float64)
    X = torch.randn(20, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    same = starts.normalised(net)
    assert torch.allclose(same(X), net(X), rtol=1e-12, atol=1e-14)
    assert starts.normalised(same) is same


def test_the_unit_nudge_turns_a_long_weight_as_5_percent_turn_a_unit_one():
    dim = 400
    u, mu = torch.eye(dim)[0], torch.eye(dim)[1]
    unit = u + 0.05 * (mu - u)
    d, w = starts.unit_nudge(dim), math.sqrt(dim) * u
    long = w + d * (mu - w)
    assert torch.cosine_similarity(unit, long, dim=0) == pytest.approx(1, abs=1e-6)
    assert starts.unit_nudge(1000) == pytest.approx(0.625, abs=5e-4)


def test_experiments_give_the_numbers_they_are_judged_by(shrunken):
    results = {}
    for experiment in (starts.STARTS, starts.NUDGES):
        kept = [Outcome(0, part, experiment.run("quick", 0, **part)) for part in experiment.parts("quick")]
        values = {name: value for one in kept for name, value in one.measured.values.items()}
        values |= experiment.combine(values)
        results[experiment.name] = kept
        for claim in CLAIMS.values():
            if claim.experiment is experiment:
                checks = [*at(claim.checks, "quick"), *at(claim.checks, "paper"), *at(claim.why, "quick")]
                assert {check.name for check in checks} <= set(values)
        for name, value in values.items():
            if name.startswith("proven"):
                assert value <= values["not broken" + name.removeprefix("proven")]
    assert values["step of median cosine .9, nudge of a unit weight"] < values["step of median cosine .9, nudge none"]
    assert len(initialisation.FIGURES[0].draw(results).axes) == 2
    assert len(drawn_phases.FIGURES[1].draw(results).axes) == 3


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("id", ["B10", "B11", "B12"])
def test_one_wrong_number_turns_the_verdict(id, profile):
    claim = CLAIMS[id]
    checks = at(claim.checks, profile)
    good = {check.name: inside(check) for check in checks}
    assert verdict(claim, profile, good) is Verdict.REPRODUCED
    for check in checks:
        wrong = check.low - 0.01 if math.isfinite(check.low) else check.high + 0.01
        assert verdict(claim, profile, good | {check.name: wrong}) is Verdict.DIFFERS


def test_the_nudge_is_an_artefact_only_while_the_other_reading_explains_it():
    claim = CLAIMS["B15"]
    steps = {"none": 240.0, "as printed": 238.0, "of a unit weight": 180.0}
    name = "step of median cosine .9, nudge "

    def told(**changed):
        return verdict(claim, "paper", {name + one: step for one, step in (steps | changed).items()})

    assert told() is Verdict.ARTEFACT
    assert told(**{"as printed": 160.0}) is Verdict.REPRODUCED
    assert told(**{"of a unit weight": 235.0}) is Verdict.DIFFERS
