"""`polyrelu fit`: from a table to a measured head in a file."""

import importlib
import json
import shlex

import numpy as np
import pytest
import stand_in_bracket
import torch
from typer.testing import CliRunner

import polyrelu
from polyrelu.cli import application as cli
from polyrelu.data import split_rows
from polyrelu.data.tables.table import read_table_file
from polyrelu.estimator import PolyReLUClassifier
from polyrelu.nets import ReadOut, load_about
from polyrelu.workflows import fit as heads

QUICK = ("--width", 12, "--epochs", 300, "--quiet")
ROUGH = ("--width", 4, "--epochs", 5, "--quiet")
NAMES = "abcdef"


def command(*words):
    return CliRunner().invoke(cli.app, [str(word) for word in words], prog_name="polyrelu")


def animals(count=150, seed=0):
    """Four breeds around four centres, two kinds: rows, kinds, breeds."""
    source = np.random.default_rng(seed)
    centres = 3 * np.random.default_rng(7).normal(size=(4, 6))
    breed = np.arange(count) % 4
    rows = centres[breed] + 0.3 * source.normal(size=(count, 6))
    return rows, np.array(["cat", "dog"])[breed % 2], np.array(["siam", "pug", "tabby", "poodle"])[breed]


def write_table(path, rows, kinds, breeds, order=NAMES):
    lines = [",".join(["id", "breed", *order, "kind"])]
    for i, row in enumerate(rows):
        cells = dict(zip(NAMES, row.tolist(), strict=True))
        lines.append(",".join(map(str, [i, breeds[i], *(cells[name] for name in order), kinds[i]])))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True, scope="module")
