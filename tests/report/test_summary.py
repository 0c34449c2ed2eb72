"""The numbers of a run, recomputed by hand; and their sentence."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import polyrelu
from polyrelu.report import RunSummary, power_text, summarise

BLANK = RunSummary("LOSS", "Reached.", 2.0, 5.0, 1.0, -2.0, 1.0)


def by_hand(net, data):
    """Carriers and their cosines from the plain weights."""
    W, v = net.weight.detach().double().numpy(), net.output.detach().double().numpy()[0]
    r = np.linalg.norm(W, axis=1)
    order = np.argsort(-(r * abs(v)))
    share = np.cumsum((r * abs(v))[order]) / (r * abs(v)).sum()
    U = (W / r[:, None])[order[: int((share < 0.99).sum()) + 1]]
    centres = data.centres.double().numpy()
    means = data.class_means().double().numpy()
    return len(U), (U @ centres.T), (U @ (means / np.linalg.norm(means, axis=1, keepdims=True)).T)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["averages", "centres"])
def test_numbers_are_those_of_the_net(kind, request):
    trajectory, data = request.getfixturevalue(kind)
    assert trajectory.net.is_plain()
    found = summarise(trajectory, data)
    count, to_centres, to_means = by_hand(trajectory.net, data)
    assert (found.carrying, found.width, found.centres) == (count, 40, 5)
    assert found.cos_centre == pytest.approx(to_centres.max(1).mean(), abs=1e-5)
    assert found.cos_average == pytest.approx(to_means.max(1).mean(), abs=1e-5)
    assert found.covered == (to_centres > 0.95).any(0).sum()
    with torch.no_grad():
        margins = data.y.double() * trajectory.net.double()(data.X.double())
    assert found.log10_loss == pytest.approx(math.log10((-margins).exp().mean()), abs=1e-3)
    assert found.accuracy == (margins > 0).double().mean()
    assert found.gd_steps == pytest.approx(trajectory.time / 0.2)


def test_readings_tell_the_two_papers_apart(averages, centres):
    one, three = summarise(*averages), summarise(*centres)
    assert one.learned() == "class averages"
    assert "point at the class averages" in one.reading()
    assert three.learned() == "single sub-class centres"
    assert three.reading().endswith("and all 5 centres are covered.")


def test_without_centres_only_averages_are_told(centres):
    trajectory, data = centres
    found = summarise(trajectory, replace(data, centres=None))
    assert (found.cos_centre, found.covered, found.centres) == (None, None, None)
    assert "do not point at the class averages" in found.reading()
    assert not any("centre" in label.lower() for label, _ in found.rows())


def test_a_net_without_such_neurons_has_a_summary_too(centres):
    _, data = centres
    trajectory = polyrelu.descend(torch.nn.Linear(50, 1), data, until=0.9, steps=3)
    found = summarise(trajectory, data)
    assert (found.width, found.carrying) == (None, None)
    assert "no neurons" in found.reading()
    assert found.status == trajectory.status.name


def test_json_has_finite_numbers_or_null(centres):
    far = replace(summarise(*centres), log10_time=900.0, log10_loss=-math.inf)
    text = json.dumps(far.as_json(), allow_nan=False)
    back = json.loads(text)
    assert (back["time"], back["gd_steps"], back["log10_loss"]) == (None, None, None)
    assert back["log10_time"] == 900.0


@pytest.mark.parametrize(
    ("centre", "average", "words"),
    [
        (0.99, 0.99, "class averages, which are the centres"),
        (0.99, 0.5, "single sub-class centres"),
        (0.5, 0.99, "class averages"),
        (0.5, 0.5, "neither centres nor averages"),
        (None, 0.99, "class averages"),
        (None, None, "nothing that was measured"),
    ],
)
def test_what_was_learned(centre, average, words):
    found = replace(BLANK, carrying=3, width=9, centres=2, covered=1, cos_centre=centre, cos_average=average)
    assert found.learned() == words
    assert found.reading().endswith(".")


def test_accuracy_is_rounded_down():
    assert dict(replace(BLANK, accuracy=0.9999999).rows())["Training accuracy"] == "99.999 %"
    assert dict(BLANK.rows())["Training accuracy"] == "100 %"


@pytest.mark.parametrize(
    ("log10", "text"),
    [
        (-math.inf, "0"),
        (math.nan, "not finite"),
        (0.0, "1"),
        (2.4649, "291.7"),
        (5.0, "100,000"),
        (9.0, "1.000e+09"),
        (-2.0022, "9.949e-03"),
        (-803.24, "10^-803.2"),
    ],
)
def test_numbers_of_any_size(log10, text):
    assert power_text(log10) == text
