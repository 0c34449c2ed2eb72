"""Nets and heads in files of anybody: sizes announced, settings named and numbers repeated are not trusted."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from polyrelu import InputError, PolyReLUClassifier, PolyReLUNet, load, load_reference, nets, save
from polyrelu.nets.base import draw
from polyrelu.nets.store import classes_from_json

NETS = [
    PolyReLUNet(5, 4, 2.5), PolyReLUNet(5, 4, 3.0, 3, bias=True, centre=torch.ones(5)), nets.MLP(5, 3, 2, 2),
    nets.TanhNet(5, 3),
    nets.LogisticRegression(5), nets.GroupedNet(5, 2, 2), nets.FixedOutputNet(5, 4), nets.SmallCNN(4, 2, hidden=3),
    nets.ResNet(1, 4, 2, (1,), 2),
    nets.ReadOut(PolyReLUNet(5, 4, 2.0, 3), (0, 0, 1)), nets.LeakyReLUNet(5, 3), nets.PlainPolyNet(5, 3),
]  # fmt: skip


def stored(path):
    """Tensors and the texts beside them."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return load_file(path), dict(file.metadata())


@pytest.mark.slow
@pytest.mark.parametrize("net", NETS, ids=lambda net: type(net).__name__)
def test_sizes_that_are_not_stored_are_never_made(tmp_path, net, monkeypatch):
    save(net, tmp_path / "net.safetensors")
    tensors, texts = stored(tmp_path / "net.safetensors")
    config = json.loads(texts["config"])
    whole = sum(tensor.numel() for tensor in tensors.values())
    made = []
    monkeypatch.setattr(torch, "zeros", counting(torch.zeros, made))
    monkeypatch.setattr(torch, "randn", counting(torch.randn, made))
    inner = config.get("net", config)
    for name, size in list(inner.items()):
        if isinstance(size, bool) or not isinstance(size, int) or name == "seed":
            continue
        for lie in (10**5, 10**12, 2**62, 10**30, -1, 0, 2.5, "a", None, [4]):
            inner[name] = lie
            made.clear()
            save_file(tensors, tmp_path / "lie.safetensors", {**texts, "config": json.dumps(config)})
            with pytest.raises(InputError):
                load(tmp_path / "lie.safetensors")
            assert sum(made) <= 8 * whole + 1000, (name, lie)
        inner[name] = size
    assert load(tmp_path / "net.safetensors").dim == net.dim


def counting(make, made):
    def count(*shape, **more):
        found = make(*shape, **more)
        made.append(found.numel())
        return found

    return count


def test_sizes_beyond_memory_are_said_so():
    for make in (
        lambda: PolyReLUNet(10**9, 10**9), lambda: PolyReLUNet(10**9, 10**9, init="zeros"),
        lambda: PolyReLUNet(10**9, 10**9, init="kaiming"),
        lambda: nets.MLP(10**9, 10**9), lambda: nets.LogisticRegression(10**15), lambda: nets.TanhNet(2**62, 2**62),
        lambda: nets.GroupedNet(10**30, 2),
        lambda: nets.ResNet(outputs=10**15), lambda: nets.ResNet(width=10**9),
    ):  # fmt: skip
        with pytest.raises(InputError):
            make()
    with pytest.raises(InputError, match="not enough memory for 5 x 1000000000000000000 numbers"):
        draw(torch.zeros, (5, 10**18))


@pytest.mark.parametrize("version", ["", "0", "-1", "x", "²", "9" * 5000, "1.0", "٣"])
def test_versions_that_are_none(tmp_path, version):
    save(NETS[0], tmp_path / "net.safetensors")
    tensors, texts = stored(tmp_path / "net.safetensors")
    save_file(tensors, tmp_path / "net.safetensors", {**texts, "version": version})
    with pytest.raises(InputError, match="a format version"):
        load(tmp_path / "net.safetensors")


