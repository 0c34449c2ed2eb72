"""Unlabelled sub-classes: spherical k-means within each class, as many as are found again in half of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from polyrelu.checks import checked, seed_number, whole_number, whole_numbers
from polyrelu.data import Dataset
from polyrelu.errors import InputError, require

STABLE = 0.75  # Jaccard overlap from which a cluster counts as found again (Hennig 2007)
MIN_ROWS = 10  # rows per sub-class below which a number is not tried
CANDIDATES = 5  # rows each new start of k-means is chosen from


@final
@dataclass(frozen=True, eq=False)
class Subclasses:
    """K sub-classes of the C classes of a data set, class after class ([+1, -1] for binary labels).

    centres (K, D) float64 : means of their rows (or the true centres where these are known), in the units of the data
    labels (K,) : the class of each, as in ``data.y``
    cluster (n,) : the sub-class of each row
    sizes (K,) : rows in each
    counts : number of sub-classes of each class
    stabilities : for each class the stability of 1, 2, ... sub-classes; empty where the number was given
    more, fewer : for each class its centres with one sub-class more and one fewer, from the rows that were searched
        (None where that is impossible)
    exact : are these true centres, not means?
    """

    centres: Tensor
    labels: Tensor
    cluster: Tensor
    sizes: Tensor
    counts: tuple[int, ...]
    stabilities: tuple[tuple[float, ...], ...] = ()
    more: tuple[Tensor | None, ...] = ()
    fewer: tuple[Tensor | None, ...] = ()
    exact: bool = False


def present_classes(data: Dataset) -> Tensor:
    """The labels of the classes present: [+1, -1], or 0..C-1."""
    return torch.tensor(sorted(set(data.y.tolist()), reverse=data.binary)).to(data.y)


@checked
def known_subclasses(data: Dataset) -> Subclasses | None:
    """The clusters the data came with; None if there are none. O(n D) where centres must be averaged.

    A cluster is of the class most of its rows have; one without rows is left out. Centres without cluster numbers get
    the rows nearest to them; clusters without centres get the means of their rows.
    """
    if data.cluster is None and data.centres is None:
        return None
    cluster = data.cluster
    if cluster is None and data.centres is not None:
        cluster = torch.cat([torch.cdist(block, data.centres).argmin(dim=1) for _, block in data.blocks()])
    assert cluster is not None
    present = cluster.bincount().nonzero()[:, 0]
    cluster = torch.searchsorted(present, cluster)
    classes = present_classes(data)
    votes = torch.stack([cluster[data.y == label].bincount(minlength=len(present)) for label in classes])
    side = votes.argmax(dim=0)
    order = side.argsort(stable=True)
    cluster = order.argsort()[cluster]
    sizes = cluster.bincount(minlength=len(present))
    exact = data.centres is not None
    centres = data.centres.double()[present[order]] if data.centres is not None else _means(data, cluster, len(order))
    counts = tuple(side.bincount(minlength=len(classes)).tolist())
    return Subclasses(centres, classes[side[order]], cluster, sizes, counts, exact=exact)


@checked
def estimate_subclasses(
    data: Dataset,
    count: int | Sequence[int] | None = None,
    most: int = 16,
    seed: int = 0,
    *,
    origin: Tensor | None = None,
    rows: int = 1000,
    splits: int = 5,
) -> Subclasses:
    """Spherical k-means within each class; their number is the largest k <= ``most`` with stability >= .75.

    Stability: split the class's rows in halves and cluster both; how well are the clusters of one half, even the worst,
    found again by the other half's centres (|A & B|/|A | B|, Hennig 2007)? Mean over ``splits`` splits. The rule asks
    for clusters that come back, not for any shape; one long blob may count as two, and a round one now and then where
    it has two dimensions only (3 of 16 at D = 3). 1000 rows a class, drawn at random, are searched (``rows``); then all
    rows are assigned and averaged three times. Numbers above a tenth of the class's rows are not tried.
    O(splits most^2 rows D) for the search, O(n D K) for all rows, which are read block by block.

    Parameters
    ----------
    count : number of sub-classes of every class, or one number for each (order [+1, -1]); None: chosen as above
    origin : (D,) origin of the directions, e.g. the centre a net subtracts; 0 by default
    """
    seed_number("seed", seed)
    whole_numbers(least=1, most=most, rows=rows, splits=splits)
    classes = present_classes(data)
    requested = _requested_counts(count, classes, data)
    shift = torch.zeros(data.dim) if origin is None else torch.as_tensor(origin).detach()
    require(tuple(shift.shape) == (data.dim,), "origin.shape", tuple(shift.shape), f"({data.dim},)")
    shift = shift.to(data.rows(0, 1))
    source = torch.Generator().manual_seed(int(seed) % 2**63)
    units, found, stabilities, more, fewer = [], [], [], [], []
    rows = max(rows, *(number or 1 for number in requested))
    for sample, number in zip(_samples(data, classes, rows, source), requested, strict=True):
        X = _unit_rows(sample - shift)
        tried: tuple[float, ...] = ()
        if number is None:
            last = max(1, min(most, len(X) // MIN_ROWS))
            tried = tuple(stability(X, k, source, splits) for k in range(1, last + 1))
            number = max(k for k, value in enumerate(tried, start=1) if value >= STABLE)
        fits = {k: spherical_kmeans(X, k, source) for k in (number - 1, number, number + 1) if 1 <= k <= len(X)}
        units.append(fits[number])
        found.append(number)
        stabilities.append(tried)
        more.append(_raw_means(sample, X, fits.get(number + 1)))
        fewer.append(_raw_means(sample, X, fits.get(number - 1)))
    labels = torch.cat([label.expand(k) for label, k in zip(classes, found, strict=True)])
    centres, cluster = _assign_all_rows(data, torch.cat(units), labels, shift)
    sizes = cluster.bincount(minlength=len(labels))
    searched = tuple(stabilities) if count is None else ()
    return Subclasses(centres, labels, cluster, sizes, tuple(found), searched, tuple(more), tuple(fewer))


def _requested_counts(count: int | Sequence[int] | None, classes: Tensor, data: Dataset) -> list[int | None]:
    """The number asked for in each class, or None; never more than it has rows."""
    if count is None:
        return [None] * len(classes)
    requested = list(count) if isinstance(count, Sequence) else [count] * len(classes)
    require(len(requested) == len(classes), "count", count, f"one number, or {len(classes)}, one for each class")
    for label, number in zip(classes, requested, strict=True):
        whole_number("count", number, 1)
        has = int((data.y == label).sum())
        if number > has:
            raise InputError(
                f"count={number}: expected at most {has} sub-classes of class {label:g}, which has {has} rows; "
                "ask for fewer, or give more rows."
            )
    return [*requested]


def _samples(data: Dataset, classes: Tensor, most: int, source: torch.Generator) -> list[Tensor]:
    """Up to ``most`` rows of each class, drawn at random."""
    chosen = torch.zeros(len(data), dtype=torch.bool)
    for label in classes:
        index = (data.y == label).nonzero()[:, 0].cpu()
        chosen[index[torch.randperm(len(index), generator=source)[:most]]] = True
    chosen = chosen.to(data.y.device)
    X = torch.cat([block[chosen[start : start + len(block)]] for start, block in data.blocks()])
    return [X[data.y[chosen] == label] for label in classes]


def _assign_all_rows(
    data: Dataset, units: Tensor, labels: Tensor, shift: Tensor, rounds: int = 3
) -> tuple[Tensor, Tensor]:
    """Assign all rows and average them, ``rounds`` times: raw means (K, D) and the sub-class of each row (n,)."""
    for _ in range(rounds):
        parts = []
        for start, block in data.blocks():
            other_class = data.y[start : start + len(block), None] != labels
            parts.append(((block - shift) @ units.T).masked_fill(other_class, -torch.inf).argmax(dim=1))
        cluster = torch.cat(parts)
        centres = _means(data, cluster, len(labels))
        empty = cluster.bincount(minlength=len(labels)) == 0
        centres[empty] = (units[empty] + shift).double()
        units = _unit_rows(centres.to(units) - shift)
    return centres, cluster


def _means(data: Dataset, cluster: Tensor, K: int) -> Tensor:
    """The mean row of each cluster, (K, D) float64."""
    sums = torch.zeros(K, data.dim, dtype=torch.float64, device=cluster.device)
    for start, block in data.blocks():
        sums.index_add_(0, cluster[start : start + len(block)], block.double())
    return sums / cluster.bincount(minlength=K).clamp(min=1)[:, None]


def _raw_means(rows: Tensor, X: Tensor, units: Tensor | None) -> Tensor | None:
    """The mean of the rows nearest to each unit vector; None without unit vectors."""
    if units is None:
        return None
    members = torch.nn.functional.one_hot((X @ units.T).argmax(dim=1), len(units)).double()
    return (members.T @ rows.double() / members.sum(dim=0).clamp(min=1)[:, None])[members.sum(dim=0) > 0]


def _unit_rows(X: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(X, dim=1, keepdim=True)
    return X / torch.where(length > 0, length, 1.0)


def spherical_kmeans(X: Tensor, k: int, generator: torch.Generator, restarts: int = 4, rounds: int = 50) -> Tensor:
    """The best of ``restarts`` runs, run together, as unit centres (k, D); O((rounds + 5) restarts k n D) at most.

    Starts by greedy k-means++ (Arthur & Vassilvitskii 2007): five rows are drawn with probability in proportion to
    their squared distance 2 - 2 <x, m> to the centres there are, the most useful becomes a centre. A centre that lost
    its rows stays where it is.
    """
    (n, dim), M = X.shape, _initial_centres(X, k, generator, restarts)
    before = None
    for _ in range(rounds):
        cosine, nearest = (X @ M.reshape(-1, dim).T).reshape(n, restarts, k).max(dim=2)
        if before is not None and torch.equal(nearest, before):
            break
        before = nearest
        members = torch.zeros(restarts, k, n, dtype=X.dtype, device=X.device).scatter_(1, nearest.T[:, None], 1.0)
        sums = (members.reshape(-1, n) @ X).reshape(M.shape)
        length = torch.linalg.vector_norm(sums, dim=2, keepdim=True)
        M = torch.where(length > 0, sums / length.clamp(min=1e-30), M)
    return M[int(cosine.sum(dim=0).argmax())]


def _initial_centres(X: Tensor, k: int, generator: torch.Generator, restarts: int) -> Tensor:
    """(restarts, k, D) rows of X, far from one another."""
    chosen = [X[torch.randint(len(X), (restarts,), generator=generator)]]
    nearest = X @ chosen[0].T
    for _ in range(k - 1):
        odds = (1 - nearest).clamp(min=1e-12).T.cpu().double()
        drawn = torch.multinomial(odds, CANDIDATES, replacement=True, generator=generator).to(X.device)
        rows = X[drawn]
        reached = torch.maximum(nearest[:, :, None], (X @ rows.reshape(-1, X.shape[1]).T).reshape(-1, *drawn.shape))
        best = reached.sum(dim=0).argmax(dim=1)
        run = torch.arange(restarts, device=X.device)
        chosen.append(rows[run, best])
        nearest = reached[:, run, best]
    return torch.stack(chosen, dim=1)


def stability(X: Tensor, k: int, generator: torch.Generator, splits: int) -> float:
    """How surely all of k clusters are found again, in [0, 1]: mean over ``splits`` of the rows in two halves.

    Cluster each half (as in Tibshirani & Walther 2005). A cluster A of one half is found again by the cluster B that
    the other half's centres make of the same rows, with the largest |A & B|/|A | B| (Hennig 2007). The least over the
    clusters of both halves counts. Pairs kept together, the older measure, rewards splitting off a few outliers.
    """
    if k == 1:
        return 1.0
    total = 0.0
    for _ in range(splits):
        halves = X[torch.randperm(len(X), generator=generator)].tensor_split(2)
        ours, theirs = (spherical_kmeans(half, k, generator) for half in halves)
        total += min(_found_again(halves[0], ours, theirs), _found_again(halves[1], theirs, ours))
    return total / splits


def _found_again(X: Tensor, own: Tensor, other: Tensor) -> float:
    """min over clusters A of X by ``own`` centres of max over clusters B by ``other`` centres of |A & B|/|A | B|."""
    k, one, two = len(own), (X @ own.T).argmax(dim=1), (X @ other.T).argmax(dim=1)
    both = (one * k + two).bincount(minlength=k * k).reshape(k, k).double()
    either = both.sum(dim=1, keepdim=True) + both.sum(dim=0) - both
    return float((both / either.clamp(min=1)).amax(dim=1).min())
