"""sup |f - F^(3)| on the unit sphere: what ascents that stop short report, and how it depends on the loss."""

from __future__ import annotations

import torch
from torch import Tensor

from polyrelu.claims.errata import sizes
from polyrelu.claims.experiment import Measured, experiment
from polyrelu.claims.profile import Profile
from polyrelu.claims.setups.mixture_nets import untrained
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import CentreClassifier, PolyReLUNet
from polyrelu.robust import Score, dist
from polyrelu.robust.core import unit
from polyrelu.robust.distance import published_dist
from polyrelu.train import Until, flow


def climb(f: Score, F: Score, X: Tensor, steps: int) -> float:
    """max |f - F| after x <- unit(x + .01 g/|g|), g = grad (f - F)^2; no guard, each point by itself."""
    for _ in range(steps):
        X.requires_grad_(True)
        (g,) = torch.autograd.grad((f(X) - F(X)).square().sum(), X)
        X = unit(X.detach() + 0.01 * unit(g))
    with torch.no_grad():
        return float((f(X) - F(X)).abs().max())


def _unit_vectors(n: int, dim: int, seed: int) -> Tensor:
    return unit(torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64))


@experiment()
def distance_at_start(profile: Profile, seed: int) -> Measured:
    """sup |f - F^(3)| for f = 0 up to 1e-10, and what a short ascent from random vectors reports."""
    size = sizes.START_DISTANCE[profile]
    mixture = OrthonormalMixture(size.dim, size.positive, size.negative, size.alpha, dtype=torch.float64)
    F = CentreClassifier(mixture.centres, mixture.labels, 3.0)
    f = PolyReLUNet(size.dim, size.width, 3.0, init="balanced", scale=1e-7, seed=seed, dtype=torch.float64)
    return Measured(
        {
            "distance at the start": dist(f, F, c=1.0, seed=seed).value,
            "reported by an ascent of 100 steps of .01": climb(f, F, _unit_vectors(size.points, size.dim, seed), 100),
        }
    )


@experiment()
def guarded_distance(profile: Profile, seed: int) -> Measured:
    """dist(f, F^(3)), f with one coefficient 3 % off, by the published estimator, without its guard, and exactly."""
    mixture = OrthonormalMixture(1000, 6, 4, 0.1, dtype=torch.float64)
    F = CentreClassifier(mixture.centres, mixture.labels, 3.0)
    f = F.as_polyrelu_net()
    f.output.data[0, 0] *= 1.03
    batches, steps = (2, 1000) if profile == "paper" else (1, 50)
    published = published_dist(f, F, mixture, seed=seed, batches=batches, steps=steps)
    f.output.data *= published.c
    return Measured(
        {
            "true distance": dist(f, F, c=1.0, seed=seed).value,
            "reported by the published estimator": published.value,
            "reported without the guard": climb(f, F, _unit_vectors(50, 1000, seed), 500),
        }
    )


@experiment(over={"loss": ("squared", "exp", "logistic")})
def scale_of_losses(profile: Profile, seed: int, loss: str) -> Measured:
    """sup |f - F^(3)| and inf_c sup |c f - F^(3)| after training with each loss to 1e-3."""
    mixture, data, net = untrained(sizes.LOSSES[profile], 3.0, seed)
    F = CentreClassifier(mixture.centres, mixture.labels, 3.0)
    f = flow(net, data, loss=loss, until=Until(loss=1e-3)).net
    assert isinstance(f, PolyReLUNet)
    best, plain = dist(f, F, seed=seed), dist(f, F, c=1.0, seed=seed)
    return Measured({"distance without c": plain.value, "distance with the best c": best.value, "the best c": best.c})
