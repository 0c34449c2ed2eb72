"""`polyrelu explore`: what it says when something is missing, and a run of one's own."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner
from waiting import LIMIT

from polyrelu.cli.application import app
from polyrelu.errors import InputError
from polyrelu.explorer import pages, saved_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of one's own."""
    out = tmp_path_factory.mktemp("runs") / "mine"
    sizes = ["--dim", "12", "--samples", "80", "--width", "16", "--clusters", "3+2", "--seed", "4"]
    done = CliRunner().invoke(app, ["flow", "--p", "3", *sizes, "--out", str(out), "--quiet"])
    assert done.exit_code == 0
    return out


def run(*words):
    return CliRunner().invoke(app, ["explore", *map(str, words)])


def test_without_the_extra_a_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = run("--no-browser")
    assert done.exit_code == 2
    assert 'pip install "polyrelu[web]"' in done.stderr


def test_a_port_that_is_taken_is_said():
    pytest.importorskip("uvicorn")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run("--no-browser", "--port", taken.getsockname()[1])
    assert done.exit_code == 2
    assert "choose another with --port" in done.stderr


def test_a_folder_without_a_run_is_said(tmp_path):
    pytest.importorskip("uvicorn")
    done = run(tmp_path, "--no-browser")
    assert done.exit_code == 2
    assert "run.json" in done.stderr


def test_a_run_of_one_s_own_is_told_as_it_was_recorded(folder):
    messages = []
    mine = saved_run.read_run(folder)
    recording = mine.stream(messages.append)
    seen = [message for message in messages if message["kind"] == "frame"]
    assert [frame["clock"] for frame in seen] == mine.run.history.clock.tolist()
    assert messages[0]["saved_run"] == "mine"
    assert messages[0]["setting"]["seed"] == 4
    assert messages[-1]["log_loss"] == mine.run.log_loss
    assert [frame.number for frame in recording.frames] == [len(seen) - 1]  # every look is at the final net
    assert messages[0]["final"] == seen[-1]["log_contribution"]


def changed(folder, out, **settings):
    """A copy of a run whose record says something else."""
    shutil.copytree(folder, out)
    record = json.loads((out / "run.json").read_text())
    record["settings"] |= settings
    (out / "run.json").write_text(json.dumps(record))
    return out


def test_large_runs_fit_the_sliders(folder, tmp_path):
    mine = saved_run.read_run(changed(folder, tmp_path / "large", samples=10**6, init=1e-310 * 1e5, start="nudged"))
    assert mine.problem.setting.samples == 5000
    assert mine.problem.setting.log10_scale == -300
    assert (mine.about()["samples"], mine.about()["drawn"]) == (10**6, 2000)  # the page says so


def test_a_record_of_another_net_is_said(folder, tmp_path):
    with pytest.raises(InputError, match="a net of dimension 13"):
        saved_run.read_run(changed(folder, tmp_path / "other", dim=13))


def test_a_file_that_may_not_be_read_is_named(folder, monkeypatch):
    def refused(path, *words, **more):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(InputError, match=r"run\.json: expected a file that may be read"):
        saved_run.read_run(folder)


def test_a_run_in_float64_is_looked_at_in_float64(folder, tmp_path):
    sizes = ["--dim", "6", "--samples", "30", "--width", "8", "--clusters", "2+2", "--dtype", "float64"]
    assert CliRunner().invoke(app, ["flow", *sizes, "--out", str(tmp_path / "exact"), "--quiet"]).exit_code == 0
    mine = saved_run.read_run(tmp_path / "exact")
    recording = mine.stream(lambda message: None)
    net = recording.net(recording.frames[-1])
    assert net.dtype == torch.float64
    torch.testing.assert_close(net.directions(), mine.run.net.directions(), rtol=0, atol=1e-14)


@pytest.mark.slow
@pytest.mark.waits
def test_it_runs_until_it_is_interrupted(folder):
    pytest.importorskip("uvicorn")
    words = [sys.executable, "-m", "polyrelu", "explore", str(folder), "--port", "0", "--no-browser"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    ) as child:
        address = child.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address, timeout=LIMIT) as answer:
            assert '"saved_run":"mine"' in answer.read().decode()
        child.send_signal(signal.SIGINT)
        assert child.wait(LIMIT) in (0, 130, -signal.SIGINT)


def test_the_page_is_small_and_names_no_other_place():
    size = sum(path.stat().st_size for path in pages.STATIC.iterdir())
    assert size < 150_000
    for path in pages.STATIC.iterdir():
        text = path.read_text()
        assert "http://" not in text, path
        assert "https://" not in text, path
        assert len(text.splitlines()) < 300, path


def test_a_recording_cannot_break_out_of_the_page():
    recorded = [{"kind": "start", "name": "</script><script>alert(1)</script>\u2028"}]
    text = pages.standalone_page({"limits": []}, recorded)
    assert "<script>alert" not in text
    assert "\u2028" not in text
    assert "{{" not in text.replace("{{about}}", "")
