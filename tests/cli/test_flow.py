"""`polyrelu flow`, through real runs at small size."""

import json
import math
import os
import queue
import shlex
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from running import ALONE, FILES, SMALL, history, names, polyrelu_, program, record
from waiting import LIMIT, shown

import polyrelu
from polyrelu import interrupt
from polyrelu.bias import margins
from polyrelu.cli.terminal import TerminalProgress
from polyrelu.workflows.flow.run import GIVEN_UP

# ---------------------------------------------------------------------------------------------------- what it writes


def test_json_is_pure_and_is_what_the_folder_holds(done):
    result, folder = done
    assert result.exit_code == 0
    assert json.loads(result.stdout) == record(folder)
    assert names(folder) == FILES


def test_numbers_are_those_of_the_net_on_disk(done):
    _, folder = done
    found = record(folder)["summary"]
    net = polyrelu.load(folder / "net.safetensors").double()
    mixture = polyrelu.OrthonormalMixture(dim=50, positive=3, negative=2, alpha=0.1)
    data = mixture.sample(500, seed=0)
    with torch.no_grad():
        margins = data.y.double() * net(data.X.double())
    assert found["log10_loss"] == pytest.approx(math.log10((-margins).exp().mean()), abs=1e-3)
    assert found["accuracy"] == (margins > 0).double().mean() == 1
    W, v = net.weight.detach().numpy(), net.output.detach().numpy()[0]
    sizes = np.linalg.norm(W, axis=1) * abs(v)
    order = np.argsort(-sizes)
    carriers = order[: int((np.cumsum(sizes[order]) < 0.99 * sizes.sum()).sum()) + 1]
    cosines = W[carriers] @ mixture.directions.double().numpy().T / np.linalg.norm(W[carriers], axis=1, keepdims=True)
    assert found["carrying"] == len(carriers)
    assert found["covered"] == (cosines > 0.95).any(0).sum() == 5
    assert found["cos_centre"] == pytest.approx(cosines.max(1).mean(), abs=1e-5)
    last = history(folder)
    assert found["time"] == pytest.approx(last.time[-1])
    assert found["gd_steps"] == pytest.approx(last.time[-1] / 0.2)


@pytest.mark.slow
def test_run_json_says_everything_needed_to_make_it_again(done, tmp_path):
    _, folder = done
    about = record(folder)
    assert about["seed"] == 0
    assert about["versions"]["polyrelu"] == polyrelu.__version__
    assert set(about["versions"]) == {"python", "torch", "polyrelu"}
    words = shlex.split(about["command"])
    assert words[0] == "polyrelu"
    words[-1] = str(tmp_path / "again")
    assert polyrelu_(*words[1:]).exit_code == 0
    again = record(tmp_path / "again")["summary"]
    assert {**again, "seconds": 0} == {**about["summary"], "seconds": 0}


@pytest.mark.slow
def test_table_starts_with_the_reading(tmp_path):
    result = polyrelu_("flow", *SMALL, "--p", 1, "--out", tmp_path / "p1")
    assert result.exit_code == 0
    assert "point at the class averages" in result.stdout.splitlines()[1]
    assert "Gradient descent steps for that time" in result.stdout
    assert "at the published rate 0.2" in result.stdout
    assert "written to" in result.stderr


@pytest.mark.slow
def test_quiet_says_nothing_beside_the_result(tmp_path):
    result = polyrelu_("flow", *SMALL, "--quiet", "--out", tmp_path / "run")
    assert result.exit_code == 0
    assert result.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--until-time", 20), "TIME"),
        (("--until-accurate",), "ACCURATE"),
        (("--until-alignment", 0.6), "ALIGNED"),
        (("--start", "nudged", "--nudge", 0.5, "--until-loss", 0.5), "LOSS"),
        (("--loss", "squared", "--until-loss", 0.3, "--dtype", "float64"), "LOSS"),
        (("--init", 1e-300, "--until-loss", 0.5), "LOSS"),
    ],
)
def test_targets_and_starts(tmp_path, words, status):
    result = polyrelu_("flow", *SMALL, *words, "--json", "--out", tmp_path / "run")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["summary"]["status"] == status


