"""Correlations of a data set: rows by class, with lines between the classes."""

import numpy as np
import pytest

from polyrelu.errors import InputError
from polyrelu.report.figures import correlation_map


def test_correlations_are_drawn_with_lines_between_classes(images, inside, render):
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
        (lambda: correlation_map(np.ones((2, 3)), [0, 0]), "as many columns"),
        (lambda: correlation_map(np.eye(2), [0, 1], ["one"]), "one for each group"),
    ],
)
def test_bad_input_of_correlations(call, match):
    with pytest.raises(InputError, match=match):
        call()
