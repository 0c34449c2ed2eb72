"""Checks of arguments: single values, tensors and modules, whole signatures. Loads neither torch nor numpy."""

from polyrelu.checks.annotations import check_fields, checked
from polyrelu.checks.tensors import answer, check_module, dense, enough_memory, plain_array, plain_tensor, tensors_of
from polyrelu.checks.values import (
    check_power,
    choice,
    dtype_named,
    finite_number,
    flag,
    floating_dtype,
    is_number,
    is_whole,
    positive_numbers,
    seed_number,
    shown,
    whole_number,
    whole_numbers,
)

__all__ = [
    "answer",
    "check_fields",
    "check_module",
    "check_power",
    "checked",
    "choice",
    "dense",
    "dtype_named",
    "enough_memory",
    "finite_number",
    "flag",
    "floating_dtype",
    "is_number",
    "is_whole",
    "plain_array",
    "plain_tensor",
    "positive_numbers",
    "seed_number",
    "shown",
    "tensors_of",
    "whole_number",
    "whole_numbers",
]
