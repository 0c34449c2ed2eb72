"""Crossings, cluster sums and starts are exact, a nudge turns what it should; verdicts turn with their numbers."""

import math

import numpy as np
import pytest
import torch

from polyrelu.claims import PROFILES, Quantity, Verdict, for_profile
from polyrelu.claims.mv25 import claims, phases, sizes
from polyrelu.claims.setups.sizes import MixtureSize
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import CentreClassifier
from polyrelu.report.paper_figures import mv25 as drawn

CLAIMS = {claim.id: claim for claim in claims.CLAIMS if claim.experiment.startswith("mv25.phases.")}
CHANGE = "largest change of |v|² − |w|²"


@pytest.fixture
def shrunken(monkeypatch):
    size = MixtureSize(dim=20, positive=5, negative=5, samples=200, width=30)
    monkeypatch.setattr(sizes, "PHASES", {"quick": size})
    monkeypatch.setattr(sizes, "LOOKS", {"quick": (240, 400, 480, 900)})
    monkeypatch.setattr(sizes, "NUDGED", MixtureSize(dim=100, positive=5, negative=5, samples=300, width=40))


def test_every_claim_is_said_in_full():
    assert list(CLAIMS) == ["B15", "B13", "B14", "B17", "B19", "B20", "B30"]
    for claim in CLAIMS.values():
        assert claim.sentence.endswith(".")
        for profile in PROFILES:
            assert for_profile(claim.checks, profile)
            assert for_profile(claim.settings, profile)


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
    mixture, _, random = phases.start(MixtureSize(30, 5, 5, 100, 8), 3)
    _, _, nudged = phases.start(MixtureSize(30, 5, 5, 100, 8), 3, nudge=0.5)
    moved = (nudged.weight / phases.SCALE - 0.5 * random.weight / phases.SCALE) / 0.5
    assert torch.allclose(torch.cdist(moved, mixture.centres).amin(1), torch.zeros(8, dtype=torch.float64), atol=1e-9)
    assert torch.allclose(nudged.output[0].abs(), nudged.weight.norm(dim=1), rtol=1e-12)


@pytest.mark.slow
def test_experiments_give_the_numbers_they_are_judged_by(shrunken, run, quantities):
    values, kept = run(phases.random_start)
    assert values["steps from alignment to the fall of the loss"] > 0
    assert values["distance at the first look"] == pytest.approx(1, abs=1e-3)
    assert len(drawn.random_start.draw({"mv25.phases.random_start": kept}).axes) == 5
    for id in ("B13", "B14", "B17", "B30"):
        assert quantities(CLAIMS[id], "quick") <= set(values)
        assert quantities(CLAIMS[id], "paper") <= {*values, "distance at step 490"}
    values, _ = run(phases.losses)
    assert quantities(CLAIMS["B19"], "quick") <= set(values)
    assert values[Quantity("largest gap of the median cosine to that of the squared loss", loss="logistic")] < 1e-3
    values, _ = run(phases.balance)
    assert quantities(CLAIMS["B20"], "quick") <= set(values)
    assert values[Quantity("sign flips of v", finer=1)] == 0
    assert values["change, coarse / 4 times finer"] > 2.5
    values, kept = run(phases.nudged_start)
    assert quantities(CLAIMS["B15"], *PROFILES) <= set(values)
    steps = values.along("reading", "step of median cosine .9")
    assert steps["of a unit weight"] < steps["none"]
    assert len(drawn.nudged_start.draw({phases.nudged_start.name: kept}).axes) == 3


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("id", [id for id in CLAIMS if id != "B15"])
def test_one_wrong_number_turns_the_verdict(id, profile, verdict, inside, outside):
    claim = CLAIMS[id]
    checks = for_profile(claim.checks, profile)
    made = {Quantity(CHANGE, finer=1): 1e-6, Quantity(CHANGE, finer=4): 1e-7}  # what the order of B20 is made from
    good = made | {check.quantity: inside(check) for check in checks}
    assert verdict(claim, profile, good) is Verdict.REPRODUCED
    for check in checks:
        order = check.quantity == "change, coarse / 4 times finer"
        worse = {Quantity(CHANGE, finer=4): 1e-6} if order else {check.quantity: outside(check)}
        assert verdict(claim, profile, good | worse) is Verdict.DIFFERS


def test_the_unit_nudge_turns_a_long_weight_as_5_percent_turn_a_unit_one():
    dim = 400
    u, mu = torch.eye(dim)[0], torch.eye(dim)[1]
    unit = u + 0.05 * (mu - u)
    d, w = phases.unit_nudge(dim), math.sqrt(dim) * u
    long = w + d * (mu - w)
    assert torch.cosine_similarity(unit, long, dim=0) == pytest.approx(1, abs=1e-6)
    assert phases.unit_nudge(1000) == pytest.approx(0.625, abs=5e-4)


def test_the_nudge_is_an_artefact_only_while_the_other_reading_explains_it(verdict):
    claim = CLAIMS["B15"]
    steps = {"none": 240.0, "as printed": 238.0, "of a unit weight": 180.0}

    def judged(**changed):
        values = {Quantity("step of median cosine .9", reading=one): step for one, step in (steps | changed).items()}
        return verdict(claim, "paper", values)

    assert judged() is Verdict.ARTEFACT
    assert judged(**{"as printed": 160.0}) is Verdict.REPRODUCED
    assert judged(**{"of a unit weight": 235.0}) is Verdict.DIFFERS
