"""Which column is what, and which file is a header, labels or numbers: each rule on its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from polyrelu.data.read import read_dataset_file
from polyrelu.data.tables.columns import FEWEST, InputSchema, as_whole_numbers, label_column, lay_out, names_rows
from polyrelu.data.tables.csv_parquet import _is_header, _is_text
from polyrelu.data.tables.table import open_table, read_table_file
from polyrelu.errors import InputError

PATH = Path("table.csv")


def laid(names, text=(), *, headed=True, label=None, fine=None, takes=None, distinct=()):
    return lay_out(
        PATH,
        names,
        headed=headed,
        text=set(text),
        distinct=lambda i: i in distinct,
        label=label,
        fine=fine,
        takes=takes,
    )


def test_a_numbered_label_is_one_of_a_table_without_header():
    assert InputSchema(2, None, "3").numbered(3)
    assert not InputSchema(2, ("a", "b"), "3").numbered(3)  # the head knows names
    assert not InputSchema(2, None, None).numbered(3)  # no label at all
    assert not InputSchema(2, None, "y").numbered(3)  # a name, no number
    assert not InputSchema(2, None, "3").numbered(2)  # no column more than it takes


def test_labels_by_the_name_given_a_usual_one_or_the_last():
    assert laid(["a", "b", "c"], label="a").label == 0
    assert laid(["a", "target", "c"]).label == 1
    found = laid(["a", "b", "c"])
    assert found.label == 2 and found.features == (0, 1) and "last column, 'c'" in found.notes[0]
    found = laid(["1", "y", "3"], headed=False)  # a cell of the first row, and no name
    assert found.label == 2 and found.names is None and "number 3" in found.notes[0]
    assert laid(["a", "b", "c"], fine="b").fine == 1 and laid(["a", "b", "c"], fine="b").features == (0,)


def test_row_numbers_are_left_out_by_name_only_where_there_are_names():
    assert laid(["id", "a", "y"]).features == (1,)
    assert laid(["id", "a", "y"], headed=False).features == (0, 1)


def test_text_is_left_out_where_it_names_the_rows_and_only_there():
    assert laid(["a", "b", "y"], text=[0], distinct=[0]).features == (1,)
    assert laid(["a", "b", "y"], text=[0]).features == (0, 1)  # refused later, by its cell
    many = laid([*"abcdef", "g", "y"], text=range(6), distinct=range(6)).notes[-1]
    assert many.endswith(", ....") and "'f'" not in many
    five = laid([*"abcde", "g", "y"], text=range(5), distinct=range(5)).notes[-1]
    assert "..." not in five and "'e'" in five


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"names": ["y"]}, "at least one column of numbers and one of labels"),
        ({"names": []}, "at least one column"),
        ({"names": ["id", "y"]}, "beside the labels"),
        ({"names": ["a", "a", "y"]}, "'a' is there twice"),
        ({"names": ["a", "b"], "label": "z"}, "label=z: expected a column"),
        ({"names": ["a", "b"], "fine": "z"}, "fine=z: expected a column"),
        ({"names": ["1", "2"], "headed": False, "label": "z"}, "label=z: expected a column number from 1 to 2"),
        ({"names": ["1", "2"], "headed": False, "label": "3"}, "label=3: expected a column number from 1 to 2"),
        ({"names": ["1", "2"], "headed": False, "label": "0"}, "label=0: expected a column number from 1 to 2"),
        ({"names": ["a", "b"], "takes": InputSchema(2, ("a", "c"))}, "has no column 'c', which the head takes"),
        ({"names": ["a", "b", "c"], "takes": InputSchema(4)}, "has 3 columns beside the labels, but the head takes 4"),
        ({"names": ["a"], "takes": InputSchema(2)}, "has 1 columns beside the labels, but the head takes 2"),
    ],
    ids=str,
)
def test_what_cannot_be_laid_out_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        laid(given.pop("names"), **given)


def test_columns_are_called_by_number_without_a_header():
    assert laid(["1", "2"], headed=False, label="2").label == 1
    assert laid(["1", "2"], headed=False, label="1").label == 0
    assert laid(["1", "1", "1"], headed=False).features == (0, 1)  # equal numbers are no equal names


def test_a_head_takes_its_columns_and_labels_need_not_be_there():
    found = laid(["b", "x", "a"], takes=InputSchema(2, ("a", "b")))
    assert found.features == (2, 0) and found.label is None
    assert laid(["b", "y", "a"], takes=InputSchema(2, ("a", "b"), "y")).label == 1
    assert laid(["p", "q"], takes=InputSchema(2)).label is None
    assert laid(["p", "q", "r"], takes=InputSchema(2)).label == 2  # one column more than it takes
    assert laid(["p", "q", "r"], text=[2], takes=InputSchema(2)).label == 2
    assert laid(["1", "2", "3"], headed=False, takes=InputSchema(2, None, "1")).label == 0
    assert laid(["a"], takes=InputSchema(1)).features == (0,)


@pytest.mark.parametrize(
    ("cells", "text", "row"),
    [
        (np.array([1.0, np.nan]), False, 2),
        (np.array([np.inf, 1.0]), False, 1),
        (np.array(["a", " "]), True, 2),
        (np.array(["NaN", "a"]), True, 1),
        (np.array([None, "a"], dtype=object), True, 1),
        (np.array(["1", "a"]), False, 2),
        (np.array(["a", "1"]), True, 2),
    ],
    ids=str,
)
def test_a_row_without_a_label_is_named(cells, text, row):
    layout = laid(["a", "y"])
    with pytest.raises(InputError, match=f"data row {row + 7}, column y"):
        label_column(cells, text, layout, 1, first=7)


def test_labels_keep_their_type():
    layout = laid(["a", "y"])
    for cells in (np.array([1, 2]), np.array([True, False]), np.array([1, 2], "u1")):
        assert label_column(cells, False, layout, 1) is cells and as_whole_numbers(cells) is cells
    assert (
        as_whole_numbers(np.array([1.0, 2.0])).dtype == np.int64
        and as_whole_numbers(np.array([1.5, 2.0])).dtype == np.float64
    )
    assert (
        as_whole_numbers(np.array([2.0**53])).dtype == np.float64
        and as_whole_numbers(np.array([2.0**53 - 1])).dtype == np.int64
    )
    assert as_whole_numbers(np.array([-(2.0**53)])).dtype == np.float64
    assert as_whole_numbers(np.array([str(2**60 + 1)])).tolist() == [2**60 + 1]
    assert as_whole_numbers(np.array(["1e3", "2.5"])).tolist() == [1000.0, 2.5]


def test_ten_different_texts_name_the_rows():
    assert names_rows([str(i) for i in range(FEWEST)]) and not names_rows([str(i) for i in range(FEWEST - 1)])
    assert not names_rows(["a"] * FEWEST)


@pytest.mark.parametrize(
    ("first", "label", "header"),
    [
        (["a", "b"], None, True),
        (["1", "2"], None, False),
        (["1", "y"], None, True),
        (["1", "Target"], None, True),
        (["1", "mine"], None, False),
        (["1", "mine"], "mine", True),
        (["1", "2"], "2", False),
        (["0", "1", "2"], None, True),
        (["0", "1", "2", "kind"], None, True),
        (["0", "1"], None, False),
        (["0", "1", "3"], None, False),
        (["1", "2", "3"], None, False),
    ],
    ids=str,
)
def test_what_a_header_is(first, label, header):
    assert _is_header(first, label) == header


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (np.array(["a", "b"]), True),
        (np.array([b"a"]), True),
        (np.array(["1"]), True),
        (np.array([1.0]), False),
        (np.array([None, "a"], dtype=object), True),
        (np.array([None, None], dtype=object), False),
        (np.array(["a", 1], dtype=object), False),
        (np.array(["a", "1"], dtype=object), False),
        (np.array([], dtype=object), False),
    ],
    ids=str,
)
def test_what_text_is(column, text):
    assert _is_text(column) == text


def test_files_without_rows_or_labels(tmp_path):
    for lines, message in (("", "is empty"), ("a,b,y\n", "below its header"), ("\n\n", "is empty")):
        (tmp_path / "a.csv").write_text(lines)
        with pytest.raises(InputError, match=message):
            read_table_file(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("a,b,y\n1,,u\n2,,v\n")
    with pytest.raises(InputError, match="data row 1, column b: expected a number, found ''"):
        read_table_file(tmp_path / "a.csv")
    np.save(tmp_path / "a.npy", np.eye(3))
    with pytest.raises(InputError, match=r"beside it in a_y\.npy"):
        read_dataset_file(tmp_path / "a.npy")
    np.savez(tmp_path / "a.npz", X=np.eye(3))
    with pytest.raises(InputError, match=r"X \(n, D\) and y \(n,\) inside"):
        read_dataset_file(tmp_path / "a.npz")


@pytest.mark.slow
def test_a_parquet_table_that_unpacks_to_far_more_than_it_is(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    from polyrelu.data.tables import csv_parquet as _sheets

    path = tmp_path / "a.parquet"
    parquet.write_table(
        pyarrow.table({"x": np.zeros(10**5), "v": [[1.0, 2.0]] * 10**5, "y": ["a", "b"] * 50_000}), path
    )
    assert len(read_table_file(path).X) == 10**5  # small enough in any case
    monkeypatch.setattr(_sheets, "ALWAYS_UNPACKED", 4 * 10**5 * 8)
    monkeypatch.setattr(_sheets, "MOST_EXPANSION", 1)
    assert len(read_table_file(path).X) == 10**5
    monkeypatch.setattr(_sheets, "ALWAYS_UNPACKED", 4 * 10**5 * 8 - 1)
    with pytest.raises(
        InputError, match=r"a\.parquet: [\d,]+ bytes that unpack to 400,000 numbers: expected at most 1 times"
    ):
        read_table_file(path)
    monkeypatch.setattr(_sheets, "MOST_EXPANSION", 10**4)
    assert len(read_table_file(path).X) == 10**5


def test_parquet_tables_that_hold_nothing(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    empty = pyarrow.array([], type=pyarrow.list_(pyarrow.float64()))
    numbers, text = pyarrow.array([], type=pyarrow.float64()), pyarrow.array([], type=pyarrow.string())
    for table in ({}, {"x": numbers, "y": text}, {"x": empty, "y": text}):
        parquet.write_table(pyarrow.table(table), path)
        with pytest.raises(InputError, match="the table is empty"):
            read_table_file(path)
    for row, found in (([], "0 numbers"), (None, "nothing"), ([1.0], "1 numbers")):
        parquet.write_table(pyarrow.table({"x": [[1.0, 2.0], row], "y": ["a", "b"]}), path)
        with pytest.raises(InputError, match=f"data row 2, column x: expected 2 numbers.*found {found}"):
            read_table_file(path)


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_what_is_guessed_is_said_and_nothing_else(tmp_path, suffix):
    def written(**arrays):
        path = tmp_path / f"a.{suffix}"
        if suffix == "npz":
            np.savez(path, **arrays)
        else:
            save_file({name: torch.tensor(array) for name, array in arrays.items()}, path)
        return path

    X, y, other = np.eye(3), np.array([0, 1, 0]), np.array([2, 2, 3])
    assert open_table(written(X=X, y=y)).notes == () and open_table(written(X=X)).notes == ()
    assert open_table(written(x=X, y=y)).notes == ()
    assert open_table(written(X=X, target=y)).notes == ("Labels are the array 'target'.",)
    assert open_table(written(X=X, target=y), label="target").notes == ()
    assert open_table(written(features=X, y=y)).notes == ("Rows are the array 'features'.",)
    both = written(X=X, y=y, mine=other)
    assert open_table(both, label="mine").y.tolist() == [2, 2, 3]
    assert open_table(both, takes=InputSchema(3, None, "mine")).y.tolist() == [2, 2, 3]
    assert open_table(both, label="y", takes=InputSchema(3, None, "mine")).y.tolist() == [0, 1, 0]
    assert open_table(both, takes=InputSchema(3, None, "yours")).y.tolist() == [0, 1, 0]
    assert open_table(written(X=y, embeddings=X), label="X").X.shape == (3, 3)  # rows are what is left
    assert open_table(written(X=y, embeddings=X, y=y), fine="X").fine.tolist() == [0, 1, 0]


def test_labels_beside_rows_are_said_only_where_they_were_guessed(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    assert open_table(tmp_path / "a.npy").notes == () and open_table(tmp_path / "a.npy").y is None
    np.save(tmp_path / "a_y.npy", np.array([0, 1, 0]))
    found = open_table(tmp_path / "a.npy")
    assert found.notes == ("Labels are those in a_y.npy.",) and found.fine is None
    np.save(tmp_path / "mine.npy", np.array([2, 2, 3]))
    found = open_table(tmp_path / "a.npy", label="mine.npy")
    assert found.notes == () and found.y.tolist() == [2, 2, 3]
    found = open_table(tmp_path / "a.npy", fine="mine.npy")
    assert found.fine.tolist() == [2, 2, 3] and found.y.tolist() == [0, 1, 0]


def test_the_schema_that_a_file_of_a_head_names():
    assert InputSchema.from_json({"features": ["a", "b"], "label": "kind"}, "file", 2) == InputSchema(
        2, ("a", "b"), "kind"
    )
    assert InputSchema.from_json({"features": None}, "file", 2) == InputSchema(2, None, None)
    for names in (["a"], ["a", 1], "ab", {"a": 0, "b": 1}):
        with pytest.raises(InputError, match="path=file: expected 2 names of columns, or none"):
            InputSchema.from_json({"features": names}, "file", 2)
    with pytest.raises(InputError, match="path=file: expected a text as the name of the labels"):
        InputSchema.from_json({"label": 3}, "file", 2)
