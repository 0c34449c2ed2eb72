"""The robustness picture: drawn without a warning in every case, and saying what it shows."""

import io
import math

import numpy as np
import pytest
import torch
from PIL import Image

from polyrelu.errors import InputError
from polyrelu.report.figures import robust_figure, save_figure
from polyrelu.robust import Bracket, BracketStatus, curve


def made(lower, upper, norm=2.0):
    lower, upper = (torch.as_tensor(np.asarray(radii, dtype=np.float64)) for radii in (lower, upper))
    nodes = torch.zeros(len(lower), dtype=torch.int64)
    return Bracket(lower, upper, torch.zeros(len(lower), 2), (BracketStatus.CLOSED,) * len(lower), norm, nodes)


RADII = np.linspace(0.1, 0.7, 50)
LOOSE = curve(made(RADII / 2, RADII))


def labels(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def shown(figure):
    return " ".join([*labels(figure), *(text.get_text() for text in figure.axes[0].texts)])


def render(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    with Image.open(buffer) as image:
        assert len(image.convert("L").getcolors()) > 50  # drawn, not blank


def line(figure, start):
    """The drawn line whose label begins so."""
    return next(found for found in figure.axes[0].lines if str(found.get_label()).startswith(start))


@pytest.mark.parametrize("seeds", [1, 3])
def test_both_lines_are_the_curve_itself(seeds):
    several = curve([made(RADII / 2, RADII + 0.01 * seed) for seed in range(seeds)])
    figure = robust_figure(several)
    for name, exact in (("certified", several.certified), ("attacked", several.attacked)):
        drawn = line(figure, name)
        assert drawn.get_drawstyle() == "steps-post"
        x, y = drawn.get_data()
        assert x[0] == 0
        assert np.array_equal(y, exact(x))
        assert set(several.breakpoints) <= set(x)
    assert any("3 seeds" in label for label in labels(figure)) == (seeds == 3)
    assert "neither proven nor broken" in labels(figure)
    render(figure)


def test_many_points_are_drawn_finer_than_the_eye_but_not_finer():
    many = curve(made(np.linspace(0, 1, 20_000), np.linspace(0, 1, 20_000)))
    assert len(line(robust_figure(many), "attacked").get_xdata()) < 4000


def test_lines_that_coincide_say_so():
    assert "(both lines coincide everywhere)" in labels(robust_figure(curve(made(RADII, RADII))))
    assert "(both lines coincide at this scale)" in labels(robust_figure(curve(made(0.999 * RADII, RADII))))
    assert "coincide" not in shown(robust_figure(LOOSE))


@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
def test_axes_are_named_in_words(norm):
    panel = robust_figure(curve(made(RADII, RADII, norm))).axes[0]
    assert panel.get_ylabel() == "points classified rightly"
    assert panel.get_xlabel().startswith("radius of the perturbation (")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lower", "upper", "words"),
    [
        ([0, 0], [0, 0], "every point is misclassified"),
        ([0.5] * 4, [0.5] * 4, "coincide"),
        ([0.5, 0, 0, 0], [0.5, 0, 0, 0], "coincide"),
        ([0.1, 0.1, 0.3, 0.3], [math.inf, 0.1, 0.5, 0.3], "(25 % were never broken"),
        ([0.0, 0.0], [math.inf, math.inf], "(100 % were never broken"),
        ([1e-12], [2e-12], "neither proven"),
        ([1e9], [2e9], "neither proven"),
    ],
)
def test_edge_cases_say_what_they_are(lower, upper, words):
    figure = robust_figure(curve(made(lower, upper)), title="edge case", marks={})
    assert words in shown(figure)
    render(figure)


def test_marks_stand_where_they_belong_and_never_on_each_other():
    marks = {"1/√K": 1 / math.sqrt(10), "nearly the same": 0.33, "√2/2": math.sqrt(0.5), "far": 3.0}
    figure = robust_figure(LOOSE, marks=marks)
    panel = figure.axes[0]
    assert "1/√K = 0.316" in shown(figure)
    verticals = [found.get_xdata()[0] for found in panel.lines if len(set(found.get_xdata())) == 1]
    assert verticals == sorted(marks.values())
    assert panel.get_xlim()[1] > 3
    boxes = [text.get_window_extent() for text in panel.texts]
    assert not any(a.overlaps(b) for number, a in enumerate(boxes) for b in boxes[:number])
    with pytest.raises(InputError, match=r"marks\['bad'\]=nan"):
        robust_figure(LOOSE, marks={"bad": math.nan})


def test_theory_is_a_line_of_its_own():
    figure = robust_figure(LOOSE, theory={"best possible": lambda r: np.where(r < 0.5, 1, 0.6)})
    assert "best possible" in labels(figure)
    assert set(line(figure, "best possible").get_ydata()) == {1, 0.6}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_the_same_curve_gives_the_same_bytes(tmp_path, suffix):
    for name in "ab":
        save_figure(robust_figure(LOOSE, marks={"√2/2": 0.7}, title="a title"), tmp_path / (name + suffix))
    assert (tmp_path / ("a" + suffix)).read_bytes() == (tmp_path / ("b" + suffix)).read_bytes()
