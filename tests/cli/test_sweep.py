import csv
import json
import os
import pty
import signal
import subprocess
import sys

import pytest
from swept import HERE, begun, open_gate
from typer.testing import CliRunner
from waiting import LIMIT, ended, shown, wait_for

from polyrelu.cli import terminal
from polyrelu.cli.sweep import app
from polyrelu.cli.terminal import TerminalProgress, describe
from polyrelu.sweep import Record, Sweep, export, run_sweep

COMMAND = [sys.executable, "-m", "polyrelu", "sweep"]
MOODS = 'function = "swept:moody"\ngrid.x = [1, 2]\ngrid.mood = ["fine", "raises"]\n'


def sweep(*words):
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture
def moods(tmp_path):
    path = tmp_path / "moods.toml"
    path.write_text(MOODS)
    return path


def test_run_status_and_export(tmp_path, moods):
    out = tmp_path / "out"
    ran = sweep(moods, "--out", out, "--workers", 1)
    assert ran.exit_code == 1 and ran.stdout == "2 of 4 settings done, 2 failed\n"
    assert "failed: x=2 mood=raises: ValueError: 2 is not a good number (failures/" in ran.stderr
    assert "--retry-failed" in ran.stderr and f"polyrelu sweep export {out} --to results.csv" in ran.stderr
    state = sweep("status", out)
    assert state.exit_code == 0 and "4: 2 done, 2 failed, 0 missing" in state.stdout and "at work now" in state.stdout
    found = json.loads(sweep("status", out, "--json").stdout)
    assert (found["total"], found["done"], found["failed"], found["missing"], found["at_work"]) == (4, 2, 2, 0, False)
    assert found["function"] == "swept:moody" and found["failures"][0]["settings"] == {"x": 1, "mood": "raises"}
    told = sweep("export", out, "--to", tmp_path / "table.csv")
    assert told.exit_code == 0 and told.stdout == f"4 rows written to {tmp_path / 'table.csv'}\n"
    with (tmp_path / "table.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["x"], row["mood"], row["result"]) for row in rows] == [
        ("1", "fine", "1.1535649948951077"),
        ("1", "raises", ""),
        ("2", "fine", "1.33071219744735"),
        ("2", "raises", ""),
    ]
    assert rows[1]["error"] == "ValueError: 1 is not a good number" and not rows[0]["error"]


