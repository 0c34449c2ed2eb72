"""Folders that anybody may have touched: a part is computed again, a record is refused in words, nothing is trusted."""

import json
import math
import os

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from polyrelu import InputError, PolyReLUNet, bracket, save
from polyrelu.cli import application as cli
from polyrelu.report.figures import save_figure, trajectory_figure
from polyrelu.robust import Bracket, curve
from polyrelu.train import Trajectory
from polyrelu.workflows.evaluate.checkpoints import BracketedRows, read_part, write_part
from polyrelu.workflows.evaluate.run import require_same
from polyrelu.workflows.flow.run import read_run_record, read_trajectory


def run(*words):
    return CliRunner().invoke(cli.app, [str(word) for word in words], prog_name="polyrelu")


@pytest.fixture(scope="module")
def part():
    net, X = PolyReLUNet(4, 3, 2.0, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    return BracketedRows(0, bracket(net, X, torch.ones(3, dtype=torch.float64)), 1.0)


def changed(folder, **arrays):
    path = folder / "00000000.npz"
    with np.load(path) as stored:
        kept = {name: stored[name] for name in stored.files}
    np.savez(path, **{name: value for name, value in {**kept, **arrays}.items() if value is not None})


@pytest.mark.parametrize(
    "lie",
    [
        {"lower": np.array(1.0)}, {"lower": np.ones((3, 1))}, {"lower": np.array(["a", "b", "c"])},
        {"lower": np.ones(2)}, {"lower": None},
        {"lower": np.ones(3, np.float32)}, {"lower": np.full(3, np.inf), "upper": np.ones(3)},
        {"lower": np.full(3, np.nan)}, {"lower": -np.ones(3)},
        {"lower": np.array([{}] * 3, dtype=object)}, {"status": np.array("PROVEN")},
        {"status": np.array(["X"] * 3)}, {"status": np.arange(3)},
        {"norm": np.array(3.0)}, {"norm": np.array("a")}, {"norm": np.arange(2.0)}, {"nodes": np.ones(3)},
        {"nodes": np.array(5)}, {"seconds": np.array(math.nan)},
        {"seconds": np.arange(3)}, {"perturbation": np.ones(3)}, {"perturbation": np.full((3, 4), np.inf)},
        {"perturbation": np.zeros((3, 4), "M8[s]")},
        {"fingerprint": np.arange(3)}, {"upper": np.zeros(3, "c16")},
    ],
)  # fmt: skip
def test_a_damaged_part_is_computed_again(tmp_path, part, lie):
    write_part(tmp_path, part, "mine")
    assert read_part(tmp_path, 0, 3, "mine") is not None
    changed(tmp_path, **lie)
    assert read_part(tmp_path, 0, 3, "mine") is None


def test_what_is_no_part_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "00000000.npz")
    (tmp_path / "00000100.npz").symlink_to("/dev/zero")
    (tmp_path / "00000200.npz").write_bytes(b"")
    for start in (0, 100, 200, 300):
        assert read_part(tmp_path, start, 3, "mine") is None


@pytest.mark.slow
def test_an_evaluation_goes_on_over_a_damaged_part(tmp_path):
    save(PolyReLUNet(4, 3, 2.0), tmp_path / "net.safetensors")
    np.savez(
        tmp_path / "data.npz", X=np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32), y=[1.0, -1, 1, -1, 1]
    )
    words = ("evaluate", tmp_path / "net.safetensors", tmp_path / "data.npz", "--out", tmp_path / "out", "--quiet")
    assert run(*words).exit_code == 0
    before = (tmp_path / "out/radii.csv").read_text()
    for lie in ({"norm": np.array(7.0)}, {"lower": np.full(5, 1e9)}, {"status": np.array(5)}, {"nodes": None}):
        changed(tmp_path / "out/parts", **lie)
        assert run(*words).exit_code == 0
        assert (tmp_path / "out/radii.csv").read_text() == before


@pytest.mark.parametrize("text", ["", "null", "[]", "[" * 100_000, "{}", '{"format": 1}', "NaN", "9" * 5000])
def test_records_that_are_none(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    (tmp_path / "evaluation.json").write_text(text)
    with pytest.raises(InputError, match=r"run\.json"):
        read_run_record(tmp_path)
    with pytest.raises(InputError, match=r"evaluation\.json"):
        require_same(tmp_path, {"norm": 2})


@pytest.mark.parametrize("points", ["many", None, [], 1.5, {}])
def test_an_evaluation_of_no_number_of_points(tmp_path, points):
    (tmp_path / "evaluation.json").write_text(
        json.dumps({"format": "polyrelu-evaluation-1", "identity": {"norm": 2}, "points": points})
    )
    with pytest.raises(InputError, match=r"evaluation\.json"):
        require_same(tmp_path, {"norm": 2})


def test_records_that_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "run.json")
    (tmp_path / "evaluation.json").symlink_to("/dev/zero")
    with pytest.raises(InputError):
        read_run_record(tmp_path)
    with pytest.raises(InputError):
        require_same(tmp_path, {})


