"""The three norms: lengths, duals, projections."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from polyrelu.errors import require

NORMS = (1.0, 2.0, math.inf)


def check_norm(norm: float | str) -> float:
    """1, 2 or inf ("inf" and "linf" are understood), as a float."""
    names = {"1": 1.0, "l1": 1.0, "2": 2.0, "l2": 2.0, "inf": math.inf, "linf": math.inf}
    value = names.get(norm.lower(), math.nan) if isinstance(norm, str) else float(norm)
    require(value in NORMS, "norm", norm, "1, 2 or inf")
    return value


def dual(norm: float) -> float:
    """The norm q with |<a, b>| <= |a|_norm |b|_q: 1 and inf change places, 2 is its own."""
    return {1.0: math.inf, 2.0: 2.0, math.inf: 1.0}[norm]


def lengths(rows: Tensor, norm: float) -> Tensor:
    """|row| for each row (over the last dimension)."""
    length: Tensor = torch.linalg.vector_norm(rows, ord=norm, dim=-1)
    return length
