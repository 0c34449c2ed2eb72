"""Files of figures: the same figure gives the same bytes."""

import numpy as np
import pytest

from polyrelu.report.figures import (
    NeuronSnapshot,
    cosine_map,
    margin_figure,
    phase_timeline,
    save_figure,
    sphere_figure,
)

EYE = np.eye(3)
AVERAGES = np.array([[1, 1, 0], [0, 0, 1]]) / np.sqrt([[2], [1]])
TIME = np.log(np.append(1e-9, np.linspace(1, 300, 100)))
TURN = np.minimum(1, np.exp(TIME) / 20)
LOSS = -np.maximum(0, np.exp(TIME) - 100) / 30


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".png", ".svg"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: sphere_figure([NeuronSnapshot("now", EYE, np.zeros(3), np.ones(3))], EYE, [1, 1, -1], EYE, AVERAGES),
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
