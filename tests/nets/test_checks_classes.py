"""Class names in files: every combination of values, kind and dtype that does not fit is refused."""

from __future__ import annotations

import numpy as np
import pytest

from polyrelu.errors import InputError
from polyrelu.nets.classes import classes_about, classes_of

GOOD = [np.array([3, 5]), np.array([1.5, 2.5]), np.array(["a", "bc"]), np.array([True, False]), np.array([1], "u1")]


@pytest.mark.parametrize("classes", [*GOOD, np.array(["a", "b"], dtype=object)], ids=lambda one: str(one.dtype))
def test_classes_come_back_in_the_type_they_had(classes):
    for name in ("classes", "fine"):
        again = classes_of(classes_about(classes, name), "path", name)
        assert again.dtype == classes.dtype and again.tolist() == classes.tolist()


@pytest.mark.parametrize("classes", [np.array([1j]), np.array(["2020-01-01"], "M8[D]"), np.array([1, "a"], object)])
def test_other_types_are_not_written(classes):
    with pytest.raises(InputError, match="cannot be kept in a file"):
        classes_about(classes)


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
    about = {**classes_about(np.array([3, 5])), **change}
    with pytest.raises(InputError, match="path=file"):
        classes_of(about, "file")


@pytest.mark.parametrize("kind", ["int", "float", "bool", "object"])
def test_objects_are_text_only(kind):
    about = classes_about(np.array(["a", "b"], dtype=object))
    assert about["classes_kind"] == "str" and about["classes_dtype"] == "|O"
    for dtype in ("|O", "<O8", ">O"):
        with pytest.raises(InputError, match="path=file"):
            classes_of({**about, "classes_kind": kind, "classes_dtype": dtype}, "file")
    for dtype in ("<O8", ">O", "|O8"):
        with pytest.raises(InputError, match="path=file"):
            classes_of({**about, "classes_dtype": dtype}, "file")
