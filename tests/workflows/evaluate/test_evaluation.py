"""Evaluations: the numbers they show, the files they leave, and what survives when they are stopped."""

import csv
import importlib
import io
import json
import math
import os
import queue
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
import stand_in_bracket
import torch
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner
from waiting import LIMIT, shown

import polyrelu
from polyrelu import interrupt
from polyrelu.cli import application as cli
from polyrelu.cli import terminal
from polyrelu.cli.terminal import TerminalProgress
from polyrelu.data import Dataset, OrthonormalMixture, read
from polyrelu.errors import InputError
from polyrelu.nets import AverageClassifier, CentreClassifier, LogisticRegression
from polyrelu.progress import Progress
from polyrelu.report import figures
from polyrelu.robust import BoundsInconsistentError, Bracket, BracketStatus, curve, margin_of
from polyrelu.workflows.evaluate import run as evaluation
from polyrelu.workflows.evaluate.settings import EvaluationSettings, parse_radii
from polyrelu.workflows.evaluate.table import (
    EvaluationTable,
    overall,
    round_radii,
    rounded_down,
    rounded_up,
    theory_marks,
)

ROOM = importlib.import_module("polyrelu.robust")
RECIPE = "mixture:dim=12,clusters=3+2,alpha=0.1,n=250,seed=1"
RESULTS = {"radii.csv", "curve.png", "curve.svg", "adversarial.npz", "evaluation.json"}
ALONE = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "120", "TERM": "xterm"}


def names(folder):
    return {file.name for file in folder.iterdir()}


def record(folder):
    return json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))


def command(*words):
    return CliRunner().invoke(cli.app, ["evaluate", *map(str, words)], prog_name="polyrelu")


@pytest.fixture(scope="module")
def nets(tmp_path_factory):
    """Saved nets: an average classifier (p1), nearly the same (other), a centre classifier (p3), three logits."""
    folder = tmp_path_factory.mktemp("nets")
    mixture = OrthonormalMixture(12, 3, 2, 0.1)
    polyrelu.save(AverageClassifier(mixture.centres, mixture.labels).as_polyrelu_net(), folder / "p1.safetensors")
    other = AverageClassifier(mixture.centres, mixture.labels).as_polyrelu_net()
    other.weight.data[0, 0] += 1e-6
    polyrelu.save(other, folder / "other.safetensors")
    polyrelu.save(CentreClassifier(mixture.centres, mixture.labels).as_polyrelu_net(), folder / "p3.safetensors")
    polyrelu.save(polyrelu.PolyReLUNet(12, 30, 2, 3, seed=1), folder / "three.safetensors")
    return folder


@pytest.fixture
def calls(monkeypatch):
    """The stand-in takes the place of the bracket; how many points each call got is noted."""
    seen = []

    def noted(net, X, y, **options):
        seen.append(len(X))
        return stand_in_bracket.bracket(net, X, y, **options)

    monkeypatch.setattr(ROOM, "bracket", noted, raising=False)
    monkeypatch.setattr(ROOM, "Budget", stand_in_bracket.Budget, raising=False)
    return seen


@pytest.fixture(autouse=True)
def quick_pictures(monkeypatch):
    """Drawing takes longer than everything else here; only tests that look at the pictures draw them."""
    monkeypatch.setattr(figures, "save_figure", lambda figure, path: path.write_text("a picture"))
    monkeypatch.setattr(figures, "robust_figure", lambda *_, **__: None)


class Recorder(Progress):
    def __init__(self):
        self.heard, self.done = [], 0

    def stage(self, what, total=None, done=0, failed=0):
        self.heard.append(what if total is None else (total, done))
        self.done = done

    def update(self, done=None, **numbers):
        if "median_gap" in numbers:  # a part is on disk
            self.heard.append(done - self.done)
            self.done = done


def evaluate(nets, out, data=RECIPE, net="p1", **options):
    return evaluation.run_evaluation(
        EvaluationSettings(str(nets / f"{net}.safetensors"), data, **options), out, Recorder()
    )


# ----------------------------------------------------------------------------------------------------- what it gives


