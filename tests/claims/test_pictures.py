"""The toys are cheap: they are run as they are; a wrong number or a missing sign turns the verdict."""

import math

import pytest
import torch

from polyrelu.claims import pictures
from polyrelu.claims.claim import Verdict
from polyrelu.claims.experiment import Measured
from polyrelu.claims.judge import Outcome, judge
from polyrelu.claims.profile import PROFILES, for_profile
from polyrelu.report.paper_figures.mv24 import sphere

CLAIMS = {claim.id: claim for claim in pictures.CLAIMS}


@pytest.fixture(scope="module")
def results():
    return {
        one.name: [Outcome(0, part, one.run("quick", 0, **part)) for part in one.parts("quick")]
        for one in (pictures.PICTURE, pictures.FORMULA, pictures.ATTRACTORS)
    }


def test_every_claim_is_said_in_full():
    assert list(CLAIMS) == ["B22", "B23", "B27", "B28"]
    for claim in CLAIMS.values():
        assert claim.sentence.endswith(".")
        for profile in PROFILES:
            assert for_profile(claim.checks, profile)


@pytest.mark.parametrize("id", list(CLAIMS))
def test_the_toys_show_it_and_one_wrong_number_hides_it(id, results):
    claim = CLAIMS[id]
    kept = results[claim.experiment.name]
    assert judge(claim, "quick", kept).verdict is Verdict.REPRODUCED
    values = {name: value for one in kept for name, value in one.measured.values.items()}
    for check in for_profile(claim.checks, "quick"):
        wrong = check.low - 0.01 if math.isfinite(check.low) else check.high + 0.01
        changed = [Outcome(0, {}, Measured(values | {check.quantity: wrong}))]
        assert judge(claim, "quick", changed).verdict is Verdict.DIFFERS


def test_a_field_of_the_wrong_power_is_noticed(monkeypatch):
    true = pictures.alignment_field
    monkeypatch.setattr(pictures, "alignment_field", lambda data, u, p: true(data, u, 4 - p))
    broken = [Outcome(0, {}, pictures.formula("quick", 0))]
    assert judge(CLAIMS["B27"], "quick", broken).verdict is Verdict.DIFFERS


def test_a_picture_without_silent_neurons_says_nothing():
    assert math.isnan(pictures._largest(torch.empty(0)))
    assert pictures._largest(torch.tensor([1.0, 3.0])) == 3


def test_the_picture_has_six_stages(results):
    figure = sphere.FIGURES[0].draw(results)
    titles = [panel.get_title() for panel in figure.axes]
    assert titles[0] == "p = 1: start"
    assert titles[-1] == "p = 3: norms have grown"
    assert len(titles) == 6
