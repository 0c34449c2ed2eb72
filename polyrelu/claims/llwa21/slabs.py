"""One feature separates the classes by a line, another by slabs with a wider gap: which one a net takes (E25)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch.nn import functional

from polyrelu.claims.experiment import Measured, experiment
from polyrelu.claims.llwa21 import sizes
from polyrelu.claims.profile import Profile
from polyrelu.data import Dataset
from polyrelu.nets import PolyReLUNet
from polyrelu.train import flow

STARTS: Mapping[str, float] = {"small start": 1e-4, "large start": 1.0}


def slab_data(n: int, seed: int) -> Dataset:
    """Rows (x1, x2, 1): y x1 in [.1, 1] (a line separates them); |x2| in [.6, 1] for +1, <= .2 for -1 (three slabs)."""
    source = torch.Generator().manual_seed(seed)
    one, two, side = torch.rand(3, n, generator=source, dtype=torch.float64)
    y = torch.where(torch.arange(n) < n // 2, 1.0, -1.0).double()
    slab = torch.where(y > 0, torch.where(side < 0.5, -1.0, 1.0) * (0.6 + 0.4 * two), 0.2 * (2 * two - 1))
    return Dataset(torch.stack([y * (0.1 + 0.9 * one), slab, torch.ones(n)], dim=1), y, name="three slabs and a line")


@experiment(over={"start": tuple(STARTS)})
def boundary(profile: Profile, seed: int, start: str) -> Measured:
    """The boundary that a net draws between the slabs (a 1 in each row gives hidden biases)."""
    size = sizes.SLABS[profile]
    data = slab_data(size.samples, seed)
    flat, y = data.rows()[:, :2], data.y
    best = float(torch.cdist(flat[y > 0], flat[y < 0]).amin()) / 2  # no rule has a larger margin
    ticks = torch.linspace(-1.5, 1.5, size.cells, dtype=torch.float64)
    grid = torch.cartesian_prod(ticks, ticks)
    inside = ticks.abs() <= 1
    random = PolyReLUNet(3, size.width, 1, scale=STARTS[start], seed=seed, dtype=torch.float64)
    net = flow(random, data, loss="logistic", until=1e-10).net
    with torch.no_grad():
        positive = net(functional.pad(grid, (0, 1), value=1.0)) > 0
    other = [torch.cdist(flat[y == s], grid[positive != (s > 0)]).amin() for s in (1, -1)]
    edge = 1.5 - 3 * positive.reshape(size.cells, size.cells)[:, inside].double().mean(dim=0)  # its x1 at each x2
    places = functional.pad(ticks[inside][:, None], (0, 1), value=1.0)
    line = torch.linalg.lstsq(places, edge[:, None]).solution
    values = {
        "margin over the best possible": float(min(other)) / best,
        "angle to the linear boundary in degrees": abs(math.degrees(math.atan(float(line[0])))),
        "largest bend of the boundary": float((edge - (places @ line)[:, 0]).abs().amax()),
    }
    return Measured(values, {"start": start, "x2": ticks[inside].tolist(), "x1": edge.tolist()})
