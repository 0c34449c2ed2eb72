r"""When a two-layer net becomes linear: mirrored data, a few more points, slabs (Lyu, Li, Wang & Arora, NeurIPS 2021).

a leaky ReLU net of slope a has  min q / |theta|^2 <= (1 + a)/4 gamma,  gamma the margin of the SVM, on mirrored data,
because  q(x) + q(-x) = (1 + a) <sum_j v_j w_j, x>  and  |sum_j v_j w_j| <= |theta|^2/2;
equality needs a linear net along the SVM
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch.nn import functional

from polyrelu.bias import margins, odd_map, simplicity
from polyrelu.claims import Measured, Profile, experiment
from polyrelu.claims.llwa21 import MIRRORED, SLABS
from polyrelu.data import Dataset, SymmetricSeparable
from polyrelu.data.synthetic import REACH
from polyrelu.nets import LeakyReLUNet, PolyReLUNet
from polyrelu.train import Until, flow

SLOPE = 0.5  # of the leaky ReLU
STARTS: Mapping[str, float] = {"small start": 1e-4, "large start": 1.0}  # of the net on slabs


def trained(profile: Profile, seed: int, extra: int) -> tuple[SymmetricSeparable, Dataset, LeakyReLUNet]:
    """A leaky ReLU net trained from a small start on mirrored data (and extra points) to loss 1e-1000."""
    size = MIRRORED[profile]
    recipe = SymmetricSeparable(size.dim, extra=extra, rotate=seed, dtype=torch.float64)
    data = recipe.sample(2 * size.points, seed)
    start = LeakyReLUNet(size.dim, size.width, slope=SLOPE, scale=1e-4, seed=seed, dtype=torch.float64)
    net = flow(start, data, loss="logistic", until=Until(log10_loss=-1000)).net
    assert isinstance(net, LeakyReLUNet)
    return recipe, data, net


def hand_built(recipe: SymmetricSeparable) -> LeakyReLUNet:
    """l (phi(<v,x>) + phi(-<v,x>)) + m (phi(<u,x>) - phi(-<u,x>)), balanced, l (1-a) reach = m (1+a) margin."""
    low, high = 1 / ((1 - SLOPE) * REACH * recipe.margin), 1 / ((1 + SLOPE) * recipe.margin)
    root = torch.tensor([low, low, high, high], dtype=torch.float64).sqrt()
    net = LeakyReLUNet(recipe.dim, 4, slope=SLOPE, dtype=torch.float64)
    with torch.no_grad():
        rows = torch.stack([recipe.side, -recipe.side, recipe.direction, -recipe.direction])
        net.weight.copy_(root[:, None] * rows)
        net.output.copy_(root * torch.tensor([1.0, 1.0, 1.0, -1.0]))
    return net


@experiment()
def mirrored(profile: Profile, seed: int) -> Measured:
    """E15: direction, nonlinearity and margin at the end."""
    recipe, data, net = trained(profile, seed, extra=0)
    line = odd_map(net)[0]
    found = simplicity(net, data, probes=2000, seed=seed)
    best = (1 + SLOPE) / 4 * recipe.linear_margin
    values = {
        "cosine to the SVM": float(functional.cosine_similarity(line, recipe.direction, dim=0)),
        "part that is not linear": max(found.residual, found.probe_residual or 0.0),
        "margin over the largest possible": margins(net, data, "logistic").normalised / best,
    }
    return Measured(values)


@experiment()
def misled(profile: Profile, seed: int) -> Measured:
    """E16: the margin of the trained net beside that of a net written down, and how linear its decisions are."""
    recipe, data, net = trained(profile, seed, extra=3)
    ours, built = (margins(one, data, "logistic").normalised for one in (net, hand_built(recipe)))
    probes = torch.randn(5000, recipe.dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    with torch.no_grad():
        same = (net(probes) > 0) == (probes @ recipe.direction > 0)
    values = {
        "margin over that of the hand-built net": ours / built,
        "agreement with the linear rule": float(same.double().mean()),
        "normalised margin": ours,
        "normalised margin of the hand-built net": built,
    }
    return Measured(values)


def slab_data(n: int, seed: int) -> Dataset:
    """Rows (x1, x2, 1): y x1 in [.1, 1] (a line separates them); |x2| in [.6, 1] for +1, <= .2 for -1 (three slabs)."""
    source = torch.Generator().manual_seed(seed)
    one, two, side = torch.rand(3, n, generator=source, dtype=torch.float64)
    y = torch.where(torch.arange(n) < n // 2, 1.0, -1.0).double()
    slab = torch.where(y > 0, torch.where(side < 0.5, -1.0, 1.0) * (0.6 + 0.4 * two), 0.2 * (2 * two - 1))
    return Dataset(torch.stack([y * (0.1 + 0.9 * one), slab, torch.ones(n)], dim=1), y, name="three slabs and a line")


@experiment(over={"start": tuple(STARTS)})
def boundary(profile: Profile, seed: int, start: str) -> Measured:
    """E25: one feature separates the classes by a line, another by slabs with a wider gap; which one the net takes.

    The boundary between the slabs is looked for on a grid (a 1 in each row gives hidden biases).
    """
    size, cells = SLABS[profile], 301 if profile == "quick" else 601  # of the grid, along each side
    data = slab_data(size.points, seed)
    flat, y = data.rows()[:, :2], data.y
    best = float(torch.cdist(flat[y > 0], flat[y < 0]).amin()) / 2  # no rule has a larger margin
    ticks = torch.linspace(-1.5, 1.5, cells, dtype=torch.float64)
    grid = torch.cartesian_prod(ticks, ticks)
    inside = ticks.abs() <= 1
    random = PolyReLUNet(3, size.width, 1, scale=STARTS[start], seed=seed, dtype=torch.float64)
    net = flow(random, data, loss="logistic", until=1e-10).net
    with torch.no_grad():
        positive = net(functional.pad(grid, (0, 1), value=1.0)) > 0
    other = [torch.cdist(flat[y == s], grid[positive != (s > 0)]).amin() for s in (1, -1)]
    edge = 1.5 - 3 * positive.reshape(cells, cells)[:, inside].double().mean(dim=0)  # its x1 at each x2
    places = functional.pad(ticks[inside][:, None], (0, 1), value=1.0)
    line = torch.linalg.lstsq(places, edge[:, None]).solution
    values = {
        "margin over the best possible": float(min(other)) / best,
        "angle to the linear boundary in degrees": abs(math.degrees(math.atan(float(line[0])))),
        "largest bend of the boundary": float((edge - (places @ line)[:, 0]).abs().amax()),
    }
    return Measured(values, {"start": start, "x2": ticks[inside].tolist(), "x1": edge.tolist()})
