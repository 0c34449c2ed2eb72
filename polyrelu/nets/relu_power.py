"""The polynomial ReLU itself."""

from __future__ import annotations

import torch
from torch import Tensor

from polyrelu.errors import require


def relu_power(z: Tensor, p: float) -> Tensor:
    """relu(z)^p for real p >= 1 (Min & Vidal, ICML 2024, eq. of the model).

    Derivatives of every order stay finite at z <= 0, where they are 0: the power is never taken of 0.
    """
    good = isinstance(z, Tensor) and z.dtype in (torch.float32, torch.float64) and z.layout == torch.strided
    good = good and not z.is_nested
    require(good, "z", getattr(z, "dtype", type(z).__name__), "a dense tensor in float32 or float64")
    require(isinstance(p, int | float) and 0 <= p < 2**63, "p", p, "a number >= 0")
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
