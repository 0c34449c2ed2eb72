r"""When a two-layer net becomes linear: mirrored data, and a few more points (Lyu, Li, Wang & Arora, NeurIPS 2021).

a leaky ReLU net of slope a has  min q / |theta|^2 <= (1 + a)/4 gamma,  gamma the margin of the SVM, on mirrored data,
because  q(x) + q(-x) = (1 + a) <sum_j v_j w_j, x>  and  |sum_j v_j w_j| <= |theta|^2/2;
equality needs a linear net along the SVM
"""

from __future__ import annotations

import torch
from torch.nn import functional

from polyrelu.bias import margins, odd_map, simplicity
from polyrelu.claims.experiment import Measured, experiment
from polyrelu.claims.llwa21 import sizes
from polyrelu.claims.profile import Profile
from polyrelu.data import Dataset, SymmetricSeparable
from polyrelu.data.synthetic import REACH
from polyrelu.nets import LeakyReLUNet
from polyrelu.train import Until, flow

SLOPE = 0.5  # of the leaky ReLU


def trained(profile: Profile, seed: int, extra: int) -> tuple[SymmetricSeparable, Dataset, LeakyReLUNet]:
    """A leaky ReLU net trained from a small start on mirrored data (and extra points) to loss 1e-1000."""
    size = sizes.MIRRORED[profile]
    recipe = SymmetricSeparable(size.dim, extra=extra, rotate=seed, dtype=torch.float64)
    data = recipe.sample(2 * size.pairs, seed)
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