@pytest.mark.slow
def test_many_samples_take_the_other_solver_and_save_as_well(tmp_path):
    words = ("flow", *SMALL[:4], "--samples", 1500, "--width", 40, "--out", tmp_path / "run")
    assert polyrelu_(*words).exit_code == 0
    assert polyrelu_("flow", "--resume", "--until-loss", 1e-3, "--out", tmp_path / "run").exit_code == 0
    assert record(tmp_path / "run")["summary"]["log10_loss"] <= -3


# --------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--p", 0.5), "p=0.5: expected a finite number >= 1"),
        (("--clusters", "6"), "clusters=6: expected two counts"),
        (("--clusters", "6+0"), "clusters=6+0: expected two counts"),
        (("--dim", 4), "dim=4: expected at least 5"),
        (("--alpha", -0.1), "alpha=-0.1: expected a finite number >= 0"),
        (("--alpha", "nan"), "alpha=nan"),
        (("--loss", "hinge"), "loss=hinge: expected one of exp"),
        (("--start", "warm"), "start=warm: expected one of balanced"),
        (("--dtype", "float16"), "dtype=float16: expected one of float32, float64"),
        (("--init", 0), "init=0.0: expected a finite number > 0"),
        (("--rtol", 1), "rtol=1.0: expected a number between"),
        (("--samples", 0), "samples=0: expected a whole number >= 1"),
        (("--width", 0), "width=0: expected a whole number >= 1"),
        (("--width", 10**12), "not enough memory"),
        (("--seed", -1), "seed=-1: expected a whole number >= 0"),
        (("--until-loss", -1), "until-loss=-1.0: expected a finite number > 0"),
        (("--until-time", 0), "until-time=0.0: expected a finite number > 0"),
        (("--until-alignment", 1.5), "until-alignment=1.5: expected a cosine"),
        (("--max-evaluations", 0), "max-evaluations=0.0: expected"),
        (("--until-log10-loss", "inf"), "until-log10-loss=inf: expected a finite number"),
        (("--checkpoints", "ten"), "checkpoints=ten: expected log10 losses"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_folder(tmp_path, words, message):
    result = polyrelu_("flow", *SMALL, *words, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"polyrelu: error: {message}")
    assert result.stderr.count("\n") == 1
    assert not names(tmp_path)


@pytest.mark.parametrize("words", [(), ("--out",), ("--p", "three", "--out", "x"), ("--unheard", "--out", "x")])
def test_usage_errors_exit_with_two(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    assert polyrelu_("flow", *words).exit_code == 2
    assert not names(tmp_path)


@pytest.mark.parametrize("below", ["taken", "taken/run"])
def test_a_folder_that_cannot_be_written(tmp_path, below):
    (tmp_path / "taken").write_text("a file")
    result = polyrelu_("flow", *SMALL, "--out", tmp_path / below)
    assert result.exit_code == 2
    assert result.stderr.startswith("polyrelu: error: out=")
    assert "expected a folder that can be written" in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on file sizes")
@pytest.mark.parametrize("limit", [4_000, 20_000])  # no room for the net; none for the picture
def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(tmp_path, limit):
    def full():
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    result = program("flow", *SMALL, "--out", tmp_path / "run", preexec_fn=full)
    assert result.returncode == 2, result.stderr
    assert result.stderr.startswith("polyrelu: error: ")
    assert result.stderr.count("\n") == 1
    assert names(tmp_path / "run") <= FILES - {"trajectory.png"}  # whole files, and no temporary ones


# ----------------------------------------------------------------------------------------------- stopping and going on


def test_a_finished_run_says_so(done):
    _, folder = done
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    for words in ((), ("--until-loss", 0.5), ("--max-evaluations", 1e6)):
        result = polyrelu_("flow", "--resume", *words, "--json", "--out", folder)
        assert result.exit_code == 0
        assert json.loads(result.stdout) == record(folder)
        assert result.stderr.startswith("polyrelu: nothing to resume: Reached the requested loss.")
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


@pytest.mark.slow
def test_a_further_target_goes_on(tmp_path):
    folder = tmp_path / "run"
    assert polyrelu_("flow", *SMALL, "--seed", 3, "--until-loss", 0.5, "--out", folder).exit_code == 0
    first = history(folder)
    result = polyrelu_("flow", "--resume", "--seed", 3, "--until-loss", 1e-3, "--json", "--out", folder)
    assert result.exit_code == 0, result.stderr
    after = json.loads(result.stdout)
    assert after["settings"]["seed"] == 3
    assert after["settings"]["until_loss"] == 1e-3
    assert after["summary"]["log10_loss"] <= -3
    both = history(folder)
    assert len(both.clock) > len(first.clock)
    assert np.array_equal(both.log_time[: len(first.clock)], first.log_time)


@pytest.mark.slow
def test_a_loss_no_float_holds_with_checkpoints_and_further(tmp_path):
    to = ("--until-log10-loss", "-300", "--checkpoints", "-10,-120")
    shown = polyrelu_("flow", *SMALL, *to, "--quiet", "--out", tmp_path)
    assert shown.exit_code == 0, shown.output
    assert names(tmp_path) == FILES | {"net-1e-10.safetensors", "net-1e-120.safetensors"}
    data = polyrelu.OrthonormalMixture(50, 3, 2, alpha=0.1).sample(500, seed=0)
    for name, level in (("net-1e-10", -10), ("net-1e-120", -120), ("net", -300)):
        found = margins(polyrelu.load(tmp_path / f"{name}.safetensors"), data).log10_loss
        assert found == pytest.approx(level, abs=0.1), name
    assert record(tmp_path)["settings"]["until_log10_loss"] == -300
    assert "--until-log10-loss -300" in record(tmp_path)["command"]
    assert "nothing to resume" in polyrelu_("flow", "--resume", "--out", tmp_path).output
    again = polyrelu_("flow", "--resume", "--until-log10-loss", "-400", "--checkpoints", "-350", "--out", tmp_path)
    assert again.exit_code == 0, again.output
    assert "net-1e-350.safetensors" in names(tmp_path) and record(tmp_path)["summary"]["log10_loss"] <= -400


def test_other_settings_are_refused_when_resuming(done):
    _, folder = done
    result = polyrelu_("flow", "--resume", "--p", 2, "--until-loss", 1e-5, "--out", folder)
    assert result.exit_code == 2
    assert result.stderr == "polyrelu: error: p=2.0: the run to resume has p=3.0; leave --p out.\n"


@pytest.mark.slow
def test_a_spent_budget_exits_with_one_and_can_be_raised(tmp_path):
    folder = tmp_path / "run"
    assert polyrelu_("flow", *SMALL, "--max-evaluations", 5, "--out", folder).exit_code == 1
    assert names(folder) == FILES
    assert "nothing to resume: Evaluation budget spent" in polyrelu_("flow", "--resume", "--out", folder).stderr
    assert polyrelu_("flow", "--resume", "--max-evaluations", 1000, "--out", folder).exit_code == 0
    assert record(folder)["summary"]["status"] == "LOSS"


def copied(done, tmp_path):
    folder = tmp_path / "copy"
    folder.mkdir()
    for file in done[1].iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("run.json", None),
        ("run.json", b"{"),
        ("run.json", b'{"format": "another"}'),
        ("net.safetensors", None),
        ("net.safetensors", b"junk"),
        ("trajectory.npz", None),
        ("trajectory.npz", b"junk"),
    ],
)
def test_missing_or_damaged_files_are_told_when_resuming(done, tmp_path, name, content):
    folder = copied(done, tmp_path)
    (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
    result = polyrelu_("flow", "--resume", "--until-loss", 1e-4, "--out", folder)
    assert result.exit_code == 2
    assert result.stderr.startswith("polyrelu: error: ")
    assert result.stderr.count("\n") == 1


def test_a_net_and_a_trajectory_of_different_moments_are_told(done, tmp_path):
    folder = copied(done, tmp_path)
    polyrelu.save(polyrelu.PolyReLUNet(50, 40), folder / "net.safetensors")
    result = polyrelu_("flow", "--resume", "--until-loss", 1e-4, "--out", folder)
    assert result.exit_code == 2
    assert "not of the same moment" in result.stderr


def test_resuming_nothing(tmp_path):
    result = polyrelu_("flow", "--resume", "--out", tmp_path / "none")
    assert result.exit_code == 2
    assert "it has no run.json" in result.stderr
    assert not names(tmp_path)


SLOW = ("--dim", 100, "--samples", 1000, "--width", 100, "--rtol", "1e-7", "--dtype", "float64")
# A flow that stands still at its twentieth step until a file is there.
HELD = """
import os, time
from polyrelu import cli
from polyrelu.cli.terminal import TerminalProgress
seen, update, end = [], TerminalProgress.update, time.monotonic() + 600
def held(self, done=None, **where):
    seen.append(where)
    while len(seen) == 20 and not os.path.exists(os.environ["GATE"]) and time.monotonic() < end:
        time.sleep(0.01)
    update(self, done, **where)
TerminalProgress.update = held
cli.main()
"""


@pytest.mark.slow
@pytest.mark.waits
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_ctrl_c_saves_and_resume_arrives_where_an_unbroken_run_does(tmp_path):
    import pty

    folder, gate = tmp_path / "run", tmp_path / "gate"
    keyboard, screen = pty.openpty()
    command, alone = [sys.executable, "-c", HELD, "flow", *map(str, SLOW), "--out", str(folder)], {"GATE": str(gate)}
    with subprocess.Popen(command, stderr=screen, stdout=subprocess.PIPE, env=ALONE | alone, text=True) as running:
        os.close(screen)
        assert b"log10 loss" in shown(keyboard, b"active neurons")
        running.send_signal(signal.SIGINT)
        shown(keyboard, b"finishing the step under way")
        gate.touch()
        seen = shown(keyboard, b"--resume --out")
        running.send_signal(signal.SIGINT)  # everything is saved: too late to matter
        running.stdout.read()
    os.close(keyboard)
    assert f"polyrelu flow --resume --out {folder}".encode() in seen.replace(b"\r\n", b"")
    assert running.returncode == 130
    assert names(folder) == FILES
    stopped = record(folder)["summary"]
    assert stopped["status"] == "INTERRUPTED"

    goal = stopped["time"] + 0.5
    assert polyrelu_("flow", "--resume", "--until-time", goal, "--out", folder).exit_code == 0
    resumed = history(folder)
    assert (np.diff(resumed.clock) > 0).all()
    assert (np.diff(resumed.log_time) > 0).all()
    assert resumed.time[-1] == pytest.approx(goal)
    assert polyrelu_("flow", *SLOW, "--until-time", goal, "--out", tmp_path / "unbroken").exit_code == 0
    unbroken = history(tmp_path / "unbroken")
    assert np.allclose(resumed.cos_centre[-1], unbroken.cos_centre[-1], atol=1e-4)
    assert np.allclose(resumed.log_contribution[-1], unbroken.log_contribution[-1], atol=1e-3)


def test_ctrl_c_before_training_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(polyrelu.OrthonormalMixture, "sample", interrupted)
    result = polyrelu_("flow", *SMALL, "--out", tmp_path / "run")
    assert result.exit_code == 130
    assert not names(tmp_path / "run")


def test_ctrl_c_waits_for_the_step(capfd):
    before, ended = signal.getsignal(signal.SIGINT), queue.Queue()
    with interrupt.listening(ended.put), TerminalProgress(quiet=True) as running:
        running.keep(GIVEN_UP, "finishing the step under way, then saving")
        running.update(time=1.0, log_loss=0.0, evaluations=1.0, neurons=1)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)  # at once: these are one
        with pytest.raises(KeyboardInterrupt):
            running.update(time=1.0, log_loss=0.0, evaluations=1.0, neurons=1)
        assert "finishing the step under way, then saving; Ctrl-C again stops at once" in capfd.readouterr().err
    assert ended.empty()  # the listener has heard everything by now
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_gives_up(capfd):
    before, ended = signal.getsignal(signal.SIGINT), queue.Queue()
    with interrupt.listening(ended.put) as listener, TerminalProgress(quiet=True) as running:
        running.keep(GIVEN_UP, "finishing the step under way, then saving")
        signal.raise_signal(signal.SIGINT)
        assert listener.acknowledged.wait(60)
        signal.raise_signal(signal.SIGINT)
        assert ended.get(timeout=LIMIT) == 130
        assert "given up; nothing of this run was saved" in capfd.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before
