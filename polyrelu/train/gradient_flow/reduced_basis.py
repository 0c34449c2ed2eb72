"""Few coordinates for long vectors: a shared basis and, for each neuron, three directions of its own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class ReducedBasis:
    """Coordinates of each neuron in the surrogate's span and in three directions of its own.

    The own directions are those of the given vectors (state, defect, trend) after the span is taken out of them;
    ``coordinates`` holds the vectors themselves. Without a basis this is the identity.
    """

    def __init__(self, basis: Tensor | None = None, vectors: Sequence[Tensor] = ()) -> None:
        self.basis, self.own = basis, list[Tensor]()
        self.coordinates = list(vectors)
        if basis is None:
            return
        self.coordinates = []
        for vector in vectors:
            inner = vector @ basis
            rest = vector - inner @ basis.T
            along = []
            for direction in self.own:
                along.append((rest * direction).sum(1, keepdim=True))
                rest = rest - along[-1] * direction
            size = torch.linalg.vector_norm(rest, dim=1, keepdim=True)
            size = size.where(size > 1e-6 * torch.linalg.vector_norm(vector, dim=1, keepdim=True), 0)
            self.own.append(torch.where(size > 0, rest / size, 0))
            empty = [torch.zeros_like(size)] * (len(vectors) - len(self.own))
            self.coordinates.append(torch.cat([inner, *along, size, *empty], dim=1))

    def up(self, coordinates: Tensor) -> Tensor:
        """Rows with these coordinates."""
        if self.basis is None:
            return coordinates
        rank = self.basis.shape[1]
        vector = coordinates[:, :rank] @ self.basis.T
        for k, direction in enumerate(self.own):
            vector.addcmul_(direction, coordinates[:, rank + k : rank + k + 1])
        return vector

    def products(self, coordinates: Tensor, vectors: Tensor) -> Tensor:
        """Inner products of the rows with these coordinates and the given vectors (k, D)."""
        if self.basis is None:
            return coordinates @ vectors.T
        rank = self.basis.shape[1]
        found = coordinates[:, :rank] @ (vectors @ self.basis).T
        for k, direction in enumerate(self.own):
            found.addcmul_(direction @ vectors.T, coordinates[:, rank + k : rank + k + 1])
        return found
