"""Inspections: the numbers they show, sentences that stay true, the files they leave, and what they do not know."""

import csv
import dataclasses
import json
import math
import os
import queue
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner
from waiting import LIMIT, ended, wait_for

import polyrelu
from polyrelu import interrupt
from polyrelu.bias import (
    CLASS_AVERAGES,
    MIXTURE,
    NO_OWN_COEFFICIENT,
    ONE_SUBCLASS,
    OUTSIDE_SPAN,
    SINGLE_CENTRES,
    LearnedStructure,
    alignment,
    balance,
    cones,
    decoupling,
    kkt,
    margins,
    phases,
    simplicity,
    universal,
)
from polyrelu.cli import application as cli
from polyrelu.cli.terminal import TerminalProgress
from polyrelu.data import OrthonormalMixture, read
from polyrelu.errors import InputError
from polyrelu.nets import MLP, AverageClassifier, CentreClassifier, LogisticRegression, NearestCentre, TanhNet
from polyrelu.progress import Progress
from polyrelu.report import figures
from polyrelu.train import Trajectory
from polyrelu.workflows.inspect import inputs as inspection_inputs
from polyrelu.workflows.inspect import margins as inspection_margins
from polyrelu.workflows.inspect import neurons as inspection_neurons
from polyrelu.workflows.inspect import run as inspection
from polyrelu.workflows.inspect import table as inspection_table
from polyrelu.workflows.inspect.inputs import InspectionSettings

RECIPE = "mixture:dim=12,clusters=3+2,alpha=0.1,n=250,seed=1"
ALONE_ENV = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "120", "TERM": "xterm"}
ALWAYS = {"inspection.json", "table.csv", "correlation.png", "correlation.svg"}
NEURONS = {f"{name}.{kind}" for name in ("coefficients", "contributions", "cosines") for kind in ("png", "svg")}
TRAINED = {f"{name}.{kind}" for name in ("phases", "margins") for kind in ("png", "svg")}


def names(folder):
    return {file.name for file in folder.iterdir()}


def record(folder):
    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    return json.loads((folder / "inspection.json").read_text(encoding="utf-8"), parse_constant=refuse)


def command(*words):
    wide = {"COLUMNS": "200"}
    return CliRunner().invoke(cli.app, ["inspect", *map(str, words)], prog_name="polyrelu", env=wide)


def inspect(net, out, data=RECIPE, **options):
    return inspection.run_inspection(InspectionSettings(str(net), str(data), **options), out, Progress())


def row(result, name):
    (found,) = [row for row in result.rows if row.name == name]
    return found


