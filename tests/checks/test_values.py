"""Single values: what passes comes back as Python's own type, what does not is named."""

import numpy as np
import pytest
import torch

from polyrelu import checks
from polyrelu.errors import InputError


def test_whole_numbers_of_numpy_become_python_s():
    found = checks.whole_numbers(width=np.int32(3), steps=2)
    assert found == {"width": 3, "steps": 2} and all(type(value) is int for value in found.values())


def test_seeds_are_of_any_size_and_other_whole_numbers_fit_in_63_bits():
    assert checks.seed_number("seed", 2**70) == 2**70
    assert checks.whole_number("n", 2**63 - 1) == 2**63 - 1
    with pytest.raises(InputError, match=r"^n=9223372036854775808: expected a whole number that fits in 63 bits\.$"):
        checks.whole_number("n", 2**63)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: checks.whole_number("n", True), "n=True: expected a whole number >= 1"),
        (lambda: checks.whole_number("n", "3"), "n='3': expected a whole number >= 1"),
        (lambda: checks.whole_number("n", 2.0, 0), "n=2.0: expected a whole number >= 0"),
        (lambda: checks.finite_number("a", float("nan")), r"a=nan: expected a finite number\."),
        (lambda: checks.finite_number("a", 0, above=0), r"a=0: expected a finite number > 0\."),
        (lambda: checks.finite_number("a", -1, least=0), r"a=-1: expected a finite number >= 0\."),
        (lambda: checks.finite_number("a", "1"), r"a='1': expected a finite number\."),
        (lambda: checks.positive_numbers(rate=0.5, step=0), "step=0: expected a finite number > 0"),
        (lambda: checks.flag("bias", 2), "bias=2: expected True or False"),
        (lambda: checks.choice("norm", "l3", {"l1": 1, "l2": 2}), "norm='l3': expected 'l1' or 'l2'"),
        (lambda: checks.seed_number("seed", -1), "seed=-1: expected a whole number >= 0"),
        (lambda: checks.floating_dtype(torch.float16), "dtype=torch.float16: expected torch.float32 or torch.float64"),
        (lambda: checks.dtype_named("half"), "dtype=half: expected float32 or float64"),
        (lambda: checks.check_power(np.int64(3)), "p=3: expected a finite number >= 1"),
    ],
)
def test_others_are_refused(call, message):
    with pytest.raises(InputError, match=f"^{message}"):
        call()


def test_numbers_beyond_float64_are_no_numbers():
    assert not checks.is_number(10**400) and checks.is_number(10**300, above=0)
    assert checks.is_number(0.5, above=0, below=1) and not checks.is_number(1, above=0, below=1)


def test_flags_of_numpy_are_flags():
    assert checks.flag("bias", np.True_) is True and checks.flag("bias", 0) is False