def test_pictures_are_drawn(nets, calls, tmp_path, monkeypatch):
    monkeypatch.undo()  # of the quick pictures
    monkeypatch.setattr(ROOM, "bracket", stand_in_bracket.bracket, raising=False)
    monkeypatch.setattr(ROOM, "Budget", stand_in_bracket.Budget, raising=False)
    result = evaluate(nets, tmp_path / "out")
    assert max(map(len, result._heading().split("\n"))) <= 62  # what fits above the picture
    with Image.open(tmp_path / "out" / "curve.png") as image:
        assert image.size == (1200, 840)
        assert len(image.convert("L").getcolors()) > 50  # drawn, not blank
    assert (tmp_path / "out" / "curve.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_files_hold_the_numbers_of_the_bracket(nets, calls, tmp_path):
    result = evaluate(nets, tmp_path / "out")
    assert calls == [100, 100, 50]
    assert names(tmp_path / "out") == RESULTS | {"parts"}
    data, net = read(RECIPE), polyrelu.load(nets / "p1.safetensors")
    whole = stand_in_bracket.bracket(net, data.X, data.y, pool=data)
    assert torch.equal(result.bracket.lower, whole.lower)
    assert torch.equal(result.bracket.perturbation, whole.perturbation)
    with (tmp_path / "out" / "radii.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["row", "label", "lower", "upper", "gap", "status", "nodes"]
    assert [int(row["row"]) for row in rows] == list(range(250))
    assert [float(row["label"]) for row in rows] == data.y.tolist()
    assert [float(row["lower"]) for row in rows] == whole.lower.tolist()
    assert [float(row["upper"]) for row in rows] == whole.upper.tolist()
    assert {row["status"] for row in rows} == {status.name for status in whole.status}
    assert float(rows[0]["gap"]) == pytest.approx(0.1)
    with np.load(tmp_path / "out" / "adversarial.npz", allow_pickle=False) as stored:
        assert set(stored.files) == {"X_adv", "perturbation", "y", "radius", "row"}
        broken = margin_of(net.double()(torch.from_numpy(stored["X_adv"])), torch.from_numpy(stored["y"]).double())
        assert (broken <= 1e-6).all()  # the stand-in looks in float32
        assert np.allclose(stored["X_adv"] - stored["perturbation"], data.X[stored["row"]].double())
        assert np.allclose(np.linalg.norm(stored["perturbation"], axis=1), stored["radius"])


def test_record_says_what_was_asked_and_what_came_out(nets, calls, tmp_path):
    result = evaluate(nets, tmp_path / "out", radii=(0.1, 0.3), tol=0.01)
    about = record(tmp_path / "out")
    assert about == result.record()
    assert about["status"] == "done"
    assert about["settings"]["tol"] == 0.01
    assert about["versions"]["polyrelu"] == polyrelu.__version__
    line = curve(result.bracket)
    assert about["table"]["radii"] == [
        {"radius": r, "certified": line.certified(r), "attacked": line.attacked(r), "mark": ""} for r in (0.1, 0.3)
    ]
    assert about["table"]["clean"] == line.clean
    assert about["table"]["median_radius"]["lower"] == line.median_radius.lower
    assert about["table"]["largest_gap"]["relative"] == pytest.approx(0.1)
    assert about["table"]["status"] == {"BUDGET": 250}
    words = shlex.split(about["command"])
    assert words[:2] == ["polyrelu", "evaluate"]
    assert words[-2:] == ["--out", str(tmp_path / "out")]
    again = command(*words[2:-1], tmp_path / "again")
    assert again.exit_code == 0, again.stderr
    assert {**record(tmp_path / "again"), "seconds": 0, "command": ""} == {**about, "seconds": 0, "command": ""}


def test_points_that_are_wrong_or_never_broken(nets, monkeypatch, calls, tmp_path):
    def fixed(net, X, y, **_):
        lower, upper = torch.full((len(X),), 0.2), torch.full((len(X),), 0.2)
        upper[1], lower[0], upper[0] = math.inf, 0, 0
        status = [BracketStatus.CLOSED] * len(X)
        status[:2] = BracketStatus.WRONG, BracketStatus.UNBROKEN
        nodes = torch.zeros(len(X), dtype=torch.int64)
        return Bracket(lower.double(), upper.double(), torch.zeros_like(X).double(), tuple(status), 2.0, nodes)

    monkeypatch.setattr(ROOM, "bracket", fixed)
    result = evaluate(nets, tmp_path / "out", limit=4)
    assert result.table.clean == 0.75
    assert result.table.gap == 1
    assert result.table.gap_row == 1
    with np.load(tmp_path / "out" / "adversarial.npz") as stored:
        assert stored["row"].tolist() == [0, 2, 3]
    assert ",inf," in (tmp_path / "out" / "radii.csv").read_text(encoding="utf-8")


def test_a_folder_of_flow_is_a_net(nets, calls, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "net.safetensors").write_bytes((nets / "p1.safetensors").read_bytes())
    settings = EvaluationSettings(str(tmp_path / "run"), RECIPE, limit=20)
    result = evaluation.run_evaluation(settings, tmp_path / "out", Recorder())
    assert torch.equal(result.bracket.upper, evaluate(nets, tmp_path / "other", limit=20).bracket.upper)


def test_types_that_differ_meet_in_float64_unchanged(nets, monkeypatch, calls, tmp_path):
    seen = {}

    def look(net, X, y, *, pool, **options):
        seen.update(net=net.dtype, X=X.dtype, y=y.dtype, pool=pool.dtype)
        return stand_in_bracket.bracket(net, X, y, pool=pool, **options)

    monkeypatch.setattr(ROOM, "bracket", look)
    data = OrthonormalMixture(12, 3, 2, 0.1, dtype=torch.float64).sample(20, 0)
    result = evaluate(nets, tmp_path / "out", data=data.name)
    assert set(seen.values()) == {torch.float64}
    assert torch.equal(result.X, data.X)
    evaluate(nets, tmp_path / "same", limit=5)
    assert seen["X"] == torch.float32


def test_several_classes(nets, calls, tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "a.npz", X=rng.normal(size=(40, 12)), y=rng.integers(3, size=40))
    result = evaluate(nets, tmp_path / "out", data=str(tmp_path / "a.npz"), net="three", norm="inf")
    assert 0 < result.table.clean < 1
    assert result.bracket.norm == math.inf
    assert result.table.status["WRONG"] > 0


def test_the_real_bracket_holds_the_closed_form(nets, tmp_path):
    """F <= 0 at y = +1 where s <= 0 or s <= t: r = min(s/sqrt(K1), (s-t)/sqrt(K)), s the own sum, t the other."""
    result = evaluate(nets, tmp_path / "out", limit=12)
    plus, minus = result.X[:, :3].double().sum(1), result.X[:, 3:5].double().sum(1)
    own = result.y > 0
    s, t, k = torch.where(own, plus, minus), torch.where(own, minus, plus), torch.where(own, 3.0, 2.0)
    exact = torch.minimum(s / k.sqrt(), (s - t) / math.sqrt(5)).clamp(min=0)
    assert (result.bracket.lower <= exact * (1 + 1e-6)).all()
    assert (result.bracket.upper >= exact * (1 - 1e-6)).all()
    assert result.table.gap <= 1e-3
    with np.load(tmp_path / "out" / "adversarial.npz") as stored:
        net = polyrelu.load(nets / "p1.safetensors").double()
        X, y = torch.from_numpy(stored["X_adv"]), torch.from_numpy(stored["y"])
        assert (margin_of(net(X), y.double()) <= 1e-12).all()


# ----------------------------------------------------------------------------------------------- stopping and going on


def test_running_again_computes_nothing_and_other_radii_are_free(nets, calls, tmp_path):
    first = evaluate(nets, tmp_path / "out")
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "out" / "parts").iterdir()}
    calls.clear()
    again = evaluate(nets, tmp_path / "out", radii=(0.05,))
    assert calls == []
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "out" / "parts").iterdir()} == before
    assert torch.equal(again.bracket.upper, first.bracket.upper)
    assert [line.radius for line in again.table.lines] == [0.05]
    assert again.seconds == first.seconds


