"""The small CNN, the checks at the published numbers, and a run of few epochs."""

import dataclasses

import pytest
import torch

from polyrelu.bias import layers
from polyrelu.claims import images
from polyrelu.claims.claim import Verdict
from polyrelu.claims.experiment import Measured
from polyrelu.claims.judge import Outcome, judge
from polyrelu.claims.profile import PROFILES, for_profile
from polyrelu.nets import SmallCNN
from polyrelu.report.paper_figures import FIGURES

CLAIMS = {claim.id: claim for claim in images.CLAIMS}
TABLE = [5.65e-5, 9.50e-5, 1.30e-4, 4.61e-4, 1.18e-3]
RATES = {
    "margin with the constant rate": 1.8e-4,
    "margin with the loss-based rate": 1.2e-3,
    "log10 of the loss with the constant rate": -5.0,
    "log10 of the loss with the loss-based rate": -850.0,
    "decades of loss won in the second half, constant rate": 0.5,
    "margin over all weights, end over half-way, constant rate": 1.5,
}
MODELS = {
    **{f"margin of model-{k}": margin for k, margin in enumerate(TABLE, 1)},
    **{f"margin, model-{k} over model-{k - 1}": TABLE[k - 1] / TABLE[k - 2] for k in range(2, 6)},
    **{f"mean radius, model-{k} over model-{j}": 1.01 for k, j in ((2, 1), (3, 2), (4, 3), (4, 1), (5, 1))},
    "mean radius, model-5 over model-4": 0.99,
    "largest change of the test accuracy": 0.004,
    "test accuracy of model-1": 0.99,
}
WRONG = {
    "E5": {"margin with the constant rate": 1e-3, "decades of loss won in the second half, constant rate": 40.0},
    "E6": {"log10 of the loss with the loss-based rate": -6.0},
    "E7": {"margin of model-3": 9e-5, "margin, model-3 over model-2": 0.95},
    "E8": {"mean radius, model-3 over model-2": 0.98},
    "E9": {"largest change of the test accuracy": 0.05},
    "E23": {"margin with the loss-based rate": 1.8e-4},
}


def published(claim):
    return RATES if claim.experiment is images.RATE else MODELS


@pytest.mark.parametrize("id", CLAIMS)
@pytest.mark.parametrize("profile", PROFILES)
def test_the_published_numbers_are_reproduced_and_wrong_ones_are_not(id, profile):
    claim = CLAIMS[id]
    assert claim.sentence.endswith(".") and for_profile(claim.settings, profile)
    free = dataclasses.replace(claim, experiment=dataclasses.replace(claim.experiment, needs=lambda profile: ""))
    values = published(claim)
    assert judge(free, profile, [Outcome(0, {}, Measured(values))]).verdict is Verdict.REPRODUCED
    assert judge(free, profile, [Outcome(0, {}, Measured({**values, **WRONG[id]}))]).verdict is Verdict.DIFFERS


@pytest.mark.parametrize("id", CLAIMS)
def test_the_published_size_says_what_it_needs(id, monkeypatch):
    monkeypatch.setattr(images, "cached", lambda name: None)
    found = judge(CLAIMS[id], "paper", [Outcome(0, {}, Measured(published(CLAIMS[id])))])
    long = CLAIMS[id].experiment is images.RATE
    assert found.verdict is Verdict.NOT_RUN and ("10,000 epochs" if long else "data fetch mnist") in found.reason
    monkeypatch.setattr(images, "cached", lambda name: "there")
    assert bool(CLAIMS[id].experiment.needs("paper")) is long and not CLAIMS[id].experiment.needs("quick")


def test_models_out_of_order_are_not_more_robust():
    claim = dataclasses.replace(CLAIMS["E8"], experiment=dataclasses.replace(images.MODELS, needs=lambda profile: ""))
    wrong = {"model-3 over model-2": (0.98, PROFILES), "model-4 over model-1": (0.999, ["quick"])}
    for name, (value, profiles) in {**wrong, "model-5 over model-1": (1.6, ["quick"])}.items():
        found = Measured({**MODELS, f"mean radius, {name}": value})
        assert all(judge(claim, profile, [Outcome(0, {}, found)]).verdict is Verdict.DIFFERS for profile in profiles)


