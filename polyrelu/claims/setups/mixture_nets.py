"""Trained nets that several claims look at: the published synthetic experiment, at both sizes (Min & Vidal, ICML 2024).

Clusters drawn at random, start N(0, 1e-14) for every weight and exponential loss as published; gradient flow instead of
SGD, as long as published: 401 epochs x 200 steps x rate .2 = flow time 16 040, at which the loss is about 2e-5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

import torch
from torch import Tensor

from polyrelu.claims.setups.sizes import MixtureSize
from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.nets import AverageClassifier, CentreClassifier, PolyReLUNet
from polyrelu.robust import Bracket
from polyrelu.train import Trajectory, Until, flow

FLOW_TIME = 401 * 200 * 0.2
TEST_SEED = 10_000  # test points never share a seed with training points


@final
@dataclass(frozen=True)
class Trained:
    """A net, how it was trained, and the mixture that it saw."""

    mixture: OrthonormalMixture
    data: Dataset
    trajectory: Trajectory

    @property
    def net(self) -> PolyReLUNet:
        """The net at the end."""
        net = self.trajectory.net
        assert isinstance(net, PolyReLUNet)
        return net

    def test(self, n: int) -> Dataset:
        """Fresh points of the same mixture."""
        return self.mixture.sample(n, seed=TEST_SEED)


def untrained(
    size: MixtureSize, p: float, seed: int, *,
    init: str = "balanced", scale: float = 1e-7, balanced: bool = True, dtype: torch.dtype = torch.float64,
) -> tuple[OrthonormalMixture, Dataset, PolyReLUNet]:  # fmt: skip
    """The mixture, a sample and a net at its start; ``balanced``: clusters of equal size, not drawn at random."""
    mixture = OrthonormalMixture(size.dim, size.positive, size.negative, size.alpha, dtype=dtype)
    net = PolyReLUNet(size.dim, size.width, p, init=init, scale=scale, seed=seed, dtype=dtype)
    return mixture, mixture.sample(size.samples, seed=seed, balanced=balanced), net


@lru_cache(maxsize=4)
def trained(size: MixtureSize, p: float, seed: int, until: float | None = None) -> Trained:
    """The net of the published experiment, trained by the flow to loss ``until`` or, if None, as long as published."""
    dtype = torch.float64 if size.dim < 1000 else torch.float32
    mixture, data, net = untrained(size, p, seed, init="gaussian", balanced=False, dtype=dtype)
    goal = Until(time=FLOW_TIME) if until is None else Until(loss=until)
    return Trained(mixture, data, flow(net, data, loss="exp", until=goal))


def ideal(mixture: OrthonormalMixture, p: float) -> AverageClassifier | CentreClassifier:
    """F for p = 1, F^(p) otherwise."""
    if p == 1:
        return AverageClassifier(mixture.centres, mixture.labels)
    return CentreClassifier(mixture.centres, mixture.labels, p)


def sorted_radii(radii: Bracket) -> dict[str, Any]:
    """Finite radii in order, for a figure, and of how many points."""
    sides = {"lower": radii.lower, "upper": radii.upper}
    found = {name: [round(float(r), 5) for r in side.sort().values if r.isfinite()] for name, side in sides.items()}
    return {**found, "points": len(radii)}


def proven_for_bayes(X: Tensor, y: Tensor, mixture: OrthonormalMixture) -> Tensor:
    """(max_own <x,mu_k> - max_opp <x,mu_l> - (alpha^2/D) log K_opp)_+/sqrt(2) <= radius of f* at x."""
    scores, positive = X @ mixture.directions.T, mixture.labels > 0
    ahead = y * (scores[:, positive].amax(dim=1) - scores[:, ~positive].amax(dim=1))
    opposite = torch.where(y > 0, mixture.negative, mixture.positive).to(X)
    return ((ahead - mixture.noise_std**2 * opposite.log()) / math.sqrt(2)).clamp(min=0)
