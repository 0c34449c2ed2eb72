"""`polyrelu predict`: classes, probabilities and proven radii, row by row; and `polyrelu evaluate` of such heads."""

import csv
import importlib
import io
import json
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import stand_in_bracket
from typer.testing import CliRunner

from polyrelu import Budget
from polyrelu.cli import application as cli
from polyrelu.data import InputSchema, Table
from polyrelu.data.tables import csv_parquet as _sheets
from polyrelu.errors import InputError
from polyrelu.estimator import PolyReLUClassifier
from polyrelu.progress import Progress
from polyrelu.workflows import fit as heads
from polyrelu.workflows.fit import NOTHING
from polyrelu.workflows.predict import run as predictions

NAMES = ("a", "b", "c", "d")
KINDS = {"two": ["cat", "dog", "cat"], "three": [3, 8, 5]}


def command(*words):
    return CliRunner().invoke(cli.app, [str(word) for word in words], prog_name="polyrelu")


def rows_of(path):
    with Path(path).open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def points(count, kinds, seed=0):
    """Rows around three centres, with these classes by centre."""
    source = np.random.default_rng(seed)
    centres = 3 * np.random.default_rng(4).normal(size=(3, 4))
    which = np.arange(count) % 3
    return centres[which] + 0.5 * source.normal(size=(count, 4)), np.array(kinds)[which]


def head_of(path, kinds, names=NAMES, label="kind"):
    """A quick head in a file, as `polyrelu fit` writes it."""
    X, y = points(60, kinds)
    head = PolyReLUClassifier(width=8, epochs=100, random_state=0).fit(X, y)
    heads.save(head, path, Table(X, y, features=names, label=label), 2.0)
    return head


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A head for two classes that are text: it, and its file."""
    path = tmp_path_factory.mktemp("two") / "head.safetensors"
    return head_of(path, KINDS["two"]), path


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A head for three classes that are numbers, not from 0 on, without names of columns."""
    path = tmp_path_factory.mktemp("three") / "head.safetensors"
    return head_of(path, KINDS["three"], None, None), path


def table_of(path, X, y=None, names=NAMES, label="kind"):
    head = ",".join([*names, label][: len(names) + (y is not None)])
    lines = [",".join(map(repr, row)) + ("" if y is None else f",{y[i]}") for i, row in enumerate(X.tolist())]
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["two", "three"])
def test_every_number_is_that_of_the_estimator(tmp_path, request, kind):
    head, file = request.getfixturevalue(kind)
    X, y = points(3, KINDS[kind], seed=1)
    np.savez(tmp_path / "new.npz", X=X, y=y)
    out = tmp_path / "predictions.csv"
    result = command("predict", file, tmp_path / "new.npz", "--radius", "-o", out)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == f"{out}\n"
    found = rows_of(out)
    assert [int(row["row"]) for row in found] == list(range(3))
    assert [row["prediction"] for row in found] == [str(one) for one in head.predict(X)]
    assert np.allclose([float(row["probability"]) for row in found], head.predict_proba(X).max(axis=1), rtol=1e-12)
    radii = head.certify(X, tol=0.01, budget=Budget(nodes=30)).lower.tolist()
    assert [float(row["radius"]) for row in found] == radii
    assert [float(row["fraction"]) for row in found] == [radius / 2 for radius in radii]
    accuracy = 100 * float((head.predict(X) == y).mean())
    assert f"accuracy: {accuracy:.1f} %" in result.stderr
    assert f"half of the predictions hold beyond radius {np.median(radii):.4g}" in result.stderr


def test_columns_are_found_by_name_and_labels_by_the_head(tmp_path, two):
    head, file = two
    X, y = points(9, KINDS["two"], seed=1)
    lines = [f"{i},{row[2]!r},{y[i]},{row[0]!r},{row[3]!r},{row[1]!r},z" for i, row in enumerate(X.tolist())]
    (tmp_path / "new.csv").write_text("\n".join(["id,c,kind,a,d,b,note", *lines]), encoding="utf-8")
    result = command("predict", file, tmp_path / "new.csv")
    assert result.exit_code == 0, result.stderr
    assert [line.split(",")[1] for line in result.stdout.splitlines()[1:]] == head.predict(X).tolist()
    assert f"accuracy: {100 * float((head.predict(X) == y).mean()):.1f} %" in result.stderr
    assert "Columns left out, for the head does not take them: 'id', 'note'." in result.stderr


