"""The correlation map of a data set: cosines between its rows, and their means inside and between groups (claim D6).

cos_ij = <x_i - m, x_j - m> / (|x_i - m| |x_j - m|),   m the mean of all rows        (Min & Vidal 2024, Fig. 3a)
mean over i in a, j in b = <S_a, S_b> / (n_a n_b),   S_a = sum of the unit vectors of group a
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from polyrelu.checks import checked, seed_number, whole_number
from polyrelu.data import Dataset
from polyrelu.errors import InputError, require


@final
@dataclass(frozen=True, eq=False)
class Correlation:
    """Cosines of some rows, sorted by group, and exact mean cosines of all rows.

    matrix : (m, m) float64, cosines of the rows ``index`` (m,), which are sorted by group
    group : (m,) the group of each, 0..G-1; names : what the groups are called, ``y=+1`` or ``cluster 3``
    means : (G, G) mean cosine over all pairs i != j; NaN on the diagonal for a group of one row
    counts : (G,) rows of each group that have a direction
    within, between : mean over all pairs of one group, and over all pairs of different groups
    """

    matrix: Tensor
    index: Tensor
    group: Tensor
    names: tuple[str, ...]
    means: Tensor
    counts: Tensor
    within: float
    between: float

    @property
    def boundaries(self) -> Tensor:
        """(G - 1,) where in ``matrix`` each group but the first begins."""
        return self.group.bincount(minlength=len(self.names)).cumsum(0)[:-1]


@checked
def correlation(data: Dataset, centre: bool = True, most: int = 2000, seed: int = 0) -> Correlation:
    """Cosines between rows by group: clusters if the data have them, sorted by class, else classes ([+1, -1]).

    Means are exact, from streamed sums of unit vectors: O(n D) time, O(G D) memory. The matrix shows ``most`` rows at
    most, drawn without replacement from ``seed`` (all of them if there are no more): O(most^2 D). ``centre`` subtracts
    the mean row first. A row equal to it has no direction and is left out everywhere.
    """
    whole_number("most", most, 1)
    seed_number("seed", seed)
    group, names = _groups(data)
    n, device = len(data), data.y.device
    mean = torch.zeros(data.dim, dtype=torch.float64, device=device)
    if centre:
        mean = sum((rows.double().sum(dim=0) for _, rows in data.blocks()), mean) / n
    drawn = torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:most].sort().values.to(device)
    sums = torch.zeros(len(names), data.dim, dtype=torch.float64, device=device)
    counts = torch.zeros(len(names), dtype=torch.float64, device=device)
    shown, index = [], []
    for start, rows in data.blocks():
        Z = rows.double() - mean
        length = Z.norm(dim=1)
        live = length > 1e-12 * rows.double().norm(dim=1)
        Z, own = Z[live] / length[live, None], group[start : start + len(rows)][live]
        sums.index_add_(0, own, Z)
        counts += own.bincount(minlength=len(names))
        number = start + live.nonzero()[:, 0]
        chosen = torch.isin(number, drawn)
        shown.append(Z[chosen])
        index.append(number[chosen])
    require(bool(counts.any()), "data", "rows all equal to their mean", "rows that differ")
    U, rows_shown = torch.cat(shown), torch.cat(index)
    order = group[rows_shown].argsort(stable=True)
    inner, pairs = sums @ sums.T - counts.diag(), torch.outer(counts, counts) - counts.diag()
    same = torch.eye(len(names), dtype=torch.bool, device=device)
    return Correlation(
        matrix=(U[order] @ U[order].T).clamp(-1, 1),
        index=rows_shown[order],
        group=group[rows_shown][order],
        names=names,
        means=torch.where(pairs > 0, inner / pairs, torch.nan),
        counts=counts.long(),
        within=float(inner[same].sum() / pairs[same].sum()) if bool(pairs[same].any()) else math.nan,
        between=float(inner[~same].sum() / pairs[~same].sum()),
    )


def _groups(data: Dataset) -> tuple[Tensor, tuple[str, ...]]:
    """(n,) group numbers without gaps, and their names in that order."""
    label = (data.y < 0).long() if data.binary else data.y
    if data.cluster is None:
        present, group = torch.unique(label, return_inverse=True)
        return group, tuple(("y=+1", "y=-1")[c] if data.binary else f"class {c}" for c in present.tolist())
    width = int(data.cluster.max()) + 1
    present, group = torch.unique(label * width + data.cluster, return_inverse=True)
    clusters = (present % width).tolist()
    if len(set(clusters)) < len(clusters):
        raise InputError("data.cluster: a cluster has rows of two classes; number the clusters of each class apart.")
    return group, tuple(f"cluster {k}" for k in clusters)
