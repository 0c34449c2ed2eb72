"""Ctrl-C in commands that finish what is under way: acknowledged first; a second one ends them; they go on later."""

import json
import shlex
import sys

import numpy as np
import pytest
import torch
from interrupting import AGAIN, NEW, RECIPE, Command, alive, files, finished, stray, sweep_file
from waiting import wait_for

import polyrelu

pytestmark = [
    pytest.mark.waits,
    pytest.mark.skipif(sys.platform == "win32", reason="needs Unix signals"),
]

PATIENT = "polyrelu.workflows.evaluate.run:PATIENCE=1000000"  # however slow the machine is
FLOW = ("flow", "--dim", 8, "--samples", 40, "--width", 6, "--clusters", "2+2", "--out", "out", "--until-loss", 0.05)
WAITING = {
    "flow": (FLOW, "polyrelu.cli.terminal:TerminalProgress.update:3", "finishing the step under way, then saving",
             "given up; nothing of this run was saved"),
    "evaluate": (("evaluate", "{made}/net.safetensors", RECIPE, "--budget-nodes", 1, "--out", "out"),
                 "polyrelu.robust:bracket:2", "finishing the points under way (100 at most), dropping",
                 "100 of 250 points are kept. Go on with: polyrelu evaluate"),
    "fit": (("fit", "{made}/rows.npz", "--width", 6, "--epochs", 9, "-o", "out/head.safetensors"),
            "polyrelu.cli.terminal:TerminalProgress.update:3", "keeping the head of the last whole pass", NEW),
    "predict": (("predict", "{made}/head.safetensors", "{made}/rows.npz", "--radius"),
                "polyrelu.estimator.robustness_mixin:bracket:3", "finishing the rows under way",
                "the first 200 rows are written."),
    "sweep run": (("sweep", "slow.toml", "--workers", 2, "--out", "out"), "",
                  "finishing the settings under way, then stopping",
                  "0 of 6 settings are kept. Go on with: polyrelu sweep slow.toml --engine local --workers 2 --out"),
    "claims run": (("claims", "run", "A", "--workers", 1, "--out", "out"),
                   "polyrelu.cli.terminal:TerminalProgress.started:1+", "finishing the measurements under way",
                   "measurements are kept. Go on with: polyrelu claims run A --profile quick --workers 1 --out out"),
    "reproduce": (("reproduce", "--only", "A", "--workers", 1, "--out", "out"),
                  "polyrelu.cli.terminal:TerminalProgress.started:1+", "finishing the measurements under way",
                  "measurements are kept. Go on with: polyrelu reproduce --only A --profile quick --workers 1 --out"),
}  # fmt: skip


def start(made, folder, name):
    """The command, held or at work on settings that nobody lets go."""
    words, place, _, _ = WAITING[name]
    (folder / "out").mkdir(exist_ok=True)
    sweep_file(made, folder)
    run = Command(folder, *(str(word).format(made=made) for word in words), hold=place, SET=PATIENT)
    if place:
        run.until("held")
    else:
        wait_for(lambda: len(list(folder.glob("began-*"))) == 2 and all(p.read_text() for p in folder.glob("began-*")))
    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", WAITING)
def test_a_second_ctrl_c_ends_it_at_once(made, tmp_path, name):
    _, _, finishing, kept = WAITING[name]
    run = start(made, tmp_path, name).press().until(f"polyrelu: {finishing}").until(AGAIN)
    assert run.process.poll() is None
    code, said = run.press().end()  # it is never let go
    assert code == 130 and kept in said.partition(AGAIN)[2], said
    assert not stray(tmp_path / "out")
    wait_for(lambda: not any(alive(int(path.read_text())) for path in tmp_path.glob("began-*")))


@pytest.mark.slow
def test_signals_that_come_together_are_one(made, tmp_path):
    run = start(made, tmp_path, "evaluate")
    run.press().press().press().until(AGAIN).let_go()
    code, said = run.end()
    assert code == 130 and "200 of 250 points are kept" in said  # the part under way was finished


