"""Pictures of what was learned: they show the numbers they are given, in the promised order, whatever comes."""

import io
import math

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle
from PIL import Image

from polyrelu.errors import InputError
from polyrelu.report.figures import (
    NeuronSnapshot,
    contribution_bars,
    correlation_map,
    cosine_map,
    lambda_matrix,
    margin_figure,
    phase_timeline,
    save_figure,
    sphere_figure,
)
from polyrelu.report.figures.sphere import NEGATIVE, POSITIVE
from polyrelu.report.figures.style import BLACK, BLUE, LIGHT_GREY, VERMILION

LN10 = math.log(10)
EYE = np.eye(3)
AVERAGES = np.array([[1, 1, 0], [0, 0, 1]]) / np.sqrt([[2], [1]])


def render(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    with Image.open(buffer) as image:
        assert len(image.convert("L").getcolors()) > 20  # drawn, not blank
    return figure


def words(figure):
    found = [*figure.texts, *(text for axes in figure.axes for text in (*axes.texts, axes.title, axes._left_title))]
    legends = [*figure.legends, *(axes.legend_ for axes in figure.axes if axes.legend_)]
    return " | ".join(text.get_text() for text in [*found, *(t for legend in legends for t in legend.get_texts())])


def apart(texts):
    """No two of the shown texts overlap."""
    boxes = [text.get_window_extent() for text in texts if text.get_text() and text.get_visible()]
    return not any(a.overlaps(b) for number, a in enumerate(boxes) for b in boxes[:number])


def inside(figure):
    """Nothing is cut off at the edge of the paper."""
    tight, (wide, high) = figure.get_tightbbox(), figure.get_size_inches()
    return tight.x0 >= 0 and tight.y0 >= 0 and tight.x1 <= wide and tight.y1 <= high


def dots(panel, colour):
    """Offsets and areas of the scattered dots filled with a colour, near and far."""
    same = [
        c
        for c in panel.collections
        if len(c.get_facecolor()) and tuple(c.get_facecolor()[0][:3]) == to_rgba(colour)[:3]
    ]
    return [(c.get_offsets().data, c.get_sizes(), c.get_alpha()) for c in same]


# --- the sphere


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


def test_every_stage_has_its_panel_and_one_scale_of_sizes():
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


def test_more_dimensions_are_projected_and_it_is_said():
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


@pytest.mark.parametrize("count", [1, 4, 5, 8])
def test_any_number_of_stages(count):
    figure = render(sphere_figure([stage(EYE, [-900.0, -np.inf, 0.0], [1, -1, 0])] * count, title="Many"))
    assert len(figure.axes) == count
    assert inside(figure)


def test_neurons_without_a_direction_are_counted():
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


# --- bars and maps


def test_bars_are_the_contributions_in_order_and_carriers_are_dark():
    figure = render(contribution_bars(np.log([1.0, 5.0, 3.0, 0.01]), [1, 2]))
    bars = figure.axes[0].patches
    assert np.allclose([bar.get_height() for bar in bars], [5, 3, 1, 0.01])
    assert [bar.get_facecolor() for bar in bars] == [to_rgba(c) for c in (BLACK, BLACK, LIGHT_GREY, LIGHT_GREY)]
    assert "2 of 4 neurons carry the net" in words(figure)
    assert len(contribution_bars(np.zeros(500), most=300).axes[0].patches) == 300


def test_bars_of_nets_beyond_floats_and_of_zero_nets():
    figure = render(contribution_bars([-1500.0, -1500 + math.log(0.5), -np.inf], [0, 1]))
    assert np.allclose([bar.get_height() for bar in figure.axes[0].patches], [1, 0.5, 0])
    assert "relative" in figure.axes[0].get_ylabel()
    assert "every contribution is zero" in words(render(contribution_bars([-np.inf])))
    for bad in ([], [np.nan], [np.inf]):
        with pytest.raises(InputError, match="log_contributions"):
            contribution_bars(bad)


def images(figure):
    return [np.ma.filled(panel.images[0].get_array(), np.nan) for panel in figure.axes if panel.images]


def test_rows_of_the_cosine_map_stand_by_best_column_then_contribution():
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


def test_only_the_largest_rows_are_kept():
    figure = cosine_map(np.eye(2)[[0, 1, 0]], None, np.log([1.0, 3, 2]), rows=2)
    assert np.array_equal(images(figure)[0], [[1, 0], [0, 1]])
    assert "the 2 largest of 3 neurons" in figure.axes[0].get_ylabel()


def test_a_zero_neuron_points_at_nothing():
    figure = cosine_map([[0, 0], [0, 1.0]], None, [-np.inf, 0])
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [r"$\mu_-$  ×1", "none  ×1"]


@pytest.mark.parametrize(("h", "K"), [(1, 1), (2, 2), (20, 10), (300, 40), (300, 2)])
def test_labels_of_maps_never_overlap(h, K):
    cosines = np.eye(K)[np.arange(h) % K]
    own = (np.arange(K) < K / 2) == (np.arange(h)[:, None] % K < K / 2)
    logs = np.linspace(0, -3, h)
    for figure in (cosine_map(np.zeros((h, 2)), cosines, logs), lambda_matrix(cosines, own)):
        render(figure)
        assert all(apart(panel.get_xticklabels()) and apart(panel.get_yticklabels()) for panel in figure.axes)
        assert inside(figure)


def test_lambda_blocks_are_sorted_and_framed():
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


def test_correlations_are_drawn_with_lines_between_classes():
    matrix = np.corrcoef(np.random.default_rng(0).normal(size=(30, 9)))
    groups = np.repeat([0, 2, 3], [5, 10, 15])  # no row of group 1
    figure = render(correlation_map(matrix, groups, ["zero", "one", "two", "a name that is much too long"]))
    panel = figure.axes[0]
    assert np.array_equal(images(figure)[0], matrix)
    assert [text.get_text() for text in panel.get_yticklabels()] == ["zero", "two", "a name that is …"]
    assert np.allclose(panel.get_yticks(), [2, 9.5, 22])
    assert {line.get_xdata()[0] for line in panel.lines if line.get_xdata()[0] == line.get_xdata()[1]} == {4.5, 14.5}
    assert inside(figure)
    for bad, match in ((groups[::-1], "increasing"), (groups[:3], "one for each row")):
        with pytest.raises(InputError, match=match):
            correlation_map(matrix, bad)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: cosine_map(np.ones((2, 2)), np.ones((3, 2)), [0, 0]), "one for each neuron"),
        (lambda: cosine_map(np.ones((2, 2)), None, [0, 0], average_names=["a"]), "average_names"),
        (lambda: cosine_map(np.ones((2, 2)), None, [0, 0], rows=0), "rows"),
        (lambda: cosine_map(np.ones((0, 2)), None, []), "not empty"),
        (lambda: correlation_map(np.ones((2, 3)), [0, 0]), "as many columns"),
        (lambda: correlation_map(np.eye(2), [0, 1], ["one"]), "one for each group"),
    ],
)
def test_bad_input_of_maps(call, match):
    with pytest.raises(InputError, match=match):
        call()


