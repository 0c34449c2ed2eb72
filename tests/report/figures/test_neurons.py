"""Contributions and cosines of neurons as bars and heatmaps: the given numbers, in the promised order."""

import math

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from polyrelu.errors import InputError
from polyrelu.report.figures import contribution_bars, cosine_map, lambda_matrix
from polyrelu.report.figures.style import BLACK, LIGHT_GREY


def test_bars_are_the_contributions_in_order_and_carriers_are_dark(render, words):
    figure = render(contribution_bars(np.log([1.0, 5.0, 3.0, 0.01]), [1, 2]))
    bars = figure.axes[0].patches
    assert np.allclose([bar.get_height() for bar in bars], [5, 3, 1, 0.01])
    assert [bar.get_facecolor() for bar in bars] == [to_rgba(c) for c in (BLACK, BLACK, LIGHT_GREY, LIGHT_GREY)]
    assert "2 of 4 neurons carry the net" in words(figure)
    assert len(contribution_bars(np.zeros(500), most=300).axes[0].patches) == 300


def test_bars_of_nets_beyond_floats_and_of_zero_nets(render, words):
    figure = render(contribution_bars([-1500.0, -1500 + math.log(0.5), -np.inf], [0, 1]))
    assert np.allclose([bar.get_height() for bar in figure.axes[0].patches], [1, 0.5, 0])
    assert "relative" in figure.axes[0].get_ylabel()
    assert "every contribution is zero" in words(render(contribution_bars([-np.inf])))
    for bad in ([], [np.nan], [np.inf]):
        with pytest.raises(InputError, match="log_contributions"):
            contribution_bars(bad)


def test_rows_of_the_cosine_map_stand_by_best_column_then_contribution(images, render):
    centres = np.array([[0, 1.0], [1, 0], [0, 0.9], [0.8, 0], [np.nan, np.nan]])
    averages = np.where(np.isnan(centres), np.nan, 0.5)
    figure = render(cosine_map(averages, centres, np.log([1.0, 2, 3, 4, 5]), centre_names=["cat", "dog"]))
    left, right = images(figure)[:2]
    order = [3, 1, 2, 0, 4]
    assert np.array_equal(right, centres[order], equal_nan=True)
    assert np.array_equal(left, averages[order], equal_nan=True)
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["cat  ×2", "dog  ×2", "none  ×1"]
    assert [t.get_text() for t in figure.axes[1].get_xticklabels()] == ["cat", "dog"]
    assert np.allclose([bar.get_width() for bar in figure.axes[2].patches], np.array([1, 2, 3, 4, 5.0])[order])
    assert figure.axes[0].images[0].get_clim() == (-1, 1)
    assert {"0.80", "1.00", "0.90"} <= {text.get_text() for text in figure.axes[1].texts}


def test_only_the_largest_rows_are_kept(images):
    figure = cosine_map(np.eye(2)[[0, 1, 0]], None, np.log([1.0, 3, 2]), rows=2)
    assert np.array_equal(images(figure)[0], [[1, 0], [0, 1]])
    assert "the 2 largest of 3 neurons" in figure.axes[0].get_ylabel()


def test_a_zero_neuron_points_at_nothing():
    figure = cosine_map([[0, 0], [0, 1.0]], None, [-np.inf, 0])
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [r"$\mu_-$  ×1", "none  ×1"]


@pytest.mark.slow
@pytest.mark.parametrize(("h", "K"), [(1, 1), (2, 2), (20, 10), (300, 40), (300, 2)])
def test_labels_of_maps_never_overlap(h, K, apart, inside, render):
    cosines = np.eye(K)[np.arange(h) % K]
    own = (np.arange(K) < K / 2) == (np.arange(h)[:, None] % K < K / 2)
    logs = np.linspace(0, -3, h)
    for figure in (cosine_map(np.zeros((h, 2)), cosines, logs), lambda_matrix(cosines, own)):
        render(figure)
        assert all(apart(panel.get_xticklabels()) and apart(panel.get_yticklabels()) for panel in figure.axes)
        assert inside(figure)


def test_lambda_blocks_are_sorted_and_framed(images, render, words):
    # neurons 0, 2 own centres 1 and 3; neurons 1, 3 own centres 0 and 2
    lambdas = np.array([[0, 0.2, 0, 0.9], [0.7, 0, 0.1, -0.3], [0, 1.5, 0, 0.1], [0.1, 0, 0.8, 0]])
    own = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]], dtype=bool)
    figure = render(lambda_matrix(lambdas, own, names=list("abcd")))
    panel = figure.axes[0]
    assert [text.get_text() for text in panel.get_xticklabels()] == ["a", "c", "b", "d"]
    assert [text.get_text() for text in panel.get_yticklabels()] == ["1", "3", "2", "0"]
    assert np.array_equal(images(figure)[0], lambdas[[1, 3, 2, 0]][:, [0, 2, 1, 3]])
    assert panel.images[0].get_clim() == (-1.5, 1.5)
    frames = [p.get_bbox().bounds for p in panel.patches if isinstance(p, Rectangle)]
    assert sorted(frames) == [(-0.5, -0.5, 2, 2), (1.5, 1.5, 2, 2)]
    assert "every coefficient is zero" in words(render(lambda_matrix(np.zeros((2, 2)), np.eye(2))))
    with pytest.raises(InputError, match="own"):
        lambda_matrix(lambdas, own[:2])


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: cosine_map(np.ones((2, 2)), np.ones((3, 2)), [0, 0]), "one for each neuron"),
        (lambda: cosine_map(np.ones((2, 2)), None, [0, 0], average_names=["a"]), "average_names"),
        (lambda: cosine_map(np.ones((2, 2)), None, [0, 0], rows=0), "rows"),
        (lambda: cosine_map(np.ones((0, 2)), None, []), "not empty"),
    ],
)
def test_bad_input_of_maps(call, match):
    with pytest.raises(InputError, match=match):
        call()
