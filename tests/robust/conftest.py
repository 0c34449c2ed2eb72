"""Nets whose radii are known in any dimension: every neuron lies in the plane of the first two coordinates.

The worst perturbation of given size is found on a grid of that plane, whatever D is: the other coordinates only make
|x - centre| longer or shorter, which matters to a bias beside normalised inputs, and there it is best to spend on them
all that is left of the radius (l1, l2) or all of it in each (l-infinity).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

from polyrelu.nets import PolyReLUNet

NORMS = (1.0, 2.0, math.inf)
KINDS = ("plain", "bias", "normalised", "classes", "one side")
ANGLES, SHARES, FARTHEST = 72, 8, 6.0
FLOORS = Path(__file__).with_name("radii.json")  # what certificates prove of the truth; WRITE_RADII=1 writes it anew
Certificate = Callable[[PolyReLUNet, Tensor, Tensor, float], Tensor]


@dataclass(frozen=True, eq=False)
class Planar:
    """A net, points that it is right about, and where these are: in the plane, and their one coordinate outside."""

    net: PolyReLUNet
    X: Tensor
    y: Tensor
    plane: Tensor
    out: Tensor

    @cache  # noqa: B019 - a few dozen nets, for as long as the tests last
    def truth(self, norm: float) -> Tensor:
        """The least radius (n,) at which a point of the grid breaks the net; inf if none does up to FARTHEST."""
        ladder = torch.linspace(0, FARTHEST, 41, dtype=torch.float64)[1:]
        first = torch.stack([self._broken(step.expand(len(self.X)), norm) for step in ladder])
        at = first.int().argmax(dim=0)
        high, low = ladder[at], ladder[at] - ladder[0]
        for _ in range(20):
            middle = (low + high) / 2
            here = self._broken(middle, norm)
            high, low = torch.where(here, middle, high), torch.where(here, low, middle)
        return torch.where(first.any(dim=0), high, torch.inf)

    def _broken(self, rho: Tensor, norm: float) -> Tensor:
        net, y, dim, p = self.net, self.y, self.X.shape[1], self.net.p
        disc, left = _disc(norm)
        U = torch.nn.functional.normalize(net.weight[:, :2], dim=1)
        V, b = net.output * net.weight.norm(dim=1), torch.zeros(net.outputs) if net.bias is None else net.bias
        Z = self.plane[:, None] + rho[:, None, None] * disc
        hidden = (Z @ U.T).clamp(min=0).pow(p)
        free = rho[:, None] * left if dim > 2 else torch.zeros_like(hidden[..., 0])
        near = (self.out[:, None] - free).clamp(min=0).square()
        far = (self.out[:, None] + free).square() + (max(dim - 3, 0) if norm == math.inf else 0) * free.square()
        lengths = [(Z.square().sum(2) + part).sqrt().pow(p - 1) for part in (near, far)]
        worst = torch.full_like(free, torch.inf)
        for c in range(net.outputs):
            a, beta = (y[:, None] * V[0], y * b[0]) if net.outputs == 1 else (V[y] - V[c], b[y] - b[c])
            lift = torch.where(beta[:, None] > 0, *lengths) if net.normalise_input else torch.ones_like(free)
            margin = (hidden * a[:, None]).sum(2) + beta[:, None] * lift
            same = (y == c)[:, None] & (net.outputs > 1)
            worst = torch.minimum(worst, torch.where(same, torch.inf, margin))
        return (worst < 0).any(dim=1)


def _disc(norm: float) -> tuple[Tensor, Tensor]:
    """Steps of the unit ball of the plane (m, 2), and what each leaves of the radius for another coordinate (m,)."""
    turn = torch.arange(ANGLES, dtype=torch.float64) * 2 * math.pi / ANGLES
    way = torch.stack([turn.cos(), turn.sin()], dim=1)
    way = way / torch.linalg.vector_norm(way, ord=norm, dim=1, keepdim=True)
    disc = (way[:, None] * torch.linspace(0, 1, SHARES + 1, dtype=torch.float64)[:, None]).view(-1, 2)
    spent = torch.linalg.vector_norm(disc, ord=norm, dim=1)
    left = {1.0: 1 - spent, 2.0: (1 - spent.square()).clamp(min=0).sqrt(), math.inf: torch.ones_like(spent)}
    return disc, left[norm]


@cache
def planar(p: float, kind: str, dim: int, seed: int) -> Planar:
    """Six points of a random net of this kind."""
    draw = torch.Generator().manual_seed(1000 * seed + int(10 * p) + dim)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    outputs, width, normalise = 3 if kind == "classes" else 1, 4 + seed % 5, kind in ("normalised", "classes")
    centre = normal(dim) if kind in ("bias", "classes") else None
    net = PolyReLUNet(
        dim, width, p, outputs, bias=kind != "plain", centre=centre, normalise_input=normalise, dtype=torch.float64
    ).requires_grad_(False)
    net.weight.zero_()
    net.weight[:, :2] = normal(width, 2)
    net.output.copy_(normal(outputs, width))
    if net.bias is not None:
        net.bias.copy_((0.2 + 0.3 * torch.rand(outputs, generator=draw)) * normal(outputs).sign())
    if kind == "one side":  # all own, and a bias against them
        net.output.abs_()
        net.bias.abs_().neg_()
    plane, out = 1.5 * normal(40, 2), 0.7 * normal(40).abs() * (dim > 2)
    X = torch.cat([plane, out[:, None], torch.zeros(40, max(0, dim - 3), dtype=torch.float64)], dim=1)[:, :dim]
    X = X if centre is None else X + centre
    logits = net(X)
    y = torch.where(logits > 0, 1.0, -1.0).double() if outputs == 1 else logits.argmax(dim=1)
    keep = (y > 0 if kind == "one side" else y == y).nonzero()[:6, 0]
    return Planar(net, X[keep], y[keep], plane[keep], out[keep])


@pytest.fixture(scope="session")
def sandwiched() -> Callable[..., None]:
    """sandwiched(name, certificate, kind, powers, norms): radii never above the truth, nor shorter than they were."""

    def check(name: str, certificate: Certificate, kind: str, powers, norms=NORMS, dims=(2, 3, 12)) -> None:
        known, write = json.loads(FLOORS.read_text(encoding="utf-8")), bool(os.environ.get("WRITE_RADII"))
        for p in powers:
            for norm in norms:
                ratios = []
                for seed, dim in enumerate(dims):
                    one = planar(p, kind, dim, seed)
                    radius = certificate(one.net, one.X, one.y, norm)
                    truth = one.truth(norm)[: len(radius)]
                    assert (radius <= truth).all(), (p, norm, dim, radius, truth)
                    ratios.append((radius / truth)[truth.isfinite()])
                key, mean = f"{name}, {kind}, p={p:g}, l{norm:g}", float(torch.cat(ratios).mean())
                if write:
                    known[key] = round(mean, 4)
                assert mean > known[key] - 0.002, (key, mean, known[key])
        if write:
            FLOORS.write_text(json.dumps(known, indent=0, sort_keys=True) + "\n", encoding="utf-8")

    return check
