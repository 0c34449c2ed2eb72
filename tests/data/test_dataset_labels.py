"""Labels, sub-classes and arrays as they come: every one that cannot be right is refused, and no code in it is run."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from polyrelu.data.dataset import as_clusters, as_labels, plain_tensor
from polyrelu.data.read import as_label_numbers, read_dataset_file
from polyrelu.data.tables.table import open_table, read_table_blocks, read_table_file
from polyrelu.errors import InputError

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, -1], "one label per row"),
        ([[1], [-1], [1]], "one label per row"),
        (np.array([1, -1, 1], complex), "complex"),
        ([1.0, -1.0, 0.5], r"y\[2\]=0.5"),
        ([1.0, -1.0, float("nan")], r"y\[2\]"),
        ([1, -1, 2], r"y\[2\]=2"),
        ([1, -1, 0], r"y\[2\]=0"),
        ([2.0, 1.0, 1.0], r"y\[0\]=2"),
        ([1, 1, 1], "one class only"),
        ([-1.0, -1.0, -1.0], "one class only"),
        ([True, True, True], "one class only"),
        (["a", "b", "a"], "tensor, array or list"),
        pytest.param(object(), "tensor, array or list", id="object"),
    ],
    ids=str,
)
def test_labels_that_are_none_are_refused(y, message):
    with pytest.raises(InputError, match=message):
        as_labels(y, 3, torch.float32, CPU)


@pytest.mark.parametrize(
    ("y", "dtype"),
    [
        ([1, -1, 1], torch.float32),
        ([1.0, -1.0, -1.0], torch.float32),
        ([0, 1, 1], torch.int64),
        ([0, 2, 5], torch.int64),
        ([True, False, True], torch.int64),
        (np.array([1, 0, 1], "u1"), torch.int64),
        (np.array([1, -1, 1], ">i4"), torch.float32),
    ],
    ids=str,
)
def test_labels_keep_what_they_are(y, dtype):
    found = as_labels(y, 3, torch.float32, CPU)
    assert found.dtype == dtype and found.tolist() == [float(one) for one in np.asarray(y)]


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ([0, 1], "one number per row"),
        ([[0], [1], [2]], "one number per row"),
        ([0.0, 1.0, 2.0], "an integer type"),
        ([True, False, True], "an integer type"),
        (np.array([0, 1, 2], complex), "complex128 numbers"),
        ([0, 1, -1], "cluster numbers >= 0"),
    ],
    ids=str,
)
def test_clusters_that_are_none_are_refused(cluster, message):
    with pytest.raises(InputError, match=message):
        as_clusters(cluster, 3, CPU)
    assert as_clusters([0, 3, 0], 3, CPU).tolist() == [0, 3, 0]


def test_a_tensor_is_no_copy_of_its_graph():
    given = torch.ones(2, requires_grad=True)
    assert not plain_tensor("y", given * 2).requires_grad


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 2], "subtract 1"),
        ([-2, 1], "renumber"),
        ([0.5, 1.0], "not whole numbers"),
        ([0.0, np.nan], "a label in every row"),
        ([0.0, np.inf], "a label in every row"),
        (["a", "b"], "labels are text"),
        (np.array(["a", 1], object), "labels are text"),
    ],
    ids=str,
)
def test_label_numbers_that_must_not_be_guessed(y, message):
    with pytest.raises(InputError, match=message):
        as_label_numbers(y)


@pytest.mark.parametrize(
    ("y", "found", "kind"),
    [
        ([[0], [1]], [0, 1], "i"),
        ([1.0, 0.0], [1, 0], "i"),
        ([-1, 1], [-1, 1], "f"),
        ([1, 1], [1, 1], "f"),
        ([-1, -1], [-1, -1], "f"),
        ([0, 2], [0, 2], "i"),
        ([True, False], [1, 0], "i"),
    ],
    ids=str,
)
def test_label_numbers(y, found, kind):
    again = as_label_numbers(y)
    assert again.tolist() == found and again.dtype.kind == kind


@pytest.mark.parametrize("y", [np.zeros((2, 2)), np.zeros(0), np.zeros(2, complex), np.zeros((2, 1, 1))], ids=str)
def test_what_a_dataset_describes_better_is_left_alone(y):
    found = as_label_numbers(y)
    assert found.dtype == y.dtype and found.shape == (y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y).shape


class Bomb:
    """A pickle that leaves a trace if anyone runs it."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


@pytest.mark.parametrize("part", ["X", "y", "fine"])
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
@pytest.mark.parametrize("reader", ["open_table", "read_table", "table_blocks", "read_file"])
def test_no_code_in_any_array_is_run(tmp_path, part, suffix, reader):
    trace = tmp_path / "trace"
    good = {"X": np.zeros((2, 3)), "y": np.array([1, -1]), "fine": np.array([0, 1])}
    arrays = {**good, part: np.array([Bomb(trace), Bomb(trace)], dtype=object)}
    if suffix == ".npz":
        np.savez(tmp_path / "data.npz", **arrays)
        path, fine = tmp_path / "data.npz", "fine"
    else:
        for name, array in zip(("data", "data_y", "sub"), arrays.values(), strict=True):
            np.save(tmp_path / f"{name}.npy", array, allow_pickle=True)
        path, fine = tmp_path / "data.npy", "sub.npy"
    if reader == "read_file" and part == "fine":
        return  # sub-classes of a file are not asked for there
    with pytest.raises(InputError, match=r"Python objects|damaged|cut short|numbers|text"):
        if reader == "read_file":
            read_dataset_file(path)
        elif reader == "table_blocks":
            list(read_table_blocks(path, fine=fine))
        else:
            (open_table if reader == "open_table" else read_table_file)(path, fine=fine)
    assert not trace.exists()


def test_a_label_file_that_is_named_is_read_without_pickles(tmp_path):
    trace = tmp_path / "trace"
    np.save(tmp_path / "data.npy", np.zeros((2, 3)))
    np.save(tmp_path / "mine.npy", np.array([Bomb(trace)] * 2, dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="Python objects"):
        read_table_file(tmp_path / "data.npy", label="mine.npy")
    assert not trace.exists()


def test_an_archive_that_is_one_array_is_refused(tmp_path):
    with (tmp_path / "a.npz").open("wb") as stream:
        np.save(stream, np.zeros((2, 3)))
    with pytest.raises(InputError, match=r"name it \.npy"):
        read_table_file(tmp_path / "a.npz")


def test_of_two_arrays_whose_names_differ_in_case_alone_the_first_holds_the_labels(tmp_path):
    first, second = np.array([0, 1]), np.array([1, 0])
    np.savez(tmp_path / "rows.npz", X=np.zeros((2, 1)), y=first, Y=second)
    np.savez(tmp_path / "swor.npz", X=np.zeros((2, 1)), Y=second, y=first)
    assert read_table_file(tmp_path / "rows.npz").y.tolist() == [0, 1]
    assert read_table_file(tmp_path / "swor.npz").y.tolist() == [1, 0]


def test_labels_of_pandas_are_refused_with_what_to_do(tmp_path):
    np.save(tmp_path / "rows.npy", np.ones((4, 2)))
    np.save(tmp_path / "rows_y.npy", np.array(["a", "b"] * 2, dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"rows or labels are Python objects.*y\.astype\(str\) makes text"):
        read_table_file(tmp_path / "rows.npy")
