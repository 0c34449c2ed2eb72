"""The polynomial ReLU itself."""

from __future__ import annotations

import torch
from torch import Tensor

from polyrelu.errors import require


def relu_power(z: Tensor, p: float) -> Tensor:
    """relu(z)^p for real p >= 1 (Min & Vidal, ICML 2024, eq. of the model).

    Derivatives of every order stay finite at z <= 0, where they are 0: the power is never taken of 0.
    """
    require(isinstance(z, Tensor) and z.is_floating_point(), "z", type(z).__name__, "a tensor of floating numbers")
    require(isinstance(p, int | float) and p >= 1, "p", p, "a number >= 1")
    if p == 1:
        return z.relu()
    if p == 2:
        return z.relu().square()
    if p == 3:
        z = z.relu()
        return z * z.square()
    if p == 4:
        return z.relu().square().square()
    on = z > 0
    return torch.where(on, torch.where(on, z, 1.0).pow(p), 0.0)