@pytest.mark.parametrize("config", ["", "[", "null", "5", "[]", "{}", "[" * 100_000, "9" * 5000, '{"dim": NaN}', '"a"'])
def test_settings_that_are_none(tmp_path, config):
    save(NETS[0], tmp_path / "net.safetensors", about={"a": 1})
    tensors, texts = stored(tmp_path / "net.safetensors")
    save_file(tensors, tmp_path / "net.safetensors", {**texts, "config": config})
    with pytest.raises(InputError):
        load(tmp_path / "net.safetensors")
    if config != "{}":
        save_file(tensors, tmp_path / "net.safetensors", {**texts, "about": config})
        with pytest.raises(InputError):
            PolyReLUClassifier.load(tmp_path / "net.safetensors")


def test_a_checkpoint_that_repeats_one_number_is_refused(tmp_path):
    good = {"center": torch.zeros(1, 6), "prelulayer.W": torch.randn(6, 4), "output_net.weight": torch.randn(2, 4)}
    torch.save(good, tmp_path / "good.pt")
    assert load_reference(tmp_path / "good.pt", 2.0).dim == 6
    for key, odd in (
        ("prelulayer.W", torch.zeros(1).expand(10**6, 10**6)), ("prelulayer.W", torch.zeros(1).expand(6, 10**9)),
        ("center", torch.zeros(1).expand(10**9)),
        ("output_net.weight", torch.zeros(2, 4, device="meta")), ("prelulayer.W", torch.eye(6, 4).to_sparse()),
        ("center", None), ("center", 5),
        ("prelulayer.W", torch.randn(6, 4).half()), ("output_net.weight", torch.randn(2, 4) * np.nan),
        ("output_net.weight", torch.randn(2, 5)),
    ):  # fmt: skip
        torch.save({**good, key: odd}, tmp_path / "odd.pt")
        with pytest.raises(InputError, match=r"odd\.pt"):
            load_reference(tmp_path / "odd.pt", 2.0)


def test_no_warning_and_no_code_from_a_checkpoint_of_another_protocol(tmp_path):
    import pickle

    (tmp_path / "a.pt").write_bytes(pickle.dumps({"center": [1]}, 4))
    with pytest.raises(InputError, match="a torch checkpoint"):
        load_reference(tmp_path / "a.pt", 2.0)


@pytest.mark.parametrize(
    ("values", "kind", "dtype"),
    [
        ([10**30, 1], "int", "<i8"), ([300, 1], "int", "|i1"), ([-1, 1], "int", "<u8"),
        (["abc", "d"], "str", "<U1"), ([], "int", "<i8"), ([1, 2], "int", "<i3"),
        ([1, "a"], "int", "<i8"), ([1, 2], "int", ""), ([1, 2], "int", "<"), ([1.5, 2], "int", "<i8"),
        ([[1], [2]], "int", "<i8"), (5, "int", "<i8"),
    ],
)  # fmt: skip
def test_classes_that_do_not_fit_their_type(values, kind, dtype):
    with pytest.raises(InputError, match=r"^path=head"):
        classes_from_json({"classes": values, "classes_kind": kind, "classes_dtype": dtype}, "head")


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    path = tmp_path_factory.mktemp("head") / "head.safetensors"
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 4
    PolyReLUClassifier(p=2, width=4, epochs=1, random_state=0).fit(X, y % 2, fine_labels=y).save(path)
    return path


@pytest.mark.parametrize(
    "lie",
    [
        {"head": "1"}, {"head": None}, {"params": None}, {"params": {"p": "x"}}, {"params": {"nothing": 1}},
        {"params": {"batch": 0}}, {"passes": "many"},
        {"passes": None}, {"passes": 1e999}, {"features": 5}, {"features": ["a"]}, {"features": [1, 2, 3]},
        {"fine": [1]}, {"fine_of": [1]}, {"classes": [0]},
        {"classes": [0, 1, 2]}, {"classes_dtype": "|O"}, {"fine": None},
    ],
)  # fmt: skip
def test_heads_that_say_nonsense_about_themselves(tmp_path, head, lie):
    tensors, texts = stored(head)
    about = json.loads(texts["about"])
    assert len(PolyReLUClassifier.load(head).fine_classes_) == 4
    save_file(tensors, tmp_path / "head.safetensors", {**texts, "about": json.dumps({**about, **lie})})
    with pytest.raises(InputError, match=r"head\.safetensors"):
        PolyReLUClassifier.load(tmp_path / "head.safetensors")
