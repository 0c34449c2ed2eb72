"""Files: every kind there and back, every damaged file refused by name."""

from __future__ import annotations

import json
import math
import os
import pickle

import pytest
import torch
from safetensors.torch import load_file, save_file

from polyrelu.errors import InputError
from polyrelu.nets import (
    KINDS,
    MLP,
    AverageClassifier,
    BayesClassifier,
    CentreClassifier,
    FixedOutputNet,
    GroupedNet,
    LeakyReLUNet,
    LogisticRegression,
    NearestCentre,
    PlainPolyNet,
    PolyReLUNet,
    ReadOut,
    ResNet,
    RobustClassifier,
    SmallCNN,
    TanhNet,
    load,
    save,
)

DOUBLE = torch.float64
IDEAL = torch.eye(9)[:3], torch.tensor([1, 1, -1])
NETS = [
    PolyReLUNet(9, 4, seed=3),
    PolyReLUNet(9, 4, 2.5, 3, bias=True, init="kaiming", centre=torch.ones(9), normalise_input=True, dtype=DOUBLE),
    PolyReLUNet(9, 4, 1, init="nudged", centres=torch.eye(9), nudge=0.2, scale=1e-300),
    ReadOut(PolyReLUNet(9, 4, 2.5, 3, bias=True, dtype=DOUBLE), (1, 0, 1)),
    AverageClassifier(*IDEAL),
    CentreClassifier(*IDEAL, p=2.5),
    BayesClassifier(IDEAL[0].double(), IDEAL[1], alpha=0.3),
    NearestCentre(*IDEAL),
    RobustClassifier(*IDEAL),
    PlainPolyNet(9, 4, 2.5, 2, scale=0.5, dtype=DOUBLE),
    TanhNet(9, 4),
    LeakyReLUNet(9, 4, 3, slope=0.3),
    LogisticRegression(9, 2, scale=0.3),
    LogisticRegression(9, bias=False),
    MLP(9, 4, 3, activation="tanh", bias=True, dtype=DOUBLE),
    MLP(9, 4),
    FixedOutputNet(9, 4),
    FixedOutputNet(9, 4, scale=1e-5),
    GroupedNet(9, 3, 2),
    SmallCNN(3, 2, hidden=5, bias="first"),
    ResNet(1, 3, 2, blocks=(1, 1), width=2).eval(),
    ResNet(1, 3, blocks=(1,), width=2, norm="none", dtype=DOUBLE),
]


def test_every_kind_has_a_row():
    assert {type(net).__name__ for net in NETS} == set(KINDS)


@pytest.mark.parametrize("net", NETS, ids=lambda net: type(net).__name__)
def test_round_trip(net, tmp_path):
    path = save(net, tmp_path / "net.safetensors")
    again = load(path)
    assert type(again) is type(net) and again.config() == net.config()
    assert again.dtype == net.dtype
    before, after = net.state_dict(), again.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) and before[name].dtype == after[name].dtype for name in before)
    X = torch.rand(5, 9, dtype=net.dtype)
    assert torch.equal(net(X), again(X))
    assert [p.requires_grad for p in again.parameters()] == [p.requires_grad for p in net.parameters()]
    assert [file.name for file in tmp_path.iterdir()] == ["net.safetensors"]


def test_a_saved_file_says_what_it_is(tmp_path):
    path = save(NETS[0], tmp_path / "a.safetensors")
    assert set(load_file(path)) == {"weight", "output", "log_scale", "log_balance"}
    header = path.read_bytes()
    meta = json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")])["__metadata__"]
    assert meta["format"] == "polyrelu-net" and meta["version"] == "1" and meta["kind"] == "PolyReLUNet"
    assert json.loads(meta["config"]) == NETS[0].config()


def test_loaded_nets_are_independent_of_the_file(tmp_path):
    path = save(NETS[0], tmp_path / "a.safetensors")
    net = load(path)
    save(PolyReLUNet(9, 4, seed=8), path)
    assert torch.equal(net.weight, NETS[0].weight)


def test_a_trained_and_converted_net_keeps_its_start(tmp_path):
    net = PolyReLUNet(9, 4, init="balanced", scale=1e-20, seed=11).double()
    again = load(save(net, tmp_path / "a.safetensors"))
    assert again.config() == {**net.config(), "dtype": "float64", "init": "balanced", "scale": 1e-20, "seed": 11}


@pytest.mark.parametrize("share", [0.0, 0.001, 0.05, 0.5, 0.9, 0.999])
def test_truncated_files_are_refused(share, tmp_path):
    path = save(MLP(9, 40, 3), tmp_path / "a.safetensors")
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(InputError, match=r"a\.safetensors: expected a whole safetensors file"):
        load(path)


