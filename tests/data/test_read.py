"""Data as people type it: the right set, or one line that says what is wrong."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import polyrelu
from polyrelu.data import NearlyOrthogonalSphere, OrthonormalMixture, SymmetricSeparable, read
from polyrelu.errors import InputError

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.0, 3.0], [0.25, 4.0, -2.0], [7.0, 8.0, 9.0]])
Y = np.array([0, 2, 1, 0])
ROWS = ["0.5,-1,2,0", "1.5,0,3,2", "0.25,4,-2,1", "7,8,9,0"]


def same(data, X=X, y=Y):
    assert np.array_equal(data.rows().numpy(), X)
    assert np.array_equal(data.y.numpy(), y)


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def refused(text, *parts, **options):
    """Reading fails with one line that has these parts."""
    with pytest.raises(InputError) as caught:
        read(str(text), **options)
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message, message
    return message


# ---------------------------------------------------------------------------------------------------------- recipes


@pytest.mark.parametrize(
    "data",
    [
        OrthonormalMixture(20, 3, 2, 0.1).sample(30, 7),
        OrthonormalMixture(20, 3, 2, 0.25, scale="sqrt_dim", dtype=torch.float64).sample(30, 0),
        OrthonormalMixture(20, 1, 4, 0, scale=2.5, noise=0.3, rotate=5).sample(31, 2**70, balanced=False),
        OrthonormalMixture(7, 3, 2, 1e-300).sample(2000, 1, lazy=True),
        NearlyOrthogonalSphere(12).sample(9, 3),
        NearlyOrthogonalSphere(12, torch.float64).sample(9, 3),
        SymmetricSeparable(6).sample(8, 1),
        SymmetricSeparable(6, 0.3, 0.7, 4, rotate=3, dtype=torch.float64).sample(8, 1),
    ],
    ids=lambda data: data.name,
)
def test_the_name_of_a_set_reads_back_to_the_same_bits(data):
    again = read(data.name)
    assert again.name == data.name
    assert again.dtype == data.dtype
    assert torch.equal(again.rows(), data.rows())
    assert torch.equal(again.y, data.y)
    for part in ("cluster", "centres"):
        mine, theirs = getattr(data, part), getattr(again, part)
        assert (mine is theirs is None) or torch.equal(mine, theirs)


def test_spaces_are_forgiven_and_the_seed_is_zero_unless_given():
    data = read(" mixture: dim=20, clusters = 3+2,alpha=0.1, n=10 ")
    assert torch.equal(data.X, OrthonormalMixture(20, 3, 2, 0.1).sample(10, 0).X)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("mixture:", ["dim=... and clusters=... and alpha=... and n=..."]),
        ("mixture:dim=20,clusters=3+2,alpha=0.1", ["n=... as well"]),
        ("mixture:dim=20,clusters=3+2,alpha=0.1,n=10,dims=3", ["dims=3", "did you mean dim?"]),
        ("mixture:dim=20,clusters=3+2,alpha=0.1,n=10,wavelength=3", ["wavelength=3", "dim, clusters, alpha"]),
        ("mixture:dim=20,dim=21,clusters=3+2,alpha=0.1,n=10", ["dim=21", "twice"]),
        ("mixture:dim=20,clusters=3+2,alpha,n=10", ["alpha", "key=value"]),
        ("mixture:dim=20,clusters=3+2,alpha=,n=10", ["key=value"]),
        ("mixture:dim=2e1,clusters=3+2,alpha=0.1,n=10", ["dim=2e1: expected a whole number"]),
        ("mixture:dim=20,clusters=5,alpha=0.1,n=10", ["clusters=5", "such as 6+4"]),
        ("mixture:dim=20,clusters=3+2,alpha=much,n=10", ["alpha=much: expected a number"]),
        ("mixture:dim=20,clusters=3+2,alpha=nan,n=10", ["alpha=nan: expected a number"]),
        ("mixture:dim=20,clusters=3+2,alpha=-1,n=10", ["alpha=-1.0: expected a finite number >= 0"]),
        ("mixture:dim=4,clusters=3+2,alpha=0.1,n=10", ["dim=4: expected at least 5"]),
        ("mixture:dim=20,clusters=3+2,alpha=0.1,n=0", ["n=0: expected a whole number >= 1"]),
        ("mixture:dim=20,clusters=3+2,alpha=0.1,n=10,dtype=float16", ["dtype=float16: expected float32 or float64"]),
        ("mixture:dim=20,clusters=3+2,alpha=0.1,n=10,balanced=maybe", ["balanced=maybe: expected yes or no"]),
        ("mixture:dim=20,clusters=3+2,alpha=0.1,n=10,scale=big", ["scale=big: expected a number"]),
        ("sphere:dim=20", ["n=... as well"]),
        ("sphere:dim=20,n=5,alpha=1", ["alpha=1", "dim, dtype, n, seed"]),
        ("symmetric:dim=6,n=5", ["n=5: expected an even number"]),
    ],
)
def test_bad_recipes(text, parts):
    refused(text, *parts)


# ------------------------------------------------------------------------------------------------------------ names


def test_digits():
    data = read("digits")
    assert (len(data), data.dim, data.classes, data.binary) == (1797, 64, 10, False)
    assert data.X.min() == 0
    assert data.X.max() == 1
    assert data.dtype == torch.float32
    parity = read("digits:parity")
    assert torch.equal(parity.X, data.X)
    assert torch.equal(parity.cluster, data.y)
    assert torch.equal(parity.y, 1.0 - 2 * (data.y % 2))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("digit", ["did you mean digits?", ".npz"]),
        ("mixtur:dim=3", ["did you mean mixture?"]),
        ("mixture", ["mixture:..."]),
        ("digits:odd", ["labels=odd", "parity, halves, mod3"]),
        ("digits:train:parity:odd", ["expected digits, then perhaps :train"]),
        ("xyzzy", ["expected a file (.npz, .npy, .csv, .parquet, .safetensors), a name or a recipe (digits, "]),
        ("", ["expected a file, a name or a recipe"]),
    ],
)
def test_unknown_names(text, parts):
    message = refused(text, *parts)
    assert text != "xyzzy" or "did you mean" not in message


# ------------------------------------------------------------------------------------------------------------ files


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_npz(tmp_path, dtype):
    centres = np.eye(3)
    np.savez(tmp_path / "a.npz", X=X.astype(dtype), y=Y, cluster=[0, 2, 1, 0], centres=centres, other=["text"])
    data = read(str(tmp_path / "a.npz"))
    same(data)
    assert str(data.dtype).endswith(np.dtype(dtype).name)
    assert data.cluster.tolist() == [0, 2, 1, 0]
    assert np.array_equal(data.centres, centres)
    assert data.name == "a.npz"


def test_x_may_be_a_small_letter_and_the_suffix_a_capital_one(tmp_path):
    np.savez(tmp_path / "a.npz", x=X, y=Y)
    (tmp_path / "a.npz").rename(tmp_path / "A.NPZ")
    same(read(str(tmp_path / "A.NPZ")))


@pytest.mark.parametrize(
    ("rows", "labels"), [("X", "y"), ("train_X", "train_y"), ("embeddings", "embeddings_y"), ("x", "x_y")]
)
def test_npy_pair(tmp_path, rows, labels):
    np.save(tmp_path / f"{rows}.npy", X)
    refused(tmp_path / f"{rows}.npy", f"its labels beside it in {labels}.npy")
    np.save(tmp_path / f"{labels}.npy", Y)
    data = read(str(tmp_path / f"{rows}.npy"))
    same(data)
    assert not isinstance(data.X, torch.Tensor)  # stays in the file


def test_safetensors(tmp_path):
    save_file({"X": torch.from_numpy(X), "y": torch.from_numpy(Y)}, tmp_path / "a.safetensors")
    same(read(str(tmp_path / "a.safetensors")))


def test_a_net_is_not_data(tmp_path):
    polyrelu.save(polyrelu.PolyReLUNet(3, 4), tmp_path / "net.safetensors")
    refused(tmp_path / "net.safetensors", "this is a net", "NET, then DATA")


@pytest.mark.parametrize(
    "lines",
    [
        ROWS,
        ["a,b,c,d", *ROWS],
        ["a,b,c,y", *ROWS],
        ['"a","b","c","Label"', "", *ROWS, ""],
        ["0,1,2,label", *ROWS],  # pandas numbers its columns
        ["\ufeffa,b,c,d", *ROWS],
        ["a,y,b,c", "0.5,0,-1,2", "1.5,2,0,3", "0.25,1,4,-2", "7,0,8,9"],
        ["label,a,b,c", "0,0.5,-1,2", "2.0,1.5,0,3", "1,0.25,4,-2", "0,7, 8 ,9"],
    ],
    ids=range(8),
)
def test_csv(tmp_path, lines):
    same(read(write(tmp_path / "a.csv", *lines)))


@pytest.mark.parametrize(
    ("lines", "parts"),
    [
        ([], ["empty"]),
        (["a,b,y"], ["below its header"]),
        (["1", "2"], ["at least one column of numbers and one of labels"]),
        (["1;2;0", "3;4;1"], ["separated by commas"]),
        (["1,2,0", "3,4"], ["data row 2 has 2 columns: expected 3"]),
        (["a,b", "3,4,1", "3,4,0"], ["2 columns in every row, as in the first line"]),
        (["1,,0", "3,4,1"], ["data row 1, column number 2: expected a number, found ''"]),
        (["a,b,y", "1,2,0", "3,much,1"], ["data row 2, column b", "'much'"]),
        (["a,b,y", "1,2,cat", "3,4,dog"], ["labels are text (cat, dog)", "number them"]),
        (["a,b,y", "1,2,0", "3,nan,1"], ["X[1, 1]=nan: expected a finite number"]),
        (["a,b,y", "1,2,0", "3,4,nan"], ["a label in every row"]),
        (["a,b,y", "1,2,0", "3,4,inf"], ["a label in every row"]),
    ],
)
def test_bad_csv(tmp_path, lines, parts):
    refused(write(tmp_path / "a.csv", *lines), "a.csv", *parts)


def test_a_table_in_another_encoding(tmp_path):
    (tmp_path / "a.csv").write_bytes("größe,y\n1,0\n2,1\n".encode("latin-1"))
    refused(tmp_path / "a.csv", "UTF-8")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    refused(tmp_path / "a.parquet", "pip install pyarrow")


class Column:
    def __init__(self, values):
        self.values = values

    def to_numpy(self):
        return np.array(self.values)


class Table:
    column_names = ("a", "label", "b", "c")
    columns = ([0.5, 1.5, 0.25, 7], [0, 2, 1, 0], [-1, 0, 4, 8], [2, 3, -2, 9])

    def column(self, number):
        return Column(self.columns[number])


def test_parquet(tmp_path, monkeypatch):
    """With the few calls of pyarrow that are used; the real one is tried where it is installed."""
    path, fake = tmp_path / "a.parquet", ModuleType("pyarrow.parquet")
    fake.read_table = lambda _: Table()
    fake.ParquetFile = lambda _: SimpleNamespace(
        metadata=SimpleNamespace(num_row_groups=0, num_columns=0, row_group=None)
    )
    path.write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", ModuleType("pyarrow"))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", fake)
    same(read(str(path)))
    monkeypatch.setattr(Table, "columns", (*Table.columns[:3], ["p", "q", "r", "s"]))
    refused(path, "data row 1, column c: expected a number, found 'p'")


def test_real_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"a": X[:, 0], "y": Y, "b": X[:, 1], "c": X[:, 2]}), tmp_path / "a.parquet")
    same(read(str(tmp_path / "a.parquet")))
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(whole[:-20])
    refused(tmp_path / "a.parquet", "cut short or foreign")


def stored(path, **arrays):
    """One set in the format that the name asks for."""
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    elif path.suffix == ".npy":
        np.save(path, arrays["X"])
        np.save(path.with_name(f"{path.stem}_y.npy"), arrays["y"])
    else:
        save_file({name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}, path)
    return path


@pytest.mark.parametrize("name", ["a.npz", "a.npy", "a.safetensors"])
class TestEveryArchive:
    def test_labels_of_plus_and_minus_one(self, tmp_path, name):
        for kind in (np.int64, np.int8, np.float32):
            data = read(str(stored(tmp_path / name, X=X, y=np.array([1, -1, -1, 1], dtype=kind))))
            assert data.binary
            same(data, y=[1, -1, -1, 1])

    @pytest.mark.parametrize("kind", [np.uint8, np.int32, np.float64])
    def test_classes_in_any_type(self, tmp_path, name, kind):
        data = read(str(stored(tmp_path / name, X=X, y=Y.astype(kind))))
        assert not data.binary
        same(data)

    def test_whole_numbers_become_floats_that_hold_them(self, tmp_path, name):
        pixels = np.array([[0, 255], [3, 7]], dtype=np.uint8)
        data = read(str(stored(tmp_path / name, X=pixels, y=np.array([0, 1]))))
        assert data.dtype == torch.float32
        same(data, pixels, [0, 1])
        large = np.array([[2**40 + 1, 0], [3, 7]])
        same(read(str(stored(tmp_path / name, X=large, y=np.array([0, 1])))), large, [0, 1])

    @pytest.mark.parametrize(
        ("y", "parts"),
        [
            ([1, 2, 2, 1], ["labels 1, 2", "subtract 1"]),
            ([-1, 0, 1, 1], ["labels -1, 0, 1", "renumber"]),
            ([0.5, 1, 2, 0], ["labels 0, 0.5, 1, 2", "not whole numbers"]),
            ([0.0, np.nan, 1.0, 1.0], ["a label in every row"]),
            ([0, 0, 0, 0], ["one class only"]),
            ([0, 1, 0], ["one label per row of X, shape (4,)"]),
            ([[0, 1], [1, 0], [0, 1], [1, 0]], ["one label per row of X"]),
        ],
    )
    def test_other_labels(self, tmp_path, name, y, parts):
        refused(stored(tmp_path / name, X=X, y=np.array(y)), name, *parts)

    @pytest.mark.parametrize(
        ("rows", "part"),
        [
            (np.where(X == 4, np.nan, X), "X[2, 1]=nan: expected a finite number"),
            (np.where(X == 4, np.inf, X), "X[2, 1]=inf: expected a finite number"),
            (X.reshape(4, 3, 1), "shape (n, D)"),
            (X[:, 0].copy(), "shape (n, D)"),
            (X[:, :0], "shape (n, D)"),
        ],
    )
    def test_bad_rows(self, tmp_path, name, rows, part):
        refused(stored(tmp_path / name, X=rows, y=Y), name, part)

    def test_cut_short_or_foreign(self, tmp_path, name):
        path = stored(tmp_path / name, X=np.ones((50, 50)), y=np.arange(50) % 2)
        whole = path.read_bytes()
        for content in (whole[: len(whole) // 2], whole[:3], b"", b"junk, not an archive at all"):
            path.write_bytes(content)
            refused(path, name, "expected")

    def test_missing(self, tmp_path, name):
        refused(tmp_path / name, name, "an existing file")


def test_labels_of_text(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=["cat", "dog", "cat", "emu"])
    refused(tmp_path / "a.npz", "labels are text (cat, dog, emu", "return_inverse=True")


def test_pickles_are_never_opened(tmp_path):
    objects = np.array([Y, None], dtype=object)
    np.savez(tmp_path / "a.npz", X=X, y=objects)
    np.save(tmp_path / "X.npy", objects)
    np.save(tmp_path / "y.npy", Y)
    for name in ("a.npz", "X.npy"):
        assert "allow" not in refused(tmp_path / name, name, "Python objects")


def test_archives_without_the_names(tmp_path):
    np.savez(tmp_path / "a.npz", stuff=X, y=Y)
    refused(tmp_path / "a.npz", "X (n, D) and y (n,)", "it holds stuff, y")
    np.savez(tmp_path / "c.npz", X=X, other=Y)
    refused(tmp_path / "c.npz", "X (n, D) and y (n,)")
    np.save(tmp_path / "b.npy", X)
    (tmp_path / "b.npy").rename(tmp_path / "b.npz")
    refused(tmp_path / "b.npz", "single array")


def test_other_suffixes_and_folders(tmp_path):
    refused(write(tmp_path / "a.txt", "1,0"), "ends in .npz, .npy")
    refused(tmp_path, "ends in .npz")
    (tmp_path / "b.npz").mkdir()
    refused(tmp_path / "b.npz", "this is a folder")


# ------------------------------------------------------------------------------------------------------------ limit


def test_limit_keeps_the_first_rows(tmp_path):
    whole = read("mixture:dim=20,clusters=3+2,alpha=0.1,n=30")
    part = read("mixture:dim=20,clusters=3+2,alpha=0.1,n=30", limit=12)
    same(part, whole.X[:12].numpy(), whole.y[:12].numpy())
    assert part.name != whole.name  # a name that is a recipe gives the set itself
    assert read(whole.name, limit=1000).name == whole.name


@pytest.mark.parametrize("limit", [0, -3, 2.5, True])
def test_bad_limits(limit):
    refused("digits", "limit=", "a whole number >= 1", limit=limit)


def test_a_limit_within_one_class_is_told(tmp_path):
    path = stored(tmp_path / "a.npz", X=X, y=np.array([0, 0, 1, 1]))
    refused(path, "limit=2", "all of one class", limit=2)
