"""Ten labels against two: attacks and read-outs with known answers, the checks, a run of few epochs, the figure."""

import dataclasses
import math

import pytest
import torch
from torch.nn import functional

from polyrelu.claims import PROFILES, Measured, Outcome, Quantity, Values, Verdict, for_profile, judge, load_experiment
from polyrelu.claims.lpll25 import image_nets, images, sizes
from polyrelu.claims.lpll25.claims import images as claims
from polyrelu.claims.lpll25.sizes import (
    CLEAN,
    LOGIT_READ_OUT,
    ODDS_READ_OUT,
    OWN_LOSS_PGD,
    READ_OUT_PGD,
    STRONGEST,
    SUM_READ_OUT,
    TEN_LABELS,
    TWO_LABELS,
)
from polyrelu.data import Dataset, read
from polyrelu.report.paper_figures import lpll25 as drawn_figures

CLAIMS = {claim.id: claim for claim in claims.CLAIMS}
SMALL = {id: CLAIMS[id] for id in ("C16", "C17")}
SIZED = {id: claim for id, claim in CLAIMS.items() if id not in SMALL}
TASK = sizes.ImageTask("digits", "halves", 2, 20, (0.1, 0.4), 0.4)


def accuracy(attack, readout=LOGIT_READ_OUT, **where):
    return Quantity("accuracy", attack=attack, readout=readout, **where)


def test_read_outs_are_their_formulas():
    logits, signs = torch.tensor([[1.0, 2.0, 3.0, -1.0]]), torch.tensor([1.0, -1.0, 1.0, -1.0])
    odds, summed = images.read_outs(lambda X: logits, signs).values()
    expected = math.log(math.exp(1) + math.exp(3)) - math.log(math.exp(2) + math.exp(-1))
    assert odds(logits).item() == pytest.approx(expected) and summed(logits).item() == 1 - 2 + 3 + 1


def test_accuracies_of_a_linear_rule_are_exact():
    w = torch.tensor([0.6, 0.8])  # points at signed distances .05, .2, .5, and one on the wrong side
    y = torch.tensor([1.0, -1.0, 1.0, -1.0])
    X = 0.5 + (y * torch.tensor([0.05, 0.2, 0.5, -0.1]))[:, None] * w

    def score(Z):
        return (Z - 0.5) @ w

    found = images.accuracies(TASK, {LOGIT_READ_OUT: score}, lambda Z: -y * score(Z), X, y, 0)
    assert found == {
        accuracy(CLEAN): 0.75,
        accuracy(OWN_LOSS_PGD, radius=0.1): 0.5,
        accuracy(OWN_LOSS_PGD, radius=0.4): 0.25,
        accuracy(STRONGEST, radius=0.4): 0.25,
    }


