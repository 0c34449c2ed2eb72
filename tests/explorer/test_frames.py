"""What the page is told is what the library computes for the same seed."""

import base64

import numpy as np
import pytest
import torch

import polyrelu
from polyrelu.explorer import frames, radii
from polyrelu.explorer.parameters import Setting
from polyrelu.explorer.sessions import Stopped
from polyrelu.explorer.training_problem import flow_problem

SMALL = Setting(p=3, dim=12, samples=60, width=16, positive=3, negative=2)


def unpacked(text, *shape):
    return np.frombuffer(base64.b64decode(text), dtype="<f4").reshape(shape)


def told(setting):
    messages = []
    recording, run = frames.stream(flow_problem(setting), messages.append)
    return messages, recording, run


def library(setting):
    mixture = polyrelu.OrthonormalMixture(setting.dim, setting.positive, setting.negative, setting.alpha)
    net = polyrelu.PolyReLUNet(
        setting.dim, setting.width, setting.p, init=setting.start, scale=setting.scale, seed=setting.seed
    )
    return polyrelu.flow(net, mixture.sample(setting.samples, setting.seed), loss="exp", until=1e-2), mixture


@pytest.mark.slow
@pytest.mark.parametrize(("p", "log10_scale"), [(1, -7), (2.35, -7), (3, -7), (3, -300)])
def test_frames_are_the_library_s_history(p, log10_scale):
    setting = Setting(p=p, dim=12, samples=60, width=16, positive=3, negative=2, log10_scale=log10_scale)
    messages, recording, run = told(setting)
    theirs, mixture = library(setting)
    history = theirs.history
    seen = [message for message in messages if message["kind"] == "frame"]
    moments = {clock: i for i, clock in enumerate(history.clock.tolist())}
    assert (seen[0]["clock"], seen[-1]["clock"]) == (history.clock[0], history.clock[-1])
    assert {frame["clock"] for frame in seen} <= moments.keys()
    assert 10 <= len(seen) <= 300
    assert messages[-1]["log_loss"] == theirs.log_loss
    assert run.evaluations == theirs.evaluations
    for frame in seen:
        i = moments[frame["clock"]]
        cosines = unpacked(frame["cosines"], 16, 5 + 2)
        np.testing.assert_array_equal(unpacked(frame["log_contribution"], 16), history.log_contribution[i])
        np.testing.assert_allclose(cosines[:, :5].max(1), history.cos_centre[i], atol=2e-6)
        np.testing.assert_allclose(cosines[:, 5:].max(1), history.cos_average[i], atol=2e-6)
    np.testing.assert_allclose(cosines[:, :5], (theirs.net.directions() @ mixture.directions.T).detach(), atol=2e-6)
    net, rows = recording.net(recording.frames[-1]), mixture.sample(50, 7).rows()
    with torch.no_grad():  # up to a factor > 0
        ours, true = net(rows), theirs.net(rows)
    torch.testing.assert_close(ours / ours.abs().max(), true / true.abs().max(), rtol=1e-4, atol=1e-5)


def test_the_command_makes_the_same_flow():
    words = frames.command(flow_problem(SMALL)).split()
    assert words[words.index("--max-evaluations") + 1] == str(frames.MAX_EVALUATIONS)  # passes, as in the page
    assert words[words.index("--clusters") + 1] == "3+2"


@pytest.mark.slow
def test_radii_are_the_library_s():
    messages, recording, run = told(SMALL)
    radii.stream(recording, messages.append)
    test = recording.problem.test
    theirs = polyrelu.bracket(run.net, test.rows(), test.y, tol=1e-3)
    last = messages[-1]
    assert (last["kind"], last["points"], last["of"]) == ("robust", 60, 60)
    np.testing.assert_allclose(last["upper"], np.sort(theirs.upper), rtol=0.02)
    assert (np.array(last["lower"]) <= np.sort(theirs.upper) + 1e-6).all()  # float32 weights
    assert (np.array(last["upper"]) >= np.sort(theirs.lower) - 1e-6).all()


def test_a_point_of_the_plane_is_bracketed_as_the_library_does():
    _, recording, run = told(SMALL)
    question = radii.Question.from_json({"frame": 999, "centres": [0, 3], "point": [0.9, 0.1], "label": 1}, recording)
    reply = radii.answer(recording, question)
    x = 0.9 * recording.columns[0] + 0.1 * recording.columns[3]
    theirs = polyrelu.bracket(run.net, x[None], torch.tensor([1.0]), tol=1e-3)
    assert reply["upper"] == pytest.approx(float(theirs.upper[0]), rel=5e-3)
    assert reply["lower"] <= float(theirs.upper[0]) + 1e-9
    # both planes hold the point and its break, at the distance that was found
    toward = reply["toward"]
    assert np.hypot(*np.subtract(toward["broken"], toward["point"])) == pytest.approx(reply["upper"], rel=1e-6)
    inside = np.hypot(*np.subtract(reply["broken"], reply["point"]))
    assert np.hypot(inside, reply["outside"]) == pytest.approx(reply["upper"], rel=1e-6)


def test_looking_at_a_point_ends_when_nobody_wants_the_answer():
    def send(message):
        raise Stopped

    _, recording, _ = told(SMALL)
    question = radii.Question.from_json({"frame": 9, "centres": [0, 3], "point": [0.9, 0.1], "label": 1}, recording)
    with pytest.raises(Stopped):
        radii.answer(recording, question, send)


def test_descent_from_the_point_itself_finds_nothing_though_the_break_is_nearer():
    _, recording, _ = told(Setting(p=3))  # A10, B7
    asked = {"frame": 999, "centres": [0, 3], "point": [1, 0], "label": 1, "pgd": 0.85}
    reply = radii.answer(recording, radii.Question.from_json(asked, recording))
    assert not reply["pgd"]["success"]
    assert reply["upper"] < 0.72
    lengths = np.hypot(*np.subtract(reply["pgd"]["flat"], reply["point"]).T)
    assert 0.8 < lengths.max() <= 0.85 + 1e-6


def test_fine_labels_are_read_out_as_a_sum_over_each_class():
    setting = Setting(p=1, dim=12, samples=60, width=16, positive=3, negative=2, labels="fine")
    _, recording, run = told(setting)
    rows = recording.problem.test.rows()
    with torch.no_grad():
        summed = run.net(rows) @ recording.problem.sides
        ours = recording.net(recording.frames[-1])(rows)
    torch.testing.assert_close(ours / ours.abs().max(), summed / summed.abs().max(), rtol=1e-4, atol=1e-5)


def test_in_three_dimensions_nothing_is_projected():
    _, recording, _ = told(Setting(p=3, dim=3, samples=40, width=10, positive=1, negative=1))
    axes = recording.columns[:3]
    torch.testing.assert_close(axes @ axes.T, torch.eye(3))
    u = recording.frames[-1].u
    torch.testing.assert_close(torch.linalg.vector_norm(u @ axes.T, dim=1), torch.ones(10))


def test_only_so_much_is_kept_of_a_long_run(monkeypatch):
    monkeypatch.setattr(frames, "MAX_KEPT_NUMBERS", 12 * 16 * 8)
    messages, recording, _ = told(SMALL)
    count = sum(message["kind"] == "frame" for message in messages)
    assert count > 8 >= len(recording.frames)
    assert (recording.frames[0].number, recording.frames[-1].number) == (0, count - 1)
    assert abs(recording.near(count // 2).number - count // 2) <= recording.stride
