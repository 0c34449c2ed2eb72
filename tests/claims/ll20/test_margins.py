"""Gradient descent and the KKT residual on a net whose answers are known; what the two experiments report."""

import math

import pytest
import torch

from polyrelu.bias import monotone
from polyrelu.claims import PROFILES, Measured, Outcome, Quantity, Verdict, catalogue, judge
from polyrelu.claims.ll20 import margins
from polyrelu.data import Dataset
from polyrelu.nets import PolyReLUNet
from polyrelu.report.paper_figures import FIGURES

F64 = torch.float64
CLAIMS = {
    claim.id: claim
    for claim in catalogue().values()
    if claim.experiment in (margins.growth.name, margins.from_starts.name)
}
RADII = [claim for claim in catalogue().values() if claim.experiment == margins.sample_radii.name]
ARRIVAL = "decades of flow time to residual .1"
# What must turn the verdict of a claim, wherever it appears.
WRONG = {
    "E1": {"largest fall of the smoothed margin, gradient descent": 1e-6},
    "E2": {"largest q_min - log(1/L)": 3.1},
    "E3": {"L t log t, largest over smallest": 10.0},  # what 1/t without the logarithm gives from 1e-100 to 1e-1000
    "E4": {"KKT residual at the end": 0.3},
    "E21": {Quantity(ARRIVAL, start=1): 2.0, Quantity(ARRIVAL, start=0.01): 2.0},
}


def two_neurons(a, b=None):
    """w_1 = a e_1, v_1 = a; w_2 = b e_2, v_2 = -b: q = a^2 at e_1 and b^2 at e_2."""
    b = a if b is None else b
    net = PolyReLUNet(2, 2, 1, dtype=F64)
    with torch.no_grad():
        net.weight.copy_(torch.diag(torch.tensor([a, b], dtype=F64)))
        net.output.copy_(torch.tensor([[a, -b]], dtype=F64))
    return net, Dataset(torch.eye(2, dtype=F64), torch.tensor([1.0, -1.0], dtype=F64))


def test_descent_of_two_equal_neurons_is_geometric():
    # L = 2 e^(-a^2): each point has weight 1/2, so a <- a (1 + rate/2); rho^2 = 4 a^2.
    net, data = two_neurons(1.0)
    found = margins.descended(net, data, 0.1, -3)
    sizes = [1.05**k for k in range(len(found))]
    exact = [(a**2 - math.log(2)) / (4 * a**2) for a in sizes]
    assert found == pytest.approx(exact, rel=1e-12)
    assert sizes[-2] ** 2 < 3 * math.log(10) <= sizes[-1] ** 2  # stopped at a mean loss e^(-a^2) of 1e-3
    assert net.weight[0, 0] == 1


def test_the_residual_is_zero_at_a_kkt_point_only():
    assert margins.residual(*two_neurons(3.0)) < 1e-9  # both points at the margin, theta = sum of their gradients / 2
    # q = 9 and 16: only the first is near the margin, and the second neuron, 4/5 of theta, is not explained by it.
    assert margins.residual(*two_neurons(3.0, 4.0)) > 0.5


@pytest.mark.slow
def test_steps_that_are_too_long_lower_the_smoothed_margin():
    data, run = margins.trained(0, 1e-4, -2.0)
    start = run.checkpoints[margins.BELOW_ONE]
    assert monotone(margins.descended(start, data, 0.1, -30)).largest_fall > 1e-4
    assert monotone(margins.descended(start, data, 0.01, -10)).largest_fall == 0


@pytest.fixture(scope="module")
def outcomes():
    """The quick experiments, once; the start 1 stands for the others, whose way to .1 is short."""
    growth = [Outcome(2, {}, margins.growth("quick", 2))]
    slow = margins.from_starts("quick", 2, start=1.0)
    quick = {Quantity(key.name, start=start): 2.0 for key in slow.values for start in (1e-4, 1e-2)}
    starts = [Outcome(2, {}, Measured({**quick, **slow.values}, slow.data, slow.note))]
    return {"ll20.margins.growth": growth, "ll20.margins.from_starts": starts}


@pytest.mark.parametrize("id", CLAIMS)
def test_every_claim_holds_and_a_wrong_number_turns_it(id, outcomes, assert_complete):
    claim = CLAIMS[id]
    assert_complete(claim)
    assert claim.paper == "LL20"
    kept = outcomes[claim.experiment]
    for profile in PROFILES:
        judged = judge(claim, profile, kept)
        assert judged.verdict is Verdict.REPRODUCED
        assert all(math.isfinite(value) for number in judged.numbers for value in number.values)
        wrong = Measured({**kept[0].measured.values, **WRONG[id]})
        assert judge(claim, profile, [Outcome(2, {}, wrong)]).verdict is Verdict.DIFFERS


def test_five_claims_are_there():
    assert list(CLAIMS) == ["E1", "E2", "E3", "E4", "E21"]


def test_the_start_that_never_comes_near_is_named(outcomes):
    slow = outcomes["ll20.margins.from_starts"][0].measured
    assert slow.values[Quantity("KKT residual at the end", start=1)] > margins.CLOSE
    assert slow.values[Quantity("decades of loss to residual .1", start=1)] == 100
    assert slow.values[Quantity(ARRIVAL, start=1)] == pytest.approx(98, abs=1.5)  # L t log t ~ 1.7
    assert "still above .1" in slow.note


def test_a_residual_that_rises_again_has_not_arrived(monkeypatch):
    numbers = iter([0.5, 0.05, 0.2, 0.09, 0.01])
    monkeypatch.setattr(margins, "residual", lambda net, data: next(numbers))
    monkeypatch.setattr(margins, "LEVELS", (-1.31, -2, -3, -5, -10))
    monkeypatch.setattr(margins, "trained", lambda seed, std, end, train=margins.trained: train(seed, std, -10))
    found = margins.from_starts("quick", 2, start=1e-4)
    assert found.values[Quantity("decades of loss to residual .1", start=1e-4)] == 5 and found.note == ""


def test_the_figure_shows_every_seed(outcomes):
    figure = next(one for one in FIGURES if one.id == "ll20-margin")
    assert set(figure.claims) == set(CLAIMS)
    several = {name: [*kept, *kept] for name, kept in outcomes.items()}
    top, _, residuals = figure.draw(several).axes
    assert len(top.lines) == 6  # two seeds of two bounds and a margin
    assert len(top.get_legend().get_texts()) == 3 and len(residuals.get_legend().get_texts()) == 2
    figure.draw({})


@pytest.fixture(scope="module")
def radii(run):
    return run(margins.sample_radii)[1]


def test_a_claim_about_radii_of_each_paper_is_there():
    assert [claim.id for claim in RADII] == ["E10", "E26"]


@pytest.mark.parametrize("claim", RADII, ids=lambda claim: claim.id)
def test_radii_proven_lie_below_those_found_and_a_wrong_number_turns_it(claim, radii, assert_complete, assert_can_fail):
    assert_complete(claim)
    judged = judge(claim, "quick", radii)
    assert judged.verdict is Verdict.REPRODUCED
    assert all(not math.isnan(value) for number in judged.numbers for value in number.values)
    assert_can_fail(claim, radii)
