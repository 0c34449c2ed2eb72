"""Claims about early alignment: complete, able to fail, and made of formulas that are right."""

import math

import numpy as np
import pytest
import torch

from polyrelu.claims import PAPERS, PROFILES, Measured, Outcome, Verdict, for_profile, judge, load_experiment
from polyrelu.claims.mmv24.claims import CLAIMS
from polyrelu.claims.mmv24.early_alignment import (
    RATE,
    gradient_descent,
    orthogonally_separable,
    small_start,
    two_points,
    zero_or_one,
)
from polyrelu.claims.setups import requirements
from polyrelu.data import Dataset
from polyrelu.nets import PolyReLUNet
from polyrelu.report.paper_figures.mmv24 import early
from polyrelu.train import descend

BY_ID = {claim.id: claim for claim in CLAIMS}
each = pytest.mark.parametrize("claim", CLAIMS, ids=BY_ID)


@pytest.fixture(scope="module")
def outcomes(run):
    return {name: run(load_experiment(name))[1] for name in dict.fromkeys(claim.experiment for claim in CLAIMS)}


@each
def test_a_claim_is_complete(claim, outcomes, quantities):
    assert claim.sentence.endswith(".")
    assert claim.paper in PAPERS
    given = outcomes[claim.experiment][0].measured.values
    for profile in PROFILES:
        assert for_profile(claim.settings, profile)
        assert quantities(claim, profile) <= set(given)


@each
def test_the_claim_holds_and_a_wrong_number_turns_it(claim, outcomes, outside):
    (mine,) = outcomes[claim.experiment]
    assert judge(claim, "quick", [mine]).verdict is Verdict.REPRODUCED
    for check in for_profile(claim.checks, "quick"):
        for bad in (outside(check), math.nan):
            broken = Outcome(0, {}, Measured({**mine.measured.values, check.quantity: bad}))
            assert judge(claim, "quick", [broken]).verdict is Verdict.DIFFERS


def test_without_mnist_the_paper_profile_is_not_run(monkeypatch):
    monkeypatch.setattr(requirements, "cached", lambda name: None)
    for name in ("E17", "E28"):
        experiment = load_experiment(BY_ID[name].experiment)
        assert "polyrelu data fetch mnist" in experiment.needs("paper")
        assert judge(BY_ID[name], "paper", []).verdict is Verdict.NOT_RUN
        assert experiment.needs("quick") == ""


def test_images_are_centred_and_labelled():
    data = zero_or_one("quick")
    assert len(data) == 178 + 182  # zeros and ones among scikit-learn's digits
    assert float(data.X.mean(dim=0).abs().max()) < 1e-14
    assert int((data.y > 0).sum()) == 178


def test_points_have_their_angle():
    X = two_points(0.1)
    assert X @ X.T == pytest.approx(np.array([[1, math.sin(0.1)], [math.sin(0.1), 1]]))


@pytest.mark.slow
def test_the_descent_in_the_plane_is_gradient_descent():
    # Beside descend on the same net. It wants two labels, so a zero point of the other class is added, where f = 0 and
    # nothing is pulled: the mean is then over three points, and the rate is 3/2 of the published one.
    X = two_points(0.1)
    W, v = small_start(3)
    W, v = 1e5 * W, 1e5 * v  # so large that the loss falls within 200 steps
    ours = gradient_descent(X, W, v, 200, every=200)
    net = PolyReLUNet(2, len(v), 1, init="zeros", dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(torch.from_numpy(W))
        net.output.copy_(torch.from_numpy(v))
    data = Dataset(np.vstack([X, np.zeros((1, 2))]), torch.tensor([1.0, 1.0, -1.0]))
    theirs = descend(net, data, rate=1.5 * RATE, steps=200, until=1e-9).net
    assert theirs.weight.detach().numpy() == pytest.approx(ours["W"][-1], rel=1e-9, abs=1e-15)
    assert theirs.output.detach().numpy()[0] == pytest.approx(ours["v"][-1], rel=1e-9, abs=1e-15)
    assert ours["loss"][-1] < 0.9 * ours["loss"][0]


def test_one_neuron_turns_as_the_flow_says():
    # x1 alone pulls w = r (cos a, -sin a), balanced: tan(a/2) falls like exp(-t/2), t = rate * steps, while f = 0.
    W, v = 1e-9 * np.array([[math.cos(1.2), -math.sin(1.2)]]), np.array([1e-9])
    run = gradient_descent(two_points(0.0), W, v, 2000, every=2000)
    x, y = run["W"][-1, 0]
    assert math.tan(math.atan2(-y, x) / 2) == pytest.approx(math.tan(0.6) * math.exp(-2000 * RATE / 2), rel=2e-3)


def test_the_first_layer_alone_leaves_v():
    W, v = small_start(0, both=False)
    assert set(v.tolist()) == {-1.0, 1.0}
    run = gradient_descent(two_points(0.1), W, v, 5, every=1, both=False)
    assert np.array_equal(run["v"], np.tile(v, (6, 1)))


def test_orthogonally_separable_data_are():
    data = orthogonally_separable(20, 30, 1)
    signed = data.y[:, None] * data.X
    assert float((signed @ signed.T).min()) > 0
    plus, minus = data.class_means()
    assert -0.2 < float(torch.cosine_similarity(plus, minus, dim=0)) < 0


@pytest.mark.slow
def test_the_figure_is_drawn_from_what_there_is(outcomes):
    figure = early
    assert set(figure.claims) == set(BY_ID)
    picture = figure.draw(outcomes)
    assert len(picture.axes) == 9
    assert not any(text.get_text() == "not run" for axes in picture.axes for text in axes.texts)
    loss, digits = picture.axes[1].lines[0].get_ydata(), "mmv24.early_alignment.alignment"
    assert loss == pytest.approx(outcomes[digits][0].measured.data["loss"])
    without = figure.draw({name: found for name, found in outcomes.items() if name != digits})
    assert [axes.texts[0].get_text() for axes in without.axes[:3]] == ["not run"] * 3
