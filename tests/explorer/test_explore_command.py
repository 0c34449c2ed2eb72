"""`polyrelu explore`: what it says when something is missing, and a run of one's own."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from typer.testing import CliRunner

from polyrelu.cli import app
from polyrelu.explorer import export, own


def run(*words):
    return CliRunner().invoke(app, ["explore", *map(str, words)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "mine"
    sizes = ["--dim", "12", "--samples", "80", "--width", "16", "--clusters", "3+2", "--seed", "4"]
    done = CliRunner().invoke(app, ["flow", "--p", "3", *sizes, "--out", str(out), "--quiet"])
    assert done.exit_code == 0
    return out


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
    mine = own.read(folder)
    recording = mine.tell(messages.append)
    seen = [message for message in messages if message["kind"] == "frame"]
    assert [frame["clock"] for frame in seen] == mine.run.history.clock.tolist()
    assert messages[0]["own"] == "mine"
    assert messages[0]["setting"]["seed"] == 4
    assert messages[-1]["log_loss"] == mine.run.log_loss
    assert recording.frames[-1].number == len(seen) - 1


def test_large_runs_fit_the_sliders(folder, tmp_path):
    record = json.loads((folder / "run.json").read_text())
    record["settings"] |= {"samples": 10**6, "init": 1e-310 * 1e5, "start": "nudged"}
    copy = tmp_path / "large"
    copy.mkdir()
    for name in ("net.safetensors", "trajectory.npz"):
        (copy / name).write_bytes((folder / name).read_bytes())
    (copy / "run.json").write_text(json.dumps(record))
    mine = own.read(copy)
    assert mine.problem.setting.samples == 5000
    assert mine.problem.setting.log10_scale == -300


def test_it_runs_until_it_is_interrupted(folder):
    pytest.importorskip("uvicorn")
    words = [sys.executable, "-m", "polyrelu.cli", "explore", str(folder), "--port", "0", "--no-browser"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    ) as child:
        address = child.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address, timeout=30) as answer:
            assert '"own":"mine"' in answer.read().decode()
        child.send_signal(signal.SIGINT)
        assert child.wait(20) in (0, 130, -signal.SIGINT)


def test_the_page_is_small_and_names_no_other_place():
    size = sum(path.stat().st_size for path in export.STATIC.iterdir())
    assert size < 150_000
    for path in export.STATIC.iterdir():
        text = path.read_text()
        assert "http://" not in text, path
        assert "https://" not in text, path
        assert len(text.splitlines()) < 300, path


def test_a_recording_cannot_break_out_of_the_page():
    text = export.alone({"limits": []}, [{"kind": "start", "name": "</script><script>alert(1)</script>\u2028"}])
    assert "<script>alert" not in text
    assert "\u2028" not in text
    assert "{{" not in text.replace("{{about}}", "")