def test_missing_foreign_and_unwritable(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.safetensors: expected an existing file"):
        load(tmp_path / "nothing.safetensors")
    with pytest.raises(InputError, match="expected an existing file"):
        load(tmp_path)
    foreign = tmp_path / "foreign"
    for data in (b"<!DOCTYPE html><html>not found</html>", os.urandom(2000), b"\x93NUMPY" * 50, b"\0" * 64):
        foreign.write_bytes(data)
        with pytest.raises(InputError, match="cut short or foreign"):
            load(foreign)
    with pytest.raises(InputError, match=r"expected a file that can be written \(No such file"):
        save(NETS[0], tmp_path / "no" / "folder.safetensors")


class Bomb:
    """A pickle that leaves a trace if anyone runs it."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return (os.mkdir, (str(self.trace),))


def test_a_pickle_is_not_run(tmp_path):
    path, trace = tmp_path / "a.safetensors", tmp_path / "trace"
    path.write_bytes(pickle.dumps({"weight": Bomb(trace)}))
    with pytest.raises(InputError, match="cut short or foreign"):
        load(path)
    torch.save({"weight": Bomb(trace)}, path)
    with pytest.raises(InputError, match="cut short or foreign"):
        load(path)
    assert not trace.exists()


GOOD = PolyReLUNet(9, 4, 2.5, 2, bias=True, seed=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": None}, "a net saved by polyrelu, this is another program's file"),
        ({"format": "pt"}, "another program's file"),
        ({"version": None}, "a format version, the file says ''"),
        ({"version": "one"}, "a format version, the file says 'one'"),
        ({"version": "2"}, "written by a newer polyrelu .*upgrade"),
        ({"kind": None}, "the file says ''"),
        ({"kind": "Transformer"}, "the file says 'Transformer'"),
        ({"kind": "MLP"}, "do not fit MLP"),
        ({"kind": "CentreClassifier"}, "do not fit CentreClassifier .*exactly \\['centres', 'labels'\\]"),
        ({"config": None}, "do not fit PolyReLUNet"),
        ({"config": "{"}, "do not fit PolyReLUNet"),
        ({"config": "[1]"}, "do not fit PolyReLUNet"),
        ({"config": json.dumps({**GOOD.config(), "width": 5})}, r"weight=float32 \(4, 9\): expected float32 \(5, 9\)"),
        ({"config": json.dumps({**GOOD.config(), "dtype": "float64"})}, "weight=float32 .*expected float64"),
        ({"config": json.dumps({**GOOD.config(), "dtype": ["float64"]})}, "do not fit PolyReLUNet"),
        ({"config": json.dumps({**GOOD.config(), "bias": False})}, "tensors=.*'bias'.*exactly"),
        ({"config": json.dumps({**GOOD.config(), "centre": True})}, "exactly .*'centre'"),
        ({"config": json.dumps({**GOOD.config(), "p": 0.5})}, "p=0.5: expected a finite number >= 1"),
        ({"config": json.dumps({**GOOD.config(), "width": "4"})}, "width='4': expected a whole number"),
    ],
)
def test_each_thing_that_does_not_fit_is_named(change, message, tmp_path):
    meta = {"format": "polyrelu-net", "version": "1", "kind": "PolyReLUNet", "config": json.dumps(GOOD.config())}
    meta = {key: value for key, value in {**meta, **change}.items() if value is not None}
    save_file(GOOD.state_dict(), tmp_path / "a.safetensors", meta)
    with pytest.raises(InputError, match=message):
        load(tmp_path / "a.safetensors")


def test_no_metadata_at_all(tmp_path):
    save_file(GOOD.state_dict(), tmp_path / "a.safetensors")
    with pytest.raises(InputError, match="another program's file"):
        load(tmp_path / "a.safetensors")


def test_ideals_check_what_they_read(tmp_path):
    path = save(CentreClassifier(*IDEAL), tmp_path / "a.safetensors")
    meta = {"format": "polyrelu-net", "version": "1", "kind": "CentreClassifier", "config": '{"p": 3.0}'}
    tensors = load_file(path)
    save_file({**tensors, "labels": torch.zeros(3)}, path, meta)
    with pytest.raises(InputError, match=r"do not fit CentreClassifier \(labels="):
        load(path)
    save_file(tensors, path, {**meta, "config": '{"alpha": 3.0}'})
    with pytest.raises(InputError, match=r"do not fit CentreClassifier .*alpha"):
        load(path)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_non_finite_weights_are_refused_both_ways(value, tmp_path):
    net = PolyReLUNet(9, 4)
    with torch.no_grad():
        net.weight[0, 0] = value
    with pytest.raises(InputError, match="net=PolyReLUNet: expected finite weights, 'weight' holds NaN or inf"):
        save(net, tmp_path / "a.safetensors")
    assert not list(tmp_path.iterdir())
    meta = {"format": "polyrelu-net", "version": "1", "kind": "PolyReLUNet", "config": json.dumps(net.config())}
    save_file(net.state_dict(), tmp_path / "a.safetensors", meta)
    with pytest.raises(InputError, match=r"a\.safetensors: expected finite weights"):
        load(tmp_path / "a.safetensors")


def test_only_registered_kinds_are_saved(tmp_path):
    class Other(PolyReLUNet):
        pass

    for net in (torch.nn.Linear(3, 3), Other(9, 4)):
        with pytest.raises(InputError, match=r"net=(Linear|Other): expected one of PolyReLUNet, "):
            save(net, tmp_path / "a.safetensors")


def test_a_net_without_numbers_is_not_saved(tmp_path):
    with pytest.raises(InputError, match="net=PolyReLUNet on the device meta: expected a net that holds numbers"):
        save(PolyReLUNet(9, 4).to("meta"), tmp_path / "a.safetensors")
    assert not list(tmp_path.iterdir())