def test_labels_that_are_absent_foreign_or_named(tmp_path, two):
    head, file = two
    X, y = points(9, KINDS["two"], seed=1)
    plain = command("predict", file, table_of(tmp_path / "a.csv", X))
    assert plain.exit_code == 0
    assert plain.stderr == "polyrelu: 9 rows\n"
    foreign = command("predict", file, table_of(tmp_path / "b.csv", X, ["x"] * 9, label="label"))
    assert foreign.stdout == plain.stdout
    assert "no accuracy: no label is a class of the head" in foreign.stderr
    some = np.where(np.arange(9) < 3, "emu", y)
    guessed = command("predict", file, table_of(tmp_path / "c.csv", X, some))
    right = int((head.predict(X) == some).sum())
    assert f"accuracy of the 6 rows with a class of the head's: {100 * right / 6:.1f} %" in guessed.stderr
    named = command("predict", file, tmp_path / "c.csv", "--label", "kind")
    assert f"accuracy: {100 * right / 9:.1f} %" in named.stderr


@pytest.mark.parametrize("name", ["new.csv", "new.npy"])
def test_blocks_give_the_same_lines(tmp_path, monkeypatch, two, name):
    _, file = two
    X, y = points(50, KINDS["two"], seed=2)
    path = table_of(tmp_path / "new.csv", X, y)
    if name == "new.npy":
        path = tmp_path / name
        np.save(path, X)
    whole = command("predict", file, path).stdout
    assert whole.count("\n") == 51
    blocks = predictions.read_table_blocks
    monkeypatch.setattr(_sheets, "CELLS", 35)  # seven rows
    monkeypatch.setattr(predictions, "read_table_blocks", lambda *args, **more: blocks(*args, size=7, **more))
    parts = [line.split(",") for line in command("predict", file, path).stdout.splitlines()[1:]]
    wanted = [line.split(",") for line in whole.splitlines()[1:]]
    assert [part[:2] for part in parts] == [part[:2] for part in wanted]
    assert np.allclose([float(part[2]) for part in parts], [float(part[2]) for part in wanted], rtol=1e-12)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path, three):
    _, file = three
    rows = np.resize(points(300, KINDS["three"])[0].astype(np.float32), (80_000, 4))
    head, takes, _ = predictions.read_head(str(file))

    peaks = []
    for count in (20_000, 80_000):
        np.save(tmp_path / "part.npy", rows[:count])
        blocks = predictions.read_table_blocks(tmp_path / "part.npy", takes=takes)
        with (tmp_path / "out.csv").open("w") as stream:
            tracemalloc.start()
            done = predictions._write(
                stream, head=head, first=next(blocks), others=blocks, label=None, radius=False, typical=None,
                progress=Progress(),
            )  # fmt: skip
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert done.rows == count
    assert peaks[1] < 1.2 * peaks[0]


