"""Averages or single clusters: a small run gives every number, proofs stay below attacks, and the claims can fail."""

import math

import pytest

from polyrelu.claims import PAPERS, PROFILES, Measured, Outcome, Quantity, Verdict, for_profile, judge, load_experiment
from polyrelu.claims.lpll25 import FIG3, sizes
from polyrelu.claims.lpll25 import mixture as experiments
from polyrelu.claims.lpll25.claims import mixture
from polyrelu.claims.lpll25.nets import trained_pair
from polyrelu.claims.quantity import located
from polyrelu.report.paper_figures import FIGURES

CLAIMS = {claim.id: claim for claim in mixture.CLAIMS}
each = pytest.mark.parametrize("claim", CLAIMS.values(), ids=list(CLAIMS))


def test_slopes_over_margins_of_the_ideal_nets():
    assert list(experiments.ideal_ratios().values()) == pytest.approx([math.sqrt(5), math.sqrt(6), 3])


def test_the_published_radii_in_units_of_the_dimension():
    assert [sizes.multiple(r) for r in (16, 34, 38)] == [".289√d", ".613√d", ".686√d"]


def test_these_are_the_claims():
    assert sorted(CLAIMS, key=lambda id: int(id[1:])) == [
        "C1",
        "C2",
        "C3",
        "C4",
        "C5",
        "C6",
        "C7",
        "C8",
        "C9",
        "C14",
        "C15",
    ]


@each
@pytest.mark.parametrize("profile", PROFILES)
def test_a_claim_is_complete_and_any_number_that_is_off_turns_the_verdict(
    claim, profile, without_combining, values_for, verdict
):
    assert claim.sentence.endswith(".") and claim.paper in PAPERS and for_profile(claim.settings, profile).endswith(".")
    assert load_experiment(claim.experiment).needs(profile) == ""
    checks = for_profile(claim.why, profile) or for_profile(claim.checks, profile)
    assert verdict(claim, profile, values_for(checks)) is for_profile(claim.expects, profile)
    assert claim.reason or not claim.why
    for wrong in range(len(checks)):
        assert verdict(claim, profile, values_for(checks, wrong)) is Verdict.DIFFERS, checks[wrong].quantity


@pytest.fixture(scope="module")
def kept():
    """The first part of every experiment, small; the others are located where they would have been measured."""
    patch = pytest.MonkeyPatch()
    patch.setattr(sizes, "RECIPES", {"quick": sizes.Recipe(100, 200, 0.02, 100)})
    patch.setattr(sizes, "POINTS", {"quick": 40})
    trained_pair.cache_clear()
    found = {}
    for name in {claim.experiment for claim in CLAIMS.values()}:
        experiment = load_experiment(name)
        parts = experiment.parts("quick")
        once = experiment.run("quick", 0, **parts[0])
        measured = [Measured({located(key, part): v for key, v in once.values.items()}, once.data) for part in parts]
        found[name] = [Outcome(0, part, one) for part, one in zip(parts, measured, strict=True)]
    patch.undo()
    trained_pair.cache_clear()
    return found


@each
def test_a_small_run_gives_every_number(claim, kept):
    numbers = judge(claim, "quick", kept[claim.experiment]).numbers
    assert all(not math.isnan(value) for number in numbers for value in number.values)


@pytest.mark.parametrize("id", ["C6", "C7", "C15"])
def test_the_claim_holds_at_any_size(id, kept):
    assert judge(CLAIMS[id], "quick", kept[CLAIMS[id].experiment]).verdict is Verdict.REPRODUCED


def test_proofs_stay_below_attacks(kept):
    values = kept["lpll25.mixture.curves"][0].measured.values
    for name in sizes.NETS:
        assert sizes.READ_AT[name] == tuple(FIG3[name])
        for radius in FIG3[name]:
            proven, attacked, climbed = (
                values[Quantity("accuracy", net=name, radius=sizes.multiple(radius), way=way)]
                for way in ("proven", "attacked", sizes.READ_OUT_PGD)
            )
            assert proven <= attacked
            assert climbed >= proven
    summed, largest = (
        Quantity("median radius over √d", net=name, way="proven") for name in (sizes.SUMMED, sizes.LARGEST)
    )
    assert values[summed] < 0.55 < values[largest]


def test_the_figure_is_drawn(kept):
    figure = next(one for one in FIGURES if one.id == "lpll25-averaging")
    drawn = figure.draw(kept)
    words = [text.get_text() for panel in drawn.axes for text in panel.texts]
    assert {"√(d/k)", "√(d/2)", "√(d/(1 + k/2))"} <= set(words)
    curve = drawn.axes[-1]
    assert any("published, read off" == text.get_text() for text in curve.get_legend().get_texts())
    figure.draw({})
