"""Ten labels against two: attacks and read-outs with known answers, the checks, a run of few epochs, the figure."""

import dataclasses
import math

import pytest
import torch
from torch.nn import functional

from polyrelu.claims import averaging_images as claims
from polyrelu.claims import averaging_resnets as small
from polyrelu.claims.averaging_images import OWN, READ_OUT, STRONGEST
from polyrelu.claims.claim import Verdict
from polyrelu.claims.experiment import Measured
from polyrelu.claims.judge import Outcome, judge
from polyrelu.claims.profile import PROFILES, for_profile
from polyrelu.claims.setups import image_nets as nets
from polyrelu.claims.setups.averaging_heads import patterns
from polyrelu.data import Dataset, read
from polyrelu.nets import MLP, ResNet
from polyrelu.report.paper_figures.lpll25.images import FIGURES

CLAIMS = {claim.id: claim for claim in claims.CLAIMS}
SMALL = {claim.id: claim for claim in small.CLAIMS}
TASK = nets.ImageTask("digits", "halves", 2, 20, (0.1, 0.4), 0.4)


def test_pgd_climbs_a_linear_loss_inside_ball_and_box():
    g = torch.linspace(-1, 1, 8)
    X = torch.full((5, 8), 0.5)
    d = claims.climb(lambda Z: Z @ g, X, 0.3, seed=0) - X
    assert d.norm(dim=1).max() <= 0.3 + 1e-6
    assert (d @ g / g.norm()).min() > 0.97 * 0.3  # best: r; on the sphere a step shrinks what is across by 16/17
    wide = claims.climb(lambda Z: Z @ g, X, 9.0, seed=0)
    assert wide.min() >= 0 and wide.max() <= 1
    assert torch.equal(wide[:, 4:], torch.ones(5, 4)) and torch.equal(wide[:, :4], torch.zeros(5, 4))


def test_read_outs_are_their_formulas():
    logits, signs = torch.tensor([[1.0, 2.0, 3.0, -1.0]]), torch.tensor([1.0, -1.0, 1.0, -1.0])
    odds, summed = claims.read_outs(lambda X: logits, signs).values()
    expected = math.log(math.exp(1) + math.exp(3)) - math.log(math.exp(2) + math.exp(-1))
    assert odds(logits).item() == pytest.approx(expected) and summed(logits).item() == 1 - 2 + 3 + 1