def test_the_published_table_is_the_table():
    assert [margin for _, margin in images.PUBLISHED.values()] == TABLE
    assert [epochs for epochs, _ in images.PUBLISHED.values()] == [38, 75, 107, 935, 10_000]
    checks = {check.quantity: check.published for check in for_profile(CLAIMS["E7"].checks, "quick")}
    assert checks["margin, model-5 over model-4"] == pytest.approx(1.18e-3 / 4.61e-4)
    assert images._ratio(RATES)["margin, loss-based over constant"] == pytest.approx(6.667, abs=1e-3)


def test_training_and_test_images_are_apart():
    train, test = images.images(0)
    assert (len(train), len(test), train.classes, test.classes) == (60, 477, 3, 3)
    rows = {tuple(row.tolist()) for row in train.rows()}
    assert not any(tuple(row.tolist()) in rows for row in test.rows())
    other, _ = images.images(1)
    assert not torch.equal(train.rows(), other.rows())


def test_the_cnn_is_homogeneous_with_he_normal_weights():
    found = layers(images.small_cnn(0), images.images(0)[0].rows())
    assert [layer.degree for layer in found] == [1, 1, 1, 1]
    sizes = [
        torch.stack(
            [list(images.small_cnn(seed).parameters())[i].detach().square().mean() for seed in range(10)]
        ).mean()
        for i in (0, 2, 3, 4)
    ]
    assert [float(size) for size in sizes] == pytest.approx([2 / 25, 2 / 72, 2 / 64, 2 / 32], rel=0.1)
    assert not list(images.small_cnn(0).parameters())[1].any()


@pytest.fixture(scope="module")
def shrunken():
    """Few epochs, five large losses, two images."""
    patch = pytest.MonkeyPatch()
    patch.setattr(images, "EPOCHS", 150)
    patch.setattr(images, "ATTACKED", {"quick": 2, "paper": 2})
    patch.setattr(images, "PUBLISHED", dict.fromkeys((-1.0, -1.2, -1.4, -1.6, -1.8), (1, 1e-3)))
    kept = {
        "images.rates": [Outcome(0, {}, images.rates("quick", 0, rate)) for rate in images.RATES],
        "images.models": [Outcome(0, {}, images.models("quick", 0))],
    }
    patch.undo()
    return kept


def test_a_short_run_gives_every_number(shrunken):
    for claim in CLAIMS.values():
        judged = judge(claim, "quick", shrunken[claim.experiment.name])
        assert all(value == value for number in judged.numbers for value in number.values)
    constant, based = (outcome.measured.values for outcome in shrunken["images.rates"])
    assert based["log10 of the loss with the loss-based rate"] < constant["log10 of the loss with the constant rate"]
    models = shrunken["images.models"][0].measured
    assert models.values["margin of model-5"] == models.data["margin"][-1] > models.data["margin"][0]
    mean = [sum(radii) / len(radii) for radii in models.data["radii"]]
    assert models.values["mean radius, model-3 over model-2"] == pytest.approx(mean[2] / mean[1])


def test_the_figure_holds_the_table(shrunken):
    figure = next(one for one in FIGURES if one.id == "ll20-models")
    assert set(figure.claims) == set(CLAIMS)
    drawn = figure.draw(shrunken)
    words = [cell.get_text().get_text() for cell in drawn.axes[-1].tables[0].get_celld().values()]
    assert "1e-881.51" in words and "10,000" in words
    assert f"{shrunken['images.models'][0].measured.data['margin'][0]:.2e}" in words and "not run" not in words
    figure.draw({})


def test_the_published_way_on_few_images(monkeypatch):
    """The CNN of the paper for 8 x 8 images: three losses passed, and two models that are not run."""
    few = images.images(0)[1].subset(torch.arange(150))
    monkeypatch.setattr(images, "read", lambda name: few)
    monkeypatch.setattr(images, "SmallCNN", lambda **settings: SmallCNN(8, 3, hidden=16, **settings))
    monkeypatch.setattr(images, "ATTACKED", {"paper": 2})
    monkeypatch.setattr(images, "PUBLISHED", dict.fromkeys((-0.2, -0.6, -1.0, -2.0, -3.0), (1, 1e-3)))
    measured = images.models("paper", 0)
    assert measured.data["log10 loss"] == [-0.2, -0.6, -1.0] and len(set(measured.data["margin"])) == 3
    assert "margin of model-4" not in measured.values and measured.values["test accuracy of model-1"] > 0.5
    drawn = next(one for one in FIGURES if one.id == "ll20-models").draw({"images.models": [Outcome(0, {}, measured)]})
    words = [cell.get_text().get_text() for cell in drawn.axes[-1].tables[0].get_celld().values()]
    assert words.count("not run") == 6