def test_a_larger_limit_goes_on_and_a_smaller_one_looks_at_fewer(nets, calls, tmp_path):
    evaluate(nets, tmp_path / "out", limit=120)
    assert calls == [100, 20]
    whole = evaluate(nets, tmp_path / "out")
    assert calls == [100, 20, 80, 50]  # the short part is gone on with
    assert torch.equal(whole.bracket.upper, evaluate(nets, tmp_path / "at once").bracket.upper)
    assert calls[4:] == [100, 100, 50]
    del calls[4:]
    part = evaluate(nets, tmp_path / "out", limit=130)
    assert len(calls) == 4
    assert len(part.bracket) == record(tmp_path / "out")["points"] == 130
    assert torch.equal(part.bracket.perturbation, whole.bracket.perturbation[:130])


def test_interrupted_between_parts_and_gone_on(nets, calls, tmp_path, monkeypatch):
    real = Recorder.update

    def stop(self, done=None, **numbers):
        raise KeyboardInterrupt

    monkeypatch.setattr(Recorder, "update", stop)
    with pytest.raises(KeyboardInterrupt):
        evaluate(nets, tmp_path / "out")
    assert names(tmp_path / "out") == {"parts", "evaluation.json"}
    assert record(tmp_path / "out")["status"] == "unfinished"
    assert calls == [100]
    monkeypatch.setattr(Recorder, "update", real)
    progress = Recorder()
    settings = EvaluationSettings(str(nets / "p1.safetensors"), RECIPE)
    result = evaluation.run_evaluation(settings, tmp_path / "out", progress)
    assert progress.heard == [(250, 100), 100, 50, "drawing and writing the results"]
    assert torch.equal(result.bracket.upper, evaluate(nets, tmp_path / "unbroken").bracket.upper)


