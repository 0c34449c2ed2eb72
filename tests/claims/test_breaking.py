"""The published attack in few coordinates is the published attack; experiments give the numbers they are judged by."""

import copy

import pytest

from polyrelu.claims import breaking
from polyrelu.claims.claim import Verdict
from polyrelu.claims.experiment import Measured
from polyrelu.claims.judge import Outcome, judge
from polyrelu.claims.profile import PROFILES, for_profile
from polyrelu.claims.setups.mixture_nets import ideal, trained
from polyrelu.robust.attacks import PublishedPGD

CLAIMS = {claim.id: claim for claim in breaking.CLAIMS}


def small(profile, p, seed, **others):
    """A net of the same kind that takes a fraction of a second."""
    return trained("quick", p, seed, until=1e-3, size=(50, 500, 100))


@pytest.fixture
def shrunken(monkeypatch):
    monkeypatch.setattr(breaking, "trained", small)


def given(experiment, parts):
    kept = [Outcome(0, part, experiment.run("quick", 0, **part)) for part in parts]
    return {name: value for outcome in kept for name, value in outcome.measured.values.items()}, kept


def names(claim):
    return {
        c.quantity
        for profile in PROFILES
        for c in (*for_profile(claim.checks, profile), *for_profile(claim.why, profile))
    }


def test_few_coordinates_break_the_same_points():
    run = small("quick", 3, 0)
    test, radii = run.test(30), (0.7, 0.9)
    net, attack = copy.deepcopy(run.net).double(), PublishedPGD(steps=60)
    broken = [attack(net, test.rows().double(), test.y.double(), radius=r).success for r in radii]
    whole = [1 - float(success.double().mean()) for success in broken]
    assert breaking.published_accuracy(run.net, ideal(run.mixture, 3), test, radii, steps=60) == pytest.approx(whole)
    assert 0 < whole[1] < whole[0]


def test_the_net_of_figure_2_is_bracketed(shrunken, monkeypatch):
    monkeypatch.setattr(breaking, "TRIED", {1.0: (0.34,), 3.0: (0.75,)})
    values, kept = given(breaking.BREAKING, breaking.BREAKING.parts("quick"))
    for id in ("B6", "B7"):
        assert names(CLAIMS[id]) <= set(values)
    for p, radii in breaking.LOOK.items():
        for r in radii:
            assert values[f"p = {p:g}: certified accuracy at {r:g}"] <= values[f"p = {p:g}: accuracy at {r:g}"]
    assert values["p = 3: published attack at 0.75"] > values["p = 3: accuracy at 0.75"] == 0
    data = kept[0].measured.data
    assert data["lower"] == sorted(data["lower"])
    assert len(data["upper"]) == data["points"] == 200


def test_a_curve_that_held_to_85_would_be_reproduced():
    claim = CLAIMS["B7"]
    values = dict.fromkeys(names(claim), 1.0)
    assert judge(claim, "paper", [Outcome(0, {}, Measured(values))]).verdict is Verdict.REPRODUCED
    values["p = 3: accuracy at 0.85"] = 0.0  # and nothing shows why
    assert judge(claim, "paper", [Outcome(0, {}, Measured(values))]).verdict is Verdict.DIFFERS


def test_proofs_meet_attacks(shrunken):
    values, _ = given(breaking.AGREE, [{"p": 1.0}])
    assert {name for name in names(CLAIMS["B29"]) if name.startswith("p = 1")} == set(values)
    assert values["p = 1: largest gap"] <= 2e-3


def test_the_band_is_the_range_over_repeats(shrunken):
    parts = breaking.BAND.parts("quick")
    assert len(parts) == 6 and len(breaking.BAND.parts("paper")) == 20
    values = {f"p = {part['p']:g}: median radius of net {part['repeat']}": 0.3 + part["repeat"] / 100 for part in parts}
    found = breaking.BAND.combine(values)
    assert found == {name: pytest.approx(0.02) for name in names(CLAIMS["B31"])}
    assert set(given(breaking.BAND, parts[:1])[0]) <= set(values)
    kept = [Outcome(0, {}, Measured({**values, "p = 1: median radius of net 0": 0.29}))]
    assert judge(CLAIMS["B31"], "quick", kept).verdict is Verdict.DIFFERS