@pytest.fixture(scope="module")
def flow(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flow") / "run"
    small = ("--dim", 6, "--clusters", "2+1", "--samples", 30, "--width", 20, "--until-loss", 0.5, "--quiet")
    assert run("flow", *small, "--out", folder).exit_code == 0
    return folder


@pytest.mark.parametrize(
    "lie",
    [
        {"clock": np.array(1.0)}, {"log_loss": np.zeros(2)}, {"accuracy": np.array(["a"])},
        {"cos_centre": np.zeros((1, 4), "f4")},
        {"cos_average": np.zeros(3)}, {"log_contribution": np.zeros((0, 4), "f4")},
        {"log_contribution": np.array(0.0)}, {"log_time": None}, {"more": np.zeros(3)},
        {"about": np.array("{")}, {"about": np.array("[" * 100_000)}, {"about": np.array("[]")},
        {"about": np.arange(3)}, {"clock": np.array([{}], dtype=object)},
        {"log_loss": np.zeros(3, "M8[s]")}, {"log_rho": np.zeros(1)}, {"min_margin": np.zeros((2, 2))},
    ],
)  # fmt: skip
def test_a_damaged_trajectory(tmp_path, flow, lie):
    with np.load(flow / "trajectory.npz") as stored:
        kept = {name: stored[name] for name in stored.files}
    np.savez(tmp_path / "t.npz", **{name: value for name, value in {**kept, **lie}.items() if value is not None})
    with pytest.raises(InputError, match=r"t\.npz: (damaged or foreign|written as)"):
        Trajectory.load(tmp_path / "t.npz", PolyReLUNet(8, 6))


@pytest.mark.parametrize("name", ["clock", "log_time"])
@pytest.mark.parametrize("change", [np.inf, np.nan, 1e300])
def test_a_trajectory_whose_time_does_not_go_forward(tmp_path, flow, name, change):
    with np.load(flow / "trajectory.npz") as stored:
        kept = {name: stored[name] for name in stored.files}
    kept[name][len(kept[name]) // 2] = change
    np.savez(tmp_path / "t.npz", **kept)
    with pytest.raises(InputError, match=r"t\.npz: damaged or foreign"):
        Trajectory.load(tmp_path / "t.npz", PolyReLUNet(8, 6))


@pytest.mark.parametrize(
    "lie", [{"evaluations": "x"}, {"seconds": None}, {"counts": []}, {"settings": 5}, {"status": "X"}, {"format": 1}]
)
def test_a_trajectory_that_says_nonsense_about_itself(tmp_path, flow, lie):
    with np.load(flow / "trajectory.npz") as stored:
        kept = {name: stored[name] for name in stored.files}
    kept["about"] = np.array(json.dumps({**json.loads(str(kept["about"])), **lie}))
    np.savez(tmp_path / "t.npz", **kept)
    with pytest.raises(InputError, match=r"t\.npz"):
        Trajectory.load(tmp_path / "t.npz", PolyReLUNet(8, 6))


def test_the_explorer_and_resume_refuse_a_damaged_run(tmp_path, flow):
    import shutil

    shutil.copytree(flow, tmp_path / "run")
    with np.load(flow / "trajectory.npz") as stored:
        kept = {name: stored[name] for name in stored.files}
    kept["cos_centre"] = kept["cos_centre"][:1]
    np.savez(tmp_path / "run/trajectory.npz", **kept)
    with pytest.raises(InputError):
        read_trajectory(tmp_path / "run")
    for words in (
        ("explore", tmp_path / "run", "--no-browser"),
        ("flow", "--resume", "--until-loss", 0.1, "--out", tmp_path / "run", "--quiet"),
    ):
        found = run(*words)
        assert found.exit_code == 2 and "damaged or foreign" in found.output


@pytest.mark.slow
def test_numbers_that_no_axis_holds(tmp_path, flow):
    trajectory = read_trajectory(flow)
    history = trajectory.history
    from dataclasses import replace

    for huge in (1e300, 1e308):
        odd = replace(history, log_loss=history.log_loss * huge, log_time=history.log_time + huge)
        try:
            save_figure(trajectory_figure(replace(trajectory, history=odd)), tmp_path / "a.png")
        except InputError as error:
            assert "cannot be drawn" in str(error)
        else:
            assert (tmp_path / "a.png").exists()


def test_a_curve_of_no_norm_is_refused():
    odd = Bracket(torch.ones(1), torch.ones(1), torch.zeros(1, 2), (), 3.0, torch.ones(1))
    with pytest.raises(InputError, match="norm=3"):
        curve(odd)


def test_predictions_are_not_written_over_a_device(tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 3))
    np.savez(tmp_path / "data.npz", X=X, y=np.arange(12) % 2)
    assert (
        run(
            "fit", tmp_path / "data.npz", "--epochs", 1, "--width", 2, "-o", tmp_path / "h.safetensors", "--quiet"
        ).exit_code
        == 0
    )
    (tmp_path / "p.csv").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "q.csv")
    for name in ("p.csv", "q.csv"):
        found = run("predict", tmp_path / "h.safetensors", tmp_path / "data.npz", "-o", tmp_path / name, "--quiet")
        assert found.exit_code == 2 and "ordinary file" in found.output
