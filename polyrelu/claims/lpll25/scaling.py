r"""How robustness grows with the dimension and falls with the number of clusters.

hand-built   sum_j y_j relu(4 <mu_j, x>/d - 2): at a centre f = 0 at sqrt(d)/2, f changes sign at sqrt(d/2), for any k
             (Frei et al. 2023, Thm 4.1)
averaged     sqrt(d/k), whatever the biases (Li et al., ICLR 2025)
decoupled    sqrt(d/2) read out as a maximum, of order sqrt(d/k) as a sum
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

from polyrelu.bias import decompose
from polyrelu.claims import Key, Measured, Profile, Quantity, Values, experiment
from polyrelu.claims.lpll25 import sizes
from polyrelu.claims.lpll25.nets import TwoSidedNet, radii, trained_pair
from polyrelu.claims.lpll25.sizes import AVERAGED, NETS
from polyrelu.claims.setups.power_law import slope
from polyrelu.data import Dataset, OrthonormalMixture


@experiment(over={"k": sizes.BUILT_CLUSTERS, "dim": sizes.BUILT_DIMS})
def hand_built(profile: Profile, seed: int, k: int, dim: int) -> Measured:
    """Radii at the centres, proven and found, for f = 0 and for f of the other sign, and of fresh points."""
    mixture = OrthonormalMixture(dim, k // 2, k // 2, 1.0, scale="sqrt_dim", rotate=seed, dtype=torch.float64)
    built = TwoSidedNet(4 / dim * mixture.centres, torch.full((k,), -2.0).double(), mixture.labels, "sum")
    centres, fresh = Dataset(mixture.centres, mixture.labels), mixture.sample(40, seed)
    (lower, upper), (noisy, _) = radii(built, centres, fresh), radii(built, fresh, fresh)
    strict, scale = built.proven(mixture.centres, mixture.labels, strictly=True), math.sqrt(dim)
    values = {
        Quantity("f = 0 over √d", way="proven"): float(lower.amin()) / scale,
        Quantity("f = 0 over √d", way="broken"): float(upper.amax()) / scale,
        Quantity("other sign over √d", way="proven"): float(strict.amin()) / scale,
        Quantity("other sign over √d", way="found"): float(turned(built, mixture).amax()) / scale,
        Quantity("f = 0 over √d", way="median of fresh points"): float(noisy.median()) / scale,
    }
    return Measured(values)


@torch.no_grad()
def turned(net: TwoSidedNet, mixture: OrthonormalMixture) -> Tensor:
    """First of 2001 radii up to sqrt(d) with y f < 0 on the way from each centre to one of the other class, (k,)."""
    way = normalize(mixture.directions.roll(mixture.positive, dims=0) - mixture.directions)
    steps = torch.linspace(0, mixture.radius, 2001, dtype=way.dtype)
    wrong = torch.stack([mixture.labels * net(mixture.centres + r * way) < 0 for r in steps])
    return torch.where(wrong.any(dim=0), steps[wrong.double().argmax(dim=0)], torch.inf)


@experiment(repeats={"quick": 1, "paper": 5})
def any_biases(profile: Profile, seed: int) -> Measured:
    """The averaged weights with other biases, along x - y r d0, d0 = sum_j y_j mu_j/|.|: the largest median radius.

    Biases are in units of a neuron's mean response to its own centres: one for each class on a grid of 13 x 13 from
    -1.5 to 1.5, and 200 vectors with a bias for each neuron, uniform in the same range.
    """
    pair = trained_pair(profile, seed)
    net, mixture, test = pair.nets()[AVERAGED], pair.mixture, pair.test(100)
    own = net.signs[:, None] == mixture.labels
    unit = float((net.weight.detach() @ mixture.centres.T)[own].mean())
    grid = torch.linspace(-1.5, 1.5, 13, dtype=torch.float64)
    drawn = torch.rand(200, len(own), generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 3 - 1.5
    plus, minus = torch.meshgrid(grid, grid, indexing="ij")
    biases = unit * torch.cat([torch.where(net.signs > 0, plus.reshape(-1, 1), minus.reshape(-1, 1)), drawn])
    way = mixture.labels @ mixture.directions / math.sqrt(mixture.clusters)
    steps = math.sqrt(mixture.dim / mixture.clusters) * torch.linspace(0, 4, 161, dtype=torch.float64)
    with torch.no_grad():
        at = (test.rows() @ net.weight.T)[:, None] - (test.y[:, None] * steps)[:, :, None] * (net.weight @ way)

        def half(bias: Tensor) -> float:
            """Smallest radius, over sqrt(d/k), at which at most half of the points hold."""
            holding = (test.y[:, None] * ((at + bias).relu() @ net.signs) > 0).cummin(dim=1).values
            return float(holding.sum(dim=0).le(len(test) / 2).double().argmax()) / 40

        found = torch.tensor([half(bias) for bias in biases])
        trained = half(net.bias)
    values = {
        "largest median radius over √(d/k), any biases": float(found.amax()),
        "median radius over √(d/k), trained biases": trained,
    }
    return Measured(values)


def _against_clusters(values: Values) -> dict[Key, float]:
    """Slopes of log median radius against log k, least squares; and the averaged net's radii over sqrt(d/k)."""
    found: dict[Key, float] = {}
    for name in NETS:
        medians = values.along("k", "median radius over √d", net=name, way="broken")
        found[Quantity("slope of the median radius in k", net=name)] = slope(medians, medians.values())
    for k, median in values.along("k", "median radius over √d", net=AVERAGED, way="broken").items():
        found[Quantity("median radius over √(d/k)", k=k, net=AVERAGED)] = median * math.sqrt(k)
    return found


@experiment(over={"k": sizes.CLUSTERS}, repeats={"quick": 1, "paper": 3}, combine=_against_clusters)
def clusters(profile: Profile, seed: int, k: int) -> Measured:
    """Coefficients of the averaged net on the centres, and where both nets break, for k clusters."""
    recipe = sizes.RECIPES[profile]
    pair = trained_pair(profile, seed, k, recipe._replace(steps=round(recipe.steps * max(1, k / 8))))
    parts = decompose(pair.averaged, pair.mixture.centres, pair.mixture.labels, pair.starts[0])
    other, largest, own = parts.other_and_own()
    values: dict[Key, float] = {
        "largest own coefficient over smallest": float((1 / parts.averaging_ratios()).amax()),
        "other coefficient over own": float((other / own).amax()),
        "largest other coefficient over own": float((largest / own).amax()),
    }
    test = pair.test(sizes.CLUSTER_POINTS[profile])
    for name, net in pair.nets().items():
        for way, found in zip(("proven", "broken"), radii(net, test, pair.train, seed), strict=True):
            radius = float(found.median()) / math.sqrt(recipe.dim)
            values[Quantity("median radius over √d", net=name, way=way)] = radius
    return Measured(values)
