"""Tables: each check of what a file holds, on its own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from polyrelu.data.tables import table as tables
from polyrelu.data.tables.columns import InputSchema
from polyrelu.data.tables.table import as_floats, open_table, read_table_blocks, read_table_file
from polyrelu.errors import InputError


def csv(path, *lines):
    (path / "a.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path / "a.csv"


def npz(path, **arrays):
    np.savez(path / "a.npz", **arrays)
    return path / "a.npz"


def npy(path, X, y=None):
    np.save(path / "a.npy", X)
    if y is not None:
        np.save(path / "a_y.npy", y)
    return path / "a.npy"


X, Y = np.arange(12.0).reshape(4, 3), np.array([1, -1, 1, -1])


@pytest.mark.parametrize("read", [open_table, read_table_file, lambda path: list(read_table_blocks(path))])
def test_only_files_with_a_known_ending_are_opened(tmp_path, read):
    (tmp_path / "a.txt").write_text("x,y\n1,2\n")
    with pytest.raises(InputError, match="a file that ends in"):
        read(tmp_path / "a.txt")
    for name in ("a.csv", "a.npz"):
        with pytest.raises(InputError, match="an existing file"):
            read(tmp_path / name)
        (tmp_path / name).mkdir()
        with pytest.raises(InputError, match="this is a folder"):
            read(tmp_path / name)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.array([["a", "b"]]), "y": [1]}, "numbers in X"),
        ({"X": np.zeros((2, 2), complex), "y": [1, -1]}, "numbers in X"),
        ({"X": np.zeros(3), "y": [1, 1, 1]}, "X of shape"),
        ({"X": np.zeros((2, 2, 2)), "y": [1, -1]}, "X of shape"),
        ({"X": np.zeros((0, 2)), "y": np.zeros(0)}, "X of shape"),
        ({"X": np.zeros((2, 0)), "y": [1, -1]}, "X of shape"),
        ({"X": X, "y": Y[:3]}, "one label per row"),
        ({"X": X, "y": np.zeros((4, 2))}, "one label per row"),
        ({"X": X, "y": np.zeros(4, complex)}, "numbers or text in y"),
        ({"X": X, "y": np.zeros(4, "M8[s]")}, "numbers or text in y"),
        ({"X": X, "y": Y, "fine": Y[:2]}, "fine is"),
        ({"X": X, "y": Y, "fine": np.zeros(4, complex)}, "numbers or text in fine"),
        ({"X": X, "y": np.array([1, 2, np.nan, 1])}, "data row 3.*y has none there"),
        ({"X": X, "y": np.array([1, np.inf, 1, 1])}, "data row 2.*y has none there"),
        ({"X": X, "y": np.array(["a", "b", " ", "c"])}, "data row 3.*y has none there"),
        ({"X": X, "y": Y, "fine": np.array(["a", "", "b", "c"])}, "data row 2.*fine has none there"),
        ({"X": np.where(X == 7, np.nan, X), "y": Y}, "data row 3, column number 2"),
        ({"X": np.where(X == 11, -np.inf, X), "y": Y}, "data row 4, column number 3"),
    ],
)
@pytest.mark.parametrize("blocks", [False, True])
def test_what_cannot_be_a_table_is_refused(tmp_path, arrays, message, blocks):
    path = npz(tmp_path, **arrays)
    fine = "fine" if "fine" in arrays else None
    with pytest.raises(InputError, match=message):
        _ = list(read_table_blocks(path, fine=fine)) if blocks else read_table_file(path, fine=fine)


def test_rows_that_stay_in_their_file_are_checked_too(tmp_path):
    with pytest.raises(InputError, match="X of shape"):
        list(read_table_blocks(npy(tmp_path, np.zeros(3))))
    with pytest.raises(InputError, match="data row 6, column number 2"):
        wrong = np.zeros((7, 3))
        wrong[5, 1] = np.nan
        list(read_table_blocks(npy(tmp_path, wrong), size=2))
    with pytest.raises(InputError, match="one label per row"):
        list(read_table_blocks(npy(tmp_path, X, Y[:3])))


def test_text_is_checked_chunk_by_chunk_and_never_held_whole(tmp_path, monkeypatch):
    path = csv(tmp_path, "a,b,y", "1,2,u", "3,4,v", "5,nan,u")
    with pytest.raises(InputError, match="data row 3, column b"):
        list(read_table_blocks(path))
    monkeypatch.setattr(tables, "open_table", None)  # would read all of it
    good = csv(tmp_path, "a,b,y", "1,2,u", "3,4,v")
    assert [len(part) for part in read_table_blocks(good)] == [2]


@pytest.mark.parametrize("kind", ["u1", "i1", "u2", "i2", "?"])
def test_small_whole_numbers_become_float32(kind):
    assert as_floats(np.ones((2, 2), kind)).dtype == np.float32


@pytest.mark.parametrize("kind", ["u4", "i4", "u8", "i8", "f8"])
def test_large_ones_become_float64(kind):
    assert as_floats(np.ones((2, 2), kind)).dtype == np.float64
    assert as_floats(np.ones((2, 2), "f4")).dtype == np.float32 and as_floats(np.array([["a"]])).dtype.kind == "U"


def test_columns_that_never_change_are_told_unless_a_head_asks(tmp_path):
    for many in (1, 5, 6):
        rows = np.column_stack([np.arange(4.0), *[np.ones(4)] * many])
        said = " ".join(read_table_file(npz(tmp_path, X=rows, y=Y)).notes)
        assert f"{many} of {many + 1} columns hold the same number" in said
        assert said.endswith(", ....") == (many > 5)
        taken = read_table_file(npz(tmp_path, X=rows, y=Y), takes=InputSchema(many + 1))
        assert not any("same number" in one for one in taken.notes)


def test_a_head_takes_so_many_columns(tmp_path):
    path = npz(tmp_path, X=X, y=Y)
    assert read_table_file(path, takes=InputSchema(3)).X.shape == (4, 3)
    for count in (2, 4):
        with pytest.raises(InputError, match=f"has 3 columns, but the head takes {count}"):
            read_table_file(path, takes=InputSchema(count))
    with pytest.raises(InputError, match="X of shape"):
        read_table_file(npz(tmp_path, X=np.zeros(3), y=Y[:3]), takes=InputSchema(3))


def test_labels_of_archives_as_they_are_meant(tmp_path):
    assert read_table_file(npz(tmp_path, X=X, y=Y[:, None])).y.shape == (4,)
    assert read_table_file(npz(tmp_path, X=X, y=np.array([b"a", b"b", b"a", b"b"]))).y.tolist() == ["a", "b", "a", "b"]
    assert read_table_file(npz(tmp_path, X=X, y=Y.astype(float))).y.dtype == np.int64
    assert read_table_file(npz(tmp_path, X=X, y=Y + 0.5)).y.dtype == np.float64


def test_a_net_is_no_table(tmp_path):
    save_file({"X": torch.zeros(2, 2), "y": torch.zeros(2)}, tmp_path / "a.safetensors", {"format": "polyrelu-net"})
    with pytest.raises(InputError, match="this is a net"):
        read_table_file(tmp_path / "a.safetensors")
    save_file({"X": torch.rand(2, 2), "y": torch.arange(2)}, tmp_path / "a.safetensors", {"format": "pt"})
    assert read_table_file(tmp_path / "a.safetensors").y.tolist() == [0, 1]


@pytest.mark.parametrize("option", ["label", "fine"])
def test_an_array_that_is_named_must_be_there(tmp_path, option):
    path = npz(tmp_path, X=X, y=Y)
    with pytest.raises(InputError, match=f"{option}=z: expected the name of an array"):
        read_table_file(path, **{option: "z"})
    with pytest.raises(InputError, match=f"{option}=z.npy: expected an .npy file"):
        read_table_file(npy(tmp_path, X, Y), **{option: "z.npy"})
    with pytest.raises(InputError, match=r"X .n, D. and y .n,. inside"):
        read_table_file(npz(tmp_path, y=Y, z=X))
