"""The verdicts themselves: a measurement that is broken on purpose must turn them."""

import math

import pytest

from polyrelu.claims.claim import Check, Claim, Standing, Verdict, at_least, at_most, within
from polyrelu.claims.experiment import Measured, experiment
from polyrelu.claims.judge import Outcome, judge
from polyrelu.errors import InputError


@experiment()
def radius(profile, seed):
    return Measured({"radius": 0.7071})


@experiment(needs=lambda profile: "needs MNIST" if profile == "paper" else "")
def on_images(profile, seed): ...


@experiment(combine=lambda values: {"slope": values["b"] - values["a"]})
def slope(profile, seed): ...


def claim(**changes):
    settings = {
        "id": "A5",
        "sentence": "It holds to sqrt(2)/2.",
        "paper": "MV24",
        "where": "Theorem 1(b)",
        "standing": Standing.PRINTED,
        "published": ".7071",
        "settings": "nothing",
        "experiment": radius.name,
        "checks": (within("radius", 0.7071, 0.01),),
    }
    return Claim(**{**settings, **changes})


def outcomes(*values, **more):
    return [Outcome(seed, {}, Measured({"radius": value, **more})) for seed, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((0.7071,), Verdict.REPRODUCED),
        ((0.70, 0.71), Verdict.REPRODUCED),
        ((0.70, 0.71, 0.60), Verdict.DIFFERS),  # one seed out of three is enough
        ((math.nan,), Verdict.DIFFERS),
        ((math.inf,), Verdict.DIFFERS),
    ],
)
def test_every_seed_must_lie_where_the_source_says(values, verdict):
    assert judge(claim(), "quick", outcomes(*values)).verdict is verdict


def test_a_broken_measurement_turns_red_and_is_not_as_expected():
    good, broken = judge(claim(), "quick", outcomes(0.7071)), judge(claim(), "quick", outcomes(0.85))
    assert good.as_expected
    assert not broken.as_expected
    assert [number.holds for number in broken.numbers] == [False]


def test_a_value_that_is_missing_does_not_hold():
    found = judge(claim(checks=(at_least("another", 0.0),)), "quick", outcomes(0.7071))
    assert found.verdict is Verdict.DIFFERS
    assert math.isnan(found.numbers[0].values[0])


def test_an_artefact_needs_its_explanation_to_hold():
    published = claim(
        checks=(within("radius", 0.9, 0.01),), why=(within("reported", 0.9, 0.01),), expects=Verdict.ARTEFACT
    )
    assert judge(published, "quick", outcomes(0.7071, reported=0.9)).verdict is Verdict.ARTEFACT
    unexplained = judge(published, "quick", outcomes(0.7071, reported=0.5))
    assert unexplained.verdict is Verdict.DIFFERS
    assert not unexplained.as_expected
    assert judge(published, "quick", outcomes(0.9, reported=0.9)).verdict is Verdict.REPRODUCED


def test_a_number_that_nobody_published_is_measured_without_a_verdict_against_it():
    assert judge(claim(standing=Standing.UNKNOWN), "quick", outcomes(0.7071)).verdict is Verdict.MEASURED


def test_what_is_known_to_differ_may_come_out_better_but_not_silently_worse():
    known = claim(expects=Verdict.DIFFERS, reason="The nudge is too small.")
    assert judge(known, "quick", outcomes(0.85)).as_expected
    assert judge(known, "quick", outcomes(0.7071)).as_expected
    assert judge(known, "quick", outcomes(0.85)).reason == "The nudge is too small."


def test_a_part_that_failed_is_told():
    failed = judge(claim(), "quick", [*outcomes(0.7071), Outcome(1, {}, None, "ValueError: no")])
    assert failed.verdict is Verdict.DIFFERS
    assert "ValueError: no" in failed.reason
    assert not failed.as_expected


def test_what_cannot_run_says_why():
    on_mnist = claim(experiment=on_images.name)
    assert judge(on_mnist, "paper", []).reason == "needs MNIST"
    assert judge(on_mnist, "paper", []).verdict is Verdict.NOT_RUN
    assert judge(on_mnist, "quick", outcomes(0.7071)).verdict is Verdict.REPRODUCED


def test_parts_are_put_together_and_combined():
    parts = [Outcome(0, {"part": name}, Measured({name: value})) for name, value in (("a", 1.0), ("b", 3.0))]
    combined = claim(experiment=slope.name, checks=(within("slope", 2, 0),))
    assert judge(combined, "quick", parts).verdict is Verdict.REPRODUCED


def test_checks_by_profile():
    both = claim(checks={"quick": (at_most("radius", 1),), "paper": (at_most("radius", 0.5),)})
    assert judge(both, "quick", outcomes(0.7071)).verdict is Verdict.REPRODUCED
    assert judge(both, "paper", outcomes(0.7071)).verdict is Verdict.DIFFERS


def test_a_check_that_cannot_fail_is_refused():
    with pytest.raises(InputError, match="cannot fail"):
        Check("radius")
    with pytest.raises(InputError, match="low"):
        Check("radius", 1, 0)
