"""Digits: the published numbers are reproduced and wrong ones are not; exact robust accuracies; a run of few epochs."""

import math

import pytest
import torch

from polyrelu.claims import PROFILES, Measured, Outcome, Quantity, Verdict, for_profile, judge, load_experiment, mv24
from polyrelu.claims.judge import GOOD
from polyrelu.claims.mv24 import digits, sizes
from polyrelu.claims.mv24.claims import digits as claims
from polyrelu.claims.setups import digit_nets, requirements
from polyrelu.claims.setups.digit_nets import NORMS, Head, accuracy, images, robust_accuracy
from polyrelu.data import Dataset
from polyrelu.nets import PolyReLUNet, polar_form
from polyrelu.report.paper_figures.mv24.real_data import figure_three, table_one

CLAIMS = {claim.id: claim for claim in claims.CLAIMS}
POWERS = (1, 2, 3, 4)


def by_power(name, values, **where):
    return {Quantity(name, **where, p=p): value for p, value in zip(POWERS, values, strict=True)}


def robust(side, norm, radius, p):
    return Quantity("robust accuracy", side=side, norm=norm, radius=radius, p=p)


def ten(profile):
    """The published table, the poster's ranks and accuracies; what is not published lies between."""
    values = {}
    for norm, radii in sizes.DIGIT_RADII[profile].items():
        for r in radii:
            row = mv24.TABLE1.get((norm, r), (0.5, 0.6, 0.7, 0.8))
            if profile == "quick" and norm == "l∞":
                row = claims.SMALL[r]
            row = [row[0] + (row[3] - row[0]) * k / 3 if share is None else share for k, share in enumerate(row)]
            for side in ("APGD-CE on all images", "APGD-CE", "strongest attack", "certified"):
                values |= by_power("robust accuracy", row, side=side, norm=norm, radius=r)
    end = mv24.LAST_RANKS if profile == "paper" else (3.2, 5.4, 8.2, 9.8)
    start = mv24.FIRST_RANKS if profile == "paper" else (2.9, 4.8, 6.3, 7.1)
    first = (3.0, 4.5, 4.2, 4.0)
    values |= by_power("accuracy", (0.981, 0.982, 0.981, 0.98))
    values |= by_power("stable rank at the end", end) | by_power("stable rank at the start", start)
    values |= by_power("stable rank after an epoch", first)
    for name, ranks in (("start", start), ("end", end)):
        values |= by_power(f"stable rank, {name} over first epoch", [a / b for a, b in zip(ranks, first, strict=True)])
    return values | by_power("median l2 radius", (0.35, 0.38, 0.4, 0.42), side="attacked")


PARITY = {
    **by_power("robust accuracy", (0.5, 0.7, 0.8, 0.9), side="strongest attack", norm="l∞", radius=0.05),
    **by_power("robust accuracy", (0.1, 0.3, 0.4, 0.5), side="strongest attack", norm="l∞", radius=0.1),
    **by_power("stable rank at the end", (2.0, 3.0, 4.0, 5.0)),
    **by_power("accuracy", (0.98, 0.985, 0.985, 0.985)),
}
WRONG = {
    "D1": {robust("APGD-CE on all images", "l∞", 0.05, 3): 0.85, robust("strongest attack", "l∞", 0.05, 3): 0.7},
    "D2": {
        robust(side, norm, r, 4): 0.3
        for norm, r in (("l2", 0.4), ("l2", 1), ("l1", 1.2), ("l1", 5))
        for side in ("APGD-CE on all images", "strongest attack")
    },
    "D3": {Quantity("accuracy", p=4): 0.95},
    "D4": {Quantity("stable rank at the end", p=4): 5.0},
    "D5": {Quantity("accuracy", p=3): 0.97},
    "D6": {"mean cosine between digits": 0.3},
    "D8": {robust("strongest attack", "l∞", 0.1, 4): 0.01},
    "D9": {
        Quantity("stable rank at the start", p=4): 2.0,
        Quantity("stable rank, start over first epoch", p=4): 0.5,
    },
    "D10": {Quantity("accuracy", p=2): 0.96},
    "D11": {Quantity("accuracy on scaled images", scale=0.1, normalised=False): 0.97},
}


