import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from polyrelu.sweep import encode
from polyrelu.sweep.record import canonical, decode, key_of

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["$float", "$", "$$float"]), inner),
)


@pytest.mark.slow
@given(PLAIN)
def test_any_plain_value_survives_strict_json(value):
    text = json.dumps(encode(value), allow_nan=False)
    assert repr(decode(json.loads(text))) == repr(value)  # repr tells 1 from 1.0 and -0.0 from 0.0


def test_numbers_that_json_does_not_have():
    assert encode([math.inf, -math.inf, math.nan]) == [{"$float": "inf"}, {"$float": "-inf"}, {"$float": "nan"}]
    up, down, nan = decode(encode([math.inf, -math.inf, math.nan]))
    assert up == math.inf and down == -math.inf and math.isnan(nan)
    assert decode(encode({"$float": "nan"})) == {"$float": "nan"}  # a table that looks like one stays a table


def test_arrays_and_tensors_become_lists_of_the_same_numbers():
    assert encode(np.array([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    assert encode(torch.tensor([0.5, math.inf], requires_grad=True)) == [0.5, {"$float": "inf"}]
    assert encode({"a": np.float32(0.1), "b": np.int64(3), "c": np.bool_(True)}) == {
        "a": 0.10000000149011612,
        "b": 3,
        "c": True,
    }
    assert type(encode(np.float64(2.0))) is float


@pytest.mark.parametrize(
    "value, place", [({"a": [1, {2}]}, r"result\.a\[1\]"), ({"a": {1: 2}}, r"result\.a"), (1j, "result")]
)
def test_what_is_not_plain_is_refused_by_its_place(value, place):
    with pytest.raises(TypeError, match=f"^{place}: expected"):
        encode(value)


def test_key_names_function_version_and_settings_whatever_their_order():
    key = key_of("m:f", "1+a", {"p": 1, "alpha": 0.1})
    assert len(key) == 20
    assert key == key_of("m:f", "1+a", {"alpha": 0.1, "p": 1})
    others = [key_of("m:g", "1+a", {"p": 1, "alpha": 0.1}), key_of("m:f", "1+b", {"p": 1, "alpha": 0.1}),
              key_of("m:f", "1+a", {"p": 1.0, "alpha": 0.1}), key_of("m:f", "1+a", {"p": 1})]  # fmt: skip
    assert len({key, *others}) == 5


def test_canonical_text_is_sorted_and_strict():
    assert canonical({"b": [1.5, None], "a": "ä"}) == '{"a":"\\u00e4","b":[1.5,null]}'
    with pytest.raises(ValueError, match="JSON"):
        canonical(math.nan)