def test_json_and_quiet_and_options_before_the_file(tmp_path, moods):
    moods.write_text('function = "swept:odd"\nsettings = [{what = "nan"}]\n')
    ran = sweep("--quiet", "--json", "--out", tmp_path / "out", moods)
    assert ran.exit_code == 0 and ran.stderr == ""
    (record,) = json.loads(ran.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert record["settings"] == {"what": "nan"} and record["result"] == {"$float": "nan"} and record["error"] == ""


def test_a_function_beside_the_file_is_found(tmp_path):
    (tmp_path / "beside_it.py").write_text(
        "from polyrelu.sweep import sweepable\n@sweepable()\ndef double(x):\n    return 2 * x\n"
    )
    (tmp_path / "it.json").write_text('{"function": "beside_it:double", "grid": {"x": [21]}}')
    words = [*COMMAND, "it.json", "--out", "out", "--json"]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0 and json.loads(ran.stdout)[0]["result"] == 42


@pytest.mark.parametrize(
    "text, words",
    [
        (MOODS.replace("grid.x", "gird.x"), "(line 2): gird: expected one of function, grid"),
        (MOODS.replace("moody", "unmarked"), "unmarked is not marked with @polyrelu.sweep.sweepable"),
        (MOODS.replace("grid.mood", "grid.moood"), "expected a setting of swept:moody, which takes x, mood (did you"),
        (MOODS.replace("[1, 2]", "[1, 2"), "line 3"),
    ],
)
def test_bad_files_are_one_line_and_exit_code_2(tmp_path, moods, text, words):
    moods.write_text(text)
    ran = sweep(moods, "--out", tmp_path / "out")
    assert ran.exit_code == 2 and ran.stderr.startswith("polyrelu: error: ") and words in ran.stderr
    assert ran.stderr.count("\n") == 1 and not ran.stdout


def test_folders_and_tables_that_are_none(tmp_path):
    lost = sweep("status", tmp_path)
    assert lost.exit_code == 2 and "expected the output folder of a sweep; it has no sweep.json" in lost.stderr
    run_sweep(Sweep("swept:square", [{"x": 1}]), tmp_path / "out")
    wrong = sweep("export", tmp_path / "out", "--to", tmp_path / "table.xls")
    assert wrong.exit_code == 2 and "expected a name that ends in .csv or .jsonl" in wrong.stderr
    nowhere = sweep("export", tmp_path / "out", "--to", tmp_path / "none" / "table.csv")
    assert nowhere.exit_code == 2 and "expected a file in a folder that exists" in nowhere.stderr


def test_lines_of_json_keep_lists_and_name_what_json_has_not(tmp_path):
    names = ["infinite", "nan", "tuple"]
    run_sweep(Sweep("swept:odd", [{"what": name} for name in names]), tmp_path / "out")
    assert export(tmp_path / "out", tmp_path / "table.jsonl") == 3
    rows = [json.loads(line) for line in (tmp_path / "table.jsonl").read_text().splitlines()]
    assert [row["result"] for row in rows] == [["inf", "-inf", -0.0], "nan", [1, True, None, "text"]]
    export(tmp_path / "out", tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text().splitlines()[0] == "key,seconds,error,what,result"


def test_columns_of_results_and_of_settings_do_not_mix():
    from polyrelu.sweep.status import row_of

    record = Record(
        "k", {"p": 1, "result": 2, "part": {"a": 3}}, {"p": 4, "deep": {"q": [5]}}, "", "results/k.json", 6.0
    )
    assert row_of(record) == {"key": "k", "seconds": 6.0, "error": "", "p": 1, "settings.result": 2, "part.a": 3,
                              "result.p": 4, "result.deep.q": [5]}  # fmt: skip


def slow(tmp_path, count):
    """A sweep of settings that wait at a gate; the first one does not."""
    mark, gate = tmp_path / "mark", tmp_path / "gate"
    text = f'function = "swept:slow"\ngrid.x = {list(range(count))}\nfixed.gate = "{gate}"\nfixed.mark = "{mark}"\n'
    (tmp_path / "slow.toml").write_text(text)
    open_gate(gate, 0)
    return mark, gate


@pytest.mark.waits
def test_ctrl_c_says_what_is_kept_and_how_to_go_on(tmp_path):
    mark, gate = slow(tmp_path, 6)
    words = [*COMMAND, "slow.toml", "--out", "out", "--workers", "2"]
    run = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, env=_environment())
    wait_for(lambda: len(begun(mark)) == 3)
    run.send_signal(signal.SIGINT)
    told = shown(run.stderr.fileno(), b"finishing the settings under way, then stopping; Ctrl-C again stops at once\n")
    open_gate(gate, "all")
    message = (told + ended(run)[1]).decode()
    kept = len(list((tmp_path / "out" / "results").iterdir()))
    assert run.returncode == 130 and kept == len(begun(mark)) == 3
    again = "polyrelu sweep slow.toml --engine local --workers 2 --out out"
    assert f"polyrelu: interrupted; {kept} of 6 settings are kept. Go on with: {again}" in message


@pytest.mark.waits
def test_a_terminal_sees_a_table(tmp_path):
    _, gate = slow(tmp_path, 3)
    ours, theirs = pty.openpty()
    words = [*COMMAND, "slow.toml", "--out", "out", "--workers", "1"]
    environment = {**_environment(), "TERM": "xterm", "COLUMNS": "120"}
    run = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=theirs, env=environment)
    os.close(theirs)
    text = shown(ours, b"1 of 3 done, 0 failed, 1 running").decode()
    text += shown(ours, b"x=1 gate=").decode()
    assert "left" in text
    open_gate(gate, "all")
    while _read(ours):
        pass
    os.close(ours)
    assert run.wait(LIMIT) == 0


def test_a_log_sees_a_line_every_ten_seconds(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    live = TerminalProgress(quiet=False, noun="settings", resume="the same command")
    live.stage("settings", 10, 3, 1)
    for step in range(60):
        now[0] += 0.5
        if step == 4:
            live.started("k", {"x": 1})
            live.finished(Record("j", {}, 1, "", "", 1.0))
            live.finished(Record("i", {}, None, "no", "", 1.0))
        live.update()
    assert capsys.readouterr().err.splitlines() == [
        "polyrelu: 4 of 10 done, 2 failed, 1 running, 12.0 a minute, 20 s left",
        "polyrelu: 4 of 10 done, 2 failed, 1 running, 6.0 a minute, 40 s left",
        "polyrelu: 4 of 10 done, 2 failed, 1 running, 4.0 a minute, 60 s left",
    ]
    quiet = TerminalProgress(quiet=True, noun="settings", resume="the same command")
    quiet.stage("settings", 10, 0, 0)
    now[0] += 1000
    quiet.update()
    assert capsys.readouterr().err == ""


def test_settings_are_described_in_one_line():
    assert describe({"p": 3, "part": {}, "alpha": 0.1, "note": ""}) == "p=3 alpha=0.1"
    assert len(describe({"long": "x" * 500})) == 90


def _read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # closed at the other end
        return b""


def _environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join([HERE, *filter(None, [os.environ.get("PYTHONPATH")])])}


def test_the_command_loads_no_torch():
    code = "import sys; from polyrelu.cli.sweep import app; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "status" in sweep("--help").stdout
