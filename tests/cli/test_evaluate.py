"""`polyrelu evaluate`: its table, its files, and what it refuses."""

import importlib
import json
import shlex

import numpy as np
import pytest
import stand_in_bracket
import torch
from running import names, polyrelu_
from safetensors.torch import save_file

import polyrelu
from polyrelu.nets import AverageClassifier

POINTS = "mixture:dim=12,clusters=3+2,alpha=0.1,n=60,seed=1"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved net of two neurons, one logit, twelve inputs."""
    mixture = polyrelu.OrthonormalMixture(12, 3, 2, 0.1)
    path = tmp_path_factory.mktemp("net") / "net.safetensors"
    return polyrelu.save(AverageClassifier(mixture.centres, mixture.labels).as_polyrelu_net(), path)


@pytest.fixture
def quick_bracket(monkeypatch):
    robust = importlib.import_module("polyrelu.robust")
    monkeypatch.setattr(robust, "bracket", stand_in_bracket.bracket, raising=False)
    monkeypatch.setattr(robust, "Budget", stand_in_bracket.Budget, raising=False)


@pytest.mark.slow
def test_evaluate_shows_a_table_and_writes_the_files(saved, quick_bracket, tmp_path):
    result = polyrelu_("evaluate", saved, POINTS, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    for words in ("60 points", "certified", "attacked", "1/√K", "median radius", "largest relative gap", "100 %"):
        assert words in result.stdout
    assert "written to" in result.stderr
    assert "curve.svg" in names(tmp_path / "out")


@pytest.mark.slow
def test_evaluate_json_is_pure_and_quiet_is_quiet(saved, quick_bracket, tmp_path):
    words = ("--radius", "0.1,0.2", "--radius", 0.4, "--json", "--quiet", "--out", tmp_path / "out")
    result = polyrelu_("evaluate", saved, POINTS, *words)
    assert result.exit_code == 0
    assert result.stderr == ""
    found = json.loads(result.stdout)
    assert found == json.loads((tmp_path / "out" / "evaluation.json").read_text(encoding="utf-8"))
    assert [line["radius"] for line in found["table"]["radii"]] == [0.1, 0.2, 0.4]
    assert found["table"]["clean"] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--norm", 3), "norm=3: expected 1, 2 or inf"),
        (("--radius", -0.1), "radius=-0.1: expected finite numbers >= 0"),
        (("--radius", "0.1,far"), "radius=far: expected finite numbers >= 0"),
        (("--radius", "inf"), "radius=inf: expected finite numbers >= 0"),
        (("--limit", 0), "limit=0: expected a whole number >= 1"),
        (("--tol", 0), "tol=0.0: expected a number between 0 and 1"),
        (("--budget-nodes", 0), "budget-nodes=0: expected a whole number >= 1"),
        (("--budget-seconds", 0), "budget-seconds=0.0: expected a finite number > 0"),
        (("--budget-seconds", "nan"), "budget-seconds=nan: expected a finite number > 0"),
        (("--seed", -1), "seed=-1: expected a whole number >= 0"),
    ],
)
def test_evaluate_refuses_bad_settings_and_leaves_no_folder(saved, quick_bracket, tmp_path, words, message):
    refused_evaluation(tmp_path, saved, POINTS, message, *words)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("missing.npz", "data=missing.npz: expected an existing file."),
        ("digits", "data=digits: has 64 columns, but the net"),
        ("mixtures", "data=mixtures: expected a file"),
        ("mixture:dim=12,clusters=3+2,alpha=0.1", "data=mixture:dim=12,clusters=3+2,alpha=0.1: expected n=... as well"),
    ],
)
def test_evaluate_refuses_bad_data(saved, quick_bracket, tmp_path, monkeypatch, data, message):
    monkeypatch.chdir(tmp_path)
    refused_evaluation(tmp_path, saved, data, message)


def test_evaluate_refuses_labels_that_do_not_fit(saved, quick_bracket, tmp_path):
    out = tmp_path / "work"
    out.mkdir()
    rows = np.random.default_rng(0).normal(size=(30, 12))
    np.savez(tmp_path / "three.npz", X=rows, y=np.arange(30) % 3)
    np.savez(tmp_path / "five.npz", X=rows, y=np.arange(30) % 5)
    polyrelu.save(polyrelu.PolyReLUNet(12, 5, outputs=3), tmp_path / "three.safetensors")
    three = tmp_path / "three.safetensors"
    for net, data, words in (
        (
            saved,
            tmp_path / "three.npz",
            "has classes 0..2, but the net {net} has one logit: expected labels +1 and -1.",
        ),
        (three, tmp_path / "five.npz", "has classes 0..4, but the net {net} has 3 logits: expected classes 0..2."),
        (three, POINTS, "has labels +1 and -1, but the net {net} has 3 logits: expected classes 0..2."),
    ):
        refused_evaluation(out, net, data, f"data={data}: {words.format(net=net)}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "net={net}: expected an existing file written by polyrelu, or a folder of polyrelu flow."),
        (b"junk", "net={net}: expected a whole safetensors file"),
        ("folder", "net={net}: expected a file, or a folder with a net.safetensors in it"),
        ("foreign", "net={net}: expected a net saved by polyrelu"),
    ],
)
def test_evaluate_refuses_what_is_not_a_net(quick_bracket, tmp_path, content, message):
    net, out = tmp_path / "net", tmp_path / "work"
    out.mkdir()
    if content == "folder":
        net.mkdir()
    elif content == "foreign":
        save_file({"X": torch.ones(2, 2)}, net)
    elif content:
        net.write_bytes(content)
    refused_evaluation(out, net, POINTS, message.format(net=net))


def refused_evaluation(folder, net, data, message, *words):
    result = polyrelu_("evaluate", net, data, *words, "--out", folder / "out")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"polyrelu: error: {message}"), result.stderr
    assert result.stderr.count("\n") == 1
    assert not names(folder)


@pytest.mark.parametrize("below", ["taken", "taken/run"])
def test_evaluate_into_a_folder_that_cannot_be_written(saved, quick_bracket, tmp_path, below):
    (tmp_path / "taken").write_text("a file")
    result = polyrelu_("evaluate", saved, POINTS, "--out", tmp_path / below)
    assert result.exit_code == 2
    assert "expected a folder that can be written" in result.stderr


@pytest.mark.slow
def test_evaluate_interrupted_says_how_to_go_on(saved, quick_bracket, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module("polyrelu.robust"), "bracket", interrupted)
    result = polyrelu_("evaluate", saved, POINTS, "--tol", 0.01, "--out", tmp_path / "my out")
    assert result.exit_code == 130
    assert result.stderr.startswith("polyrelu: interrupted; 0 of 60 points are kept. Go on with: polyrelu evaluate ")
    assert result.stderr.count("\n") == 1
    words = shlex.split(result.stderr.split("Go on with: polyrelu ")[1])
    assert words[-2:] == ["--out", str(tmp_path / "my out")]
    monkeypatch.setattr(importlib.import_module("polyrelu.robust"), "bracket", stand_in_bracket.bracket)
    assert polyrelu_(*words).exit_code == 0


def test_evaluate_help_has_groups_example_and_exit_status():
    result = polyrelu_("evaluate", "--help")
    assert result.exit_code == 0
    for words in ("NET", "DATA", "Effort for each point", "--budget-nodes", "Example", "3 a proof exceeded an attack"):
        assert words in result.stdout