def test_accuracies_of_a_linear_rule_are_exact():
    w = torch.tensor([0.6, 0.8])  # points at signed distances .05, .2, .5, and one on the wrong side
    y = torch.tensor([1.0, -1.0, 1.0, -1.0])
    X = 0.5 + (y * torch.tensor([0.05, 0.2, 0.5, -0.1]))[:, None] * w

    def score(Z):
        return (Z - 0.5) @ w

    found = claims.accuracies(TASK, {"two labels": score}, lambda Z: -y * score(Z), X, y, 0)
    assert found == {
        "two labels, clean": 0.75,
        f"two labels, {OWN} at 0.1": 0.5,
        f"two labels, {OWN} at 0.4": 0.25,
        f"two labels, {STRONGEST} at 0.4": 0.25,
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
    found = claims.accuracies(task, claims.read_outs(net, signs), own, X, signs[fine], 0)
    assert found["ten labels (sum), clean"] == 1 and found[f"ten labels (sum), {OWN} at 0.5"] >= 7 / 8
    assert found[f"ten labels (sum), {READ_OUT} at 0.5"] == found[f"ten labels (sum), {STRONGEST} at 0.5"] == 0


def test_gains_are_differences():
    values = {
        f"parity: two labels, {OWN} at 1": 0.5,
        f"parity: two labels, {STRONGEST} at 1": 0.4,
        f"parity: ten labels (odds), {OWN} at 1": 0.9,
        f"parity: ten labels (odds), {READ_OUT} at 1": 0.6,
        f"parity: ten labels (odds), {STRONGEST} at 1": 0.3,
        "head with two labels: own minus other": 0.2,
    }
    assert claims.gains(values) == {
        f"parity: gain by ten labels (odds), {OWN} at 1": pytest.approx(0.4),
        f"parity: gain by ten labels (odds), {READ_OUT} at 1": pytest.approx(0.1),
        f"parity: gain by ten labels (odds), {STRONGEST} at 1": pytest.approx(-0.1),
        "parity: overstated by PGD on the own loss of ten labels (odds) at 1": pytest.approx(0.6),
    }


def test_patterns_of_perfect_averaging_and_decoupling():
    half = torch.full((5, 5), 5**-0.5)
    found = patterns({"two": torch.block_diag(half, half), "ten": torch.eye(10)})
    assert found["head with two labels: mean cosine to its own five"] == pytest.approx(5**-0.5)
    assert found["head with two labels: mean cosine to the other five"] == 0
    assert found["head with ten labels: own minus other"] == 1
    assert found["head with ten labels: groups nearest to their own class"] == 10
    assert patterns({"two": torch.eye(10), "ten": torch.eye(10).roll(1, 0)})[
        "head with ten labels: groups nearest to their own class"
    ] == 0  # fmt: skip


def test_halves_and_pictures():
    train, test = nets.pictures(TASK, 0)
    assert (len(train), len(test)) == (1300, 20)
    assert not {tuple(row.tolist()) for row in train.rows()} & {tuple(row.tolist()) for row in test.rows()}
    coarse, signs = nets.halved(test, dataclasses.replace(TASK, halves="parity"))
    assert signs.tolist()[:4] == [1, -1, 1, -1] and torch.equal(coarse.y, signs[test.y])
    assert nets.halved(train, TASK)[1].tolist() == [1] * 5 + [-1] * 5


def test_the_embedding_is_what_the_last_layer_sees():
    X = torch.rand(5, 64)
    mlp, resnet = MLP(64, 7, 3, 10, bias=True), ResNet(1, 8, 10, blocks=(1,), width=3).eval()
    torch.testing.assert_close(nets.embedding(mlp, X) @ mlp.weights[-1].T + mlp.biases[-1], mlp(X))
    torch.testing.assert_close(resnet.last(nets.embedding(resnet, X)), resnet(X))


def test_moved_images_are_shifted_and_mirrored():
    images = torch.zeros(200, 1, 32, 32)
    images[:, 0, 16, 10] = 1
    rows, columns = nets.moved(images, torch.Generator().manual_seed(0))[:, 0].nonzero()[:, 1:].T
    assert len(rows) == 200 and set(rows.tolist()) == set(range(12, 21))
    assert set(columns.tolist()) == {*range(6, 15), *range(31 - 14, 31 - 5)}


@pytest.mark.parametrize("binary", [True, False])
def test_a_resnet_learns_what_is_plain(binary):
    kind = torch.arange(256) % 2
    X = 0.3 * torch.rand(256, 64, generator=torch.Generator().manual_seed(0)) + 0.5 * kind[:, None]
    data = Dataset(X, 1.0 - 2 * kind if binary else kind)
    start = ResNet(1, 8, 1 if binary else 2, blocks=(1,), width=4)
    net = nets.train(start, data, 3, shift=True).eval()
    logits = net(X)
    assert net is start and torch.equal(logits < 0 if binary else logits.argmax(dim=1) == 1, kind == 1)


@pytest.mark.parametrize("id", [*CLAIMS, *SMALL])
@pytest.mark.parametrize("profile", PROFILES)
def test_numbers_on_the_right_side_are_reproduced_and_others_are_not(id, profile):
    claim = {**CLAIMS, **SMALL}[id]
    assert claim.sentence.endswith(".") and for_profile(claim.settings, profile)
    free = dataclasses.replace(claim, experiment=dataclasses.replace(claim.experiment, needs=lambda profile: ""))
    checks = for_profile(claim.checks, profile)
    good = {check.quantity: check.low + 0.01 if math.isfinite(check.low) else check.high - 0.01 for check in checks}
    assert judge(free, profile, [Outcome(0, {}, Measured(good))]).verdict is Verdict.REPRODUCED
    for check in checks:
        wrong = {**good, check.quantity: check.low - 0.01 if math.isfinite(check.low) else check.high + 0.01}
        assert judge(free, profile, [Outcome(0, {}, Measured(wrong))]).verdict is Verdict.DIFFERS
        assert check.published is None or check.holds(check.published)


def test_without_the_images_nothing_is_run(monkeypatch):
    monkeypatch.setattr(nets, "cached", lambda name: None)
    for claim, name in (("C10", "mnist"), ("C11", "cifar10")):
        found = judge(CLAIMS[claim], "paper", [])
        assert found.verdict is Verdict.NOT_RUN and found.reason == f"needs {name}: polyrelu data fetch {name}"
        assert not CLAIMS[claim].experiment.needs("quick")
    assert all(judge(claim, "quick", []).verdict is Verdict.NOT_RUN for claim in SMALL.values())


@pytest.mark.parametrize("run, side, channels", [(small.mnist, 8, 1), (small.cifar, 8, 3)])
def test_a_small_resnet_gives_every_number(run, side, channels, monkeypatch):
    """On sixty images of noise around ten pictures, which are the test images of the set too."""
    source = torch.Generator().manual_seed(0)
    kind = torch.arange(60) % 10
    X = torch.rand(10, channels * side**2, generator=source)[kind] + 0.1 * torch.rand(60, 1, generator=source)
    monkeypatch.setattr(nets, "read", lambda name: Dataset((X / X.max()).clamp(0, 1), kind, name=name))
    (claim,) = (claim for claim in SMALL.values() if claim.experiment.run is run)
    free = dataclasses.replace(claim, experiment=dataclasses.replace(claim.experiment, needs=lambda profile: ""))
    found = judge(free, "quick", [Outcome(0, {}, run("quick", 0, labels)) for labels in ("two", "ten")])
    assert len(found.numbers) >= 5 and all(value == value for number in found.numbers for value in number.values)


@pytest.fixture(scope="module")
def short():
    """Two epochs, twenty points."""
    patch = pytest.MonkeyPatch()
    patch.setitem(nets.TASKS, "quick", {"parity": dataclasses.replace(TASK, halves="parity"), "halves": TASK})
    kept = {
        f"averaging_images.{run.__name__}": [Outcome(0, {}, run("quick", 0, labels)) for labels in ("two", "ten")]
        for run in (claims.parity, claims.halves)
    }
    patch.undo()
    return kept


def test_a_short_run_gives_every_number(short):
    for claim in CLAIMS.values():
        judged = judge(claim, "quick", short[claim.experiment.name])
        assert all(value == value for number in judged.numbers for value in number.values)
    values = short["averaging_images.halves"][1].measured.values
    assert values[f"halves: ten labels (odds), {STRONGEST} at 0.4"] <= values[
        f"halves: ten labels (odds), {READ_OUT} at 0.4"
    ] <= values["halves: ten labels (odds), clean"]  # fmt: skip
    assert read("digits").classes == len(short["averaging_images.halves"][1].measured.data["cosines"]["ten"])


def test_the_figure(short):
    (figure,) = FIGURES
    assert set(figure.claims) == set(CLAIMS)
    drawn = figure.draw(short)
    assert sum(len(panel.lines) for panel in drawn.axes[:2]) == 2 * (5 + 3)  # lines and crosses
    known = {
        name: [Outcome(0, {}, Measured({}, {**one.measured.data, "images": "mnist-full"})) for one in outcomes]
        for name, outcomes in short.items()
    }
    assert sum(len(panel.lines) for panel in figure.draw(known).axes[:2]) == 2 * (5 + 3 + 2)  # and published points
    figure.draw({})
