"""The largest value of a difference of two shallow nets on the unit sphere, by ascent inside their span.

    E(x) = c f(x) - F(x),    f(x) = sum_j a_j relu(<x, u_j>)^p,   F alike (its p may differ)

E sees x only through the span of the directions. Neurons far below the rest and directions hardly used are left out of
the search, at a cost that is bounded: |f(x) - f~(x)| <= sum_j |a_j| p |u_j - u~_j| <= 1e-4 sum_j |a_j| on the ball.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from polyrelu.nets import orthonormal_basis, relu_power
from polyrelu.robust.core.norms import lengths

NEGLIGIBLE = 1e-4  # of sum_j |a_j|: what the search may leave out
INDEPENDENT = 1e-9  # of the largest singular value: directions of smaller ones are rounding
RANDOM, NEURONS = 64, 32  # random starts, starts at neurons
ASCENT_STEPS, FINAL_STEPS = 90, 24  # inside the span; then in the whole space
KEPT_ENDS = 16  # ends of the first that go on


@dataclass(frozen=True, eq=False)
class NeuronSum:
    """sum_j a_j relu(<x, u_j>)^p in float64; ``U`` (h, m), ``a`` (h,)."""

    U: Tensor
    a: Tensor
    p: float

    def values(self, X: Tensor) -> Tensor:
        """At each row of ``X`` (n, m)."""
        return relu_power(X @ self.U.T, self.p) @ self.a

    def slopes(self, X: Tensor) -> Tensor:
        """Gradients (n, m); 0 for a neuron exactly at its kink."""
        Z = X @ self.U.T
        rise = (Z > 0).to(Z) if self.p == 1 else self.p * Z.relu().pow(self.p - 1)
        return (rise * self.a) @ self.U

    def strongest(self) -> NeuronSum:
        """Without the weakest neurons, together at most half of what is negligible."""
        size = self.a.abs()
        order = size.argsort()
        weak = order[size[order].cumsum(0) <= NEGLIGIBLE / 2 * size.sum()]
        keep = torch.ones_like(size, dtype=torch.bool)
        keep[weak] = False
        return NeuronSum(self.U[keep], self.a[keep], self.p)

    def inside(self, basis: Tensor) -> NeuronSum:
        """Directions by their coordinates in the rows of ``basis``."""
        return NeuronSum(self.U @ basis.T, self.a, self.p)


def common_span(f: NeuronSum, F: NeuronSum) -> Tensor:
    """Orthonormal rows for all of F's directions and those f really uses (module docstring for "really")."""
    basis = orthonormal_basis(F.U, INDEPENDENT)
    rest = f.U - f.U @ basis.T @ basis
    # Cauchy-Schwarz: sum_j |a_j| |left out of u_j| <= sqrt(h) |diag(a) left out|_F, whose square is a sum of squares
    weighted = f.a[:, None] * rest
    if len(rest) > rest.shape[1]:
        squares, vectors = torch.linalg.eigh(weighted.T @ weighted)
        rows = vectors.T
    else:
        _, singular, rows = torch.linalg.svd(weighted, full_matrices=False)
        squares, rows = singular.square().flip(0), rows.flip(0)
    allowed = (NEGLIGIBLE / 2 * f.a.abs().sum() / f.p).square() / max(len(f.a), 1)
    used = rows[squares.clamp(min=0).cumsum(0) > allowed]
    return orthonormal_basis(torch.cat([basis, used]), INDEPENDENT)


def _unit(rows: Tensor) -> Tensor:
    return rows / lengths(rows, 2.0)[:, None].clamp(min=1e-300)


def starts(f: NeuronSum, F: NeuronSum, generator: torch.Generator) -> Tensor:
    """Neurons, sums of each class, sums and differences of pairs of F's neurons, all of these negated, and random."""
    strongest = f.a.abs().argsort(descending=True)[:NEURONS]
    first, second = torch.combinations(torch.arange(min(len(F.a), NEURONS))).unbind(dim=1)
    sums = [(part.a.clamp(min=0) if sign > 0 else part.a.clamp(max=0)) @ part.U for part in (f, F) for sign in (1, -1)]
    rows = [f.U[strongest], F.U, torch.stack(sums), F.U[first] + F.U[second], F.U[first] - F.U[second]]
    random = torch.randn(RANDOM, F.U.shape[1], generator=generator, dtype=torch.float64).to(F.U)
    known = torch.cat(rows)
    found = torch.cat([known, -known, random])
    return _unit(found[lengths(found, 2.0) > 1e-9])