def few_points():
    """Certificates of three rows instead of two hundred."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heads, "POINTS", 3)
        yield


@pytest.fixture
def quick_evaluation(monkeypatch):
    room = importlib.import_module("polyrelu.robust")
    monkeypatch.setattr(room, "bracket", stand_in_bracket.bracket)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("table") / "animals.csv", *animals())


@pytest.fixture(scope="module")
def done(table):
    out = table.with_name("head.safetensors")
    return command("fit", table, "--fine", "breed", "--json", *QUICK, "-o", out), out


@pytest.mark.slow
def test_the_numbers_are_those_of_the_head_on_the_held_out_fifth(table, done):
    result, out = done
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["rows"], found["held_out"], found["columns"], found["points"]) == (120, 30, 6, 3)
    assert found["classes"] == ["cat", "dog"]
    assert found["sub_classes"] == 4
    whole = read_table_file(table, fine="breed")
    head, test = PolyReLUClassifier.load(out), whole.part("test")
    del head.feature_names_in_  # arrays have no names
    assert isinstance(head.net_, ReadOut)
    assert found["accuracy"] == head.score(test.X, test.y) > 0.9
    train = whole.part("train").X
    typical = np.median(np.linalg.norm(train - train.mean(0), axis=1))
    assert found["median_centred_norm"] == pytest.approx(typical, rel=1e-12)
    order = np.sort(split_rows(150, "test", "").numpy())[np.random.default_rng(0).permutation(30)[:3]]
    bracket = head.certify(whole.X[order], whole.y[order], tol=0.02, budget=polyrelu.Budget(nodes=10))
    for row, fraction in zip(found["radii"], (0.1, 0.2, 0.3), strict=True):
        assert row["radius"] == pytest.approx(fraction * typical)
        assert row["certified"] == pytest.approx((bracket.lower > row["radius"]).double().mean().item())
        assert row["certified"] <= row["attacked"] <= 1


def test_what_the_file_says_about_itself(done):
    said = load_about(done[1])
    assert said["classes"] == ["cat", "dog"]
    assert said["features"] == list(NAMES)
    assert said["label"] == "kind"
    assert said["params"]["random_state"] == 0


@pytest.mark.slow
def test_the_summary_hides_nothing(table, done, tmp_path, quick_evaluation):
    out = tmp_path / "head.safetensors"
    result = command("fit", table, "--fine", "breed", *QUICK[:-1], "-o", out)
    assert result.exit_code == 0, result.stderr
    for words in (
        "120 rows to train on, 30 held out; 6 columns; 2 classes: cat, dog, read out from 4 sub-classes",
        "Labels are taken from the last column, 'kind'; --label NAME names another.",
        "Columns left out, for they number or name the rows: 'id'.",
        "p = 3, 12 neurons, 300 passes",
        "accuracy on the 30 rows held out:",
        "certified   attacked",
        ".2 x = ",
    ):
        assert words in result.stdout
    tensors, again = polyrelu.load(out).state_dict(), polyrelu.load(done[1]).state_dict()
    assert all(torch.equal(tensor, again[name]) for name, tensor in tensors.items())  # same seed, same bits
    commands = [shlex.split(line) for line in result.stderr.splitlines()[1:]]
    assert [words[:3] for words in commands] == [
        ["polyrelu", "evaluate", str(out)],
        ["polyrelu", "predict", str(out)],
        ["polyrelu", "diagnose", str(table)],
    ]
    evaluated = command(*commands[0][1:-1], tmp_path / "out", "--quiet", "--json")
    assert evaluated.exit_code == 0, evaluated.stderr
    accuracy = f"{100 * json.loads(evaluated.stdout)['table']['clean']:.1f} %"
    assert f"held out: {accuracy}" in result.stdout  # the same rows


@pytest.mark.slow
def test_rows_to_measure_on_may_have_their_columns_in_another_order(tmp_path):
    train = write_table(tmp_path / "train.csv", *animals())
    rows, kinds, breeds = animals(40, seed=1)
    kinds[5] = "emu"
    test = write_table(tmp_path / "test.csv", rows, kinds, breeds, order="fedcba")
    words = ("fit", train, "--label", "kind", "--fine", "breed", "--json", *QUICK, "-o", tmp_path / "head.safetensors")
    found = json.loads(command(*words, "--test", test).stdout)
    assert (found["rows"], found["held_out"]) == (150, 40)
    assert 0.9 < found["accuracy"] <= 39 / 40
    assert "1 rows to measure on are of no class of the head: they count as wrong" in found["said"][-1]


@pytest.mark.slow
def test_sub_classes_are_discovered_and_rows_in_a_file_stay_there(tmp_path):
    rows, kinds, _ = animals(200)
    np.save(tmp_path / "X.npy", rows.astype(np.float32))
    np.save(tmp_path / "y.npy", kinds)
    result = command(
        "fit", tmp_path / "X.npy", "--fine", "discover", "--json", *QUICK, "-o", tmp_path / "head.safetensors"
    )
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["sub_classes"] == 4
    assert found["accuracy"] > 0.9
    assert (found["rows"], found["held_out"]) == (160, 40)


@pytest.mark.slow
def test_named_sets_and_recipes(tmp_path, quick_evaluation):
    data = "mixture:dim=12,clusters=2+1,alpha=0.1,n=100"
    result = command("fit", data, "--json", *ROUGH, "-o", tmp_path / "head.safetensors")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["classes"] == [-1, 1]
    words = ("evaluate", tmp_path / "head.safetensors", data, "--out", tmp_path / "out", "--quiet", "--json")
    evaluated = command(*words)
    assert evaluated.exit_code == 0, evaluated.stderr
    head = PolyReLUClassifier.load(tmp_path / "head.safetensors")
    points = polyrelu.data.read(data)
    assert json.loads(evaluated.stdout)["table"]["clean"] == pytest.approx(head.score(points.X, points.y), rel=1e-12)


@pytest.mark.parametrize("large", [1e300, 1.7e308])
def test_rows_near_the_largest_float_are_measured_or_refused_without_a_warning(tmp_path, large):
    X = np.random.default_rng(0).normal(size=(24, 6))
    assert heads.median_centred_norm(X * (large / 8), np.arange(24)) == pytest.approx(
        heads.median_centred_norm(X, np.arange(24)) * (large / 8)
    )
    X[3:5, 2] = large
    np.savez(tmp_path / "rows.npz", X=X, y=np.arange(24) % 2)
    found = command("fit", tmp_path / "rows.npz", "--epochs", 1, "--width", 3, "-o", tmp_path / "head.safetensors")
    assert found.exit_code == 2 and "scale them to about 1" in found.output


def test_median_centred_norm():
    X = np.arange(4000.0)[:, None] * np.array([[3.0, 4.0]])  # |x_i - mean| = 5 |i - 1999.5|
    assert heads.median_centred_norm(X, np.arange(4000)) == pytest.approx(5000)
    assert heads.median_centred_norm(X, np.array([0, 1, 2])) == pytest.approx(5)


# -------------------------------------------------------------------------------------------------------- refusals


def stored(folder, name):
    """Bad files, by name."""
    path = folder / name
    rows, kinds, breeds = animals(20)
    if name == "measured.csv":
        path.write_text("a,b,y\n" + "".join(f"{i},{i},{i}.5\n" for i in range(20)))
    elif name == "halves.csv":
        path.write_text("a,b,y\n" + "".join(f"{i},{i},{i % 3}.5\n" for i in range(20)))
    elif name == "ids.csv":
        path.write_text("a,b,y\n" + "".join(f"{i},{i},{i}\n" for i in range(20)))
    elif name == "one.npz":
        np.savez(path, X=rows, y=["cat"] * 20)
    elif name == "rows.npz":
        np.savez(path, X=rows)
    elif name == "few.npz":
        np.savez(path, X=rows[:4], y=kinds[:4])
    elif name == "rare.npz":
        y = kinds.copy()
        y[split_rows(20, "test", name)[0]] = "emu"  # the only one, and held out
        np.savez(path, X=rows, y=y)
    elif name == "cut.npz":
        np.savez(path, X=rows, y=kinds)
        path.write_bytes(path.read_bytes()[:300])
    elif name == "empty.csv":
        path.write_text("")
    elif name == "good.csv":
        write_table(path, rows, kinds, breeds)
    elif name == "text.csv":
        path.write_text("a,b,y\n" + "".join(f"{i},{'xyz'[i % 3]},{i % 2}\n" for i in range(20)))
    elif name == "across.csv":
        path.write_text("a,fine,y\n" + "".join(f"{i},{i % 3},{i % 2}\n" for i in range(20)))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("measured.csv", (), "column 'y' holds 20 different values in 20 rows"),
        ("halves.csv", (), "column 'y' holds numbers that are not whole, such as 0.5 and 1.5"),
        ("ids.csv", (), "column 'y' holds 20 different values in 20 rows"),
        ("one.npz", (), "has one class only, cat in all 20 rows"),
        ("rows.npz", (), "has no labels"),
        ("few.npz", (), "five rows or more"),
        ("rare.npz", (), "all rows of class 'emu' fall into the held-out fifth"),
        ("cut.npz", (), "cut short or foreign"),
        ("empty.csv", (), "the file is empty"),
        ("text.csv", (), "data row 1, column b: expected a number, found 'x'"),
        ("none.csv", (), "expected an existing file"),
        ("folder", (), "expected a file"),
        ("good.csv", (), "data row 1, column breed: expected a number, found 'siam'"),
        ("good.csv", ("--fine", "breed", "--label", "sort"), "label=sort: expected a column of good.csv"),
        ("good.csv", ("--fine", "breed", "--p", "two"), "p=two: expected a number >= 1, or auto."),
        ("good.csv", ("--fine", "breed", "--p", "0.5"), "p=0.5: expected a number >= 1"),
        ("good.csv", ("--fine", "breed", "--p", "inf"), "p=inf: expected a number >= 1"),
        ("good.csv", ("--fine", "breed", "--seed", "-1"), "seed=-1: expected a whole number from 0"),
        ("good.csv", ("--fine", "breed", "--test", "none.csv"), "data=none.csv: expected an existing file"),
        ("across.csv", ("--fine", "fine"), "expected every sub-class within one class"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(tmp_path, name, words, message):
    path = stored(tmp_path, name)
    before = sorted(tmp_path.iterdir())
    result = command("fit", path, *words, *ROUGH, "-o", tmp_path / "head.safetensors")
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("polyrelu: error: ")
    assert result.stderr.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.slow
def test_only_a_net_is_replaced(tmp_path):
    table = write_table(tmp_path / "a.csv", *animals(40))
    words = ("fit", table, "--fine", "breed", *ROUGH, "-o")
    (tmp_path / "notes.safetensors").write_text("my notes")
    assert "is no net of polyrelu" in command(*words, tmp_path / "notes.safetensors").stderr
    assert (tmp_path / "notes.safetensors").read_text() == "my notes"
    assert "ends in .safetensors" in command(*words, table).stderr
    polyrelu.save(polyrelu.PolyReLUNet(3, 4), tmp_path / "net.safetensors")
    assert command(*words, tmp_path / "net.safetensors").exit_code == 0
    assert load_about(tmp_path / "net.safetensors")["classes"] == ["cat", "dog"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fit", "save"])  # in "certify" the trained head is kept: test_interrupt_heads.py
def test_interrupted_leaves_what_was_there(tmp_path, monkeypatch, method):
    table = write_table(tmp_path / "a.csv", *animals(40))
    polyrelu.save(polyrelu.PolyReLUNet(3, 4), tmp_path / "net.safetensors")
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(PolyReLUClassifier, method, interrupted)
    result = command("fit", table, "--fine", "breed", *ROUGH, "-o", tmp_path / "net.safetensors")
    assert result.exit_code == 130
    assert result.stderr == "polyrelu: interrupted; nothing is written, and the same command begins anew\n"
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before
