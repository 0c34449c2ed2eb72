"""Phases and margins over time: the given numbers at every moment, at any size of time and loss."""

import math

import numpy as np
import pytest

from polyrelu.errors import InputError
from polyrelu.report.figures import margin_figure, phase_timeline

LN10 = math.log(10)
TIME = np.log(np.append(1e-9, np.linspace(1, 300, 100)))
TURN = np.minimum(1, np.exp(TIME) / 20)
LOSS = -np.maximum(0, np.exp(TIME) - 100) / 30


def test_phases_show_all_three_between_zero_and_one(apart, inside, render, words):
    sizes = np.stack([np.exp(TIME) / 10 - 30, np.exp(TIME) / 20 - 30], axis=1)
    figure = render(phase_timeline(TIME, TURN, LOSS, sizes, aligned=18.0, fallen=104.0, title="Phases"))
    panel = figure.axes[0]
    turned, grown, left = (line.get_ydata() for line in panel.lines[:3])
    shown = len(left)
    assert np.exp(TIME[shown - 1]) >= 2.5 * 104 > np.exp(TIME[shown - 2])
    assert np.allclose(turned, TURN[:shown])
    assert np.allclose(left, np.exp(LOSS[:shown]))
    assert grown[-1] == 1
    assert np.allclose(np.log(grown[-2]), (np.exp(TIME[shown - 2]) - np.exp(TIME[shown - 1])) / 10, atol=1e-3)
    verticals = [line.get_xdata()[0] for line in panel.lines if len(set(line.get_xdata())) == 1]
    assert np.allclose(verticals, [18, 104])
    assert all(name in words(figure).replace("\n", " ") for name in ("directions turn", "norms grow", "loss falls"))
    assert apart(panel.texts)
    assert inside(figure)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("aligned", "fallen", "said"),
    [
        (None, 104.0, "the directions never settle"),
        (18.0, None, "the loss never falls"),
        (150.0, 104.0, "the loss falls before the directions settle"),
        (0.0, 104.0, "norms grow"),
    ],
)
def test_phases_in_another_order_are_told_in_words(aligned, fallen, said, render, words):
    assert said in words(render(phase_timeline(TIME, TURN, LOSS, aligned=aligned, fallen=fallen))).replace("\n", " ")


def test_an_early_alignment_is_seen_on_decades(render):
    panel = render(phase_timeline(TIME, TURN, LOSS, aligned=1.0, fallen=104.0)).axes[0]
    verticals = [line.get_xdata()[0] for line in panel.lines if len(set(line.get_xdata())) == 1]
    assert np.allclose(verticals, [0, math.log10(104)])
    assert "decades" in panel.get_xlabel()


@pytest.mark.slow
def test_margins_are_drawn_where_positive_and_the_loss_far_below_floats(inside, render, words):
    decades = np.linspace(0.5, 1000, 200)
    margin = np.where(decades < 20, -1.0, 1e-3 * (1 - 1 / decades))
    smooth = np.where(decades < 30, np.nan, 0.9 * margin)
    figure = render(margin_figure(1 - decades, margin, smooth, 2 * margin, log_time=decades * LN10, samples=10**20))
    top, lower = figure.axes
    assert np.allclose(top.lines[0].get_ydata(), 1 - decades)
    assert np.allclose(top.lines[0].get_xdata(), np.log10(decades))
    assert top.get_ylim()[0] < -999
    assert any("-1000" in text.get_text() or "-800" in text.get_text() for text in top.get_yticklabels())
    for line, values in zip(lower.lines, (margin, smooth, 2 * margin), strict=False):
        good = values > 0
        assert np.allclose(line.get_ydata()[good], np.log10(values[good]))
        assert np.isnan(line.get_ydata()[~good]).all()
    passed = decades[np.argmax(1 - decades + 20 < 0)]
    assert top.lines[1].get_xdata()[0] == pytest.approx(math.log10(passed))
    assert "summed loss below 1" in words(figure)
    assert "not separated yet" in words(figure)
    assert inside(figure)


def test_moments_before_the_axis_begins_do_not_pile_up():
    log_time = np.array([-np.inf, -2, 0, 1, 100, 1000.0])
    drawn = margin_figure(-np.arange(6.0), np.arange(1.0, 7), log_time=log_time).axes[1].lines[0]
    assert (np.diff(drawn.get_xdata()) > 0).all()
    assert np.allclose(10 ** drawn.get_ydata()[-3:], [4, 5, 6])


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 50])
def test_margins_by_steps(count, render, words):
    figure = render(
        margin_figure(np.linspace(0, -3, count), np.full(count, 0.5), clock=np.arange(count), threshold=0.5)
    )
    assert figure.axes[1].get_xlabel() == "steps"
    assert ("summed loss below 0.5" in words(figure)) == (count > 1)


def test_margins_that_are_never_positive_and_losses_that_are_no_numbers(render, words):
    figure = render(margin_figure([0.1, np.nan, -np.inf], [-1, -2, np.nan], clock=[0, 1, 2]))
    assert "no margin is positive" in words(figure)
    assert "summed loss" not in words(figure)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: margin_figure([0.0], [1.0]), "exactly one"),
        (lambda: margin_figure([0.0], [1.0], clock=[0], log_time=[0]), "exactly one"),
        (lambda: margin_figure([], [], clock=[]), "at least one moment"),
        (lambda: margin_figure([0.0, 1.0], [1.0], clock=[0, 1]), "normalised"),
        (lambda: phase_timeline([], [], []), "at least one moment"),
        (lambda: phase_timeline(TIME, TURN, LOSS[:5]), "log_loss"),
        (lambda: phase_timeline(TIME, TURN, LOSS, np.zeros((5, 2))), "one for each moment"),
        (lambda: phase_timeline(TIME, TURN, LOSS, aligned=math.nan), "aligned"),
    ],
)
def test_bad_input_of_time(call, match):
    with pytest.raises(InputError, match=match):
        call()
