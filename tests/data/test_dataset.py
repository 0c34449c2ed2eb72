import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from polyrelu.data import Dataset, OrthonormalMixture, RowSource
from polyrelu.errors import InputError

X4 = torch.arange(8.0).reshape(4, 2)
SIGNS = torch.tensor([1, -1, 1, -1])


class Counting:
    """A row source that remembers which rows were read."""

    def __init__(self, X):
        self.X, self.shape, self.dtype, self.read = X, tuple(X.shape), X.dtype, []

    def __getitem__(self, rows):
        self.read.append((rows.start, rows.stop))
        return self.X[rows]


def mapped(path, array):
    np.save(path, array)
    return np.load(path, mmap_mode="r")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_signs_are_kept_in_the_dtype_of_the_rows(dtype):
    data = Dataset(X4.to(dtype), SIGNS)
    assert data.binary and data.classes == 2 and data.y.dtype == data.dtype == dtype
    assert len(data) == 4 and data.dim == 2


@pytest.mark.parametrize("y", [[1, -1, 1, -1], np.array([1.0, -1, 1, -1]), torch.tensor([1, -1, 1, -1]).to(torch.int8)])
def test_signs_from_lists_arrays_and_any_number_type(y):
    assert torch.equal(Dataset(X4, y).y, SIGNS.float())


@pytest.mark.parametrize("y", [[0, 1, 1, 0], [False, True, True, False], np.array([0, 1, 1, 0], dtype=">i2")])
def test_zero_one_and_bool_are_two_classes_and_stay_so(y):
    data = Dataset(X4, y)
    assert not data.binary and data.classes == 2
    assert data.y.dtype == torch.int64 and data.y.tolist() == [0, 1, 1, 0]


def test_a_class_may_be_absent_but_then_has_no_mean():
    data = Dataset(X4, [0, 2, 2, 0])
    assert data.classes == 3
    with pytest.raises(InputError, match=r"^y=3 classes: expected rows of every class, but class 1 has none\.$"):
        data.class_means()


def test_class_means_in_the_order_plus_minus():
    assert Dataset(X4, SIGNS).class_means().tolist() == [[2.0, 3.0], [4.0, 5.0]]


def test_class_means_of_many_classes_streamed():
    torch.manual_seed(0)
    X, y = torch.randn(3000, 4), torch.arange(3000) % 3
    source = Counting(X)
    means = Dataset(source, y).class_means()
    assert torch.allclose(means, torch.stack([X[y == c].double().mean(0) for c in range(3)]).float(), atol=1e-7)
    assert max(stop - start for start, stop in source.read) <= 1024


def test_every_block_size_gives_the_same_rows():
    data = Dataset(X4, SIGNS)
    for size in (1, 2, 3, 4, 9):
        starts, blocks = zip(*data.blocks(size), strict=True)
        assert list(starts) == list(range(0, 4, size))
        assert torch.equal(torch.cat(blocks), X4)


def test_a_tensor_is_not_copied_by_rows():
    assert Dataset(X4, SIGNS).rows().data_ptr() == X4.data_ptr()


def test_a_memory_map_is_read_by_blocks(tmp_path):
    array = np.random.default_rng(0).standard_normal((2500, 3))
    native, foreign = mapped(tmp_path / "native.npy", array), mapped(tmp_path / "foreign.npy", array.astype(">f8"))
    for view in (native, np.asarray(native), foreign):
        data = Dataset(view, np.arange(2500) % 2)
        assert not isinstance(data.X, torch.Tensor) and isinstance(data.X, RowSource)
        assert data.dtype == torch.float64 and "read by blocks" in repr(data)
        assert np.array_equal(data.rows(1000, 1100).numpy(), array[1000:1100])


def test_a_read_only_or_reversed_array_becomes_a_tensor():
    array = np.arange(8.0)
    array.flags.writeable = False
    assert Dataset(array.reshape(4, 2), SIGNS).rows(3, 4).tolist() == [[6.0, 7.0]]
    assert Dataset(np.arange(8.0).reshape(4, 2)[::-1], SIGNS).rows(0, 1).tolist() == [[6.0, 7.0]]


