"""Both kinds of net are one function class; a nudge turns what it should; verdicts turn with their numbers."""

import math

import pytest
import torch

from polyrelu.claims import PROFILES, Quantity, Verdict, for_profile
from polyrelu.claims.mv25 import claims, initialisation, sizes
from polyrelu.claims.setups.sizes import MixtureSize
from polyrelu.nets import PlainPolyNet
from polyrelu.report.paper_figures.mv25 import initialisation as drawn_initialisation
from polyrelu.report.paper_figures.mv25 import phases as drawn_phases

CLAIMS = {one.id: one for one in claims.CLAIMS if one.experiment.startswith("mv25.initialisation.")}


@pytest.fixture
def shrunken(monkeypatch):
    size = MixtureSize(dim=40, positive=3, negative=2, samples=300, width=40, points=10)
    monkeypatch.setattr(sizes, "INITIALISATION", {"quick": size})
    monkeypatch.setattr(sizes, "NUDGED", MixtureSize(dim=100, positive=5, negative=5, samples=300, width=40))


def test_every_claim_is_said_in_full():
    assert list(CLAIMS) == ["B10", "B11", "B12", "B15"]
    for claim in CLAIMS.values():
        assert claim.sentence.endswith(".")
        assert claim.published
        for profile in PROFILES:
            assert for_profile(claim.checks, profile)
            assert for_profile(claim.settings, profile)


def test_a_polynomial_net_is_a_normalised_one_with_other_weights():
    net = PlainPolyNet(5, 7, 3.0, scale=0.5, seed=1, dtype=torch.float64)
    X = torch.randn(20, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    same = initialisation.normalised(net)
    assert torch.allclose(same(X), net(X), rtol=1e-12, atol=1e-14)
    assert initialisation.normalised(same) is same


def test_the_unit_nudge_turns_a_long_weight_as_5_percent_turn_a_unit_one():
    dim = 400
    u, mu = torch.eye(dim)[0], torch.eye(dim)[1]
    unit = u + 0.05 * (mu - u)
    d, w = initialisation.unit_nudge(dim), math.sqrt(dim) * u
    long = w + d * (mu - w)
    assert torch.cosine_similarity(unit, long, dim=0) == pytest.approx(1, abs=1e-6)
    assert initialisation.unit_nudge(1000) == pytest.approx(0.625, abs=5e-4)


def test_experiments_give_the_numbers_they_are_judged_by(shrunken, run, quantities):
    results = {}
    for experiment in (initialisation.starts, initialisation.nudged_start):
        values, kept = run(experiment)
        results[experiment.name] = kept
        for claim in CLAIMS.values():
            if claim.experiment == experiment.name:
                assert quantities(claim, *PROFILES) <= set(values)
        for key, value in values.items():
            if isinstance(key, Quantity) and key.name == "proven":
                assert value <= values[Quantity("not broken", **dict(key.where))]
    steps = values.along("reading", "step of median cosine .9")
    assert steps["of a unit weight"] < steps["none"]
    assert len(drawn_initialisation.FIGURES[0].draw(results).axes) == 2
    assert len(drawn_phases.FIGURES[1].draw(results).axes) == 3


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("id", ["B10", "B11", "B12"])
def test_one_wrong_number_turns_the_verdict(id, profile, verdict, inside, outside):
    claim = CLAIMS[id]
    checks = for_profile(claim.checks, profile)
    good = {check.quantity: inside(check) for check in checks}
    assert verdict(claim, profile, good) is Verdict.REPRODUCED
    for check in checks:
        assert verdict(claim, profile, good | {check.quantity: outside(check)}) is Verdict.DIFFERS


def test_the_nudge_is_an_artefact_only_while_the_other_reading_explains_it(verdict):
    claim = CLAIMS["B15"]
    steps = {"none": 240.0, "as printed": 238.0, "of a unit weight": 180.0}

    def judged(**changed):
        values = {Quantity("step of median cosine .9", reading=one): step for one, step in (steps | changed).items()}
        return verdict(claim, "paper", values)

    assert judged() is Verdict.ARTEFACT
    assert judged(**{"as printed": 160.0}) is Verdict.REPRODUCED
    assert judged(**{"of a unit weight": 235.0}) is Verdict.DIFFERS