@pytest.mark.parametrize("damage", ["truncate", "empty", "junk", "missing", "foreign", "status", "short"])
def test_a_damaged_part_is_computed_again(nets, calls, tmp_path, damage):
    first = evaluate(nets, tmp_path / "out")
    path = sorted((tmp_path / "out" / "parts").iterdir())[1]
    whole = path.read_bytes()
    with np.load(path) as stored:
        arrays = dict(stored)
    if damage == "missing":
        path.unlink()
    elif damage in ("truncate", "empty", "junk"):
        path.write_bytes({"truncate": whole[: len(whole) // 2], "empty": b"", "junk": b"junk" * 100}[damage])
    else:
        changes = {
            "foreign": {"fingerprint": np.array("another")},
            "status": {"status": np.array(["SPLENDID"] * 100)},
            "short": {"upper": arrays["upper"][:7]},
        }
        np.savez(path, **{**arrays, **changes[damage]})
    calls.clear()
    again = evaluate(nets, tmp_path / "out")
    assert calls == [100]
    assert torch.equal(again.bracket.upper, first.bracket.upper)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"net": "p3"}, "another net"),
        ({"net": "other"}, "another net"),  # the same sizes, one weight changed
        ({"data": RECIPE.replace("seed=1", "seed=2")}, "another data"),
        ({"data": RECIPE.replace("alpha=0.1", "alpha=0.2")}, "another data"),  # the same labels, other rows
        ({"norm": "inf"}, "norm 2 there, inf now"),
        ({"tol": 0.02}, "tol 0.001 there, 0.02 now"),
        ({"nodes": 7}, "budget-nodes 300 there, 7 now"),
        ({"seconds": 2.0}, "budget-seconds None there, 2.0 now"),
        ({"seed": 5}, "seed 0 there, 5 now"),
        ({"net": "p3", "seed": 5}, "another net and seed 0 there, 5 now"),
    ],
)
def test_a_folder_with_another_evaluation_is_refused(nets, calls, tmp_path, change, told):
    evaluate(nets, tmp_path / "out", limit=10)
    before = {file: file.read_bytes() for file in (tmp_path / "out").rglob("*.*")}
    with pytest.raises(InputError, match=r"choose another --out") as caught:
        evaluate(nets, tmp_path / "out", limit=10, **change)
    assert told in str(caught.value)
    assert {file: file.read_bytes() for file in (tmp_path / "out").rglob("*.*")} == before


def test_another_version_is_another_evaluation(nets, calls, tmp_path, monkeypatch):
    evaluate(nets, tmp_path / "out", limit=10)
    monkeypatch.setattr("polyrelu.workflows.evaluate.inputs.__version__", "99.0")
    with pytest.raises(InputError, match=r"version .* there, 99\.0 now"):
        evaluate(nets, tmp_path / "out", limit=10)


