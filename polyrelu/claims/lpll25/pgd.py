"""Projected gradient ascent of 40 normalised steps, by the rule of the third-party rerun of Li et al. (ICLR 2025).

z <- P(z + (2.5 r/40) g/|g|),   P onto the ball of radius r about x, and onto the box

The paper does not give its own. No point on the way is looked at.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import normalize

STEPS = 40


def pgd(
    loss: Callable[[Tensor], Tensor],
    X: Tensor,
    radius: float,
    *,
    start: Tensor | None = None,
    bounds: tuple[float, float] | None = None,
    smallest: float = 1e-12,
) -> Tensor:
    """Where ``loss``, a number for each row, has been climbed to from ``start``, by default from X itself.

    ``smallest``: gradients that are shorter make shorter steps.
    """
    Z = X if start is None else start
    for _ in range(STEPS):
        Z = Z.detach().requires_grad_()
        (slope,) = torch.autograd.grad(loss(Z).sum(), Z)
        d = Z.detach() + 2.5 * radius / STEPS * normalize(slope, eps=smallest) - X
        Z = X + d * (radius / d.norm(dim=1, keepdim=True)).clamp(max=1)
        Z = Z if bounds is None else Z.clamp(*bounds)
    return Z.detach()
