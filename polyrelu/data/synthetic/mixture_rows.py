"""Mixture rows made when they are asked for, the same bits whatever the slices."""

from __future__ import annotations

from typing import final

import numpy as np
import torch

from polyrelu.data.random_streams import Purpose, stream
from polyrelu.data.rows import BLOCK
from polyrelu.errors import require


@final
class MixtureRows:
    """Rows centres[cluster_i] + s g_i made on demand; block b of 1024 rows has its own stream (seed, NOISE, b)."""

    known_finite = True

    def __init__(self, centres: torch.Tensor, cluster: torch.Tensor, std: float, seed: int) -> None:
        """Keep the recipe of the rows and, later, the block that was read last."""
        self.shape = (len(cluster), centres.shape[1])
        self.dtype = centres.dtype
        self._centres, self._cluster, self._std, self._seed = centres, cluster, std, seed
        self._last: tuple[int, torch.Tensor] | None = None

    def __getitem__(self, rows: slice, /) -> torch.Tensor:
        """Rows start..stop-1, cut out of whole blocks, as a fresh tensor."""
        start, stop, step = rows.indices(self.shape[0])
        require(step == 1, "step", step, "consecutive rows (step 1)")
        numbers = range(start // BLOCK, -(-stop // BLOCK)) if start < stop else range(0)
        empty = torch.empty(0, self.shape[1], dtype=self.dtype)
        return torch.cat([empty, *(self._block(b)[max(start - b * BLOCK, 0) : stop - b * BLOCK] for b in numbers)])

    def all(self) -> torch.Tensor:
        """Every row at once, filled block by block."""
        X = torch.empty(self.shape, dtype=self.dtype)
        for start in range(0, self.shape[0], BLOCK):
            X[start : start + BLOCK] = self._block(start // BLOCK)
        return X

    def _block(self, number: int) -> torch.Tensor:
        """The whole block; the last one is remembered, so that small slices in order cost no more than large ones."""
        last = self._last
        if last is None or last[0] != number:
            cluster = self._cluster[number * BLOCK : (number + 1) * BLOCK]
            kind = np.float32 if self.dtype == torch.float32 else np.float64
            rng = stream(self._seed, Purpose.NOISE, number)
            noise = torch.from_numpy(rng.standard_normal((len(cluster), self.shape[1]), dtype=kind))
            last = (number, noise.mul_(self._std).add_(self._centres[cluster]))
            self._last = last
        return last[1]