@pytest.mark.parametrize(
    "index", [[2999, 5, 1030], slice(5, 1500), np.arange(3000) % 7 == 0, [-1, 0], np.uint8([7, 2])]
)
def test_subset_is_the_same_for_tensors_and_sources(index):
    torch.manual_seed(0)
    X, y, cluster = torch.randn(3000, 2), torch.arange(3000) % 2, torch.arange(3000) % 4
    chosen = (
        index if isinstance(index, slice) else np.asarray(index, dtype=None if np.asarray(index).dtype == bool else int)
    )
    kept = Dataset(Counting(X), y, cluster).subset(index)
    assert torch.equal(kept.rows(), X[chosen]) and torch.equal(kept.rows(), Dataset(X, y).subset(index).rows())
    assert torch.equal(kept.y, y[chosen]) and torch.equal(kept.cluster, cluster[chosen])


def test_subset_reads_each_block_once_and_only_if_needed():
    source = Counting(torch.randn(5000, 2))
    data = Dataset(source, torch.arange(5000) % 2)
    source.read.clear()
    data.subset([4999, 3, 4998, 0])
    assert sorted(source.read)[:2] == [(0, 1024), (4096, 5000)] and len(source.read) == 2


def test_to_changes_every_floating_part():
    data = Dataset(X4, SIGNS, [0, 1, 0, 1], torch.eye(2)).to(torch.float64)
    assert data.rows().dtype == data.y.dtype == data.centres.dtype == torch.float64
    assert data.cluster.dtype == torch.int64 and torch.equal(data.rows(), X4.double())
    assert Dataset(X4, [0, 1, 2, 0]).to(torch.float64).y.dtype == torch.int64


def test_to_keeps_a_lazy_set_lazy():
    lazy = OrthonormalMixture(5, 1, 1, 0.1).sample(3000, seed=0, lazy=True)
    wide = lazy.to(torch.float64, device="cpu")
    assert not isinstance(wide.X, torch.Tensor) and wide.X.known_finite
    assert torch.equal(wide.rows(1000, 1100), lazy.rows(1000, 1100).double())


def test_repr_is_one_line_without_numbers():
    assert repr(Dataset(X4, SIGNS, name="toy")) == "Dataset('toy', n=4, dim=2, classes=2, torch.float32)"


def with_value(value, row=2, column=1):
    X = X4.clone()
    X[row, column] = value
    return X


BAD = [
    ((X4[0], SIGNS), r"X=shape \(2,\): expected shape \(n, D\), at least one row and one column\."),
    ((X4[:0], SIGNS[:0]), r"X=shape \(0, 2\): expected shape \(n, D\)"),
    ((X4[:, :0], SIGNS), r"X=shape \(4, 0\): expected shape \(n, D\)"),
    ((X4.long(), SIGNS), r"X=torch.int64 rows: expected floating numbers .*convert with X.float\(\)\."),
    ((X4.long().numpy(), SIGNS), r"X=int64 array: expected floating numbers"),
    ((X4.tolist(), SIGNS), r"X=list: expected a tensor, a numpy array or a row source\."),
    ((X4.to_sparse(), SIGNS), r"X=torch.sparse_coo tensor: expected a dense tensor"),
    ((with_value(float("nan")), SIGNS), r"X\[2, 1\]=nan: expected a finite number\."),
    ((with_value(float("-inf"), 3, 0), SIGNS), r"X\[3, 0\]=-inf: expected a finite number\."),
    ((X4, SIGNS[:3]), r"y=shape \(3,\): expected one label per row of X, shape \(4,\)\."),
    ((X4, SIGNS[:, None]), r"y=shape \(4, 1\): expected one label per row"),
    ((X4, [1, 1, 1, 1]), r"y=one class only, 1 in all 4 rows: expected at least two classes\."),
    ((X4, -torch.ones(4)), r"y=one class only, -1 in all 4 rows"),
    ((X4, [0, 0, 0, 0]), r"y=one class only, 0 in all 4 rows"),
    ((X4, [1, 0, -1, 1]), r"y\[1\]=0: expected \+1 or -1, or classes 0, 1, ... of an integer type\."),
    ((X4, [0.0, 1.0, 1.0, 0.0]), r"y\[0\]=0: expected \+1 or -1"),
    ((X4, [1.0, float("nan"), 1.0, -1.0]), r"y\[1\]=nan: expected"),
    ((X4, ["a", "b", "a", "b"]), r"y=list: expected a tensor, array or list of numbers\."),
    ((X4, torch.ones(4, dtype=torch.complex64)), r"y=torch.complex64 labels: expected"),
    ((X4, SIGNS, [0, 1]), r"cluster=shape \(2,\): expected one number per row of X, shape \(4,\)\."),
    ((X4, SIGNS, [0.0, 1, 0, 1]), r"cluster=torch.float64 numbers: expected an integer type\."),
    ((X4, SIGNS, [0, -1, 0, 1]), r"cluster=-1: expected cluster numbers >= 0\."),
    ((X4, SIGNS, [0, 2, 0, 1], torch.eye(2)), r"cluster=2: expected cluster numbers below 2, the number of centres\."),
    ((X4, SIGNS, None, torch.eye(3)), r"centres=shape \(3, 3\): expected shape \(K, 2\), as many columns as X\."),
    ((X4, SIGNS, None, torch.full((1, 2), float("nan"))), r"centres=NaN or infinity: expected finite numbers\."),
    ((X4, SIGNS, None, None, 3), r"name=3: expected a text\."),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=range(len(BAD)))
