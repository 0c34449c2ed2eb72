"""The small CNN, the checks at the published numbers, and a run of few epochs."""

import pytest
import torch

from polyrelu.bias import layers
from polyrelu.claims import (
    PROFILES,
    Measured,
    Outcome,
    Quantity,
    Values,
    Verdict,
    for_profile,
    judge,
    load_experiment,
)
from polyrelu.claims.ll20 import MODELS as PUBLISHED
from polyrelu.claims.ll20 import claims, images, sizes
from polyrelu.claims.setups import requirements
from polyrelu.nets import SmallCNN
from polyrelu.report.paper_figures import FIGURES

CLAIMS = {claim.id: claim for claim in claims.CLAIMS if claim.experiment.startswith("ll20.images.")}
CONSTANT, LOSS_BASED = sizes.RATES
TABLE = [5.65e-5, 9.50e-5, 1.30e-4, 4.61e-4, 1.18e-3]
HALF = "decades of loss won in the second half"
RATES = {
    Quantity("margin", rate=CONSTANT): 1.8e-4,
    Quantity("margin", rate=LOSS_BASED): 1.2e-3,
    Quantity("log10 of the loss", rate=CONSTANT): -5.0,
    Quantity("log10 of the loss", rate=LOSS_BASED): -850.0,
    Quantity(HALF, rate=CONSTANT): 0.5,
    Quantity("margin over all weights, end over half-way", rate=CONSTANT): 1.5,
}


def margin_growth(model, since):
    return Quantity("growth of the margin", model=model, since=since)


def radius_growth(model, since):
    return Quantity("growth of the mean radius", model=model, since=since)


MODELS = {
    **{Quantity("margin", model=k): margin for k, margin in enumerate(TABLE, 1)},
    **{margin_growth(k, k - 1): TABLE[k - 1] / TABLE[k - 2] for k in range(2, 6)},
    **{radius_growth(k, j): 1.01 for k, j in ((2, 1), (3, 2), (4, 3), (4, 1), (5, 1))},
    radius_growth(5, 4): 0.99,
    "largest change of the test accuracy": 0.004,
    Quantity("test accuracy", model=1): 0.99,
}
WRONG = {
    "E5": {Quantity("margin", rate=CONSTANT): 1e-3, Quantity(HALF, rate=CONSTANT): 40.0},
    "E6": {Quantity("log10 of the loss", rate=LOSS_BASED): -6.0},
    "E7": {Quantity("margin", model=3): 9e-5, margin_growth(3, 2): 0.95},
    "E8": {radius_growth(3, 2): 0.98},
    "E9": {"largest change of the test accuracy": 0.05},
    "E23": {Quantity("margin", rate=LOSS_BASED): 1.8e-4},
}


def published(claim):
    return RATES if claim.experiment == images.rates.name else MODELS


def test_six_claims_are_there():
    assert list(CLAIMS) == ["E5", "E6", "E7", "E8", "E9", "E23"]


@pytest.mark.parametrize("id", CLAIMS)
@pytest.mark.parametrize("profile", PROFILES)
def test_the_published_numbers_are_reproduced_and_wrong_ones_are_not(id, profile, verdict, nothing_needed):
    claim = CLAIMS[id]
    assert claim.sentence.endswith(".") and for_profile(claim.settings, profile)
    values = published(claim)
    assert verdict(claim, profile, values) is Verdict.REPRODUCED
    assert verdict(claim, profile, {**values, **WRONG[id]}) is Verdict.DIFFERS


@pytest.mark.parametrize("id", CLAIMS)
def test_the_published_size_says_what_it_needs(id, monkeypatch):
    monkeypatch.setattr(requirements, "cached", lambda name: None)
    found = judge(CLAIMS[id], "paper", [Outcome(0, {}, Measured(published(CLAIMS[id])))])
    experiment = load_experiment(CLAIMS[id].experiment)
    long = experiment is images.rates
    assert found.verdict is Verdict.NOT_RUN and ("10,000 epochs" if long else "data fetch mnist") in found.reason
    monkeypatch.setattr(requirements, "cached", lambda name: "there")
    assert bool(experiment.needs("paper")) is long and not experiment.needs("quick")