@pytest.mark.slow
def test_flow_saves_what_it_has_and_goes_on(made, tmp_path):
    code, said = start(made, tmp_path, "flow").press().until(AGAIN).let_go().end()
    assert code == 130 and "interrupted; go on with: polyrelu flow --resume --out out" in said
    assert json.loads((tmp_path / "out" / "run.json").read_text())["summary"]["status"] == "INTERRUPTED"
    assert not stray(tmp_path / "out")
    finished(tmp_path, "flow", "--resume", "--out", "out")
    words = [*FLOW]
    words[words.index("out")] = "whole"
    finished(tmp_path, *words)
    ends = [polyrelu.load(tmp_path / name / "net.safetensors") for name in ("out", "whole")]
    x = torch.eye(8)
    assert torch.allclose(ends[0](x), ends[1](x), rtol=0.05, atol=0.05)  # other steps, the same flow


@pytest.mark.slow
@pytest.mark.parametrize("presses", [1, 2])
def test_flow_that_is_saving_leaves_the_old_files_or_the_new(tmp_path, presses):
    finished(tmp_path, *FLOW)
    before = files(tmp_path / "out")
    words = [*FLOW[:-1], 0.001]
    run = Command(tmp_path, *words, hold="os:fsync:3").until("held").press().until(AGAIN)
    assert files(tmp_path / "out").items() >= before.items()  # nothing is replaced before everything is whole
    if presses == 2:
        assert run.press().end()[0] == 130
        assert files(tmp_path / "out") == before
        return
    code, said = run.let_go().end()
    after = files(tmp_path / "out")
    assert code == 0 and after.keys() == before.keys(), said
    assert all(after[name] != before[name] for name in before)


@pytest.mark.slow
def test_evaluate_goes_on_to_the_same_numbers(made, tmp_path):
    code, said = start(made, tmp_path, "evaluate").press().until(AGAIN).let_go().end()
    assert code == 130 and "200 of 250 points are kept" in said
    go_on = shlex.split(said.split("Go on with: polyrelu ")[1])
    finished(tmp_path, *go_on)
    finished(tmp_path, *[*go_on[:-1], "whole"])
    assert (tmp_path / "out" / "radii.csv").read_bytes() == (tmp_path / "whole" / "radii.csv").read_bytes()


@pytest.mark.slow
def test_a_sweep_finishes_the_settings_under_way_and_goes_on(made, tmp_path):
    run = start(made, tmp_path, "sweep run").press().until(AGAIN).let_go()
    code, said = run.end()
    assert code == 130 and "2 of 6 settings are kept" in said
    assert len(list((tmp_path / "out" / "results").iterdir())) == 2
    assert Command(tmp_path, *shlex.split(said.split("Go on with: polyrelu ")[1])).end()[0] == 0
    found = [json.loads(path.read_text()) for path in (tmp_path / "out" / "results").iterdir()]
    assert sorted((one["settings"]["x"], one["result"]) for one in found) == [(x, x * x) for x in range(6)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["claims run", "reproduce"])
def test_measurements_are_kept_and_the_command_goes_on(made, tmp_path, name):
    code, said = start(made, tmp_path, name).press().until(AGAIN).let_go().end()
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out" / "results").iterdir()}
    assert code == 130 and len(kept) == 1 and f"polyrelu: interrupted; {len(kept)} of" in said
    finished(tmp_path, *shlex.split(said.split("Go on with: polyrelu ")[1]))
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out" / "results").iterdir()}
    assert after.items() > kept.items()  # not measured again


@pytest.mark.slow
def test_embedding_goes_on_to_the_same_numbers(made, tmp_path):
    small = {"SET": "polyrelu.data.images.embeddings:BLOCK=2", "STAND_IN_NETWORK": "1"}
    words = ("data", "embed", made / "images", "-o", "e.npz", "--batch", 1)
    run = Command(tmp_path, *words, hold="polyrelu.data.images.embeddings:_block:3", **small)
    code, said = run.until("held").press().end()
    assert code == 130 and "the same command goes on from what is done" in said
    assert len(list((tmp_path / "e.npz.parts").iterdir())) == 2 and not (tmp_path / "e.npz").exists()
    again = Command(tmp_path, *words, hold="polyrelu.data.images.embeddings:_block:2", **small)
    assert again.end()[0] == 0 and "held" not in again.said["stderr"]  # one block was left
    assert Command(tmp_path, *words[:4], "whole.npz", *words[5:], **small).end()[0] == 0
    with np.load(tmp_path / "e.npz") as resumed, np.load(tmp_path / "whole.npz") as whole:
        assert all(np.array_equal(resumed[name], whole[name]) for name in whole.files)