def as_expected(claim, profile):
    """Numbers as the sources, or what is known to explain them, have it."""
    if claim.experiment == "mv24.digits.ten_digits":
        return ten(profile)
    if claim.experiment == "mv24.digits.parity":
        return PARITY
    wanted = for_profile(claim.why, profile) or for_profile(claim.checks, profile)
    return {one.quantity: (one.low if math.isfinite(one.low) else one.high) for one in wanted}


@pytest.mark.parametrize("id", CLAIMS)
@pytest.mark.parametrize("profile", PROFILES)
def test_numbers_as_published_are_as_expected_and_others_are_not(id, profile, monkeypatch):
    monkeypatch.setattr(requirements, "cached", lambda name: name)
    claim = CLAIMS[id]
    assert claim.sentence.endswith(".") and for_profile(claim.settings, profile).endswith(".")
    values = as_expected(claim, profile)

    def judged(values):
        return judge(claim, profile, [Outcome(0, {}, Measured(values))])

    found = judged(values)
    assert found.verdict in GOOD, [(one.name, one.values) for one in found.numbers if one.holds is False]
    assert found.as_expected
    wrong = {name: value for name, value in WRONG[id].items() if name in values}
    assert wrong and judged({**values, **wrong}).verdict is Verdict.DIFFERS


def test_the_published_table_is_the_table():
    known = {check.quantity: check.published for check in for_profile(CLAIMS["D1"].checks, "paper")}
    everyone = "APGD-CE on all images"
    assert [known[robust(everyone, "l∞", 0.1, p)] for p in POWERS] == [0.040, 0.346, 0.521, 0.637]
    known = {check.quantity: check.published for check in for_profile(CLAIMS["D2"].checks, "paper")}
    assert known[robust(everyone, "l1", 10, 1)] == 0.098 and known[robust(everyone, "l2", 2, 4)] == 0.239
    assert len(known) == 8
    for (norm, radius), row in mv24.TABLE1.items():
        assert radius in sizes.DIGIT_RADII["paper"][norm]
        assert digits.ON_ALL_IMAGES[norm] == tuple(p for p, share in zip(POWERS, row, strict=True) if share is not None)
    assert all(len(mv24.POSTER[p]) == len(sizes.DIGIT_CURVE["paper"]) == 14 for p in POWERS)
    assert mv24.POSTER_RADII[6] == 0.1 and mv24.POSTER[4][6] == pytest.approx(mv24.TABLE1["l∞", 0.1][3], abs=2e-3)


def test_without_mnist_the_published_size_is_not_run(monkeypatch, tmp_path):
    monkeypatch.setenv("POLYRELU_DATA", str(tmp_path))
    for claim in CLAIMS.values():
        found = judge(claim, "paper", [])
        assert found.verdict is Verdict.NOT_RUN and "polyrelu data fetch mnist" in found.reason


def test_training_and_held_out_images_are_apart():
    train, held = images("quick", 0)
    assert (len(train), len(held)) == (1300, 497)
    rows = {tuple(row.tolist()) for row in train.rows()}
    assert not any(tuple(row.tolist()) in rows for row in held.rows())
    even, _ = images("quick", 0, "parity")
    assert torch.equal(even.rows(), train.rows()) and torch.equal(even.y > 0, train.y % 2 == 0)
    assert not torch.equal(images("quick", 1)[0].rows(), train.rows())


def first_coordinate():
    """f(x) = x_0 - 1/2: robust to |x_0 - 1/2| in every norm."""
    like = PolyReLUNet(3, 2, 1, centre=torch.full((3,), 0.5), dtype=torch.float64)
    axis = torch.tensor([[1.0, 0, 0], [-1.0, 0, 0]]).double()
    return PolyReLUNet.from_polar(polar_form(axis, torch.tensor([[1.0], [-1.0]]).double()), like=like)