@pytest.mark.parametrize("content", ["{", "[]", '{"format": "another"}'])
def test_a_record_that_is_none_is_refused(nets, calls, tmp_path, content):
    (tmp_path / "evaluation.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="remove it or choose another --out"):
        evaluate(nets, tmp_path)


def test_the_same_numbers_under_another_name_are_the_same_evaluation(nets, calls, tmp_path):
    data = read(RECIPE)
    np.savez(tmp_path / "a.npz", X=data.X.numpy(), y=data.y.numpy())
    evaluate(nets, tmp_path / "out", limit=10)
    evaluate(nets, tmp_path / "out", data=str(tmp_path / "a.npz"), limit=10)
    assert calls == [10]


def test_a_broken_sandwich_is_told_with_its_row_and_never_kept(nets, monkeypatch, calls, tmp_path):
    def broken(net, X, y, **options):
        found = stand_in_bracket.bracket(net, X, y, **options)
        if len(X) == 50:
            found.lower[3] = 10.0
        return found

    monkeypatch.setattr(ROOM, "bracket", broken)
    with pytest.raises(BoundsInconsistentError, match="Point 203"):
        evaluate(nets, tmp_path / "out")
    assert len(names(tmp_path / "out" / "parts")) == 2
    result = command(nets / "p1.safetensors", RECIPE, "--out", tmp_path / "out")
    assert result.exit_code == 3
    assert "a bug in polyrelu" in result.stderr
    assert result.stderr.count("\n") == 1


# ------------------------------------------------------------------------------------------------------- cross-check


@dataclass(frozen=True)
class Check:
    name: str = "ddn"
    library: str = "foolbox"
    median_radius: float = math.inf
    smaller: int = 2
    seconds: float = 1.5
    note: str = "all points"


def crosscheck(monkeypatch, function):
    monkeypatch.setattr(importlib.import_module("polyrelu.robust.crosscheck"), "cross_check", function)


def test_cross_check_is_a_second_table_and_in_the_record(nets, calls, tmp_path, monkeypatch):
    def check(net, X, y, bracket, norm, seed):
        assert (len(X), len(bracket), norm, seed) == (30, 30, 2.0, 0)
        return [Check()]

    crosscheck(monkeypatch, check)
    words = (nets / "p1.safetensors", RECIPE, "--limit", 30, "--cross-check", "--out", tmp_path / "out")
    result = command(*words)
    assert result.exit_code == 0, result.stderr
    assert "Attacks of other libraries" in result.stdout
    assert "foolbox" in result.stdout
    assert record(tmp_path / "out")["cross_check"][0]["median_radius"] is None
    assert json.loads(command(*words, "--json").stdout)["cross_check"][0]["smaller"] == 2


def test_a_missing_extra_is_one_line_and_the_results_are_there(nets, calls, tmp_path, monkeypatch):
    def check(*_, **__):
        raise InputError('foolbox cannot be imported: pip install "polyrelu[crosscheck]"')

    crosscheck(monkeypatch, check)
    result = command(nets / "p1.safetensors", RECIPE, "--cross-check", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "pip install" in result.stderr
    assert names(tmp_path / "out") == RESULTS | {"parts"}


# ------------------------------------------------------------------------------------------------ table and settings


def made(lower, upper):
    lower, upper = torch.tensor(lower, dtype=torch.float64), torch.tensor(upper, dtype=torch.float64)
    nodes = torch.zeros(len(lower), dtype=torch.int64)
    return Bracket(lower, upper, torch.zeros(len(lower), 2), (BracketStatus.CLOSED,) * len(lower), 2.0, nodes)


@pytest.mark.parametrize(
    ("farthest", "radii"),
    [
        (0.447, [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45]),
        (0.72, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]),
        (1.0, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]),
        (2.1, [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25]),
        (3e-7, [5e-8, 1e-7, 1.5e-7, 2e-7, 2.5e-7, 3e-7]),
        (0.0, []),
        (math.inf, []),
    ],
)
def test_round_radii_cover_what_there_is(farthest, radii):
    found = round_radii(curve(made([0.0, 0.0], [0.0, farthest])))
    assert found == radii


def test_table_adds_what_theory_says():
    bracket = made([0.3, 0.3], [0.3, 0.3])
    table = EvaluationTable.from_bracket(bracket, curve(bracket), (), {"1/√K": 0.45})
    assert [line.mark for line in table.lines] == [""] * 6 + ["1/√K"]
    asked = EvaluationTable.from_bracket(bracket, curve(bracket), (0.1, 0.45), {"1/√K": 0.45})
    assert [(line.radius, line.mark) for line in asked.lines] == [(0.1, ""), (0.45, "1/√K")]


