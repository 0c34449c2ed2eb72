"""The claim about heads on embeddings: complete, able to fail, its stand-in and its file as they are said to be."""

import math

import numpy as np
import pytest
import torch

from polyrelu.claims import PROFILES, Measured, Outcome, Quantity, Verdict, for_profile, judge
from polyrelu.claims.experiment import together
from polyrelu.claims.mv24 import embeddings
from polyrelu.claims.mv24.claims import embeddings as claims
from polyrelu.claims.mv24.embeddings import RandomFeatures, features, heads
from polyrelu.claims.quantity import located
from polyrelu.report.paper_figures.mv24.real_data import figure_four

(D7,) = claims.CLAIMS
POWERS = (1, 2, 3, 4)
SMALL = RandomFeatures(n=600, clusters=20, dim=16, latent=16, spread=0.5)


@pytest.fixture(scope="module")
def outcomes():
    """Two small heads, trained for a few epochs, at both sizes: the shape of the numbers, not the claim."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embeddings, "ATTACKED", 8)
        patch.setattr(embeddings, "own_features", lambda: None)
        for profile, p in (("quick", 1), ("paper", 4)):
            patch.setitem(embeddings.STAND_INS, profile, SMALL)
            patch.setitem(embeddings.RECIPES, profile, {"width": 20, "epochs": 4, "batch": 20})
            found[profile] = Outcome(0, {"p": p}, heads(profile, 0, p=p))
    return found


PLACES = {
    "quick": [("l∞", 0.05), ("l∞", 0.1)],
    "paper": [("l∞", 0.05), ("l∞", 0.1), ("l2", "0.1 |x|")],
}
SIDES = ("certified", "strongest attack", "APGD-CE")


def robust(side, place, p):
    return Quantity("robust accuracy", side=side, norm=place[0], radius=place[1], p=p)


def at_power(quantity, p):
    """The same quantity at another p, or what changes with p at p itself."""
    name, where = (quantity, {}) if isinstance(quantity, str) else (quantity.name, dict(quantity.where))
    return located(name.partition(", ")[0], {**where, "p": p})


def test_the_claim_is_complete(outcomes):
    for profile in PROFILES:
        own = outcomes[profile].measured.values.items()
        values = together(heads, [Measured({at_power(key, p): value for key, value in own for p in POWERS})])
        assert "a stand-in" in for_profile(D7.settings, profile)
        assert {check.quantity for check in for_profile(D7.checks, profile)} <= set(values)
        assert list(heads.parts(profile)) == [{"p": p} for p in POWERS]
        assert D7.shown in values


def test_the_three_sides_are_in_order(outcomes):
    for profile, outcome in outcomes.items():
        p, values = outcome.part["p"], outcome.measured.values
        for place in PLACES[profile]:
            found = [values[robust(side, place, p)] for side in SIDES]
            assert found == sorted(found)
        assert outcome.measured.note == "Features: a stand-in, 20 clusters."


def made(changed=()):
    """Numbers as the claim says they are, some of them changed: for each p .02 more in accuracy, .1 elsewhere."""
    values = {}
    for name in ("accuracy", "accuracy on the training rows", "stable rank"):
        values |= {Quantity(name, p=p): 0.8 + 0.02 * p for p in POWERS}
    for side in SIDES:
        for place in PLACES["paper"]:
            values |= {robust(side, place, p): 0.1 * p for p in POWERS}
    return [Outcome(0, {}, Measured(values | dict(changed)))]


def test_a_wrong_number_turns_the_claim():
    assert judge(D7, "quick", made()).verdict is Verdict.MEASURED
    for quantity in {at_power(check.quantity, 4) for check in for_profile(D7.checks, "quick")}:
        for bad in (0.0, math.nan):
            assert judge(D7, "quick", made({quantity: bad})).verdict is Verdict.DIFFERS


def test_what_only_all_heads_can_tell():
    changed = {Quantity("accuracy", p=3): 0.83, robust("APGD-CE", ("l∞", 0.1), 2): 0.27}
    found = together(heads, [made(changed)[0].measured])
    assert found["accuracy, smallest step in p"] == pytest.approx(-0.01)
    assert found["accuracy, p = 4 minus p = 1"] == pytest.approx(0.06)
    assert found["most that APGD-CE overstates"] == pytest.approx(0.07)


def test_the_stand_in():
    data = SMALL.sample(3)
    assert torch.equal(data.X, SMALL.sample(3).X)
    assert not torch.equal(data.X, SMALL.sample(4).X)
    assert float(data.X.min()) == 0.0
    assert float(data.X.mean()) == pytest.approx(0.5)
    assert torch.equal(data.y, data.cluster % 10)
    assert data.cluster.bincount().tolist() == [30] * 20


def test_a_file_of_features_is_taken_at_the_published_size(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(257 * 5, 6))
    np.savez(tmp_path / "resnet.npz", X=X, y=np.repeat(np.arange(257), 5))
    monkeypatch.setenv("POLYRELU_CALTECH256", str(tmp_path / "resnet.npz"))
    train, held, about = features("paper", 0)
    assert (len(train), len(held), held.classes) == (1028, 257, 10)
    assert torch.equal(held.y, held.cluster % 10)
    assert about == "resnet.npz:mod10"
    assert features("quick", 0)[2] == "a stand-in, 40 clusters"


def test_a_file_in_the_cache_and_ten_classes_or_fewer(tmp_path, monkeypatch):
    monkeypatch.delenv("POLYRELU_CALTECH256", raising=False)
    monkeypatch.setenv("POLYRELU_DATA", str(tmp_path))
    np.savez(tmp_path / "caltech256.npz", x=np.eye(50), y=np.arange(50) % 10)
    train, held, about = features("paper", 0)
    assert about == "caltech256.npz:parity"
    assert held.binary and torch.equal(held.y, 1.0 - 2.0 * (held.cluster % 2))
    assert len(train) == 40


def test_the_figure_is_drawn_from_what_there_is(outcomes):
    figure = figure_four
    assert figure.claims == ("D7",)
    picture = figure.draw({"mv24.embeddings.heads": [outcomes["quick"]]})
    lines = {line.get_label(): line.get_ydata() for line in picture.axes[1].lines}
    assert list(lines["p = 1"]) == outcomes["quick"].measured.data["accuracy"]
    heights = [bar.get_height() for bar in picture.axes[3].patches]
    assert heights == [
        outcomes["quick"].measured.values[robust(side, place, 1)] for place in PLACES["quick"] for side in SIDES[::-1]
    ]
    assert len(figure.draw({}).axes[3].patches) == 0
