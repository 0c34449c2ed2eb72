"""Nearly orthogonal data with random labels: points on a high-dimensional sphere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
import torch

from polyrelu.checks import enough_memory, floating_dtype, seed_number, whole_number
from polyrelu.data.dataset import Dataset
from polyrelu.data.rows import BLOCK
from polyrelu.data.synthetic.recipe import Purpose, changed_settings, recipe_text, stream


@final
@dataclass(frozen=True)
class NearlyOrthogonalSphere:
    """x = sqrt(D) g/|g|,  g ~ N(0, I_D),  P(y = +1) = 1/2  (Vardi, Yehudai, Shamir, NeurIPS 2022).

    Two rows have <x_i, x_j> of mean 0 and standard deviation sqrt(D), against |x_i|^2 = D. The papers take n = D^a
    rows. Labels are independent of x, drawn anew as long as all are equal (so n >= 2): fair coins, given both classes.

    Parameters
    ----------
    dim : D >= 2
    dtype : torch.float32 or torch.float64; the draw itself is made in float64 and rounded, so both are the same points
    """

    dim: int
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        whole_number("dim", self.dim, 2)
        floating_dtype(self.dtype)

    def sample(self, n: int, seed: int) -> Dataset:
        """n >= 2 rows with labels +1/-1, both present; the same (n, seed) gives the same set."""
        whole_number("n", n, 2)
        seed_number("seed", seed)
        with enough_memory(f"n={n} rows"):
            X = torch.empty(n, self.dim, dtype=self.dtype)
        for number, start in enumerate(range(0, n, BLOCK)):
            rng = stream(seed, Purpose.SPHERE, 1 + number)
            g = rng.standard_normal((min(BLOCK, n - start), self.dim))
            X[start : start + BLOCK] = torch.from_numpy(g * (math.sqrt(self.dim) / np.linalg.norm(g, axis=1))[:, None])
        coins, y = stream(seed, Purpose.SPHERE), torch.ones(n)
        while y.min() == y.max():  # for n = 2, twice on average
            y = 2.0 * torch.from_numpy(coins.integers(2, size=n)) - 1.0
        return Dataset(X, y, name=recipe_text("sphere", **changed_settings(self), n=n, seed=seed))
