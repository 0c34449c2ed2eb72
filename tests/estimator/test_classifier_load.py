"""Heads in files: each entry that is wrong or missing is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from polyrelu import InputError, PolyReLUClassifier
from polyrelu.nets import MLP, PolyReLUNet, classes_to_json, save


def about(**change):
    params = PolyReLUClassifier(p=2).get_params()
    good = {"head": 1, **classes_to_json(np.array(["a", "b"])), "features": None, "params": params, "passes": 3}
    return {name: value for name, value in {**good, **change}.items() if value is not ...}


def written(path, net=None, **change):
    return save(net or PolyReLUNet(3, 4, 2, seed=1), path / "head.safetensors", about=about(**change))


def test_a_head_is_read(tmp_path):
    head = PolyReLUClassifier.load(written(tmp_path))
    assert head.classes_.tolist() == ["a", "b"] and head.n_features_in_ == 3 and head.n_iter_ == 3 and head.p_ == 2
    assert head.predict(np.ones((2, 3))).shape == (2,) and not hasattr(head, "feature_names_in_")
    head = PolyReLUClassifier.load(written(tmp_path, features=["x", "y", "z"]))
    assert head.feature_names_in_.tolist() == ["x", "y", "z"]


@pytest.mark.parametrize(
    "change",
    [
        {"head": ...},
        {"head": 2},
        {"head": "1"},
        {"params": ...},
        {"params": None},
        {"params": {"unknown": 1}},
        {"classes": ...},
        {"classes": ["a"]},
        {"classes": ["a", "b", "c"]},
        {"classes_kind": "int"},
        {"classes_dtype": "<i8"},
    ],
    ids=str,
)
def test_what_is_no_head_is_refused(tmp_path, change):
    with pytest.raises(InputError, match="path="):
        PolyReLUClassifier.load(written(tmp_path, **change))


def test_classes_must_be_as_many_as_logits(tmp_path):
    three = PolyReLUNet(3, 4, 2, 3, seed=1)
    with pytest.raises(InputError, match="3 classes, it names 2"):
        PolyReLUClassifier.load(written(tmp_path, three))
    head = PolyReLUClassifier.load(written(tmp_path, three, **classes_to_json(np.array([1, 5, 9]))))
    assert head.classes_.tolist() == [1, 5, 9]


def test_only_polyrelu_nets_are_heads(tmp_path):
    with pytest.raises(InputError, match="a PolyReLUNet or a ReadOut"):
        PolyReLUClassifier.load(written(tmp_path, MLP(3, 4, 2)))


def test_weights_of_a_head_are_checked_as_those_of_a_net(tmp_path):
    path = written(tmp_path)
    with safe_open(path, framework="pt") as file:
        tensors, meta = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    for change in ({"weight": torch.full((4, 3), torch.nan)}, {"weight": torch.ones(4, 2)}):
        save_file({**tensors, **change}, path, meta)
        with pytest.raises(InputError, match="path="):
            PolyReLUClassifier.load(path)
    for change in (
        {"format": "other"},
        {"version": "2"},
        {"version": "0"},
        {"kind": "None"},
        {"about": "[]"},
        {"about": "{"},
    ):
        save_file(tensors, path, {**meta, **change})
        with pytest.raises(InputError, match="path="):
            PolyReLUClassifier.load(path)
    save_file(tensors, path, {**meta, "about": json.dumps(about())})
    assert PolyReLUClassifier.load(path).n_features_in_ == 3