# --- over time

TIME = np.log(np.append(1e-9, np.linspace(1, 300, 100)))
TURN = np.minimum(1, np.exp(TIME) / 20)
LOSS = -np.maximum(0, np.exp(TIME) - 100) / 30


def test_phases_show_all_three_between_zero_and_one():
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


@pytest.mark.parametrize(
    ("aligned", "fallen", "said"),
    [
        (None, 104.0, "the directions never settle"),
        (18.0, None, "the loss never falls"),
        (150.0, 104.0, "the loss falls before the directions settle"),
        (0.0, 104.0, "norms grow"),
    ],
)
def test_phases_in_another_order_are_told_in_words(aligned, fallen, said):
    assert said in words(render(phase_timeline(TIME, TURN, LOSS, aligned=aligned, fallen=fallen))).replace("\n", " ")


def test_an_early_alignment_is_seen_on_decades():
    panel = render(phase_timeline(TIME, TURN, LOSS, aligned=1.0, fallen=104.0)).axes[0]
    verticals = [line.get_xdata()[0] for line in panel.lines if len(set(line.get_xdata())) == 1]
    assert np.allclose(verticals, [0, math.log10(104)])
    assert "decades" in panel.get_xlabel()


def test_margins_are_drawn_where_positive_and_the_loss_far_below_floats():
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


@pytest.mark.parametrize("count", [1, 2, 50])
def test_margins_by_steps(count):
    figure = render(
        margin_figure(np.linspace(0, -3, count), np.full(count, 0.5), clock=np.arange(count), threshold=0.5)
    )
    assert figure.axes[1].get_xlabel() == "steps"
    assert ("summed loss below 0.5" in words(figure)) == (count > 1)


def test_margins_that_are_never_positive_and_losses_that_are_no_numbers():
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


@pytest.mark.parametrize("suffix", [".png", ".svg"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: sphere_figure([stage(EYE)], EYE, [1, 1, -1], EYE, AVERAGES),
        lambda: cosine_map(np.eye(2), np.eye(2), [0, 0]),
        lambda: phase_timeline(TIME, TURN, LOSS, aligned=18.0, fallen=104.0),
        lambda: margin_figure([0.0, -5], [0.1, 0.2], clock=[0, 1]),
    ],
    ids=["sphere", "map", "phases", "margins"],
)
def test_the_same_picture_gives_the_same_bytes(make, suffix, tmp_path):
    for name in "ab":
        save_figure(make(), tmp_path / (name + suffix))
    assert (tmp_path / ("a" + suffix)).read_bytes() == (tmp_path / ("b" + suffix)).read_bytes()
