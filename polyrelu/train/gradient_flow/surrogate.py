"""A few hundred weighted rows that stand for the data, and their span.

Rows are grouped around a stratified random choice (one pass of k-means, within classes); each group is kept as
its mean, its share of the rows, and how widely its rows scatter. The field of this small set is close to the
true one, so its *defect* is small and smooth, and only that needs the full data (see ``two_level.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from polyrelu.data import BLOCK


@dataclass(frozen=True)
class Surrogate:
    """Group means (m, D), their labels, shares and scatter (standard deviation per direction), and a basis (D, m)."""

    rows: Tensor
    y: Tensor
    weight: Tensor
    noise: Tensor
    basis: Tensor


def summarise(rows: Callable[[int, int], Tensor], y: Tensor, size: int, seed: int = 0) -> Surrogate:
    """Summarise n rows by at most about ``size`` groups; two passes over the data, O(n size D)."""
    chosen = stratified(y, size, seed)
    n = len(y)
    spans = [(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]
    seeds = torch.cat([rows(a, b)[chosen[(chosen >= a) & (chosen < b)] - a] for a, b in spans])
    labels, squares = y[chosen], seeds.square().sum(1)
    total, share, spread = torch.zeros_like(seeds), torch.zeros_like(squares), torch.zeros_like(squares)
    for a, b in spans:
        x = rows(a, b)
        distance = torch.addmm(squares, x, seeds.T, alpha=-2)
        distance.masked_fill_(labels != y[a:b, None], math.inf)
        group = distance.argmin(1)
        total.index_add_(0, group, x)
        share.index_add_(0, group, torch.ones_like(x[:, 0]))
        spread.index_add_(0, group, x.square().sum(1))
    kept = share > 0
    total, share, spread, labels = total[kept], share[kept], spread[kept], labels[kept]
    mean = total / share[:, None]
    scatter = (spread / share - mean.square().sum(1)).clamp(min=1e-12) / mean.shape[1]
    basis = torch.linalg.qr(mean.T.double())[0].to(mean.dtype)
    return Surrogate(mean, labels, share / n, scatter.sqrt(), basis)


def stratified(y: Tensor, size: int, seed: int) -> Tensor:
    """Sorted row numbers, about ``size`` of them, drawn from each class in proportion and at least one from each."""
    generator = torch.Generator().manual_seed(seed)
    picks = []
    for label in torch.unique(y):
        members = torch.nonzero(y == label)[:, 0]
        count = max(1, round(size * len(members) / len(y)))
        picks.append(members[torch.randperm(len(members), generator=generator)[:count]])
    return torch.cat(picks).sort().values