def ascend(
    f: NeuronSum, F: NeuronSum, c: float, X: Tensor, steps: int, generator: torch.Generator, *, inside: bool
) -> tuple[Tensor, int]:
    """Rows where |c f - F| is locally largest, largest first, and how many points were evaluated.

    X <- X + eta g/|g| back on the sphere (in the ball if ``inside``), kept only where |c f - F| grows (so the answer is
    never worse than a start); eta grows by 1.5 or shrinks by 0.4, for each row on its own. Below p = 2 every other
    gradient is taken eta away, which sees both sides of a kink. After a sixth of the steps only the best go on.
    """
    sign = torch.ones(2 * len(X)).to(X)
    sign[len(X) :] = -1
    X = X.repeat(2, 1)
    value, eta = sign * (c * f.values(X) - F.values(X)), torch.full_like(sign, 0.1)
    evaluations = len(X)
    for step in range(steps):
        if step == steps // 6:
            best = value.argsort(descending=True)[: max(32, len(X) // 8)]
            X, sign, value, eta = X[best], sign[best], value[best], eta[best]
        at = X
        if min(f.p, F.p) < 2 and step % 2:
            noise = torch.randn(X.shape, generator=generator, dtype=torch.float64).to(X)
            at = X + eta[:, None] * _unit(noise)
        g = sign[:, None] * (c * f.slopes(at) - F.slopes(at))
        if not inside:
            g = g - (g * X).sum(dim=1, keepdim=True) * X
        moved = X + eta[:, None] * _unit(g)
        length = lengths(moved, 2.0)[:, None]
        moved = moved / (length.clamp(min=1) if inside else length)
        found = sign * (c * f.values(moved) - F.values(moved))
        better = found > value
        X, value = torch.where(better[:, None], moved, X), torch.where(better, found, value)
        eta = torch.where(better, 1.5 * eta, 0.4 * eta).clamp(max=0.5)
        evaluations += 2 * len(X)
    return X[value.argsort(descending=True)], evaluations


def lift(X: Tensor, basis: Tensor, generator: torch.Generator) -> Tensor:
    """Unit vectors of the whole space with these coordinates in the span; what is missing goes outside the span."""
    full = X @ basis
    missing = (1 - X.square().sum(dim=1)).clamp(min=0).sqrt()
    if bool((missing < 1e-6).all()):
        return _unit(full)
    outside = torch.randn(full.shape, generator=generator, dtype=torch.float64).to(full)
    return _unit(full + missing[:, None] * _unit(outside - outside @ basis.T @ basis))


class SupremumSearch:
    """The points visited and the values of f and F there; both nets in full (float64) and inside their span.

    X : (n, D) unit vectors; values : (2, n), f and F; evaluations : points at which f and F were evaluated
    """

    def __init__(self, f: NeuronSum, F: NeuronSum, seed: int) -> None:
        self.f, self.F = f, F
        self.generator = torch.Generator().manual_seed(seed)
        strong = f.strongest()
        self.basis = common_span(strong, F)
        self.small = strong.inside(self.basis), F.inside(self.basis)
        # of one degree, |E| is largest on the span's own sphere; otherwise x may lean out of the span
        self.leans = f.p != F.p and len(self.basis) < F.U.shape[1]
        self.pool = starts(*self.small, self.generator)
        self.evaluations = 0
        self.X, self.values = F.U.new_empty(0, F.U.shape[1]), F.U.new_empty(2, 0)
        self.add(self.pool @ self.basis)

    def add(self, X: Tensor) -> None:
        """Remember these unit vectors and f, F there."""
        self.X = torch.cat([self.X, X])
        self.values = torch.cat([self.values, torch.stack([self.f.values(X), self.F.values(X)])], dim=1)
        self.evaluations += len(X)

    def climb_at(self, c: float) -> None:
        """Search for the largest |c f - F| from all starts and the ends of earlier climbs."""
        ends, spent = ascend(*self.small, c, self.pool, ASCENT_STEPS, self.generator, inside=self.leans)
        self.pool = torch.cat([self.pool, ends[:KEPT_ENDS]])
        lifted = lift(ends[:KEPT_ENDS], self.basis, self.generator)
        tops, more = ascend(self.f, self.F, c, lifted, FINAL_STEPS, self.generator, inside=False)
        self.evaluations += spent + more
        self.add(tops)

    def heights(self, c: float) -> Tensor:
        """|c f - F| at the points visited."""
        return (c * self.values[0] - self.values[1]).abs()

    def highest(self, c: float) -> float:
        """The largest of them."""
        return float(self.heights(c).max())

    def best_c(self) -> tuple[float, float]:
        """The c >= 0 with the smallest ``highest``, and that value: a lower bound on dist. Convex, by thirds."""
        f, F = self.values
        low, high = 0.0, float(2 * F.abs().max() / f.abs().max().clamp(min=1e-300))  # beyond, c = 0 is better
        for _ in range(200):
            third = (high - low) / 3
            left = self.highest(low + third) <= self.highest(high - third)
            low, high = (low, high - third) if left else (low + third, high)
        return low, self.highest(low)