@pytest.mark.slow
@pytest.mark.parametrize("norm", NORMS)
def test_three_sides_of_a_net_with_known_radii(norm):
    X = torch.full((5, 3), 0.5).double()
    X[:, 0] += torch.tensor([0.1, 0.3, -0.2, 0.4, 0.5])
    data = Dataset(X, torch.tensor([1.0, 1.0, -1.0, -1.0, 1.0]))  # radii .1, .3, .2 and 0: the fourth is wrong
    head = Head(first_coordinate(), data, data, data.subset(slice(4)), None, steps=100, box=(0.0, 1.0))
    found = robust_accuracy(head, norm, (0.15, 0.25), seed=0)
    assert accuracy(head.net, data) == 0.8
    assert found.sides["APGD-CE"] == found.sides["strongest attack"] == [0.5, 0.25]
    assert found.sides["certified"] == [0.5, 0.25]
    assert found.proven.tolist() == pytest.approx([0.1, 0.3, 0.2, 0.0], rel=1e-4)
    assert found.values()[Quantity("robust accuracy", side="strongest attack", norm=norm, radius=0.25)] == 0.25


def test_accuracy_of_several_classes():
    net = PolyReLUNet(2, 2, 1, 2, dtype=torch.float64)
    eye = torch.eye(2).double()
    net = PolyReLUNet.from_polar(polar_form(eye, eye), like=net)
    data = Dataset(torch.tensor([[1.0, 0], [0, 1.0], [1.0, 0], [0, 2.0]]).double(), torch.tensor([0, 1, 1, 1]))
    assert accuracy(net, data) == 0.75


@pytest.fixture(scope="module")
def shrunken(run):
    """Six neurons, three epochs, eight images, few steps: numbers with names and little meaning."""
    patch = pytest.MonkeyPatch()
    patch.setitem(digit_nets.RECIPES, "quick", {"width": 6, "epochs": 3, "rate": 1e-2, "batch": 130})
    patch.setitem(digit_nets.ATTACKED, "quick", 8)
    patch.setitem(sizes.DIGIT_CURVE, "quick", (0.075,))
    patch.setitem(digits.SCALED_EPOCHS, "quick", 1)
    patch.setitem(digit_nets.APGD_STEPS, "quick", 5)
    patch.setattr(digits, "LATE", 2)
    patch.setattr(digits, "BRACKETED", 1)
    digit_nets.trained.cache_clear()
    kept = {name: run(load_experiment(name))[1] for name in {claim.experiment for claim in CLAIMS.values()}}
    digit_nets.trained.cache_clear()
    patch.undo()
    return kept


@pytest.mark.parametrize("id", CLAIMS)
def test_a_short_run_gives_every_number(id, shrunken):
    claim = CLAIMS[id]
    found = judge(claim, "quick", shrunken[claim.experiment])
    assert [one.name for one in found.numbers if any(value != value for value in one.values)] == []


def test_proven_at_most_found_at_most_published(shrunken):
    values = {key: value for one in shrunken["mv24.digits.ten_digits"] for key, value in one.measured.values.items()}
    published = {
        key: {**dict(key.where)}
        for key in values
        if key.name == "robust accuracy" and dict(key.where)["side"] == "APGD-CE" and dict(key.where)["radius"] != 0.075
    }
    assert len(published) == 24
    for key, where in published.items():
        strongest, proven = (
            values[Quantity(key.name, **{**where, "side": side})] for side in ("strongest attack", "certified")
        )
        assert proven <= strongest <= values[key]


def test_a_larger_power_has_features_of_larger_rank_at_the_start(shrunken):
    ranks = [one.measured.data["rank"] for one in shrunken["mv24.digits.ten_digits"]]
    assert all(len(rank) == 4 for rank in ranks)
    assert ranks[0][0] < ranks[1][0] < ranks[3][0]


@pytest.mark.slow
@pytest.mark.parametrize("figure", (table_one, figure_three), ids=lambda figure: figure.id)
def test_figures(figure, shrunken):
    assert set(figure.claims) <= set(CLAIMS)
    drawn = figure.draw(shrunken)
    figure.draw({})
    if figure.id == "table1":
        words = [cell.get_text().get_text() for cell in drawn.axes[0].tables[0].get_celld().values()]
        assert words.count("proven") == 4 and ".913" in words and "l2 0.4" in words
