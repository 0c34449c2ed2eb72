"""ReLU nets with hidden biases, and how far points must go along one direction until they flip.

Hidden biases are the weights of a column of ones, so their norm counts as the theorems want it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from polyrelu.bias import flip_radii
from polyrelu.data import Dataset
from polyrelu.nets import PolyReLUNet
from polyrelu.train import Trajectory, flow

FAR = 4.0  # how far along z to look, in norms of a point


def with_ones(data: Dataset) -> Dataset:
    """Rows (x, 1): the weight of the 1 is a hidden bias."""
    X = data.rows()
    return Dataset(torch.cat([X, X.new_ones(len(X), 1)], dim=1), data.y, name=data.name)


def trained(data: Dataset, width: int, scale: float, seed: int, until: float) -> Trajectory:
    """A ReLU net by the flow of the logistic loss, from a balanced start."""
    start = PolyReLUNet(data.dim, width, 1, init="balanced", scale=scale, seed=seed, dtype=data.dtype)
    return flow(start, data, loss="logistic", until=until)


def flip_lengths(net: nn.Module, points: Dataset, z: Tensor) -> Tensor:
    """Smallest |z| at which each point x - y z has crossed; ``z`` is a direction in the space without the ones."""
    way = torch.cat([z.double() / z.double().norm(), torch.zeros(1, dtype=torch.float64)])
    reach = torch.full((len(points),), FAR * math.sqrt(len(z)))
    return flip_radii(net, points.rows(), points.y, -points.y.double()[:, None] * way, reach, samples=64)
