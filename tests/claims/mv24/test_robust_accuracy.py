"""The published attack in few coordinates is the published attack; experiments give the numbers they are judged by."""

import copy

import pytest

from polyrelu.claims import PROFILES, Quantity, Values, Verdict
from polyrelu.claims.mv24 import robust_accuracy
from polyrelu.claims.mv24.claims import mixture
from polyrelu.claims.setups.mixture_nets import ideal, trained
from polyrelu.claims.setups.sizes import SIX_FOUR
from polyrelu.robust.attacks import PublishedPGD

CLAIMS = {claim.id: claim for claim in mixture.CLAIMS}


def small(size, p, seed):
    """A net of the same kind that takes a fraction of a second."""
    return trained(size._replace(dim=50, samples=500, width=100), p, seed, until=1e-3)


@pytest.fixture
def shrunken(monkeypatch):
    monkeypatch.setattr(robust_accuracy, "trained", small)


def test_few_coordinates_break_the_same_points():
    run = small(SIX_FOUR["quick"], 3, 0)
    test, radii = run.test(30), (0.7, 0.9)
    net, attack = copy.deepcopy(run.net).double(), PublishedPGD(steps=60)
    broken = [attack(net, test.rows().double(), test.y.double(), radius=r).success for r in radii]
    whole = [1 - float(success.double().mean()) for success in broken]
    assert robust_accuracy.published_accuracy(run.net, ideal(run.mixture, 3), test, radii, steps=60) == pytest.approx(
        whole
    )
    assert 0 < whole[1] < whole[0]


@pytest.mark.slow
def test_the_net_of_figure_2_is_bracketed(shrunken, monkeypatch, run, quantities):
    monkeypatch.setattr(robust_accuracy, "ATTACKED", {1.0: (0.34,), 3.0: (0.75,)})
    values, kept = run(robust_accuracy.breaking)
    for id in ("B6", "B7"):
        assert quantities(CLAIMS[id], *PROFILES) <= set(values)
    for p, radii in robust_accuracy.LOOKS.items():
        for r in radii:
            certified, attacked = Quantity("certified accuracy", p=p, radius=r), Quantity("accuracy", p=p, radius=r)
            assert values[certified] <= values[attacked]
    published = values[Quantity("accuracy by the published attack", p=3, radius=0.75)]
    assert published > values[Quantity("accuracy", p=3, radius=0.75)] == 0
    data = kept[0].measured.data
    assert data["lower"] == sorted(data["lower"])
    assert len(data["upper"]) == data["points"] == 200


def test_a_curve_that_held_to_85_would_be_reproduced(quantities, verdict):
    claim = CLAIMS["B7"]
    values = dict.fromkeys(quantities(claim, *PROFILES), 1.0)
    assert verdict(claim, "paper", values) is Verdict.REPRODUCED
    values[Quantity("accuracy", p=3, radius=0.85)] = 0.0  # and nothing shows why
    assert verdict(claim, "paper", values) is Verdict.DIFFERS


def test_proofs_meet_attacks(shrunken, run, quantities):
    values, _ = run(robust_accuracy.agree, [{"p": 1.0}])
    assert {key for key in quantities(CLAIMS["B29"], *PROFILES) if key.where == (("p", 1),)} == set(values)
    assert values[Quantity("largest gap", p=1)] <= 2e-3


def test_the_band_is_the_range_over_repeats(shrunken, run, quantities, verdict):
    repeats = robust_accuracy.repeats
    parts = repeats.parts("quick")
    assert len(parts) == 6 and len(repeats.parts("paper")) == 20
    values = Values({Quantity("median radius", **part): 0.3 + part["repeat"] / 100 for part in parts})
    found = repeats.combine(values)
    assert found == {key: pytest.approx(0.02) for key in quantities(CLAIMS["B31"], *PROFILES)}
    measured = repeats("quick", 0, **parts[0])
    assert set(measured.values) <= set(values)
    wide = {**values, Quantity("median radius", p=1, repeat=0): 0.29}
    assert verdict(CLAIMS["B31"], "quick", wide) is Verdict.DIFFERS
