"""Class names in files: every combination of values, kind and dtype that does not fit is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from polyrelu.errors import InputError
from polyrelu.nets import PolyReLUNet, load_reference, save
from polyrelu.nets.store import classes_from_json, classes_to_json, load_about

GOOD = [np.array([3, 5]), np.array([1.5, 2.5]), np.array(["a", "bc"]), np.array([True, False]), np.array([1], "u1")]


@pytest.mark.parametrize("classes", [*GOOD, np.array(["a", "b"], dtype=object)], ids=lambda one: str(one.dtype))
def test_classes_come_back_in_the_type_they_had(classes):
    for name in ("classes", "fine"):
        again = classes_from_json(classes_to_json(classes, name), "path", name)
        assert again.dtype == classes.dtype and again.tolist() == classes.tolist()


@pytest.mark.parametrize("classes", [np.array([1j]), np.array(["2020-01-01"], "M8[D]"), np.array([1, "a"], object)])
def test_other_types_are_not_written(classes):
    with pytest.raises(InputError, match="cannot be kept in a file"):
        classes_to_json(classes)


@pytest.mark.parametrize(
    "change",
    [
        {"classes": None},
        {"classes": "ab"},
        {"classes": {"0": 1}},
        {"classes_kind": None},
        {"classes_kind": 1},
        {"classes_dtype": None},
        {"classes_dtype": 8},
        {"classes_kind": "str"},
        {"classes_kind": "float"},
        {"classes_kind": "object"},
        {"classes_dtype": "|O"},
        {"classes_dtype": "<f8"},
        {"classes_dtype": "<U3"},
        {"classes_dtype": "<c16"},
        {"classes_dtype": "<M8[s]"},
        {"classes_dtype": "|V8"},
        {"classes_dtype": ""},
        {"classes": [[1], [2]]},
        {"classes": [None, 1]},
        {"classes": [{}, 1]},
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(change):
    said = {**classes_to_json(np.array([3, 5])), **change}
    whole = not any(isinstance(value, (type(None), int, dict)) or value == "ab" for value in change.values())
    with pytest.raises(
        InputError, match="path=file.*that are whole numbers" if whole else "path=file.*names no classes"
    ):
        classes_from_json(said, "file")


@pytest.mark.parametrize("kind", ["int", "float", "bool", "object"])
def test_objects_are_text_only(kind):
    said = classes_to_json(np.array(["a", "b"], dtype=object))
    assert said["classes_kind"] == "str" and said["classes_dtype"] == "|O"
    for dtype in ("|O", "<O8", ">O"):
        with pytest.raises(InputError, match="path=file"):
            classes_from_json({**said, "classes_kind": kind, "classes_dtype": dtype}, "file")
    for dtype in ("<O8", ">O", "|O8"):
        with pytest.raises(InputError, match="path=file"):
            classes_from_json({**said, "classes_dtype": dtype}, "file")


def test_what_a_net_says_about_itself(tmp_path):
    path = save(PolyReLUNet(3, 4), tmp_path / "a.safetensors", about={"x": 1})
    assert load_about(path) == {"x": 1}
    assert load_about(save(PolyReLUNet(3, 4), tmp_path / "b.safetensors")) == {}
    save_file({"weight": torch.ones(2)}, tmp_path / "c.safetensors")
    assert load_about(tmp_path / "c.safetensors") == {}  # no metadata at all
    for text in ("[]", "1", "null", '"text"', "{"):
        save_file({"weight": torch.ones(2)}, tmp_path / "c.safetensors", {"about": text})
        with pytest.raises(InputError, match=r"path=.*a net saved by polyrelu"):
            load_about(tmp_path / "c.safetensors")
    with pytest.raises(InputError, match="an existing file"):
        load_about(tmp_path / "nothing")
    with pytest.raises(InputError, match="an existing file"):
        load_about(tmp_path)
    (tmp_path / "d.safetensors").write_bytes(b"not one")
    with pytest.raises(InputError, match="damaged or foreign"):
        load_about(tmp_path / "d.safetensors")


@pytest.mark.parametrize("state", [["state_dict"], "state_dict", torch.ones(2), {"state_dict": [1]}], ids=str)
def test_a_checkpoint_is_a_state_dict(tmp_path, state):
    torch.save(state, tmp_path / "a.pt")
    with pytest.raises(InputError, match="a state dict, found a"):
        load_reference(tmp_path / "a.pt", 2)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,)])
def test_empty_matrices_are_none(tmp_path, shape):
    state = {"center": torch.zeros(1, 3), "prelulayer.W": torch.zeros(shape), "output_net.weight": torch.ones(1, 3)}
    torch.save(state, tmp_path / "a.pt")
    with pytest.raises(InputError, match=r"'prelulayer.W' as a float32 or float64 matrix"):
        load_reference(tmp_path / "a.pt", 2)
