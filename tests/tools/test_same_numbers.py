"""Two results are compared to the last bit, and what differs is named."""

from tools.same_numbers.__main__ import count, differences
from tools.same_numbers.jobs import digest, plain


def test_equal_results_do_not_differ():
    result = {"a": [1, {"b": "0x1p0"}], "c": None}
    assert list(differences(result, {"a": [1, {"b": "0x1p0"}], "c": None})) == []
    assert count(result) == 3


def test_one_bit_is_a_difference_and_is_named():
    before, after = ({"net": {"p=1": [plain(0.1), plain(value)]}} for value in (0.2, 0.2 + 2**-55))
    assert list(differences(before, after)) == [f"/net/p=1/1: {(0.2).hex()} before, {(0.2 + 2**-55).hex()} here"]


def test_what_is_missing_or_new_is_a_difference():
    assert list(differences({"a": 1}, {"b": 1})) == ["/a: 1 before, None here", "/b: None before, 1 here"]
    assert list(differences([1], [1, 2])) == [": [1] before, [1, 2] here"]


def test_arrays_differ_by_bits_type_and_shape():
    import numpy as np

    zeros = np.zeros(4)
    others = (-zeros, zeros.astype(np.float32), zeros.reshape(2, 2))
    assert all(digest(other) != digest(zeros) for other in others)