def test_radii_are_rounded_so_that_they_stay_true():
    assert (rounded_down(0.70716), rounded_up(0.70711)) == ("0.7071", "0.7072")
    assert (rounded_down(0.25), rounded_up(0.25)) == ("0.25", "0.25")
    assert (rounded_down(123456.0), rounded_up(1e-9 / 3)) == ("1.234e+05", "3.334e-10")
    bracket = made([0.70716] * 3, [0.70721] * 3)
    console = Console(width=120, file=io.StringIO())
    console.print(overall(EvaluationTable.from_bracket(bracket, curve(bracket), (), {})))
    assert "0.7071 proven, 0.7073 attacked" in console.file.getvalue()
    assert "0.0071 %" in console.file.getvalue()  # (.70721 - .70716)/.70721 = 7.07e-5


@pytest.mark.parametrize("norm", ["1", "2", "inf"])
def test_a_constant_net_is_called_unbreakable(tmp_path, norm):
    net = polyrelu.PolyReLUNet(12, 5, p=3, bias=True, init="zeros")
    net.bias.data.fill_(1.0)
    polyrelu.save(net, tmp_path / "net.safetensors")
    np.savez(tmp_path / "a.npz", X=np.eye(5, 12), y=np.array([1, 1, 1, 1, -1]))
    words = (tmp_path / "net.safetensors", tmp_path / "a.npz", "--norm", norm, "--out", tmp_path / "out")
    result = command(*words)
    assert result.exit_code == 0, result.stderr
    assert "unbreakable points" in result.stdout and "4: Proven" in result.stdout
    assert "infinite, proven" in result.stdout
    assert "certified" not in result.stdout  # no table without radii
    assert json.loads(command(*words, "--json").stdout)["table"]["median_radius"] == {"lower": None, "upper": None}


def test_theory_marks_need_orthogonal_centres_of_one_length():
    data = OrthonormalMixture(12, 3, 2, 0.1).sample(10, 0)
    marks = theory_marks(data, 2.0)
    assert list(marks) == ["1/√K", "√2/2"]
    assert list(marks.values()) == pytest.approx([1 / math.sqrt(5), math.sqrt(0.5)])
    long = OrthonormalMixture(12, 3, 2, 0.1, scale="sqrt_dim").sample(10, 0)
    assert list(theory_marks(long, 2.0)) == ["3.46/√K", "3.46·√2/2"]
    assert list(theory_marks(long, 2.0).values()) == pytest.approx([math.sqrt(12 / 5), math.sqrt(6)])
    assert theory_marks(data, math.inf) == {}
    assert theory_marks(read("sphere:dim=5,n=10"), 2.0) == {}
    skew = Dataset(data.X, data.y, data.cluster, data.centres + 0.2)
    assert theory_marks(skew, 2.0) == {}


def test_radii_are_typed_one_by_one_or_together():
    assert parse_radii(["0.3,0.1", " 0.2 "]) == (0.1, 0.2, 0.3)
    assert parse_radii(None) == ()
    with pytest.raises(InputError, match=r"radius=much: expected finite numbers"):
        parse_radii(["much"])


# ------------------------------------------------------------------------------------------------------- a terminal


def test_first_ctrl_c_waits_for_a_good_place_and_the_second_does_not(capfd):
    before, ended = signal.getsignal(signal.SIGINT), queue.Queue()
    with interrupt.listening(ended.put), TerminalProgress(quiet=True) as watching:
        evaluation.keep_points(watching, 0, 10, "this", waits=True)
        signal.raise_signal(signal.SIGINT)
        watching.update(done=2)  # these are not on disk yet
        with pytest.raises(KeyboardInterrupt):
            evaluation.keep_points(watching, 1, 10, "this", waits=True)
        assert ended.empty()
        signal.raise_signal(signal.SIGINT)
        assert ended.get(timeout=LIMIT) == 130
        assert "1 of 10 points are kept. Go on with: this" in capfd.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_within_a_part_keeps_it(nets, tmp_path, monkeypatch):
    def asked(net, X, y, *, progress, **options):
        signal.raise_signal(signal.SIGINT)
        progress.update(done=len(X))
        return stand_in_bracket.bracket(net, X, y, **options)

    monkeypatch.setattr(ROOM, "bracket", asked)
    settings = EvaluationSettings(str(nets / "p1.safetensors"), RECIPE)
    with (
        interrupt.listening(pytest.fail),
        TerminalProgress(quiet=True) as watching,
        pytest.raises(KeyboardInterrupt),
    ):
        evaluation.run_evaluation(settings, tmp_path, watching)
    assert watching.done == 100 and len(names(tmp_path / "parts")) == 1