def test_models_out_of_order_are_not_more_robust(verdict, nothing_needed):
    wrong = ((3, 2, 0.98, PROFILES), (4, 1, 0.999, ["quick"]), (5, 1, 1.6, ["quick"]))
    for model, since, value, profiles in wrong:
        values = {**MODELS, radius_growth(model, since): value}
        assert all(verdict(CLAIMS["E8"], profile, values) is Verdict.DIFFERS for profile in profiles)


def test_the_published_table_is_the_table():
    assert [model.margin for model in PUBLISHED.values()] == TABLE
    assert [model.epochs for model in PUBLISHED.values()] == [38, 75, 107, 935, 10_000]
    checks = {check.quantity: check.published for check in for_profile(CLAIMS["E7"].checks, "quick")}
    assert checks[margin_growth(5, 4)] == pytest.approx(1.18e-3 / 4.61e-4)
    ratio = images.rates.combine(Values(RATES))
    assert ratio["margin, loss-based over constant"] == pytest.approx(6.667, abs=1e-3)


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
def shrunken(run):
    """Few epochs, five large losses, two images."""
    patch = pytest.MonkeyPatch()
    patch.setattr(images, "EPOCHS", 150)
    patch.setattr(sizes, "ATTACKED", {"quick": 2, "paper": 2})
    patch.setattr(sizes, "LOG10_LOSSES", (-1.0, -1.2, -1.4, -1.6, -1.8))
    kept = {images.rates.name: run(images.rates)[1], images.models.name: run(images.models)[1]}
    patch.undo()
    return kept


def test_a_short_run_gives_every_number(shrunken):
    for claim in CLAIMS.values():
        judged = judge(claim, "quick", shrunken[claim.experiment])
        assert all(value == value for number in judged.numbers for value in number.values)
    constant, based = (outcome.measured.values for outcome in shrunken[images.rates.name])
    loss = "log10 of the loss"
    assert based[Quantity(loss, rate=LOSS_BASED)] < constant[Quantity(loss, rate=CONSTANT)]
    models = shrunken[images.models.name][0].measured
    assert models.values[Quantity("margin", model=5)] == models.data["margin"][-1] > models.data["margin"][0]
    mean = [sum(radii) / len(radii) for radii in models.data["radii"]]
    assert models.values[radius_growth(3, 2)] == pytest.approx(mean[2] / mean[1])


def test_the_figure_holds_the_table(shrunken):
    figure = next(one for one in FIGURES if one.id == "ll20-models")
    assert set(figure.claims) == set(CLAIMS)
    drawn = figure.draw(shrunken)
    words = [cell.get_text().get_text() for cell in drawn.axes[-1].tables[0].get_celld().values()]
    assert "1e-881.51" in words and "10,000" in words
    assert f"{shrunken[images.models.name][0].measured.data['margin'][0]:.2e}" in words and "not run" not in words
    figure.draw({})


@pytest.mark.slow
def test_the_published_way_on_few_images(monkeypatch):
    """The CNN of the paper for 8 x 8 images: three losses passed, and two models that are not run."""
    few = images.images(0)[1].subset(torch.arange(150))
    monkeypatch.setattr(images, "read", lambda name: few)
    monkeypatch.setattr(images, "SmallCNN", lambda **settings: SmallCNN(8, 3, hidden=16, **settings))
    monkeypatch.setattr(sizes, "ATTACKED", {"paper": 2})
    monkeypatch.setattr(sizes, "LOG10_LOSSES", (-0.2, -0.6, -1.0, -2.0, -3.0))
    measured = images.models("paper", 0)
    assert measured.data["log10 loss"] == [-0.2, -0.6, -1.0] and len(set(measured.data["margin"])) == 3
    assert Quantity("margin", model=4) not in measured.values
    assert measured.values[Quantity("test accuracy", model=1)] > 0.5
    drawn = next(one for one in FIGURES if one.id == "ll20-models").draw(
        {"ll20.images.models": [Outcome(0, {}, measured)]}
    )
    words = [cell.get_text().get_text() for cell in drawn.axes[-1].tables[0].get_celld().values()]
    assert words.count("not run") == 6
