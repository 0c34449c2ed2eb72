"""Spherical k-means: k unit vectors m_c that maximise sum_i max_c <x_i, m_c> over unit rows (Dhillon & Modha 2001)."""

from __future__ import annotations

import torch
from torch import Tensor

CANDIDATES = 5  # rows each new start is chosen from


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
