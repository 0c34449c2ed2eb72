"""Gaussian clusters around orthonormal centres: the data of both pReLU papers and of feature averaging."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, final

import numpy as np
import torch

from polyrelu.checks import enough_memory, finite_number, floating_dtype, seed_number, whole_number
from polyrelu.data.dataset import Dataset
from polyrelu.data.rows import BLOCK
from polyrelu.data.synthetic.recipe import Purpose, changed_settings, orthonormal_rows, recipe_text, stream
from polyrelu.errors import InputError, require


@final
@dataclass(frozen=True)
class OrthonormalMixture:
    """x = scale mu_k + s g,  g ~ N(0, I_D),  s = alpha/sqrt(D)  (Min & Vidal, ICML 2024 and 2025).

    Orthonormal mu_k; y = +1 for the first ``positive`` clusters, -1 for the ``negative`` ones after them.

    Parameters
    ----------
    dim : D, at least the number of clusters
    positive, negative : number of clusters of each class, at least 1
    alpha : noise level >= 0; the noise vector has length about alpha
    scale : length of a centre, a number > 0 or "sqrt_dim"
        "sqrt_dim" is the convention of the feature-averaging papers (Li et al., ICLR 2025): centres of length sqrt(D)
        and s = alpha, so that alpha=1 is unit noise; it is the scale-1 set times sqrt(D). A number changes the
        centres only: s stays alpha/sqrt(D) unless ``noise`` is given.
    noise : s itself, the standard deviation per coordinate, instead of the rules above
    rotate : None puts the centres on the first basis vectors; a seed on a Haar-random orthonormal frame
        Only the centres turn: the noise of a (seed, n) is the same numbers in both cases.
    dtype : torch.float32 or torch.float64; the draw is made in it, so it is part of the recipe
    """

    dim: int
    positive: int
    negative: int
    alpha: float
    scale: float | Literal["sqrt_dim"] = 1.0
    noise: float | None = None
    rotate: int | None = None
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        for name in ("dim", "positive", "negative"):
            whole_number(name, getattr(self, name), any_size=True)  # their sum is compared with dim below
        enough = f"at least {self.clusters}, one direction for each of {self.positive}+{self.negative} clusters"
        require(self.dim >= self.clusters, "dim", self.dim, enough)
        finite_number("alpha", self.alpha, least=0)
        if isinstance(self.scale, str):
            require(self.scale == "sqrt_dim", "scale", repr(self.scale), "a finite number > 0 or 'sqrt_dim'")
        else:
            finite_number("scale", self.scale, above=0)
        if self.noise is not None:
            finite_number("noise", self.noise, least=0)
        if self.rotate is not None:
            seed_number("rotate", self.rotate)
        floating_dtype(self.dtype)
        largest = self.radius + 40 * self.noise_std  # no normal number is ever drawn beyond 40
        require(largest < torch.finfo(self.dtype).max, "scale, alpha", f"{largest:g}", f"numbers that fit {self.dtype}")

    @property
    def clusters(self) -> int:
        """K = positive + negative."""
        return int(self.positive) + int(self.negative)  # numbers of numpy wrap around

    @property
    def radius(self) -> float:
        """Length of every centre."""
        return math.sqrt(self.dim) if self.scale == "sqrt_dim" else float(self.scale)

    @property
    def noise_std(self) -> float:
        """s, the standard deviation of the noise in each coordinate."""
        if self.noise is not None:
            return float(self.noise)
        return float(self.alpha) if self.scale == "sqrt_dim" else self.alpha / math.sqrt(self.dim)

    @cached_property
    def directions(self) -> torch.Tensor:
        """Orthonormal mu_k, (K, D)."""
        return orthonormal_rows(self.clusters, self.dim, self.rotate).to(self.dtype)

    @property
    def centres(self) -> torch.Tensor:
        """scale mu_k, (K, D): where the clusters lie."""
        return self.radius * self.directions

    @property
    def labels(self) -> torch.Tensor:
        """+1/-1 of each cluster, (K,)."""
        return torch.where(torch.arange(self.clusters) < self.positive, 1.0, -1.0).to(self.dtype)

    @property
    def class_averages(self) -> torch.Tensor:
        """Unit vectors [mean direction of the positive clusters, of the negative ones], (2, D): sum mu_k / sqrt(K1)."""
        plus, minus = self.directions[: self.positive].sum(0), self.directions[self.positive :].sum(0)
        return torch.stack([plus / math.sqrt(self.positive), minus / math.sqrt(self.negative)])

    def sample(self, n: int, seed: int, balanced: bool = True, lazy: bool = False) -> Dataset:
        """n rows with their clusters; the same (n, seed) gives the same rows, different seeds independent ones.

        ``balanced`` gives every cluster floor(n/K) or ceil(n/K) rows in random order (which clusters get one more is
        random too); otherwise each row draws its cluster uniformly. ``lazy=True`` makes rows when they are asked for,
        bitwise those of ``lazy=False``, whatever the slices: only y and the cluster numbers are kept. Reading in
        order is cheap; a lone row costs a block of 1024.
        """
        whole_number("n", n, 1)
        seed_number("seed", seed)
        rng = stream(seed, Purpose.CLUSTERS)
        with enough_memory(f"n={n} rows"):
            if balanced:
                numbers = rng.permutation(rng.permutation(self.clusters)[np.arange(n) % self.clusters])
            else:
                numbers = rng.integers(self.clusters, size=n)
            cluster = torch.from_numpy(numbers)
        y = self.labels[cluster]
        if y.min() == y.max():
            raise InputError(
                f"n={n}: expected both classes among the rows, but seed {seed} drew only {y[0].item():+g}; "
                f"{self.clusters} balanced rows always have both."
            )
        source = MixtureRows(self.centres, cluster, self.noise_std, int(seed))
        with enough_memory(f"n={n} rows of dim={self.dim}"):
            X = source if lazy else source.all()
        return Dataset(X, y, cluster, self.centres, self._name(n, seed, balanced))

    def _name(self, n: int, seed: int, balanced: bool) -> str:
        """The recipe as text, without what is left at its default."""
        settings = changed_settings(self)
        dim, clusters = settings.pop("dim"), f"{settings.pop('positive')}+{settings.pop('negative')}"
        sampled = {"n": n, "seed": seed, "balanced": None if balanced else "no"}
        return recipe_text("mixture", dim=dim, clusters=clusters, **settings, **sampled)


@final
class MixtureRows:
    """Rows centres[cluster_i] + s g_i made on demand; block b of 1024 rows has its own stream (seed, NOISE, b)."""

    known_finite = True

    def __init__(self, centres: torch.Tensor, cluster: torch.Tensor, std: float, seed: int) -> None:
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