def test_bad_input_is_named_in_one_line(arguments, message):
    with pytest.raises(InputError, match="^" + message) as caught:
        Dataset(*arguments)
    assert "\n" not in str(caught.value)


def test_the_first_bad_number_is_found_in_a_stream():
    X = torch.zeros(3000, 3)
    X[2100, 2] = float("inf")
    with pytest.raises(InputError, match=r"^X\[2100, 2\]=inf"):
        Dataset(Counting(X), torch.arange(3000) % 2)


def test_a_source_that_breaks_its_promise_is_caught():
    source = Counting(X4)
    source.dtype = torch.float64
    with pytest.raises(InputError, match=r"^X\[0:1\]=shape \(1, 2\) torch.float32: expected \(1, 2\) torch.float64\.$"):
        Dataset(source, SIGNS)
    source.dtype = torch.int64
    with pytest.raises(InputError, match=r"^X=torch.int64 rows: expected floating"):
        Dataset(source, SIGNS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.rows(2, 9), r"rows=\(2, 9\): expected 0 <= start <= stop <= 4\."),
        (lambda d: d.rows(-1), r"rows=\(-1, 4\): expected"),
        (lambda d: d.blocks(0), r"size=0: expected a whole number >= 1\."),
        (lambda d: d.subset([]), r"index=\[\]: expected"),
        (lambda d: d.subset([4]), r"index=\[4\]: expected row numbers below 4, a mask of 4 rows or a slice\."),
        (lambda d: d.subset([True, False]), r"index=\[True, False\]: expected row numbers below 4"),
        (lambda d: d.subset([0.5]), r"index=\[0.5\]: expected row numbers"),
        (lambda d: d.subset([0, 2]), r"y=one class only, 1 in all 2 rows"),
        (lambda d: d.to(torch.int64), r"dtype=torch.int64: expected a floating torch type"),
        (lambda d: d.to(device=2**63), r"device=9223372036854775808: expected a device of this machine"),
    ],
)
def test_bad_requests_are_named(call, message):
    with pytest.raises(InputError, match="^" + message):
        call(Dataset(X4, SIGNS))


@given(
    n=st.integers(2, 40),
    dim=st.integers(1, 5),
    dtype=st.sampled_from([torch.float16, torch.float32, torch.float64]),
    classes=st.integers(2, 4),
    size=st.integers(1, 50),
)
def test_shapes_and_types_for_any_size(n, dim, dtype, classes, size):
    y = torch.arange(n) % classes
    data = Dataset(torch.ones(n, dim, dtype=dtype), y)
    assert sum(len(block) for _, block in data.blocks(size)) == n == len(data)
    assert all(block.dtype == dtype and block.shape[1] == dim for _, block in data.blocks(size))
    assert data.classes == min(n, classes)
    means = data.class_means()
    assert means.shape == (data.classes, dim) and means.dtype == dtype and bool((means == 1).all())
