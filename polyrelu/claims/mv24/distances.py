"""dist(f_p, ideal) = inf_{c>0} sup_{|x|=1} |c f_p(x) - F(x)| of trained nets (Min & Vidal 2024, Conjecture 1, Fig. 2a).

The published estimator takes c = E[f F]/E[f^2] and climbs from random unit vectors with a guard in the step. For p = 1
it finds the supremum at that c; for p = 3 the guard stops it far below, and `published_ascent` repeats it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from polyrelu.claims import Measured, Profile, Quantity, Values, experiment
from polyrelu.claims.mv24 import sizes
from polyrelu.claims.setups.mixture_nets import ideal, trained
from polyrelu.claims.setups.sizes import SIX_FOUR
from polyrelu.robust import dist
from polyrelu.robust.distance import NeuronSum, common_span, neuron_sum_of, published_c


def published_ascent(
    f: NeuronSum, F: NeuronSum, c: float, *, starts: int = 10_000, steps: int = 2000, seed: int = 0
) -> float:
    """max |E| after x <- unit(x + .01 g/(|g| + 1e-7)), g = grad E^2/1000, E = c f - F (Min & Vidal 2024).

    `robust.distance.published_dist` in few coordinates: E and g live in the span of the neurons, and what x has outside
    it is only rescaled. Batches of 1000 enter through the mean alone, so all starts move together. Both nets need the
    same p.
    """
    f = f.strongest()
    basis = common_span(f, F)
    U = torch.cat([f.U, F.U]) @ basis.T
    U, a = U.float(), torch.cat([c * f.a, -F.a]).float()
    X = torch.randn(starts, basis.shape[1], generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    X = (X / X.norm(dim=1, keepdim=True) @ basis.T).float()
    outside = 1 - X.square().sum(dim=1, keepdim=True)
    for _ in range(steps):
        Z = (X @ U.T).relu()
        slope = Z.pow(f.p - 1)
        g = (slope.mul(Z) @ a)[:, None] * ((slope * (f.p * a)) @ U) / 500
        X = X + 0.01 * g / (g.norm(dim=1, keepdim=True) + 1e-7)
        length = X.square().sum(dim=1, keepdim=True) + outside
        X, outside = X / length.sqrt(), outside / length
    return float(((X @ U.T).relu().pow(f.p) @ a).abs().max())


RELU_READ_AT = (0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)  # where Fig. 2a can be read, by alpha
CENTRE_READ_AT = (0.01, 0.05, 0.1, 0.2, 0.25, 0.3)


def _measured(alpha: float, distance: float, estimate: float, log10_loss: float) -> Measured:
    values = {"distance": distance, "published estimate": estimate}
    data = {"alpha": alpha, "distance": distance, "estimate": estimate, "log10_loss": log10_loss}
    return Measured(values, data)


def _at_published(alphas: Sequence[float]) -> Callable[[Values], dict[Quantity | str, float]]:
    """Values at the alphas read off the figure, by linear interpolation, and how much they rise."""

    def combine(values: Values) -> dict[Quantity | str, float]:
        found: dict[Quantity | str, float] = {}
        for kind in ("distance", "published estimate"):
            line = dict(sorted(values.along("alpha", kind).items()))
            first, *_, last = line
            for alpha in alphas:
                if first <= alpha <= last:
                    near = float(np.interp(alpha, list(line), list(line.values())))
                    found[Quantity(f"{kind}, interpolated", alpha=alpha)] = near
            found[f"{kind}: largest over smallest alpha"] = line[last] / line[first]
        return found

    return combine


@experiment(over={"alpha": sizes.ALPHAS}, repeats={"quick": 1, "paper": 5}, combine=_at_published(RELU_READ_AT))
def relu_distance(profile: Profile, seed: int, alpha: float) -> Measured:
    """p = 1: with the best c and with the published one."""
    run = trained(SIX_FOUR[profile]._replace(alpha=alpha), 1, seed)
    F = ideal(run.mixture, 1)
    estimate = dist(run.net, F, c="published", mixture=run.mixture, seed=seed).value
    return _measured(alpha, dist(run.net, F, seed=seed).value, estimate, run.trajectory.log10_loss)


@experiment(
    over={"alpha": sizes.CENTRE_ALPHAS}, repeats={"quick": 1, "paper": 5}, combine=_at_published(CENTRE_READ_AT)
)
def centre_distance(profile: Profile, seed: int, alpha: float) -> Measured:
    """p = 3: with the best c, and what the published estimator reports; D = 1000 always, where its guard bites."""
    run = trained(sizes.CENTRE_DISTANCE[profile]._replace(alpha=alpha), 3, seed)
    F = ideal(run.mixture, 3)
    c = published_c(run.net, F, run.mixture, seed=seed)
    estimate = published_ascent(
        neuron_sum_of("f", run.net), neuron_sum_of("F", F), c, starts=sizes.CLIMBS[profile], seed=seed
    )
    return _measured(alpha, dist(run.net, F, seed=seed).value, estimate, run.trajectory.log10_loss)
