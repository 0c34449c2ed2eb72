"""Checks of arguments: single values, tensors and modules, whole signatures. Loads neither torch nor numpy."""

from polyrelu.checks.annotations import check_fields, checked
from polyrelu.checks.tensors import (
    check_module,
    checked_output,
    dense,
    enough_memory,
    plain_array,
    plain_tensor,
    tensors_of,
)
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
    value_text,
    whole_number,
    whole_numbers,
)

__all__ = [
    "check_fields",
    "check_module",
    "check_power",
    "checked",
    "checked_output",
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
    "tensors_of",
    "value_text",
    "whole_number",
    "whole_numbers",
]
