"""Curves with answers computed by hand, and what holds for all of them."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from polyrelu.errors import InputError
from polyrelu.robust import BoundsInconsistentError, Bracket, BracketStatus, RadiusRange, curve, relative_gaps


def made(lower, upper, norm=2.0):
    lower, upper = torch.tensor(lower, dtype=torch.float64), torch.tensor(upper, dtype=torch.float64)
    status = tuple(BracketStatus.CLOSED for _ in lower)
    return Bracket(lower, upper, torch.zeros(len(lower), 3), status, norm, torch.zeros(len(lower), dtype=torch.int64))


# Five points, out of order: one misclassified, one closed at 1/2, one open, one never broken, one closed at 1.
HAND = made([0.25, 0.0, 0.5, 1.0, 0.75], [1.0, 0.0, 0.5, 1.0, math.inf])


@pytest.mark.parametrize(
    ("radius", "certified", "attacked"),
    [
        (0.0, 4 / 5, 4 / 5),  # the misclassified one is gone
        (0.2, 4 / 5, 4 / 5),
        (0.25, 3 / 5, 4 / 5),  # lower = 0.25 proves nothing at 0.25 itself
        (0.49, 3 / 5, 4 / 5),
        (0.5, 2 / 5, 3 / 5),  # an attack of length 1/2 breaks the point at 1/2
        (0.75, 1 / 5, 3 / 5),
        (1.0, 0, 1 / 5),
        (1e300, 0, 1 / 5),  # nothing broke the last one
        (math.inf, 0, 0),
    ],
)
def test_accuracies_by_hand(radius, certified, attacked):
    line = curve(HAND)
    assert line.certified(radius) == pytest.approx(certified, abs=1e-15)
    assert line.attacked(radius) == pytest.approx(attacked, abs=1e-15)
    assert line.unproven(radius) == pytest.approx(attacked - certified, abs=1e-15)
    assert isinstance(line.certified(radius), float)
    assert line.attacked([radius, 0.0]) == pytest.approx([attacked, 0.8], abs=1e-15)


def test_numbers_of_one_bracket_by_hand():
    line = curve(HAND)
    assert line.clean == 0.8
    assert line.breakpoints.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert line.median_radius == RadiusRange(0.5, 1.0)  # third of 0 .25 .5 .75 1 and of 0 .5 1 1 inf
    assert (line.seeds, line.points, line.norm) == (1, 5, 2.0)
    # (1 - .25)/1; both wrong and closed points have none; nothing was found for the last
    assert relative_gaps(HAND).tolist() == [0.75, 0, 0, 0, 1]


def test_median_radius_of_an_even_number_is_where_half_hold():
    line = curve(made([1, 2, 3, 4], [1, 2, 3, 4]))
    assert line.median_radius == RadiusRange(2, 2)
    assert line.attacked(2) == 0.5
    assert line.attacked(1.999) == 0.75


def test_bands_over_seeds_by_hand():
    # At 1/2: certified 1/2 and 1, attacked 1 and 1.
    line = curve([made([0.25, 1.0], [1.0, 1.0]), made([0.75, 0.75], [0.75, 2.0])])
    band = line.certified_band([0.5, 0.8])
    assert band.low.tolist() == [0.5, 0]
    assert band.mean.tolist() == [0.75, 0.25]
    assert band.high.tolist() == [1, 0.5]
    attacked = line.attacked_band(0.8)
    assert (attacked.low, attacked.mean, attacked.high) == (0.5, 0.75, 1)
    assert line.certified(0.5) == 0.75
    # Means: certified 1 | 3/4 from .25 | 1/4 from .75; attacked 1 | 3/4 from .75 | 1/4 from 1.
    assert line.median_radius == RadiusRange(0.75, 1.0)
    assert (line.seeds, line.points) == (2, 4)


def test_each_seed_counts_alike_whatever_its_number_of_points():
    line = curve([made([1.0] * 9, [1.0] * 9), made([3.0], [3.0])])
    assert line.attacked(2) == 0.5


def test_all_wrong_and_all_unbroken():
    wrong = curve(made([0, 0], [0, 0]))
    assert (wrong.clean, wrong.certified(0), wrong.median_radius) == (0, 0, RadiusRange(0, 0))
    held = curve(made([1, 1, 1], [math.inf, math.inf, 2]))
    assert held.median_radius == RadiusRange(1, math.inf)
    assert held.breakpoints.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("lower", "upper"),
    [([0.1, 0.5], [0.1, 0.4]), ([0.1, math.nan], [0.1, 1]), ([0.1, 0.5], [0.1, math.nan]), ([0, -0.1], [0, 1])],
)
def test_a_broken_sandwich_is_told_and_never_clipped(lower, upper):
    with pytest.raises(BoundsInconsistentError, match=r"^Point 1: certified to .* a bug in polyrelu"):
        curve(made(lower, upper))
    with pytest.raises(BoundsInconsistentError, match=r"Point 1 of bracket 1"):
        curve([HAND, made(lower, upper)])


def test_a_difference_in_the_last_bit_is_broken_too():
    with pytest.raises(BoundsInconsistentError):
        curve(made([math.nextafter(0.5, 1)], [0.5]))


def test_bad_input():
    two = [HAND, made([1], [1], 1.0)]
    for brackets, part in (([], "at least one bracket"), (two, "one norm"), (made([], []), "at least one point")):
        with pytest.raises(InputError, match=part):
            curve(brackets)
    for radius in (-0.1, math.nan, [0.1, -0.1]):
        with pytest.raises(InputError, match=r"radius=.*a number >= 0"):
            curve(HAND).certified(radius)


radii = hnp.arrays(np.float64, st.integers(1, 12), elements=st.sampled_from([0, 0.1, 0.25, 0.5, 0.75, 1, math.inf]))
pairs = radii.flatmap(lambda a: st.tuples(st.just(a), hnp.arrays(np.float64, len(a), elements=st.floats(0, 2))))


@pytest.mark.slow
@given(st.lists(pairs, min_size=1, max_size=3), hnp.arrays(np.float64, 20, elements=st.floats(0, 3)))
def test_lines_fall_and_hold_the_truth_between_them(seeds, asked):
    brackets = [made(np.minimum(a, b), np.maximum(a, b)) for a, b in seeds]
    line, asked = curve(brackets), np.sort(asked)
    for values in (line.certified(asked), line.attacked(asked)):
        assert (np.diff(values) <= 0).all()
        assert ((values >= 0) & (values <= 1)).all()
    assert (line.unproven(asked) >= 0).all()
    assert line.unproven(asked) == pytest.approx(line.attacked(asked) - line.certified(asked), abs=1e-12)
    # Any radii between the bounds have a curve between the lines, here their means.
    for bracket, alone in ((b, curve(b)) for b in brackets):
        middle = torch.where(bracket.upper.isinf(), bracket.lower + 1, (bracket.lower + bracket.upper) / 2)
        true = (middle[:, None] > torch.from_numpy(asked)).double().mean(0).numpy()
        assert (alone.certified(asked) <= true + 1e-12).all()
        assert (true <= alone.attacked(asked) + 1e-12).all()
    half = line.median_radius
    assert half.lower <= half.upper
    for radius, accuracy in ((half.lower, line.certified), (half.upper, line.attacked)):
        assert accuracy(radius) <= 0.5
        assert radius == 0 or accuracy(math.nextafter(radius, 0)) > 0.5
    low, high = line.certified_band(asked), line.attacked_band(asked)
    for band in (low, high):
        assert (band.low <= band.mean + 1e-12).all()
        assert (band.mean <= band.high + 1e-12).all()


@given(pairs, st.randoms())
def test_steps_are_at_the_breakpoints_only_and_order_does_not_matter(pair, random):
    a, b = pair
    order = list(range(len(a)))
    random.shuffle(order)
    lower, upper = np.minimum(a, b), np.maximum(a, b)
    line, shuffled = curve(made(lower, upper)), curve(made(lower[order], upper[order]))
    steps = line.breakpoints
    assert np.array_equal(steps, shuffled.breakpoints)
    between = np.concatenate([(steps[1:] + steps[:-1]) / 2, steps + 1e-9])
    left = steps[np.searchsorted(steps, between, side="right") - 1] if len(steps) else between
    for name in ("certified", "attacked"):
        assert np.array_equal(getattr(line, name)(between), getattr(line, name)(left))
        assert np.array_equal(getattr(line, name)(steps), getattr(shuffled, name)(steps))
