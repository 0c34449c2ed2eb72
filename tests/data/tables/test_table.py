"""Tables of people's own: what is read, what is guessed and said, and errors that name the column and row."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from polyrelu.data import read
from polyrelu.data.read import class_indices, read_table
from polyrelu.data.tables import csv_parquet as _sheets
from polyrelu.data.tables.columns import InputSchema
from polyrelu.data.tables.table import read_table_blocks, read_table_file
from polyrelu.errors import InputError

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.0, 3.0], [0.25, 4.0, -2.0], [7.0, 8.0, 9.0]])
WORDS = ["cat", "dog", "cat", "emu"]


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def table_of(path, header, labels, rows=X):
    return write(path, header, *(",".join(map(str, [*row, label])) for row, label in zip(rows, labels, strict=True)))


def refused(path, *parts, **options):
    """Reading fails with one line that has these parts."""
    with pytest.raises(InputError) as caught:
        read_table_file(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    for part in (path.name, *parts):
        assert part in message, message


# -------------------------------------------------------------------------------------------------- what is read


def test_a_table_with_names_and_text_labels(tmp_path):
    found = read_table_file(table_of(tmp_path / "a.csv", "a,b,c,species", WORDS))
    assert np.array_equal(found.X, X)
    assert found.y.tolist() == WORDS
    assert found.features == ("a", "b", "c")
    assert found.label == "species"
    assert found.notes == ("Labels are taken from the last column, 'species'; --label NAME names another.",)


@pytest.mark.parametrize("name", ["y", "Label", "target", "CLASS", "labels"])
def test_a_usual_name_of_the_labels_is_found_anywhere(tmp_path, name):
    path = write(tmp_path / "a.csv", f"a,{name},b", "1,cat,2", "3,dog,5")
    found = read_table_file(path)
    assert found.X.tolist() == [[1, 2], [3, 5]]
    assert found.y.tolist() == ["cat", "dog"]
    assert found.notes == (f"Labels are in column {name!r}.",)


def test_label_and_fine_columns_that_are_named(tmp_path):
    path = write(tmp_path / "a.csv", "breed,a,kind,b", "tabby,1,cat,2", "poodle,3,dog,5", "tabby,4,cat,6")
    found = read_table_file(path, label="kind", fine="breed")
    assert found.X.tolist() == [[1, 2], [3, 5], [4, 6]]
    assert found.y.tolist() == ["cat", "dog", "cat"]
    assert found.fine.tolist() == ["tabby", "poodle", "tabby"]
    assert found.notes == ()
    refused(path, "label=sort: expected a column of a.csv, it has breed, a, kind, b", label="sort")
    refused(path, "fine=sort: expected a column", label="kind", fine="sort")


def test_a_table_without_header_is_called_by_numbers(tmp_path):
    path = write(tmp_path / "a.csv", "cat,1,2", "dog,3,4")
    found = read_table_file(path, label="1")
    assert found.X.tolist() == [[1, 2], [3, 4]]
    assert found.y.tolist() == ["cat", "dog"]
    assert found.features is None
    refused(path, "label=4: expected a column number from 1 to 3", label="4")


def test_columns_that_pandas_numbers_are_a_header(tmp_path):
    found = read_table_file(write(tmp_path / "a.csv", ",0,1,2,species", "0,5,6,7,cat", "1,6,7,9,dog"))
    assert found.X.tolist() == [[5, 6, 7], [6, 7, 9]]
    assert found.features == ("0", "1", "2")


@pytest.mark.parametrize("name", ["id", "Index", "Unnamed: 0", ""])
def test_a_column_that_numbers_the_rows_is_left_out(tmp_path, name):
    found = read_table_file(write(tmp_path / "a.csv", f"{name},a,b,y", "0,5,6,1", "1,6,7,0"))
    assert found.X.tolist() == [[5, 6], [6, 7]]
    assert f"Columns left out, for they number or name the rows: {name!r}." in found.notes


def test_a_text_that_is_different_in_every_row_is_left_out_and_any_other_is_refused(tmp_path):
    rows = [f"{i},photo{i}.png,{i % 2}" for i in range(12)]
    found = read_table_file(write(tmp_path / "a.csv", "a,file,y", *rows))
    assert found.X[:, 0].tolist() == list(range(12))
    assert "Columns left out, for they number or name the rows: 'file'." in found.notes
    path = write(tmp_path / "b.csv", "a,sex,y", *(f"{i},{'fm'[i % 2]},{i % 2}" for i in range(12)))
    refused(path, "data row 1, column sex: expected a number, found 'f'")


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["3", "8", "3"], [3, 8, 3]),
        (["3.0", "8.00", "3"], [3, 8, 3]),
        (["1", str(2**60 + 1), "1"], [1, 2**60 + 1, 1]),
        (["0.5", "1", "0.5"], [0.5, 1.0, 0.5]),
        (["True", "False", "True"], ["True", "False", "True"]),
        ([" a b ", "é", " a b "], ["a b", "é", "a b"]),
        (['"a,b"', "c", '"a,b"'], ["a,b", "c", "a,b"]),
    ],
)
def test_labels_keep_their_kind(tmp_path, cells, labels):
    found = read_table_file(write(tmp_path / "a.csv", "a,y", *(f"{i},{cell}" for i, cell in enumerate(cells))))
    assert found.y.tolist() == labels
    assert {type(one) for one in found.y.tolist()} == {type(one) for one in labels}


@pytest.mark.parametrize("name", ["a.npz", "a.safetensors"])
@pytest.mark.parametrize(("rows", "labels"), [("embeddings", "target"), ("features", "Y"), ("arr_0", "arr_1")])
def test_archives_by_the_usual_names(tmp_path, name, rows, labels):
    if name.endswith("npz"):
        np.savez(tmp_path / name, **{rows: X, labels: [3, 8, 8, 3]})
    else:
        save_file({rows: torch.from_numpy(X), labels: torch.tensor([3, 8, 8, 3])}, tmp_path / name)
    found = read_table_file(tmp_path / name)
    assert np.array_equal(found.X, X)
    assert found.y.tolist() == [3, 8, 8, 3]
    assert found.notes == (f"Rows are the array {rows!r}.", f"Labels are the array {labels!r}.")


def test_arrays_that_are_named(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=[0, 0, 1, 1], kind=WORDS, breed=[b"p", b"q", b"p", b"r"])
    found = read_table_file(tmp_path / "a.npz", label="kind", fine="breed")
    assert found.y.tolist() == WORDS
    assert found.fine.tolist() == ["p", "q", "p", "r"]
    refused(tmp_path / "a.npz", "label=sort: expected the name of an array in a.npz, it holds X, y, kind", label="sort")


def test_rows_alone_have_no_labels(tmp_path):
    np.savez(tmp_path / "a.npz", X=X)
    assert read_table_file(tmp_path / "a.npz").y is None


def test_npy_stays_in_its_file_and_labels_may_have_any_name(tmp_path):
    np.save(tmp_path / "rows.npy", X)
    np.save(tmp_path / "animals.npy", np.array(WORDS))
    assert read_table_file(tmp_path / "rows.npy").y is None
    found = read_table_file(tmp_path / "rows.npy", label="animals.npy")
    assert isinstance(found.X, np.memmap)
    assert found.y.tolist() == WORDS
    refused(tmp_path / "rows.npy", "label=plants.npy: expected an .npy file, here or beside", label="plants.npy")
    np.save(tmp_path / "rows_y.npy", np.array([1, 2, 3, 4]))
    found = read_table_file(tmp_path / "rows.npy")
    assert found.y.tolist() == [1, 2, 3, 4]
    assert found.notes == ("Labels are those in rows_y.npy.",)


def test_half_precision_tensors(tmp_path):
    save_file({"X": torch.from_numpy(X).bfloat16(), "y": torch.tensor([0, 1, 1, 0])}, tmp_path / "a.safetensors")
    assert np.array_equal(read_table_file(tmp_path / "a.safetensors").X, X)


class Column:
    def __init__(self, values):
        self.values = values

    def to_numpy(self):
        return self.values


class Parquet:
    def __init__(self, **columns):
        self.columns, self.column_names = list(columns.values()), tuple(columns)

    def column(self, number):
        return Column(self.columns[number])


@pytest.fixture
def parquet(tmp_path, monkeypatch):
    """A .parquet file of these columns, with the few calls of pyarrow that are used."""

    def make(**columns):
        reader = ModuleType("pyarrow.parquet")
        reader.read_table = lambda _: Parquet(**columns)
        about = SimpleNamespace(num_row_groups=0, num_columns=0, row_group=None)
        reader.ParquetFile = lambda _: SimpleNamespace(metadata=about)
        monkeypatch.setitem(sys.modules, "pyarrow", ModuleType("pyarrow"))
        monkeypatch.setitem(sys.modules, "pyarrow.parquet", reader)
        (tmp_path / "a.parquet").write_bytes(b"")
        return tmp_path / "a.parquet"

    return make


def objects(*values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def test_parquet_with_text_labels_and_a_column_of_vectors(parquet):
    vectors = objects(*(np.array(row) for row in X))
    found = read_table_file(parquet(embedding=vectors, size=np.arange(4), kind=objects(*WORDS)))
    assert np.array_equal(found.X, np.column_stack([X, np.arange(4)]))
    assert found.features == ("embedding_0", "embedding_1", "embedding_2", "size")
    assert found.y.tolist() == WORDS


def test_bad_parquet(parquet):
    ragged = objects(np.ones(3), np.ones(2))
    refused(parquet(e=ragged, y=np.arange(2)), "data row 2, column e: expected 3 numbers", "found 2 numbers")
    refused(parquet(e=objects(np.ones(3), None), y=np.arange(2)), "data row 2, column e", "found nothing")
    refused(parquet(a=objects(1.0, "x"), y=np.arange(2)), "data row 2, column a: expected a number, found 'x'")
    refused(parquet(a=np.array([1.0, np.nan]), y=np.arange(2)), "data row 2, column a: expected a number, found nan")
    refused(parquet(a=np.arange(2), y=objects("x", None)), "data row 2, column y: expected a label in every row")
    refused(parquet(a=np.arange(0), y=np.arange(0)), "the table is empty")

    times = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[ns]")
    refused(parquet(a=times, b=np.ones(2), y=np.arange(2)), "data row 1, column a: expected a number")


def test_real_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    writer = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"e": X.tolist(), "kind": WORDS, "id": np.arange(4)})
    writer.write_table(table, tmp_path / "a.parquet")
    found = read_table_file(tmp_path / "a.parquet", label="kind")
    assert np.array_equal(found.X, X)
    assert found.y.tolist() == WORDS
    writer.write_table(pa.table({"a": pa.array([1, None, 3]), "y": WORDS[:3]}), tmp_path / "b.parquet")
    refused(tmp_path / "b.parquet", "data row 2, column a: expected a number, found nan")


# ------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("lines", "parts"),
    [
        (["a,b,y", "1,2,0", "3,,1"], ["data row 2, column b: expected a number, found ''"]),
        (["a,b,y", "1,2,0", "3,NA,1"], ["data row 2, column b: expected a number, found 'NA'"]),
        (["a,b,y", "1,?,0", "3,4,1"], ["data row 1, column b: expected a number, found '?'"]),
        (["a,b,y", "1,2,0", "3,nan,1"], ["data row 2, column b: expected a number, found nan"]),
        (["a,b,y", "1,2,0", "3,-inf,1"], ["data row 2, column b: expected a number, found -inf"]),
        (["a,b,y", "1,2,cat", "3,4,"], ["data row 2, column y: expected a label in every row, found ''"]),
        (["a,b,y", "1,2,cat", "3,4,nan"], ["data row 2, column y: expected a label in every row"]),
        (["a,b,y", "1,2,0", "3,4,cat"], ["data row 2, column y: expected a number, as in other rows", "'cat'"]),
        (["a,b,y", "1,2,0", "3,4,0,1"], ["data row 2 has 4 columns: expected 3"]),
        (["a,b,y", "1,2,cat", "3,dog"], ["data row 2 has 2 columns: expected 3"]),
        (["a,b,y", "1,2,inf", "3,4,0"], ["data row 1: expected a label in every row"]),
        (["a,a,y", "1,2,0", "3,4,1"], ["a name of its own for every column, 'a' is there twice"]),
        (["y", "1", "2"], ["at least one column of numbers and one of labels"]),
        (["id,y", "1,0", "2,1"], ["at least one column of numbers beside the labels"]),
    ],
)
def test_bad_tables_name_the_column_and_row(tmp_path, lines, parts):
    refused(write(tmp_path / "a.csv", *lines), *parts)


@pytest.mark.parametrize("spelling", ["nan", "NaN", "NAN", "Nan", " nAn "])
@pytest.mark.parametrize("labels", [("cat", "dog", "cat"), ("0", "1", "0"), ("0.5", "1.5", "0.5")], ids=str)
@pytest.mark.parametrize("row", [0, 1, 3])
def test_a_label_that_is_nan_in_any_spelling_is_named_by_its_row(tmp_path, spelling, labels, row):
    cells = [*labels[:row], spelling, *labels[row:]]
    path = write(tmp_path / "a.csv", "a,b,y", *(f"{i},2,{cell}" for i, cell in enumerate(cells)))
    refused(path, f"data row {row + 1}", "expected a label in every row")


def test_errors_far_down_count_all_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(_sheets, "CELLS", 30)  # ten rows at a time
    lines = [f"{i},2,cat" for i in range(47)]
    path = write(tmp_path / "a.csv", "a,b,y", *lines, "47,x,cat")
    refused(path, "data row 48, column b: expected a number, found 'x'")
    refused(write(tmp_path / "b.csv", "a,b,y", *lines, "47,2,5"), "data row 48, column y: expected text", "'5'")
    refused(write(tmp_path / "c.csv", "a,b,y", *lines, "47,nan,cat"), "data row 48, column b: expected a number")
    assert len(read_table_file(write(tmp_path / "d.csv", "a,b,y", *lines)).y) == 47


@pytest.mark.parametrize(
    ("arrays", "part"),
    [
        ({"X": np.where(X == 4, np.nan, X), "y": WORDS}, "data row 3, column number 2: expected a number, found nan"),
        ({"X": X, "y": [0.0, np.nan, 1.0, 1.0]}, "data row 2: expected a label in every row"),
        ({"X": X, "y": ["a", "", "b", "b"]}, "data row 2: expected a label in every row"),
        ({"X": X, "y": WORDS[:3]}, "one label per row of X, shape (4,), y is (3,)"),
        ({"X": X, "y": np.eye(4)}, "one label per row of X"),
        ({"X": X[0], "y": WORDS}, "X of shape (n, D)"),
        ({"X": X[:0], "y": []}, "at least one row"),
        ({"X": X.astype(str), "y": WORDS}, "numbers in X"),
        ({"X": X * 1j, "y": WORDS}, "numbers in X"),
        ({"X": X, "y": [1j, 0, 0, 0]}, "numbers or text in y"),
    ],
)
def test_bad_archives(tmp_path, arrays, part):
    np.savez(tmp_path / "a.npz", **arrays)
    refused(tmp_path / "a.npz", part)


def test_a_column_that_never_changes_is_said_not_refused(tmp_path):
    found = read_table_file(write(tmp_path / "a.csv", "a,b,c,y", "1,2,3,cat", "1,4,3,dog"))
    assert found.notes[-1] == "2 of 3 columns hold the same number in every row: a, c."
    many = np.zeros((4, 9))
    np.savez(tmp_path / "a.npz", X=many, y=WORDS)
    assert (
        read_table_file(tmp_path / "a.npz").notes[-1].endswith("number 1, number 2, number 3, number 4, number 5, ....")
    )


# --------------------------------------------------------------------------------------------- what a head takes


def test_columns_are_found_by_the_names_of_a_head(tmp_path):
    path = write(tmp_path / "a.csv", "note,c,a,kind,b", "hello,3,1,cat,2", "hello,6,4,dog,5")
    found = read_table_file(path, takes=InputSchema(3, ("a", "b", "c"), "kind"))
    assert found.X.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert found.y.tolist() == ["cat", "dog"]
    assert found.notes == ("Columns left out, for the head does not take them: 'note'.",)
    refused(path, "has no column 'd' and 1 more, which the head takes", takes=InputSchema(3, ("a", "d", "e")))


def test_labels_need_not_be_there_for_a_head(tmp_path):
    path = write(tmp_path / "a.csv", "a,b", "1,2", "3,4")
    for takes in (InputSchema(2, ("a", "b"), "kind"), InputSchema(2)):
        found = read_table_file(path, takes=takes)
        assert found.X.tolist() == [[1, 2], [3, 4]]
        assert found.y is None
    found = read_table_file(path, takes=InputSchema(1))
    assert (found.X.tolist(), found.y.tolist()) == ([[1], [3]], [2, 4])
    refused(path, "has 2 columns beside the labels, but the head takes 3", takes=InputSchema(3))
    np.savez(tmp_path / "b.npz", X=X)
    refused(tmp_path / "b.npz", "has 3 columns, but the head takes 2", takes=InputSchema(2))
    assert read_table_file(write(tmp_path / "c.csv", "1,2", "3,4"), takes=InputSchema(2, ("a", "b"))).X.shape == (2, 2)


def test_the_number_of_the_label_column_is_kept_without_a_header(tmp_path):
    path = write(tmp_path / "a.csv", "7,1,2", "9,3,4")
    label = read_table_file(path, label="1").label
    found = read_table_file(path, takes=InputSchema(2, None, label))
    assert (found.X.tolist(), found.y.tolist()) == ([[1, 2], [3, 4]], [7, 9])
    bare = read_table_file(write(tmp_path / "b.csv", "1,2", "3,4"), takes=InputSchema(2, None, label))
    assert bare.X.tolist() == [[1, 2], [3, 4]] and bare.y is None


def test_what_a_head_does_not_take_is_no_label(tmp_path):
    path = write(tmp_path / "a.csv", "a,b,notes", "1,2,fine", "3,4,")
    found = read_table_file(path, takes=InputSchema(2, ("a", "b"), "kind"))
    assert found.y is None and found.notes == ("Columns left out, for the head does not take them: 'notes'.",)


def test_the_name_of_the_labels_that_a_head_knows_is_found_in_archives(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=[0, 1, 0, 1], kind=WORDS)
    assert read_table_file(tmp_path / "a.npz", takes=InputSchema(3, None, "kind")).y.tolist() == WORDS
    assert read_table_file(tmp_path / "a.npz", takes=InputSchema(3, None, "sort")).y.tolist() == [0, 1, 0, 1]


# ------------------------------------------------------------------------------------------------------ in blocks


@pytest.mark.parametrize("name", ["a.csv", "a.npy", "a.npz"])
def test_blocks_are_the_table(tmp_path, monkeypatch, name):
    monkeypatch.setattr(_sheets, "CELLS", 40)
    rows, labels = np.random.default_rng(0).normal(size=(47, 3)), np.array(["x", "y"])[np.arange(47) % 2]
    if name == "a.csv":
        table_of(tmp_path / name, "a,b,c,y", labels, rows)
    elif name == "a.npy":
        np.save(tmp_path / name, rows)
        np.save(tmp_path / "a_y.npy", labels)
    else:
        np.savez(tmp_path / name, X=rows, y=labels)
    blocks = list(read_table_blocks(tmp_path / name, size=10))
    assert [len(block) for block in blocks] == [10, 10, 10, 10, 7]
    assert np.array_equal(np.concatenate([block.X for block in blocks]), rows)
    assert np.concatenate([block.y for block in blocks]).tolist() == labels.tolist()


def test_bad_blocks_name_the_row_of_the_whole_table(tmp_path):
    rows = np.ones((30, 2), dtype=np.float32)
    rows[25, 1] = np.nan
    np.save(tmp_path / "a.npy", rows)
    with pytest.raises(InputError, match="data row 26, column number 2"):
        list(read_table_blocks(tmp_path / "a.npy", size=10))
    for name in ("none.csv", "none.npy"):
        with pytest.raises(InputError, match="expected an existing file"):
            list(read_table_blocks(tmp_path / name))


# -------------------------------------------------------------------------------------------------- as it is typed


def test_parts_of_a_file_are_those_of_read(tmp_path):
    rows = np.random.default_rng(0).normal(size=(50, 3))
    np.savez(tmp_path / "a.npz", X=rows, y=np.arange(50) % 2)
    for part, count in (("train", 40), ("test", 10)):
        found = read_table(f"{tmp_path / 'a.npz'}:{part}")
        assert len(found) == count
        assert np.array_equal(found.X, read(f"{tmp_path / 'a.npz'}:{part}").rows().numpy())


def test_names_and_recipes():
    found = read_table("digits:parity", fine="cluster")
    assert found.X.shape == (1797, 64)
    assert set(found.y.tolist()) == {-1, 1}
    assert ((found.fine % 2 == 0) == (found.y == 1)).all()
    for options in ({"label": "y"}, {"fine": "breed"}, {"takes": InputSchema(3)}):
        with pytest.raises(InputError):
            read_table("digits:parity", **options)
    with pytest.raises(InputError, match="has none"):
        read_table("digits", fine="cluster")


@pytest.mark.parametrize(
    ("y", "classes", "expected"),
    [
        ([3, 8, 5], [3, 8], [0, 1, -1]),
        ([3.0, 8.0], [3, 8], [0, 1]),
        (["3", "8", "x"], [3, 8], [0, 1, -1]),
        ([3, 8], ["3", "8"], [0, 1]),
        (["01", "1"], ["1", "01"], [1, 0]),
        ([True, False], ["False", "True"], [1, 0]),
        (["True", "False"], [False, True], [1, 0]),
        ([-1, 1], [-1, 1], [0, 1]),
    ],
)
def test_places_among_known_classes(y, classes, expected):
    assert class_indices(np.array(y), np.array(classes)).tolist() == expected
