r"""What the claims about linear rules are made of: data with a free slab, and rules written down.

penalty        argmin_w sum_i log(1 + e^(-q_i)) + lambda |w|^2/2 -> SVM, lambda -> 0        (Rosset et al. 2004)
nearest rule   r(x) >= min_{l opposite} max_{k own} <x, mu_k - mu_l>/|mu_k - mu_l|
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from polyrelu.data import Dataset, SymmetricSeparable
from polyrelu.data.synthetic import REACH
from polyrelu.nets import LeakyReLUNet, NearestCentre
from polyrelu.train import log_softplus

SLOPE = 0.5  # of the leaky ReLU
DECADES = (1, 2, 3, 4, 5, 6, 7, 8, 30, 100, 300)  # penalties 1e-1, 1e-2, ...


def cloud(dim: int, n: int, seed: int) -> Dataset:
    """x = S g + .2 y w, y = sign <w, S g>, |w| = 1: a slab is free; S = diag(1..4) turns the class means from w."""
    source = torch.Generator().manual_seed(seed)
    X = torch.randn(n, dim, generator=source, dtype=torch.float64) * torch.linspace(1, 4, dim, dtype=torch.float64)
    w = functional.normalize(torch.randn(dim, generator=source, dtype=torch.float64), dim=0)
    y = torch.sign(X @ w)
    return Dataset(X + 0.2 * y[:, None] * w, y, name=f"cloud of {n} points in {dim} dimensions")


def penalised(data: Dataset, decades: tuple[int, ...] = DECADES) -> list[Tensor]:
    """argmin_w |w|^2/2 + (1/lambda) sum_i log(1 + e^(-y_i <w, x_i>)) for lambda = 10^-decade, one after the other.

    Newton's method with halved steps, from the last solution made longer by the ratio of the decades; all weights in
    logs, so that lambda = 1e-300 is a number.
    """
    Z = data.y[:, None] * data.rows()
    w, found = torch.zeros(data.dim, dtype=torch.float64), []
    for last, decade in zip((None, *decades), decades, strict=False):
        scale = decade * math.log(10)
        w = w if last is None else w * decade / last

        def height(w: Tensor, scale: float = scale) -> float:
            return float(w @ w / 2 + (scale + log_softplus(-Z @ w)).exp().sum())

        for _ in range(200):
            pull = (scale + functional.logsigmoid(-Z @ w)).exp()
            slope = w - pull @ Z
            bend = torch.eye(data.dim, dtype=torch.float64) + (Z * (pull * torch.sigmoid(Z @ w))[:, None]).T @ Z
            step = torch.linalg.solve(bend, slope)
            gain, here, size = float(step @ slope), height(w), 1.0
            while size > 1e-12 and not height(w - size * step) <= here - 0.1 * size * gain:
                size /= 2
            w = w - size * step
            if gain <= 1e-18 * float(w @ w):
                break
        found.append(w)
    return found


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


def nearest_centre_radius(net: NearestCentre, X: Tensor, y: Tensor) -> Tensor:
    """r(x) >= min_{l opposite} max_{k own} <x, mu_k - mu_l>/|mu_k - mu_l|, (n,), for centres of equal norm.

    To break the rule some l must come level with every k, and each of these is a half-space away.
    """
    apart = net.centres[:, None] - net.centres
    gaps = torch.einsum("nd,kld->nkl", X, apart) / apart.norm(dim=2).clamp(min=1e-300)
    own = y[:, None] == net.labels
    worst = gaps.masked_fill(~own[:, :, None], -torch.inf).amax(dim=1)
    radius: Tensor = worst.masked_fill(own, torch.inf).amin(dim=1)
    return radius


def slab_data(n: int, seed: int) -> Dataset:
    """Rows (x1, x2, 1): y x1 in [.1, 1] (a line separates them); |x2| in [.6, 1] for +1, <= .2 for -1 (three slabs)."""
    source = torch.Generator().manual_seed(seed)
    one, two, side = torch.rand(3, n, generator=source, dtype=torch.float64)
    y = torch.where(torch.arange(n) < n // 2, 1.0, -1.0).double()
    slab = torch.where(y > 0, torch.where(side < 0.5, -1.0, 1.0) * (0.6 + 0.4 * two), 0.2 * (2 * two - 1))
    return Dataset(torch.stack([y * (0.1 + 0.9 * one), slab, torch.ones(n)], dim=1), y, name="three slabs and a line")