def test_a_part_that_takes_long_is_dropped(nets, calls, tmp_path, monkeypatch):
    now, times = [0.0], []

    def asked(net, X, y, *, progress, **options):
        signal.raise_signal(signal.SIGINT)
        for _ in range(20):
            times.append(now[0])
            progress.update(done=1)
            now[0] += 1.0

    monkeypatch.setattr(ROOM, "bracket", asked)
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    settings = EvaluationSettings(str(nets / "p1.safetensors"), RECIPE)
    with (
        interrupt.listening(pytest.fail),
        TerminalProgress(quiet=True) as watching,
        pytest.raises(KeyboardInterrupt),
    ):
        evaluation.run_evaluation(settings, tmp_path, watching)
    assert (
        times[-1] == evaluation.PATIENCE
        and "; 0 of 250 points are kept" in watching.message
        and not names(tmp_path / "parts")
    )


def test_reading_writing_and_the_cross_check_are_left_at_once(capfd):
    ended = queue.Queue()
    for writing in (False, True):
        with interrupt.listening(ended.put), TerminalProgress(quiet=True) as watching:
            evaluation.keep_points(watching, 0, 0, "this", waits=False)
            if writing:
                evaluation.keep_points(watching, 9, 10, "this", waits=True)
                evaluation.keep_points(watching, 10, 10, "this", waits=True)
                evaluation.keep_points(watching, 10, 10, "this", waits=False)
                watching.stage("drawing and writing the results")
            signal.raise_signal(signal.SIGINT)
            assert ended.get(timeout=LIMIT) == 130
    said = capfd.readouterr().err
    assert "nothing was done yet. Go on with: this" in said and "10 of 10 points are kept. Go on with: this" in said


@pytest.mark.slow
@pytest.mark.waits
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_ctrl_c_on_a_terminal_keeps_parts_and_says_how_to_go_on(nets, calls, tmp_path):
    import pty

    folder, gate = tmp_path / "out", tmp_path / "gate"
    keyboard, screen = pty.openpty()
    words = [str(nets / "p1.safetensors"), RECIPE, "--out", str(folder)]
    start = [sys.executable, stand_in_bracket.__file__, "evaluate", *words]
    slow = {**ALONE, "GATE": str(gate), "COLUMNS": "300"}
    with subprocess.Popen(start, stderr=screen, stdout=subprocess.PIPE, env=slow, text=True) as running:
        os.close(screen)
        seen = shown(keyboard, b"100 of 250") + shown(keyboard, b"median gap 10 %")
        running.send_signal(signal.SIGINT)
        seen += shown(keyboard, b"finishing the points under way")
        gate.touch()
        seen += shown(keyboard, b"--out")
        assert running.stdout.read() == ""
    os.close(keyboard)
    assert running.returncode == 130
    assert b"of 250 points are kept. Go on with: polyrelu evaluate" in seen
    assert names(folder) == {"parts", "evaluation.json"}
    kept = len(names(folder / "parts"))
    assert kept == 2
    result = command(*words)
    assert "certified" in result.stdout
    assert len(calls) == 3 - kept
    assert names(folder) == RESULTS | {"parts"}


@pytest.fixture
def full_disk():
    """No file of this process may grow beyond a limit, until the test ends."""
    resource = pytest.importorskip("resource")
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield lambda limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize(("limit", "parts"), [(100, 0), (9_000, 0), (30_000, 3)])  # the record, a part, the results
def test_a_full_disk_is_one_line_and_keeps_finished_parts(nets, calls, tmp_path, full_disk, limit, parts):
    full_disk(limit)
    result = command(nets / "p1.safetensors", RECIPE, "--out", tmp_path / "out")
    assert result.exit_code == 2, result.stderr
    assert result.stderr.startswith("polyrelu: error: out=")
    assert f"{min(100 * parts, 250)} points are done and kept" in result.stderr
    assert result.stderr.count("\n") == 1
    assert len(names(tmp_path / "out" / "parts")) == parts
    assert all(not file.name.startswith(".") for file in (tmp_path / "out").rglob("*"))
    full_disk(10**9)
    assert command(nets / "p1.safetensors", RECIPE, "--out", tmp_path / "out").exit_code == 0
    assert calls == ([] if limit == 100 else [100] if limit == 9_000 else []) + [100, 100, 50]


