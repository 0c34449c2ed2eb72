"""Where the training of a head begins: the centre and the unit of length of the rows, and the first weights.

    "rows"     w_j = (x_j - c)/|x_j - c| for rows x_j drawn at random, class after class in turn, so that every row has
               one of its class in sight where possible; v_j = .1 towards the class of x_j
    "random"   first layer uniform +-sqrt(6/width), output layer +-1/sqrt(width): the published start (Min & Vidal 2024)
    "balanced" w_j Gaussian, |v_j| = |w_j|: the start of the theory (Min & Vidal 2025)

All are meant for rows (x - c)/s, s the unit of length. f is of degree d in x - c (1 with normalised inputs, else p), so
the net for x itself has v s^-d, or, to stay balanced, w s^(-d/2) and v s^(-d/2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from polyrelu.data import Dataset
from polyrelu.nets import PolyReLUNet
from polyrelu.train.descent import input_degree, mean_one_weights

OUTPUT_SIZE = 0.1  # |v_j| of a start at rows
FLOAT32_RANGE = 1e9  # unit^degree, and its inverse, must be below this for a net in float32
LARGEST_ROUNDING = 1e-5  # of the rows, as a part of their typical distance from the centre, for a net in float32
SIMILAR_COSINE = 0.3  # of rows that stand for each other
CANDIDATES_PER_NEURON = 20  # rows looked at for each one drawn
SAME_KEY = 1e-9  # rows whose keys are nearer than this are taken for one


@final
@dataclass(frozen=True, eq=False)
class HeadStart:
    """What a start is drawn for: sizes, centre (D,) float64 and unit of length, and what kind of net."""

    p: float
    width: int
    outputs: int
    centre: Tensor
    unit: float
    bias: bool
    normalise_input: bool
    dtype: torch.dtype
    seed: int

    @property
    def small(self) -> float:
        """s^-d."""
        return float(self.unit ** -input_degree(self.p, self.normalise_input))

    def random(self) -> PolyReLUNet:
        """First layer uniform +-sqrt(6/width), output layer +-s^-d/sqrt(width), as Min & Vidal (2024) start."""
        net = self._net(self.width, "kaiming", 1.0)
        with torch.no_grad():
            net.output.mul_(self.small)
        return net

    def balanced(self, scale: float) -> PolyReLUNet:
        """|v_j| = |w_j|, times ``scale``."""
        return self._net(self.width, "balanced", scale * math.sqrt(self.small))

    def rows(self, data: Dataset, weights: Tensor | None = None) -> PolyReLUNet:
        """At most ``width`` neurons, on different rows that have weight; the random start where no row has a direction.

        Which rows are drawn depends on the rows and the seed, not on their order nor on how often each is there.
        """
        chosen = _draw(data, weights, self.centre, self.unit, self.width, self.seed)
        if not len(chosen):
            return self.random()
        W = torch.nn.functional.normalize(data.gather(chosen).double() - self.centre, dim=1)
        y = data.y[chosen.to(data.y.device)]
        v = y[None].double() if self.outputs == 1 else torch.nn.functional.one_hot(y, self.outputs).T.double()
        net = self._net(len(chosen), "zeros", 1.0)
        with torch.no_grad():
            net.weight.copy_(W)
            net.output.copy_(OUTPUT_SIZE * self.small * v)
        return net

    def _net(self, width: int, init: str, scale: float) -> PolyReLUNet:
        net = PolyReLUNet(
            len(self.centre), width, self.p, self.outputs, init=init, scale=scale, seed=self.seed, centre=self.centre,
            bias=self.bias, normalise_input=self.normalise_input, dtype=self.dtype,
        )  # fmt: skip
        return net.to(self.centre.device)


def location(data: Dataset, weights: Tensor | None = None) -> tuple[Tensor, float]:
    """c = sum_i w_i x_i / sum_i w_i, (D,) float64, and s^2 = sum_i w_i |x_i - c|^2 / sum_i w_i; s = 1 if that is 0."""
    share = None if weights is None else mean_one_weights(weights, len(data)).to(data.y.device)
    centre = torch.zeros(data.dim, dtype=torch.float64, device=data.y.device)
    square = 0.0
    for start, x in data.blocks():
        x = x.double()
        centre += (x if share is None else x * share[start : start + len(x), None]).sum(0)
    centre /= len(data)
    for start, x in data.blocks():
        lengths = (x.double() - centre).square_().sum(1)
        square += float((lengths if share is None else lengths * share[start : start + len(x)]).sum())
    return centre, math.sqrt(square / len(data)) or 1.0


def precision(centre: Tensor, unit: float, degree: float) -> torch.dtype:
    """float32 where unit^degree leaves room for Adam's squares, and x - c is what it is although x is rounded first."""
    near = float(centre.abs().max()) * torch.finfo(torch.float32).eps < LARGEST_ROUNDING * unit
    return torch.float32 if near and 1 / FLOAT32_RANGE < unit**degree < FLOAT32_RANGE else torch.float64


def _draw(data: Dataset, weights: Tensor | None, centre: Tensor, unit: float, most: int, seed: int) -> Tensor:
    """Numbers of rows, class after class in turn.

    A row's key is the fraction of 10^4 <x - c, g>/s, g Gaussian: as good as random, and the same for the same row.
    """
    source = torch.Generator().manual_seed(seed)
    g = torch.randn(data.dim, generator=source, dtype=torch.float64).to(centre.device) / unit
    keys = []
    for _, x in data.blocks():
        x = x.double() - centre
        key = (1e4 * (x @ g)).remainder(1.0)
        keys.append(torch.where(x.any(1), key, torch.inf).cpu())
    key = torch.cat(keys)
    if weights is not None:
        key[weights.cpu() == 0] = torch.inf
    turns, rows = [], []
    groups = data.y.cpu()
    for group in sorted(set(groups.tolist())):
        own = ((groups == group) & key.isfinite()).nonzero()[:, 0]
        own = own[key[own].argsort()]
        new = torch.ones(len(own), dtype=torch.bool)
        new[1:] = key[own].diff() > SAME_KEY
        own = own[new]
        turns.append(torch.arange(len(own)) + key[own])
        rows.append(own)
    order = torch.cat(rows)[torch.cat(turns).argsort()]
    return order if len(order) <= most else _spread(data, centre, order[: CANDIDATES_PER_NEURON * most], most)


def _spread(data: Dataset, centre: Tensor, order: Tensor, most: int) -> Tensor:
    """First those that see no chosen row of their class (no cosine above SIMILAR_COSINE), then the others as they come.

    A row without any neuron in sight would have no gradient for p > 1, nor would the sub-class it stands for.
    """
    X = torch.nn.functional.normalize(data.gather(order).double() - centre, dim=1)
    y = data.y[order.to(data.y.device)]
    first: list[int] = []
    for chunk in torch.split(torch.arange(len(order)), 64):
        if len(first) >= most:
            break
        before = torch.tensor([*first, *chunk.tolist()])
        sees = (X[chunk] @ X[before].T > SIMILAR_COSINE) & (y[chunk, None] == y[before])
        seen, known = sees[:, : len(first)].any(1).tolist(), sees[:, len(first) :].tolist()
        for i, row in enumerate(chunk.tolist()):
            if not seen[i]:
                first.append(row)
                seen = [a or b for a, b in zip(seen, known[i], strict=True)]
    rest = sorted(set(range(len(order))) - set(first))
    return order[(first + rest)[:most]]
