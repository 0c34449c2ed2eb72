"""Mirrored, linearly separable data with a known best separator, and the change that misleads gradient flow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import torch

from polyrelu.checks import enough_memory, finite_number, floating_dtype, seed_number, whole_number
from polyrelu.data.dataset import Dataset
from polyrelu.data.synthetic.recipe import Purpose, changed_settings, orthonormal_rows, recipe_text, stream
from polyrelu.errors import require

CLOSE, REACH, HINT = 0.2, 2.0, 30.0
"""Extra points in units of the margin: how near the boundary the blockers lie, how far apart, how long the hint is."""


@final
@dataclass(frozen=True)
class SymmetricSeparable:
    r"""(x, +1) and (-x, -1),  x = t u + z,  <z, u> = 0,  t >= margin  (Lyu, Li, Wang, Arora, NeurIPS 2021).

    u is a unit vector, z ~ spread N(0, I) on the complement of u, t = margin + spread |g|. The first two x are
    margin u + z and margin u - z with one z, so that their mean is margin u: **u is the max-margin direction through
    the origin and its margin is exactly** ``margin`` (up to rounding), for every seed.

    **Changed data** (``extra`` >= 3; claim E16). Unmirrored points, all +1, are added, with a unit vector v _|_ u that
    no z has a part in: two blockers ``close u +- reach v`` and ``extra - 2`` hints ``hint u, 2 hint u, ...``, where
    close, reach, hint = 0.2, 2, 30 times ``margin``. The max-margin direction is still exactly u, now with margin
    ``close``. The hints draw every neuron of a two-layer net to u, the positive ones first, where both blockers are
    active. For a leaky ReLU phi of slope a > 0.2, the normalised margin min_i y_i f(x_i) / |theta|^2 of one neuron
    along u is close/2, a local maximum; the net

        l (phi(<v,x>) + phi(-<v,x>)) + m (phi(<u,x>) - phi(-<u,x>))

    with l (1-a) reach = m (1+a) margin (each neuron balanced) has at least 1/4 / (1/((1-a) reach) + 1/((1+a) margin)):
    0.15 against 0.1 for a = 1/2, margin 1. The paper proves the effect; these points and numbers are derived here.

    Parameters
    ----------
    dim : D >= 2, or >= 3 with extra points
    margin : > 0
    spread : >= 0, how far points lie from u and beyond the margin; 0 puts every x at margin u
    extra : 0, or at least 3
    rotate : None puts u and v on the first two basis vectors; a seed on a Haar-random pair
    dtype : torch.float32 or torch.float64; the draw itself is made in float64 and rounded
    """

    dim: int
    margin: float = 1.0
    spread: float = 1.0
    extra: int = 0
    rotate: int | None = None
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        whole_number("extra", self.extra, 0)
        require(self.extra == 0 or self.extra >= 3, "extra", self.extra, "0, or at least 3 (two blockers and a hint)")
        whole_number("dim", self.dim, 3 if self.extra else 2)
        finite_number("margin", self.margin, above=0)
        finite_number("spread", self.spread, least=0)
        if self.rotate is not None:
            seed_number("rotate", self.rotate)
        floating_dtype(self.dtype)
        largest = 40 * (float(self.margin) + float(self.spread)) * (1 + HINT * self.extra)
        fits = largest < torch.finfo(self.dtype).max
        require(fits, "margin, spread", f"{largest:g}", f"numbers that fit {self.dtype}")
        object.__setattr__(self, "margin", float(self.margin))
        object.__setattr__(self, "spread", float(self.spread))

    @property
    def direction(self) -> torch.Tensor:
        """u, (D,): the max-margin direction of every sample."""
        return self._frame[0].to(self.dtype)

    @property
    def side(self) -> torch.Tensor:
        """v, (D,): the direction the two blockers lie apart in."""
        return self._frame[1].to(self.dtype)

    @property
    def linear_margin(self) -> float:
        """max_w min_i y_i <w, x_i> / |w| of every sample: ``margin``, or 0.2 ``margin`` with extra points."""
        return self.margin * (CLOSE if self.extra else 1.0)

    def sample(self, n: int, seed: int) -> Dataset:
        """n mirrored rows (even, >= 4), rows 2i and 2i+1 being x and -x, then the ``extra`` rows: n + extra in all."""
        require(isinstance(n, (int, np.integer)) and n >= 4 and n % 2 == 0, "n", repr(n), "an even number >= 4")
        seed_number("seed", seed)
        rng = stream(seed, Purpose.SYMMETRIC)
        with enough_memory(f"n={n} rows"):
            t = self.margin + self.spread * np.abs(rng.standard_normal(n // 2))
            z = self.spread * torch.from_numpy(rng.standard_normal((n // 2, self.dim)))
        F = self._frame if self.extra else self._frame[:1]
        z -= (z @ F.T) @ F
        z[1] = -z[0]
        t[:2] = self.margin
        x = (torch.from_numpy(t)[:, None] * self._frame[0] + z).to(self.dtype)
        X = torch.cat([torch.stack([x, -x], 1).reshape(n, self.dim), self._extra_rows()])
        y = torch.cat([torch.tensor([1.0, -1.0]).repeat(n // 2), torch.ones(self.extra)])
        settings = {"dim": self.dim, "margin": self.margin, **changed_settings(self)}  # the margin is always named
        return Dataset(X, y, name=recipe_text("symmetric", **settings, n=n, seed=seed))

    @cached_property
    def _frame(self) -> torch.Tensor:
        """u and v as rows, (2, D), float64."""
        return orthonormal_rows(2, self.dim, self.rotate)

    def _extra_rows(self) -> torch.Tensor:
        """Two blockers and ``extra - 2`` hints, or nothing."""
        with enough_memory(f"extra={self.extra} rows"):
            parts = torch.zeros(self.extra, 2, dtype=torch.float64)
            parts[:2] = torch.tensor([[CLOSE, REACH], [CLOSE, -REACH]], dtype=torch.float64)[: self.extra]
            parts[2:, 0] = HINT * torch.arange(1, max(self.extra - 1, 1), dtype=torch.float64)
            return (self.margin * parts @ self._frame).to(self.dtype)