def test_logistic_regression_is_a_net_too(calls, tmp_path):
    polyrelu.save(LogisticRegression(12), tmp_path / "net.safetensors")
    result = command(tmp_path / "net.safetensors", RECIPE, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr


# ------------------------------------------------------------------------------------- nets of the published code


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A checkpoint as the published code writes it: W is (D, h), the power is nowhere."""
    source = torch.Generator().manual_seed(0)
    shapes = {"center": (1, 5), "prelulayer.W": (5, 8), "output_net.weight": (3, 8), "output_net.bias": (3,)}
    folder = tmp_path_factory.mktemp("published")
    torch.save({name: torch.randn(shape, generator=source) for name, shape in shapes.items()}, folder / "net.pt")
    generator = torch.Generator().manual_seed(1)
    np.savez(folder / "data.npz", X=torch.rand(4, 5, generator=generator).numpy(), y=np.array([0, 1, 2, 0]))
    return folder


@pytest.mark.slow
def test_a_published_checkpoint_is_evaluated_like_any_other_net(published, tmp_path):
    file, data = published / "net.pt", published / "data.npz"
    words = ("--reference", file, "--p", 2.5, "--data", data, "--budget-nodes", 20, "--json")
    assert command(*words, "--out", tmp_path / "a").exit_code == 0
    same = polyrelu.nets.load_reference(file, 2.5)
    polyrelu.save(same, tmp_path / "same.safetensors")
    assert command(tmp_path / "same.safetensors", data, "--budget-nodes", 20, "--out", tmp_path / "b").exit_code == 0
    assert (tmp_path / "a" / "radii.csv").read_bytes() == (tmp_path / "b" / "radii.csv").read_bytes()
    with (tmp_path / "a" / "radii.csv").open(encoding="utf-8") as stream:
        radii = [(float(row["lower"]), float(row["upper"])) for row in csv.DictReader(stream)]
    assert all(lower <= upper for lower, upper in radii) and any(lower > 0 for lower, _ in radii)
    kept = record(tmp_path / "a")
    assert kept["settings"]["p"] == 2.5
    assert f"--reference {file} --p 2.5 --data {data}" in kept["command"]
    again = command(*shlex.split(kept["command"])[2:])  # what it says makes it again
    assert again.exit_code == 0 and record(tmp_path / "a")["table"] == kept["table"]
    other = command("--reference", file, "--p", 3, data, "--budget-nodes", 20, "--out", tmp_path / "a")
    assert other.exit_code == 2 and "another net" in other.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--reference", "net.pt", "data.npz"), "p=None: expected a number >= 1 beside --reference"),
        (("--reference", "net.pt", "--p", "0.5", "data.npz"), "p=0.5: expected a finite number >= 1."),
        (("--reference", "net.pt", "--p", "3"), "arguments=none: expected DATA alone"),
        (("--reference", "net.pt", "--p", "3", "net.pt", "data.npz"), "expected DATA alone: the net is that of"),
        (("--reference", "net.pt", "--p", "3", "data.npz", "--data", "data.npz"), "expected DATA alone"),
        (("net.pt", "data.npz", "--p", "3"), "p=3.0: expected --p only beside --reference"),
        (("net.pt",), "arguments=net.pt: expected NET and DATA, or --reference, --p and DATA."),
        ((), "arguments=none: expected NET and DATA"),
        (("net.pt", "data.npz"), "say --reference FILE --p P."),
        (("--reference", "none.pt", "--p", "3", "data.npz"), "reference=none.pt: expected an existing checkpoint"),
        (("--reference", "data.npz", "--p", "3", "data.npz"), "reference=data.npz: expected"),
    ],
)
def test_what_does_not_go_with_a_reference_is_told(published, words, told, tmp_path, monkeypatch):
    monkeypatch.chdir(published)
    result = command(*words, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()
