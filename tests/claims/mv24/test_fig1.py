"""The toys are cheap: they are run as they are; a wrong number or a missing sign turns the verdict."""

import math

import pytest
import torch

from polyrelu.claims import PROFILES, Measured, Outcome, Verdict, for_profile, judge
from polyrelu.claims.mv24 import fig1
from polyrelu.claims.mv24.claims import mixture
from polyrelu.report.paper_figures.mv24.trained_nets import directions

CLAIMS = {claim.id: claim for claim in mixture.CLAIMS if claim.experiment.startswith("mv24.fig1.")}


@pytest.fixture(scope="module")
def results(run):
    return {one.name: run(one)[1] for one in (fig1.picture, fig1.formula, fig1.attractors)}


def test_every_claim_is_said_in_full():
    assert list(CLAIMS) == ["B22", "B23", "B27", "B28"]
    for claim in CLAIMS.values():
        assert claim.sentence.endswith(".")
        for profile in PROFILES:
            assert for_profile(claim.checks, profile)


@pytest.mark.parametrize("id", list(CLAIMS))
def test_the_toys_show_it_and_one_wrong_number_hides_it(id, results, outside):
    claim = CLAIMS[id]
    kept = results[claim.experiment]
    assert judge(claim, "quick", kept).verdict is Verdict.REPRODUCED
    values = {name: value for one in kept for name, value in one.measured.values.items()}
    for check in for_profile(claim.checks, "quick"):
        changed = [Outcome(0, {}, Measured(values | {check.quantity: outside(check)}))]
        assert judge(claim, "quick", changed).verdict is Verdict.DIFFERS


def test_a_field_of_the_wrong_power_is_noticed(monkeypatch):
    true = fig1.alignment_field
    monkeypatch.setattr(fig1, "alignment_field", lambda data, u, p: true(data, u, 4 - p))
    broken = [Outcome(0, {}, fig1.formula("quick", 0))]
    assert judge(CLAIMS["B27"], "quick", broken).verdict is Verdict.DIFFERS


def test_a_picture_without_silent_neurons_says_nothing():
    assert math.isnan(fig1._largest(torch.empty(0)))
    assert fig1._largest(torch.tensor([1.0, 3.0])) == 3


def test_the_picture_has_six_stages(results):
    figure = directions.draw(results)
    titles = [panel.get_title() for panel in figure.axes]
    assert titles[0] == "p = 1: start"
    assert titles[-1] == "p = 3: norms have grown"
    assert len(titles) == 6
