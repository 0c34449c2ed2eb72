"""Layers that classifiers fitted elsewhere are made of, beside those of torch."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from polyrelu.robust.core.norms import lengths

ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "logistic": nn.Sigmoid, "identity": nn.Identity}


@final
class SqueezeSingleLogit(nn.Module):
    """(n, 1) becomes (n,): one logit, positive for the second class; several stay as they are."""

    def forward(self, Z: Tensor) -> Tensor:
        """Logits as the rest of the package takes them."""
        return Z[:, 0] if Z.ndim == 2 and Z.shape[1] == 1 else Z


@final
class Opaque(nn.Module):
    """A module of which nothing but its logits is used: attacks run, and no certificate looks inside."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, X: Tensor) -> Tensor:
        """The logits of the module inside."""
        logits: Tensor = self.inner(X)
        return logits


@final
class Diagonal(nn.Module):
    """x -> (x - centre) factor + offset, column by column: D numbers each, where a matrix would have D^2."""

    centre: Tensor
    factor: Tensor
    offset: Tensor

    def __init__(self, centre: Tensor, factor: Tensor, offset: Tensor) -> None:
        super().__init__()
        for name, column in (("centre", centre), ("factor", factor), ("offset", offset)):
            self.register_buffer(name, column)

    def forward(self, X: Tensor) -> Tensor:
        """(n, D) -> (n, D)."""
        return (X - self.centre) * self.factor + self.offset


@final
class UnitRows(nn.Module):
    """x/|x| in the norm given; 0 stays 0."""

    def __init__(self, norm: float) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, X: Tensor) -> Tensor:
        """Rows of length 1."""
        size = lengths(X, self.norm)[:, None]
        return X / torch.where(size > 0, size, 1.0)


@final
class Kernel(nn.Module):
    """k(x, s_i) for every support vector s_i: rbf exp(-gamma |x - s|^2), poly (gamma <x, s> + c)^degree, sigmoid."""

    vectors: Tensor

    def __init__(self, kind: str, vectors: Tensor, gamma: float, degree: int, constant: float) -> None:
        super().__init__()
        self.kind, self.gamma, self.degree, self.constant = kind, gamma, degree, constant
        self.register_buffer("vectors", vectors)

    def forward(self, X: Tensor) -> Tensor:
        """(n, D) -> (n, number of support vectors)."""
        inner = X @ self.vectors.T
        if self.kind == "rbf":
            square = X.square().sum(dim=1, keepdim=True) - 2 * inner + self.vectors.square().sum(dim=1)
            return (-self.gamma * square.clamp(min=0)).exp()
        if self.kind == "linear":
            return inner
        inner = self.gamma * inner + self.constant
        if self.kind == "poly":
            return inner.pow(self.degree)
        return inner.tanh() if self.kind == "sigmoid" else inner


@final
class OneVersusOne(nn.Module):
    """One-against-one decisions g_cd as C logits s_c = min_d g_cd, the class with most votes in front.

    A class that wins all its duels has the only positive s_c. Where none does, the first with the most votes (``sums``:
    with the largest sum of decisions among them) is lifted above the others, so that decisions are libsvm's everywhere.
    """

    def __init__(self, classes: int, sums: bool) -> None:
        super().__init__()
        self.classes, self.sums = classes, sums

    def duels(self, g: Tensor) -> Tensor:
        """(n, C(C-1)/2) -> (n, C, C), antisymmetric."""
        first, second = torch.triu_indices(self.classes, self.classes, 1, device=g.device)
        table = g.new_zeros(len(g), self.classes, self.classes)
        table[:, first, second], table[:, second, first] = g, -g
        return table

    def forward(self, g: Tensor) -> Tensor:
        """Logits (n, C)."""
        table = self.duels(g)
        own = torch.eye(self.classes, dtype=torch.bool, device=g.device)
        scores = table.masked_fill(own, torch.inf).amin(dim=2)
        with torch.no_grad():
            votes = (table > 0).sum(dim=2).to(g)
            total = table.sum(dim=2)
            votes = votes + total / (3 * (total.abs() + 1)) if self.sums else votes
            winner = votes.argmax(dim=1, keepdim=True)
        top, mine = scores.amax(dim=1, keepdim=True), scores.gather(1, winner)
        return scores.scatter(1, winner, torch.where(mine >= top, mine, top - mine))
