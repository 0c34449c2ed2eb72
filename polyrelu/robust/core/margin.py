"""The margin: one number per point, positive exactly where a classifier is right."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from polyrelu.checks import checked_output, plain_tensor
from polyrelu.errors import require

Score = Callable[[Tensor], Tensor]  # (n, D) -> (n,) for one logit, (n, C) for C classes; any torch.nn.Module will do


def margin_of(logits: Tensor, y: Tensor) -> Tensor:
    """y f for one logit (y = +1/-1), f_y - max_{c != y} f_c for several (y = 0..C-1); <= 0 counts as broken."""
    if logits.ndim == 1:
        return y * logits
    own = logits.gather(1, y[:, None])[:, 0]
    return own - logits.scatter(1, y[:, None], -torch.inf).amax(dim=1)


def check_points(score: Score, X: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """``X`` (n, D) and ``y`` (n,) as an attack or a certificate needs them, or an InputError saying what is wrong.

    Labels are +1/-1 for a score of one logit, and come back in X's dtype; 0..C-1 for one of C logits, as int64.
    """
    X, y = plain_tensor("X", X), plain_tensor("y", y, "labels")
    require(X.ndim == 2 and len(X) > 0, "X.shape", tuple(X.shape), "(n, D) with n >= 1, one row per point")
    require(X.is_floating_point(), "X.dtype", X.dtype, "a floating type")
    require(bool(X.isfinite().all()), "X", "NaN or infinity", "finite numbers")
    require(tuple(y.shape) == (len(X),), "y.shape", tuple(y.shape), f"({len(X)},), one label per row of X")
    with torch.no_grad():
        logits = checked_output(score, X[:1])
    good = logits.ndim == 1 or (logits.ndim == 2 and logits.shape[1] > 1)
    require(good, "score(X).shape", f"{tuple(logits.shape)} for one row", "(n,) for one logit or (n, C), C > 1")
    labels = set(y.tolist())
    if logits.ndim == 1:
        require(labels <= {1, -1}, "y", sorted(labels)[:5], "labels +1 and -1 for a net of one logit")
        return X.contiguous(), y.to(X).contiguous()
    classes = logits.shape[1]
    good = not y.is_floating_point() and labels <= set(range(classes))
    require(good, "y", sorted(labels)[:5], f"whole numbers 0..{classes - 1} for a net of {classes} logits")
    return X.contiguous(), y.to(X.device, torch.int64).contiguous()
