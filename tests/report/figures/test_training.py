"""Figures: rendered without a warning (warnings are errors here), telling what is there, the same every time."""

import io
import re
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from PIL import Image

import polyrelu
from polyrelu.bias import loss_fall_index
from polyrelu.report.figures import save_figure, trajectory_figure
from polyrelu.report.figures.timeline import Timeline
from polyrelu.train import History


def texts(figure):
    return " ".join(text.get_text() for axes in figure.axes for text in axes.texts)


def picked(trajectory, moments):
    history = trajectory.history
    parts = {part.name: getattr(history, part.name)[moments] for part in fields(History)}
    return replace(trajectory, history=History(**parts))


def stretched(trajectory, log_time):
    return replace(trajectory, history=replace(trajectory.history, log_time=log_time))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["averages", "centres"])
def test_png_is_whole_and_wide_enough(kind, request, tmp_path):
    path = save_figure(trajectory_figure(request.getfixturevalue(kind)[0], "A run"), tmp_path / "run.png")
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    with Image.open(path) as image:
        assert image.size == (1500, 1320)
        assert len(image.convert("L").getcolors()) > 50  # drawn, not blank
        assert "Software" not in image.info
    assert [file.name for file in tmp_path.iterdir()] == ["run.png"]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_the_same_run_gives_the_same_bytes(centres, tmp_path, suffix):
    for name in "ab":
        save_figure(trajectory_figure(centres[0], "A run"), tmp_path / (name + suffix))
    assert (tmp_path / ("a" + suffix)).read_bytes() == (tmp_path / ("b" + suffix)).read_bytes()


def test_other_formats_are_refused_before_anything_is_written(centres, tmp_path):
    with pytest.raises(polyrelu.InputError, match=r"\.png or \.svg"):
        save_figure(trajectory_figure(centres[0]), tmp_path / "run.bmp")
    assert not list(tmp_path.iterdir())


def test_labels_tell_what_the_curves_end_at(averages, centres):
    shown = texts(trajectory_figure(centres[0]))
    assert "sub-class centre  1.000" in shown
    assert "of 40 neurons" in shown
    assert float(re.search(r"class average  ([0-9.]+)", texts(trajectory_figure(averages[0])))[1]) > 0.99


@pytest.mark.slow
def test_phases_are_named_when_directions_settle_first(centres):
    shown = texts(trajectory_figure(centres[0]))
    assert "norms grow" in shown.replace("\n", " ")
    assert "loss falls" in shown.replace("\n", " ")
    assert "norms grow" not in texts(trajectory_figure(picked(centres[0], slice(0, 3))))


def render(trajectory):
    buffer = io.BytesIO()
    trajectory_figure(trajectory, "edge case").savefig(buffer, format="png")
    assert buffer.getvalue().startswith(b"\x89PNG")
    with Image.open(buffer) as image:
        assert len(image.convert("L").getcolors()) > 50  # drawn, not blank


@pytest.mark.slow
def test_no_centres(centres):
    trajectory, _ = centres
    history = replace(trajectory.history, cos_centre=np.empty((len(trajectory.history.clock), 0), np.float32))
    figure = trajectory_figure(replace(trajectory, history=history))
    assert "sub-class" not in texts(figure)
    render(replace(trajectory, history=history))


@pytest.mark.slow
@pytest.mark.parametrize("moments", [slice(0, 1), slice(-1, None), slice(0, 2)])
def test_one_moment_or_two(centres, moments):
    render(picked(centres[0], moments))


@pytest.mark.slow
@pytest.mark.parametrize("last", [20.0, 300.0, 5000.0])
def test_times_beyond_a_linear_axis(centres, last):
    history = centres[0].history
    log_time = np.where(np.isfinite(history.log_time), np.linspace(0, last, len(history.clock)), -np.inf)
    render(stretched(centres[0], log_time))


@pytest.mark.slow
def test_a_net_far_below_floating_point(centres):
    history = centres[0].history
    tiny = replace(history, log_contribution=history.log_contribution - 1500, log_loss=history.log_loss - 2000)
    render(replace(centres[0], history=tiny))


@pytest.mark.slow
def test_dead_neurons(centres):
    history = centres[0].history
    logs = history.log_contribution.copy()
    logs[:, 0] = -np.inf
    render(replace(centres[0], history=replace(history, log_contribution=logs)))


@pytest.mark.slow
def test_every_neuron_carries(centres):
    history = centres[0].history
    even = replace(history, log_contribution=np.zeros_like(history.log_contribution))
    figure = trajectory_figure(replace(centres[0], history=even))
    assert "dashed" not in texts(figure)
    render(replace(centres[0], history=even))


def test_a_net_without_such_neurons_shows_its_loss(centres):
    trajectory = polyrelu.descend(torch.nn.Linear(50, 1), centres[1], until=0.9, steps=3)
    figure = trajectory_figure(trajectory, "Linear")
    assert len(figure.axes) == 1
    render(trajectory)


@pytest.mark.slow
def test_a_loss_that_is_no_longer_finite(centres):
    history = centres[0].history
    log_loss = history.log_loss.copy()
    log_loss[-1] = np.nan
    render(replace(centres[0], history=replace(history, log_loss=log_loss)))


def test_the_time_axis_is_linear_while_the_early_phases_are_seen(centres):
    history = centres[0].history
    assert Timeline.from_history(history).scale == "linear"
    falls = loss_fall_index(history)
    assert falls is not None
    later = np.arange(len(history.clock)) > falls
    assert Timeline.from_history(replace(history, log_time=history.log_time + 8 * later)).scale == "log"
    far = Timeline.from_history(replace(history, log_time=history.log_time + 3000 * later))
    assert far.scale == "loglog"
    assert np.isfinite(far.x).all()
