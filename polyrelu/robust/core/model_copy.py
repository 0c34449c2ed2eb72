"""A copy of other people's modules, which an attack may run without touching theirs."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from polyrelu.checks import tensors_of
from polyrelu.errors import InputError, require
from polyrelu.robust.core.integrity import is_special

QUERY = "give its predict function instead, which is attacked by queries alone"
M = TypeVar("M", bound=nn.Module)


def check_initialised(module: nn.Module) -> None:
    """A lazy layer has no weights before its first rows; running a copy of it would draw others than its own."""
    for name, tensor in tensors_of(module):
        lazy = isinstance(tensor, nn.UninitializedParameter | nn.UninitializedBuffer)
        require(not lazy, name, "a lazy parameter without a value", "a module that has seen its first rows")


def copied(module: M) -> M:
    """A deep copy; weights that are computed from others (old weight_norm) are copied by value."""
    check_initialised(module)
    special = next((name for layer in module.modules() for name in vars(layer) if is_special(name)), None)
    require(special is None, "model", f"{type(module).__name__} with a {special} of its own", f"none; else {QUERY}")
    tensors = (value for layer in module.modules() for value in vars(layer).values() if isinstance(value, Tensor))
    memo: dict[int, Any] = {id(value): value.detach().clone() for value in tensors if not value.is_leaf}
    try:
        with torch.no_grad():  # or the copies of traced weights would be computed from them
            return copy.deepcopy(module, memo)
    except Exception as error:  # whatever its author's __deepcopy__ or a lock inside says
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"model={type(module).__name__}: cannot be copied ({why}); {QUERY}.") from error
