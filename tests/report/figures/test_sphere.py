"""Neurons on the circle and the sphere: they stand where they point, in any dimension, at any stage."""

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from polyrelu.errors import InputError
from polyrelu.report.figures import NeuronSnapshot, sphere_figure
from polyrelu.report.figures.sphere import NEGATIVE, POSITIVE
from polyrelu.report.figures.style import BLUE, VERMILION

EYE = np.eye(3)
AVERAGES = np.array([[1, 1, 0], [0, 0, 1]]) / np.sqrt([[2], [1]])


def dots(panel, colour):
    """Offsets and areas of the scattered dots filled with a colour, near and far."""
    same = [
        c
        for c in panel.collections
        if len(c.get_facecolor()) and tuple(c.get_facecolor()[0][:3]) == to_rgba(colour)[:3]
    ]
    return [(c.get_offsets().data, c.get_sizes(), c.get_alpha()) for c in same]


def stage(directions, logs=None, signs=None, name="now"):
    h = len(directions)
    return NeuronSnapshot(
        name, directions, np.zeros(h) if logs is None else logs, np.ones(h) if signs is None else signs
    )


def test_a_neuron_on_the_circle_is_where_it_points():
    u = np.array([[0.6, 0.8], [-1, 0]])
    panel = sphere_figure([stage(u, [0.0, -20.0], [1, -1])]).axes[0]
    ((where, large, _),), ((other, small, _),) = dots(panel, POSITIVE), dots(panel, NEGATIVE)
    assert np.allclose(where, u[:1])
    assert np.allclose(other, u[1:])
    assert large[0] > 5 * small[0]


def test_the_sphere_seen_along_an_axis_hides_its_far_side():
    panel = sphere_figure([stage(np.array([[0, 0.6, 0.8], [-0.8, 0.6, 0]]))], view=[1, 0, 0]).axes[0]
    by_alpha = {alpha: where for where, _, alpha in dots(panel, POSITIVE)}
    assert np.allclose(by_alpha[max(by_alpha)], [[0.6, 0.8]])  # right is the second axis, up the third
    assert np.allclose(by_alpha[min(by_alpha)], [[0.6, 0.0]])
    assert min(by_alpha) < 0.5 * max(by_alpha)


def test_every_stage_has_its_panel_and_one_scale_of_sizes(inside, render, words):
    stages = [stage(EYE, np.full(3, -30.0 + 15 * k), name=f"stage {k}") for k in range(3)]
    figure = render(sphere_figure(stages, EYE, [1, 1, -1], EYE, AVERAGES, title="Three"))
    assert [panel.get_title() for panel in figure.axes] == ["stage 0", "stage 1", "stage 2"]
    areas = [dots(panel, POSITIVE)[-1][1][0] for panel in figure.axes]
    assert areas == sorted(areas)
    assert areas[2] > 5 * areas[0]
    assert all(name in words(figure) for name in ("v > 0", "y = +1", "y = −1", "sub-class centre", "class average"))
    assert inside(figure)


def test_probes_are_drawn_in_their_colours():
    panel = sphere_figure([stage(EYE)], None, None, EYE, AVERAGES).axes[0]
    edges = {c.get_edgecolor()[0][:3].tobytes(): len(c.get_offsets()) for c in panel.collections}
    assert edges[np.array(to_rgba(BLUE)[:3]).tobytes()] == 3
    assert edges[np.array(to_rgba(VERMILION)[:3]).tobytes()] == 2


def test_more_dimensions_are_projected_and_it_is_said(render, words):
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(50, 50)))[0]
    u = (3 * basis[:1] + 4 * basis[10:11]) / 5  # .6 along the first axis, the rest elsewhere
    figure = render(sphere_figure([stage(u)], axes=basis[:2]))
    assert np.allclose(dots(figure.axes[0], POSITIVE)[0][0], [[0.6, 0]])
    turned = sphere_figure([stage(u)], axes=-basis[:2])  # the sign of an axis is kept
    assert np.allclose(dots(turned.axes[0], POSITIVE)[0][0], [[-0.6, 0]])
    assert "50 dimensions" in words(figure)
    assert "dimensions" not in words(sphere_figure([stage(EYE)]))
    with pytest.raises(InputError, match="axes"):
        sphere_figure([stage(u)])
    with pytest.raises(InputError, match="independent"):
        sphere_figure([stage(u)], axes=basis[[0, 0]])


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 4, 5, 8])
def test_any_number_of_stages(count, inside, render):
    figure = render(sphere_figure([stage(EYE, [-900.0, -np.inf, 0.0], [1, -1, 0])] * count, title="Many"))
    assert len(figure.axes) == count
    assert inside(figure)


def test_neurons_without_a_direction_are_counted(render, words):
    figure = render(sphere_figure([stage(np.array([[0.0, 0, 0], [np.nan, 0, 0], [1, 0, 0]]), [-np.inf, np.nan, 0])]))
    assert "2 without a direction" in words(figure)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"stages": []}, "at least one NeuronSnapshot"),
        ({"stages": [stage(EYE, logs=[0, 0])]}, "one for each direction"),
        ({"stages": [stage(EYE)], "points": EYE, "labels": [1]}, "labels"),
        ({"stages": [stage(EYE)], "centres": np.eye(4)}, "centres"),
        ({"stages": [stage(EYE)], "view": [0, 0, 0]}, "view"),
        ({"stages": [stage(np.ones((2, 1)))]}, "at least 2"),
    ],
)
def test_bad_input_of_the_sphere(arguments, match):
    with pytest.raises(InputError, match=match):
        sphere_figure(**arguments)
