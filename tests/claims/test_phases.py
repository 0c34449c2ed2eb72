"""Crossings, cluster sums and starts are exact; verdicts turn with their numbers."""

import math

import numpy as np
import pytest
import torch

from polyrelu.claims import phases
from polyrelu.claims.claim import PROFILES, Measured, Verdict, at
from polyrelu.claims.judge import Outcome, judge
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import CentreClassifier
from polyrelu.report.paper_figures.mv25 import phases as drawn_phases

CLAIMS = {claim.id: claim for claim in phases.CLAIMS}


@pytest.fixture
def shrunken(monkeypatch):
    monkeypatch.setattr(phases, "SIZES", {"quick": (20, 200, 30)})
    monkeypatch.setattr(phases, "LOOKS", (240, 400, 480, 900))


def values_of(experiment):
    kept = [Outcome(0, part, experiment.run("quick", 0, **part)) for part in experiment.parts("quick")]
    values = {name: value for one in kept for name, value in one.measured.values.items()}
    return values | experiment.combine(values), kept


def names(claim, profile):
    return {check.name for check in at(claim.checks, profile)}


def test_every_claim_is_said_in_full():
    assert list(CLAIMS) == ["B13", "B14", "B17", "B19", "B20", "B30"]
    for claim in CLAIMS.values():
        assert claim.sentence.endswith(".")
        for profile in PROFILES:
            assert at(claim.checks, profile)
            assert at(claim.settings, profile)


def test_a_crossing_lies_between_two_moments():
    steps, values = np.array([0.0, 10.0, 20.0, 30.0]), np.array([0.0, 0.5, 0.4, 1.0])
    assert phases.first(values, steps, 0.25) == 5
    assert phases.first(values, steps, 0.7) == pytest.approx(25)
    assert phases.first(values, steps, -1) == 0
    assert math.isnan(phases.first(values, steps, 2))


def test_the_ideal_net_has_one_unit_of_norm_at_each_centre():
    mixture = OrthonormalMixture(12, 5, 5, 0.1, dtype=torch.float64)
    net = CentreClassifier(mixture.centres, mixture.labels, 3.0).as_polyrelu_net()
    assert phases.cluster_sums(net, mixture) == pytest.approx([1.0] * 10)
    with torch.no_grad():
        net.output[0, 3] = -0.5  # a neuron of the wrong sign is not one of N_k
        net.output[0, 7] = -0.5
    assert phases.cluster_sums(net, mixture) == pytest.approx([1, 1, 1, 0, 1, 1, 1, 0.5, 1, 1])


def test_a_nudged_start_is_the_random_one_moved_towards_a_centre():
    mixture, _, random = phases.start((30, 100, 8), 3)
    _, _, nudged = phases.start((30, 100, 8), 3, nudge=0.5)
    moved = (nudged.weight / phases.SCALE - 0.5 * random.weight / phases.SCALE) / 0.5
    assert torch.allclose(torch.cdist(moved, mixture.centres).amin(1), torch.zeros(8, dtype=torch.float64), atol=1e-9)
    assert torch.allclose(nudged.output[0].abs(), nudged.weight.norm(dim=1), rtol=1e-12)


def test_experiments_give_the_numbers_they_are_judged_by(shrunken):
    values, kept = values_of(phases.RANDOM)
    assert values["steps from alignment to the fall of the loss"] > 0
    assert values["distance at the first look"] == pytest.approx(1, abs=1e-3)
    assert len(drawn_phases.FIGURES[0].draw({"phases.random_start": kept}).axes) == 5
    for id in ("B13", "B14", "B17", "B30"):
        assert names(CLAIMS[id], "quick") <= set(values)
        assert names(CLAIMS[id], "paper") <= {*values, "distance at step 490"}
    values, _ = values_of(phases.LOSSES)
    assert names(CLAIMS["B19"], "quick") <= set(values)
    assert values["largest gap of the median cosine, logistic to squared"] < 1e-3
    values, _ = values_of(phases.BALANCE)
    assert names(CLAIMS["B20"], "quick") <= set(values)
    assert values["sign flips of v, coarse steps"] == 0
    assert values["change, coarse / 4 times finer"] > 2.5


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("id", list(CLAIMS))
def test_one_wrong_number_turns_the_verdict(id, profile):
    claim = CLAIMS[id]
    checks = at(claim.checks, profile)
    good = {check.name: check.low if math.isfinite(check.low) else check.high for check in checks}
    made = {
        "largest change of |v|² − |w|², coarse steps": 1e-6,
        "largest change of |v|² − |w|², steps 4 times finer": 1e-7,
    }  # what the order of B20 is made from

    def verdict(values):
        return judge(claim, profile, [Outcome(0, {}, Measured(made | values))]).verdict

    assert verdict(good) is Verdict.REPRODUCED
    for check in checks:
        if check.name.startswith("change, coarse"):
            worse = {"largest change of |v|² − |w|², steps 4 times finer": 1e-6}
        else:
            worse = {check.name: check.low - 0.01 if math.isfinite(check.low) else check.high + 0.01}
        assert verdict(good | worse) is Verdict.DIFFERS
