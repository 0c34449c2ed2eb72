"""The points visited on the way to dist(f, F), and what they say about every c at once."""

from __future__ import annotations

import torch
from torch import Tensor

from polyrelu.robust.distance.sphere_ascent import NetDifference, NeuronSum, ascend, common_span, lift, starts

ASCENT_STEPS, FINAL_STEPS = 90, 24  # inside the span; then in the whole space
KEPT_ENDS = 16  # ends of the first that go on


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
        ends, spent = ascend(NetDifference(*self.small, c), self.pool, ASCENT_STEPS, self.generator, self.leans)
        self.pool = torch.cat([self.pool, ends[:KEPT_ENDS]])
        lifted = lift(ends[:KEPT_ENDS], self.basis, self.generator)
        tops, more = ascend(NetDifference(self.f, self.F, c), lifted, FINAL_STEPS, self.generator, inside=False)
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
            low, high = (
                (low, high - third) if self.highest(low + third) <= self.highest(high - third) else (low + third, high)
            )
        return low, self.highest(low)