@pytest.fixture(scope="module")
def nets(tmp_path_factory):
    """Saved nets, ideal ones and others, and data whose sub-classes nobody knows."""
    folder = tmp_path_factory.mktemp("nets")
    mixture = OrthonormalMixture(12, 3, 2, 0.1)
    saved = {
        "F": AverageClassifier(mixture.centres, mixture.labels),
        "F3": CentreClassifier(mixture.centres, mixture.labels),
        "nearest": NearestCentre(mixture.centres, mixture.labels),
        "linear": LogisticRegression(12, scale=1.0, seed=1),
        "tanh": TanhNet(12, 8, scale=0.5, seed=1),
        "deep": MLP(12, 8, seed=1),
        "zero": polyrelu.PolyReLUNet(12, 6, 2, init="zeros"),
        "three": polyrelu.PolyReLUNet(12, 9, 2, 3, scale=0.3, seed=1),
        "biased": polyrelu.PolyReLUNet(12, 9, 1, scale=0.3, bias=True, seed=1),
    }
    for name, net in saved.items():
        polyrelu.save(net, folder / f"{name}.safetensors")
    data = mixture.sample(250, 1)
    np.savez(folder / "unknown.npz", X=data.rows().numpy(), y=data.y.numpy())
    classes = np.where(data.y.numpy() > 0, data.cluster.numpy() % 2, 2)
    np.savez(folder / "classes.npz", X=data.rows().numpy(), y=classes.astype(np.int64))
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Folders of polyrelu flow, p = 1 and p = 3, on the rows of RECIPE."""
    folder = tmp_path_factory.mktemp("runs")
    for p in (1, 3):
        words = ["flow", "--p", p, "--dim", 12, "--clusters", "3+2", "--samples", 250, "--seed", 1, "--width", 40]
        words += ["--start", "gaussian", "--until-loss", 1e-4, "--quiet", "--out", folder / f"p{p}"]
        assert CliRunner().invoke(cli.app, [str(word) for word in words]).exit_code == 0
    return folder


@pytest.fixture(autouse=True)
def quick_pictures(monkeypatch):
    """Drawing takes longer than everything else here; only tests that look at the pictures save them."""

    def save(figure, path):
        path.write_text("a picture")
        return path

    monkeypatch.setattr(figures, "save_figure", save)
    monkeypatch.setattr(inspection_neurons, "STARTS", 20)


# ----------------------------------------------------------------------------------------------------- what it says


@pytest.mark.slow
@pytest.mark.parametrize(("p", "words"), [(1, "class averages: averaging ratio"), (3, "single centres: decoupling")])
def test_headline_of_trained_nets(runs, tmp_path, p, words):
    result = inspect(runs / f"p{p}", tmp_path)
    net, data = polyrelu.load(runs / f"p{p}" / "net.safetensors"), read(RECIPE)
    radius = universal(data.centres, torch.tensor([1.0, 1, 1, -1, -1]), net).radius
    assert result.headline.startswith("The neurons learned")
    assert words in result.headline
    assert f"; expect it to break at radius {radius:.3g} along the universal direction" in result.headline
    assert ("other directions may be nearer" in result.headline) == (p == 3)
    assert names(tmp_path) == ALWAYS | NEURONS | TRAINED


@pytest.mark.slow
def test_numbers_are_those_of_the_measurements(runs, tmp_path):
    result = inspect(runs / "p3", tmp_path)
    assert all(isinstance(row.words, str) and row.words.endswith(".") for row in result.rows)
    assert {row.status for row in result.rows} == {"measured"}
    net, data = polyrelu.load(runs / "p3" / "net.safetensors"), read(RECIPE)
    trajectory = Trajectory.load(runs / "p3" / "trajectory.npz", net)
    seen, learned, found = alignment(net, data), decoupling(net, data).learned, margins(net, data)
    certificate, linear = kkt(net, data), simplicity(net, data)
    numbers = {row.name: row.numbers for row in result.rows}
    assert numbers["neurons that count"]["carriers"] == len(seen.dominant)
    assert numbers["cosine to class averages"]["median"] == seen.best_average
    assert numbers["cosine to centres"]["median"] == seen.best_centre
    assert numbers["centres covered"]["covered"] == int(seen.covered.sum())
    for name in ("score", "averaging_ratio", "effective", "explained", "verdict"):
        assert numbers["what was learned"][name] == getattr(learned, name)
    assert numbers["balance of the layers"]["relative"] == balance(net).relative
    assert numbers["cones of activation"]["dead"] == int(cones(net, data).dead.sum())
    for name in ("smallest", "normalised", "smoothed", "product"):
        assert numbers["normalised margin"][name] == getattr(found, name)
    assert numbers["KKT residual"]["stationarity"] == certificate.stationarity
    assert numbers["distance to linear"]["residual"] == linear.residual
    assert numbers["phases of training"]["aligned"] == phases(trajectory).aligned.time
    assert numbers["stationary directions"] | {"dead": 0, "rows": 0} == {
        "averages": 0, "centres": 5, "stable": 5, "dead": 0, "rows": 0, "starts": 40,
    }  # fmt: skip


@pytest.mark.slow
def test_ideal_classifiers_are_seen_as_the_nets_they_equal(nets, tmp_path):
    average = inspect(nets / "F.safetensors", tmp_path / "F")
    assert average.headline.startswith("The neurons learned class averages: averaging ratio 1; expect it to break at")
    assert row(average, "universal radius").numbers["radius"] == pytest.approx(1 / math.sqrt(5), abs=1e-6)
    centre = inspect(nets / "F3.safetensors", tmp_path / "F3")
    assert centre.headline.startswith("The neurons learned single centres: decoupling score 1; expect")
    assert row(centre, "decoupling score").value == "1"


@pytest.mark.slow
def test_sub_classes_nobody_knows_are_estimated_and_it_says_so(nets, tmp_path):
    result = inspect(nets / "F3.safetensors", tmp_path, nets / "unknown.npz")
    assert "single centres" in result.headline
    assert "(sub-classes were estimated: 3+2)" in result.headline
    assert row(result, "sub-classes").words.startswith("No sub-classes are known, so they were estimated")
    assert "an estimated sub-class centre" in row(result, "cosine to centres").words


# ---------------------------------------------------------------------------------------- sentences that stay true


def learned(verdict, score=0.1, ratio=0.95, effective=1.0, low=None, high=None):
    low, high = score if low is None else low, score if high is None else high
    return LearnedStructure(score, low, high, 0.0, ratio, 0.1, 0.1, effective, 0.9, verdict)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (learned(CLASS_AVERAGES, ratio=0.9), "the neurons learned class averages: averaging ratio 0.900"),
        (learned(CLASS_AVERAGES, ratio=0.8999), "the neurons learned uneven class averages: averaging ratio 0.900"),
        (learned(CLASS_AVERAGES, ratio=0.5), "the neurons learned uneven class averages: averaging ratio 0.500"),
        (learned(SINGLE_CENTRES, 0.75, effective=1.1), "the neurons learned single centres: decoupling score 0.750"),
        (
            learned(SINGLE_CENTRES, 0.75, effective=1.5),
            "the neurons learned mostly single centres: decoupling score 0.750",
        ),
        (learned(MIXTURE, 0.5), "between class averages and single centres: decoupling score 0.500"),
        (learned(CLASS_AVERAGES, 0.2, low=0.1, high=0.3), "with a decoupling score that could be 0.10 to 0.30"),
        (learned(ONE_SUBCLASS), "cannot be told apart: every class has one sub-class"),
        (learned(NO_OWN_COEFFICIENT), "neither averages nor centres: no neuron has a positive coefficient"),
        (learned(OUTSIDE_SPAN), "neither averages nor centres: most of the weights"),
    ],
)
def test_the_verdict_at_its_thresholds(found, words):
    assert words in inspection_neurons.verdict(found)


@pytest.mark.parametrize(
    ("median", "words"),
    [
        (0.95, "does not point at a centre: cosine 0.95 or less."),
        (0.9501, "points at a centre: cosine 0.95 or more."),
        (0.9996, "points at a centre: cosine 0.999 or more."),
        (1.0, "points at a centre: cosine 1."),
        (-0.1234, "does not point at a centre: cosine -0.123 or less."),
    ],
)
def test_cosines_at_their_thresholds(median, words):
    assert inspection_neurons._pointing("cosine", median, "a centre").words.endswith(words)


def test_rounding_stays_on_its_side():
    for value in (0.12345, 0.999999, 9.9951, 123456.0, 3.3e-9, -0.12345):
        low, high = (
            float(way(value).replace(",", "")) for way in (inspection_table.at_least, inspection_table.at_most)
        )
        assert low <= value <= high
        assert high - low <= 0.011 * abs(value)
    assert inspection_table.at_least(0.3) == inspection_table.at_most(0.3) == "0.3"
    units = (0.0, 3e-7, 0.0015, 0.5, 0.9995, 1.0)
    assert [inspection_table.unit(value) for value in units] == [
        "0",
        "under 0.001",
        "0.002",
        "0.500",
        "over 0.999",
        "1",
    ]
    assert inspection_table.cosine(0.99999) == "0.9999"
    assert [inspection_table.of(k, 2, "row") for k in range(3)] == [
        "none of the 2 rows",
        "1 of the 2 rows",
        "all 2 rows",
    ]
    assert inspection_table.plain({"a": (math.nan, torch.tensor([1.0, math.inf]))}) == {"a": [None, [1.0, None]]}


# ----------------------------------------------------------------------------------------------- what does not apply


def why(result, name):
    found = row(result, name)
    assert found.status == "does not apply"
    assert found.value == "–"
    return found.words


def test_deep_nets_have_no_neurons_to_take_apart(nets, tmp_path):
    result = inspect(nets / "deep.safetensors", tmp_path)
    assert "only what applies to any net is shown" in why(result, "neurons")
    assert result.headline.startswith("MLP: a linear map misses")
    assert row(result, "homogeneity").status == "measured"
    assert why(result, "phases of training").startswith("No trajectory: give a folder")
    assert names(tmp_path) == ALWAYS


@pytest.mark.slow
def test_a_net_that_is_not_homogeneous_names_the_layer(nets, tmp_path):
    result = inspect(nets / "biased.safetensors", tmp_path / "biased")
    assert why(result, "homogeneity") == "Not homogeneous in its weights: the bias of layer 2 (bias) breaks it."
    assert "see homogeneity" in why(result, "margins")
    assert "see homogeneity" in why(result, "KKT residual")
    tanh = inspect(nets / "tanh.safetensors", tmp_path / "tanh")
    assert "layer 1 (weight)" in why(tanh, "homogeneity")
    assert "this is a TanhNet" in why(tanh, "neurons")
    assert row(tanh, "explained by centres").status == "measured"


def test_linear_and_ideal_nets(nets, tmp_path):
    linear = inspect(nets / "linear.safetensors", tmp_path / "linear")
    assert row(linear, "distance to linear").numbers["residual"] < 1e-6
    assert "its weights make" in row(linear, "cosine to the SVM").words
    assert "not separated yet" in row(linear, "normalised margin").words.lower()
    assert "not separated yet" in why(linear, "KKT residual").lower()
    nearest = inspect(nets / "nearest.safetensors", tmp_path / "nearest")
    assert "an ideal classifier has none" in why(nearest, "homogeneity")
    assert row(nearest, "universal radius").status == "measured"


@pytest.mark.slow
def test_a_net_of_zeros(nets, tmp_path):
    result = inspect(nets / "zero.safetensors", tmp_path)
    assert result.headline == (
        "Every neuron is 0, nothing was learned; at least half of the centres are misclassified as they are."
    )
    assert row(result, "cones of activation").numbers["dead"] == 6


@pytest.mark.slow
def test_several_classes(nets, tmp_path):
    result = inspect(nets / "three.safetensors", tmp_path, nets / "classes.npz")
    assert "3 classes" in why(result, "cones of activation")
    assert "3 classes" in why(result, "cosine to the SVM")
    assert row(result, "normalised margin").numbers["loss"] == "cross_entropy"
    assert row(result, "stationary directions").numbers["starts"] == 60


@pytest.mark.slow
def test_an_empty_trajectory_says_so(runs, tmp_path):
    net = polyrelu.load(runs / "p3" / "net.safetensors")
    full = Trajectory.load(runs / "p3" / "trajectory.npz", net)
    empty = {part.name: getattr(full.history, part.name)[:0] for part in dataclasses.fields(full.history)}
    history = dataclasses.replace(full.history, **empty)
    dataclasses.replace(full, history=history).save(tmp_path / "empty.npz")
    result = inspect(runs / "p3", tmp_path / "out", trajectory=str(tmp_path / "empty.npz"))
    assert "no recorded moments" in why(result, "phases of training")
    assert "no recorded moments" in why(result, "margin over time")
    assert names(tmp_path / "out") == ALWAYS | NEURONS


def test_one_failure_does_not_take_the_rest_away(nets, tmp_path, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("the solver gave up\nwith a long story")

    def too_large(*_, **__):
        raise MemoryError

    monkeypatch.setattr(inspection_margins, "kkt", fails)
    monkeypatch.setattr(inspection_neurons, "cones", too_large)
    result = inspect(nets / "F.safetensors", tmp_path)
    assert row(result, "KKT residual").words == "Could not be measured: the solver gave up."
    assert row(result, "cones of activation").words == "Could not be measured: not enough memory; lower --limit."
    assert {row["status"] for row in record(tmp_path)["measurements"]} == {"measured", "failed", "does not apply"}


# ------------------------------------------------------------------------------------------------------ what it leaves


@pytest.mark.slow
def test_pictures_are_drawn(tmp_path, monkeypatch):
    monkeypatch.undo()  # of the quick pictures
    mixture = OrthonormalMixture(3, 2, 1, 0.1)
    polyrelu.save(CentreClassifier(mixture.centres, mixture.labels), tmp_path / "net.safetensors")
    data = "mixture:dim=3,clusters=2+1,alpha=0.1,n=60"
    result = inspect(tmp_path / "net.safetensors", tmp_path / "out", data)
    sphere = {"sphere.png", "sphere.svg"}
    assert set(result.pictures) | {"inspection.json", "table.csv"} == names(tmp_path / "out")
    assert names(tmp_path / "out") == ALWAYS | NEURONS | sphere
    for name in result.pictures:
        if name.endswith("png"):
            with Image.open(tmp_path / "out" / name) as image:
                assert len(image.convert("L").getcolors()) > 20  # drawn, not blank
        else:
            assert (tmp_path / "out" / name).read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_json_and_table_hold_every_row(nets, tmp_path):
    printed = command(nets / "F.safetensors", RECIPE, "--json", "--quiet", "--out", tmp_path)
    assert printed.exit_code == 0, printed.stderr
    assert printed.stderr == ""
    found = json.loads(printed.stdout)
    assert found == record(tmp_path)
    assert found["status"] == "done"
    assert found["settings"]["limit"] is None
    with (tmp_path / "table.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["measurement"], row["in plain words"]) for row in rows] == [
        (row["measurement"], row["words"]) for row in found["measurements"]
    ]


def test_table_starts_with_the_headline(nets, tmp_path):
    result = command(nets / "F.safetensors", RECIPE, "--limit", 100, "--out", tmp_path)
    assert result.exit_code == 0, (result.stderr, result.exception)
    lines = result.stdout.splitlines()
    assert lines[0].startswith("F.safetensors on mixture:dim=12")
    assert lines[1].startswith("The neurons learned class averages")
    assert "All 100 rows are classified as labelled." in result.stdout
    assert "inspection.json, table.csv and the pictures coefficients.png" in result.stderr


@pytest.mark.slow
def test_a_folder_is_used_again_without_leaving_old_pictures(nets, tmp_path):
    inspect(nets / "F.safetensors", tmp_path)
    assert names(tmp_path) >= NEURONS
    (tmp_path / "mine.png").write_text("not ours")
    inspect(nets / "deep.safetensors", tmp_path)
    assert names(tmp_path) == ALWAYS | {"mine.png"}


# ----------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere", RECIPE), "net=nowhere: expected an existing file"),
        (("F", "mixture:dim=9,clusters=3+2,alpha=0.1,n=50"), "has 9 columns, but the net"),
        (("three", RECIPE), "has 3 logits"),
        (("F", RECIPE, "--limit", 1), "limit=1: expected a whole number >= 2"),
        (("F", RECIPE, "--seed", -1), "seed=-1: expected"),
        (("F", RECIPE, "--trajectory", "nowhere.npz"), "trajectory=nowhere.npz: no such file"),
    ],
)
def test_bad_input_is_one_line(nets, tmp_path, words, said):
    net = nets / f"{words[0]}.safetensors"
    result = command(net if net.exists() else words[0], *words[1:], "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_trajectory_of_another_net_is_refused(nets, runs, tmp_path):
    result = command(nets / "F.safetensors", RECIPE, "--trajectory", runs / "p1" / "trajectory.npz", "--out", tmp_path)
    assert result.exit_code == 2
    assert "does not end with the net" in result.stderr
    with pytest.raises(InputError, match="does not end with the net"):
        inspect(runs / "p3", tmp_path, trajectory=str(runs / "p1"))


def test_rows_of_one_class_are_refused(nets, tmp_path):
    data = read(RECIPE)
    order = data.y.argsort()
    np.savez(tmp_path / "sorted.npz", X=data.rows()[order].numpy(), y=data.y[order].numpy())
    with pytest.raises(InputError, match="limit=20: the first rows are no data set"):
        inspect(nets / "F.safetensors", tmp_path / "out", tmp_path / "sorted.npz", limit=20)


def test_a_foreign_record_is_not_overwritten(nets, tmp_path):
    (tmp_path / "inspection.json").write_text("{}")
    result = command(nets / "F.safetensors", RECIPE, "--out", tmp_path)
    assert result.exit_code == 2
    assert "choose another --out" in result.stderr
    assert names(tmp_path) == {"inspection.json"}


# ---------------------------------------------------------------------------------------------------------- interrupts


@pytest.mark.slow
def test_an_interrupt_keeps_what_is_there(nets, tmp_path, monkeypatch):
    def stops(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(inspection_margins, "kkt", stops)
    result = command(nets / "F.safetensors", RECIPE, "--out", tmp_path)
    assert result.exit_code == 130
    assert "interrupted while measuring the KKT residual; 8 picture files and inspection.json are kept" in result.stderr
    assert names(tmp_path) == (ALWAYS | NEURONS) - {"table.csv"}
    found = record(tmp_path)
    assert found["status"] == "unfinished"
    assert len(found["pictures"]) == 8
    monkeypatch.undo()
    monkeypatch.setattr(figures, "save_figure", lambda figure, path: path)
    assert command(nets / "F.safetensors", RECIPE, "--out", tmp_path).exit_code == 0
    assert record(tmp_path)["status"] == "done"


def test_an_interrupt_before_anything_is_done(nets, tmp_path, monkeypatch):
    def stops(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(inspection_inputs, "read_points", stops)
    result = command(nets / "F.safetensors", RECIPE, "--out", tmp_path)
    assert result.exit_code == 130
    assert "interrupted while reading the net and the data; nothing was done" in result.stderr


@pytest.mark.parametrize("what", ["measuring", "drawing"])
def test_ctrl_c_stops_at_once_and_is_given_back(capfd, what):
    before, ended = signal.getsignal(signal.SIGINT), queue.Queue()
    with interrupt.listening(ended.put), TerminalProgress(quiet=True) as live:
        inspection.say_step(live, what, 1)
        signal.raise_signal(signal.SIGINT)  # no exception: a measurement or a drawing library may turn it into another
        assert ended.get(timeout=LIMIT) == 130
    assert f"interrupted while {what}; 1 picture files and inspection.json are kept" in capfd.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before


# An inspection whose cosines take ten minutes.
HELD = """
import time
from dataclasses import replace
from polyrelu import cli
from polyrelu.workflows.inspect import run as inspection
def waiting(subject):
    time.sleep(600)
steps = inspection.INSPECTION_STEPS
steps = [replace(step, measure=waiting) if step.name.startswith("cosines") else step for step in steps]
inspection.INSPECTION_STEPS = tuple(steps)
cli.main()
"""


@pytest.mark.slow
@pytest.mark.waits
@pytest.mark.skipif(sys.platform == "win32", reason="needs Unix signals")
def test_ctrl_c_as_people_do(nets, tmp_path):
    words = ("inspect", nets / "F3.safetensors", "mixture:dim=12,clusters=3+2,alpha=0.1,n=500", "--out", tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", HELD, *map(str, words)], stderr=subprocess.PIPE, text=True, env=ALONE_ENV
    ) as running:
        wait_for((tmp_path / "contributions.svg").exists)
        running.send_signal(signal.SIGINT)
        _, said = ended(running)
    assert running.returncode == 130
    assert "interrupted while" in said
    assert not [name for name in names(tmp_path) if name.startswith(".")]
    assert record(tmp_path)["status"] == "unfinished"