@pytest.mark.parametrize("problem", ["interrupted", "bad row"])
def test_a_run_that_fails_leaves_what_was_there(tmp_path, monkeypatch, two, problem):
    _, file = two
    X, y = points(50, KINDS["two"], seed=2)
    path = table_of(tmp_path / "new.csv", X, y)
    out = tmp_path / "predictions.csv"
    assert command("predict", file, path, "-o", out).exit_code == 0
    before = {one: one.read_bytes() for one in tmp_path.iterdir() if one != path}
    monkeypatch.setattr(_sheets, "CELLS", 35)
    if problem == "interrupted":
        monkeypatch.setattr(predictions, "class_indices", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    else:
        path.write_text(path.read_text() + "1,2,x,4,cat\n")
    result = command("predict", file, path, "-o", out)
    assert result.exit_code == {"interrupted": 130, "bad row": 2}[problem]
    if problem == "bad row":
        assert "data row 51, column c: expected a number, found 'x'" in result.stderr
    assert {one: one.read_bytes() for one in tmp_path.iterdir() if one != path} == before


def test_what_is_refused(tmp_path, two, three):
    X, y = points(9, KINDS["two"])
    good = table_of(tmp_path / "good.csv", X, y)
    for words, message in (
        ((tmp_path / "none.safetensors", good), "head={0}: expected an existing file written by polyrelu fit"),
        ((good, good), "head={0}: expected"),
        ((two[1], tmp_path / "none.csv"), "data={1}: expected an existing file"),
        ((two[1], table_of(tmp_path / "b.csv", X[:, :3], y, NAMES[:3])), "has no column 'd', which the head takes"),
        ((three[1], table_of(tmp_path / "c.csv", X[:, :3], y, NAMES[:3])), "3 columns beside the labels"),
        ((two[1], "digits"), "has 64 columns, but the head takes 4"),
        ((two[1], good, "-o", good), "it is there and holds no predictions"),
        ((two[1], good, "-o", tmp_path / "a.txt"), "ends in .csv"),
        ((two[1], good, "-o", tmp_path), "ends in .csv"),
        ((two[1], good, "--label", "sort"), "label=sort: expected a column of good.csv"),
    ):
        before = sorted(tmp_path.iterdir())
        result = command("predict", *words)
        assert result.exit_code == 2, words
        assert message.format(*words) in result.stderr, result.stderr
        assert result.stderr.count("\n") == 1
        assert result.stdout == ""
        assert sorted(tmp_path.iterdir()) == before


def test_a_head_says_what_it_takes(two, three):
    assert predictions.read_head(str(two[1]))[1:] == (InputSchema(4, NAMES, "kind"), 2.0)
    assert predictions.read_head(str(three[1]))[1:] == (InputSchema(4, None, None), 2.0)


# --------------------------------------------------------------------------------------------------------- evaluate


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["two", "three"])
def test_evaluate_takes_the_labels_of_a_head(tmp_path, monkeypatch, request, kind):
    head, file = request.getfixturevalue(kind)
    room = importlib.import_module("polyrelu.robust")
    monkeypatch.setattr(room, "bracket", stand_in_bracket.bracket)
    X, y = points(30, KINDS[kind], seed=1)
    words = ("--quiet", "--json", "--out")
    found = command("evaluate", file, "--data", table_of(tmp_path / "a.csv", X, y), *words, tmp_path / "out")
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["table"]["clean"] == pytest.approx(head.score(X, y), rel=1e-12)
    np.savez(tmp_path / "b.npz", X=X, y=y)
    found = command("evaluate", file, f"{tmp_path / 'b.npz'}:test", *words, tmp_path / "part")
    assert found.exit_code == 0, found.stderr
    strange = np.where(np.arange(30) == 4, "emu" if kind == "two" else "4", y.astype("U3"))
    result = command("evaluate", file, table_of(tmp_path / "c.csv", X, strange), *words, tmp_path / "new")
    assert result.exit_code == 2
    assert f"data row 5 has the label {strange[4]}: expected a class of the head" in result.stderr
    np.savez(tmp_path / "d.npz", X=X)
    assert "has no labels" in command("evaluate", file, tmp_path / "d.npz", *words, tmp_path / "new").stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_stdout_is_flushed_a_chunk_at_a_time_also_when_a_bar_stands_before_it(tmp_path, monkeypatch, two):
    """A progress bar puts a stream of its own in the place of sys.stdout: lines still go to the first one, whole."""
    X, y = points(250, KINDS["two"], seed=2)
    path, told = table_of(tmp_path / "new.csv", X, y), []

    class Lines(io.StringIO):
        def flush(self):
            told.append(self.getvalue())

    class Bar(Progress):
        def stage(self, *_):
            monkeypatch.setattr(sys, "stdout", io.StringIO())

        def keep(self, message, finishing="", patience=0.0):
            if message != NOTHING:
                assert finishing == "finishing the rows under way"
                told.append(message)

    monkeypatch.setattr(sys, "stdout", Lines())
    predictions.run_prediction(str(two[1]), str(path), None, True, None, Bar())
    assert [text.count("\n") for text in told[::2]] == [101, 201, 251] and all(one.endswith("\n") for one in told[::2])
    assert [text.partition(" rows")[0] for text in told[1::2]] == [
        f"interrupted; the first {count}" for count in (100, 200, 250)
    ]


def test_without_stdout_a_file_is_asked_for(tmp_path, monkeypatch, two):
    _, file = two
    X, y = points(5, KINDS["two"], seed=2)
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(InputError, match="--out FILE where there is no stdout"):
        predictions.run_prediction(str(file), str(table_of(tmp_path / "new.csv", X, y)), None, False, None, Progress())