def test_an_attack_on_the_wrong_loss_overstates():
    """Seven points of class 0, near class 2 of the same half: the own loss leads there, and the halves stay apart."""
    directions = torch.tensor([[0.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    fine, signs = torch.tensor([0] * 7 + [1]), torch.tensor([1.0, -1.0, 1.0])
    X = torch.tensor([[0.4, 0.4]] * 7 + [[0.0, 1.0]])

    def net(Z):
        return (Z - 0.4) @ directions.T + torch.tensor([0.3, 0.0, 0.25])

    def own(Z):
        return functional.cross_entropy(net(Z), fine, reduction="none")

    task = dataclasses.replace(TASK, radii=(0.5,), radius=0.5)
    found = images.accuracies(task, images.read_outs(net, signs), own, X, signs[fine], 0)
    assert (
        found[accuracy(CLEAN, SUM_READ_OUT)] == 1 and found[accuracy(OWN_LOSS_PGD, SUM_READ_OUT, radius=0.5)] >= 7 / 8
    )
    assert (
        found[accuracy(READ_OUT_PGD, SUM_READ_OUT, radius=0.5)]
        == found[accuracy(STRONGEST, SUM_READ_OUT, radius=0.5)]
        == 0
    )


def test_gains_are_differences():
    values = Values(
        {
            accuracy(OWN_LOSS_PGD, net=TWO_LABELS, radius=1): 0.5,
            accuracy(STRONGEST, net=TWO_LABELS, radius=1): 0.4,
            accuracy(OWN_LOSS_PGD, ODDS_READ_OUT, net=TEN_LABELS, radius=1): 0.9,
            accuracy(READ_OUT_PGD, ODDS_READ_OUT, net=TEN_LABELS, radius=1): 0.6,
            accuracy(STRONGEST, ODDS_READ_OUT, net=TEN_LABELS, radius=1): 0.3,
            Quantity("own minus other", head="head with two labels", net=TEN_LABELS): 0.2,
        }
    )
    assert images.parity.combine(values) == {
        Quantity("gain by ten labels", attack=OWN_LOSS_PGD, radius=1, readout=ODDS_READ_OUT): pytest.approx(0.4),
        Quantity("gain by ten labels", attack=READ_OUT_PGD, radius=1, readout=ODDS_READ_OUT): pytest.approx(0.1),
        Quantity("gain by ten labels", attack=STRONGEST, radius=1, readout=ODDS_READ_OUT): pytest.approx(-0.1),
        Quantity("overstated by PGD on the own loss of ten labels", radius=1, readout=ODDS_READ_OUT): pytest.approx(
            0.6
        ),
    }


def test_patterns_of_perfect_averaging_and_decoupling():
    half = torch.full((5, 5), 5**-0.5)
    found = images.patterns({TWO_LABELS: torch.block_diag(half, half), TEN_LABELS: torch.eye(10)})
    two, ten = {"head": "head with two labels"}, {"head": "head with ten labels"}
    assert found[Quantity("mean cosine to its own five", **two)] == pytest.approx(5**-0.5)
    assert found[Quantity("mean cosine to the other five", **two)] == 0
    assert found[Quantity("own minus other", **ten)] == 1
    assert found[Quantity("groups nearest to their own class", **ten)] == 10
    rolled = images.patterns({TWO_LABELS: torch.eye(10), TEN_LABELS: torch.eye(10).roll(1, 0)})
    assert rolled[Quantity("groups nearest to their own class", **ten)] == 0


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=list(CLAIMS))
@pytest.mark.parametrize("profile", PROFILES)
def test_numbers_on_the_right_side_are_reproduced_and_others_are_not(
    claim, profile, verdict, without_combining, monkeypatch
):
    monkeypatch.setattr(image_nets, "cached", lambda name: name)
    assert claim.sentence.endswith(".") and for_profile(claim.settings, profile)
    checks = for_profile(claim.checks, profile)
    good = {check.quantity: check.low + 0.01 if math.isfinite(check.low) else check.high - 0.01 for check in checks}
    assert verdict(claim, profile, good) is Verdict.REPRODUCED
    for check in checks:
        wrong = check.low - 0.01 if math.isfinite(check.low) else check.high + 0.01
        assert verdict(claim, profile, {**good, check.quantity: wrong}) is Verdict.DIFFERS
        assert check.published is None or check.holds(check.published)


def test_without_the_images_nothing_is_run(monkeypatch):
    monkeypatch.setattr(image_nets, "cached", lambda name: None)
    for claim, name in (("C10", "mnist"), ("C11", "cifar10")):
        found = judge(CLAIMS[claim], "paper", [])
        assert found.verdict is Verdict.NOT_RUN and found.reason == f"needs {name}: polyrelu data fetch {name}"
        assert not load_experiment(CLAIMS[claim].experiment).needs("quick")
    assert all(judge(claim, "quick", []).verdict is Verdict.NOT_RUN for claim in SMALL.values())


@pytest.mark.slow
@pytest.mark.parametrize("experiment, side, channels", [(images.mnist, 8, 1), (images.cifar10, 8, 3)])
def test_a_small_resnet_gives_every_number(experiment, side, channels, monkeypatch, run):
    """On sixty images of noise around ten pictures, which are the test images of the set too."""
    source = torch.Generator().manual_seed(0)
    kind = torch.arange(60) % 10
    X = torch.rand(10, channels * side**2, generator=source)[kind] + 0.1 * torch.rand(60, 1, generator=source)
    monkeypatch.setattr(image_nets, "read", lambda name: Dataset((X / X.max()).clamp(0, 1), kind, name=name))
    monkeypatch.setattr(image_nets, "cached", lambda name: name)
    (claim,) = (claim for claim in SMALL.values() if claim.experiment == experiment.name)
    found = judge(claim, "quick", run(experiment)[1])
    assert len(found.numbers) >= 5 and all(value == value for number in found.numbers for value in number.values)


@pytest.fixture(scope="module")
def short(run):
    """Two epochs, twenty points."""
    patch = pytest.MonkeyPatch()
    patch.setattr(sizes, "PARITY", {"quick": dataclasses.replace(TASK, halves="parity")})
    patch.setattr(sizes, "HALVES", {"quick": TASK})
    kept = {experiment.name: run(experiment)[1] for experiment in (images.parity, images.halves)}
    patch.undo()
    return kept


def test_a_short_run_gives_every_number(short):
    for claim in SIZED.values():
        judged = judge(claim, "quick", short[claim.experiment])
        assert all(value == value for number in judged.numbers for value in number.values)
    values = short["lpll25.images.halves"][1].measured.values
    strongest, climbed, clean = (
        values[accuracy(STRONGEST, ODDS_READ_OUT, net=TEN_LABELS, radius=0.4)],
        values[accuracy(READ_OUT_PGD, ODDS_READ_OUT, net=TEN_LABELS, radius=0.4)],
        values[accuracy(CLEAN, ODDS_READ_OUT, net=TEN_LABELS)],
    )
    assert strongest <= climbed <= clean
    assert read("digits").classes == len(short["lpll25.images.halves"][1].measured.data["cosines"][TEN_LABELS])


def test_the_figure(short):
    figure = drawn_figures.images
    assert set(figure.claims) == set(SIZED)
    drawn = figure.draw(short)
    assert sum(len(panel.lines) for panel in drawn.axes[:2]) == 2 * (5 + 3)  # lines and crosses
    known = {
        name: [
            Outcome(0, {}, Measured(one.measured.values, {**one.measured.data, "images": "mnist-full"}))
            for one in outcomes
        ]
        for name, outcomes in short.items()
    }
    assert sum(len(panel.lines) for panel in figure.draw(known).axes[:2]) == 2 * (5 + 3 + 2)  # and published points
    figure.draw({})
