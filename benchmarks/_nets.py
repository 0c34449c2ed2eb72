"""The nets the robustness benchmarks share: D=1000, 6+4 clusters, alpha=.1, h=200, trained by flow to loss 1e-2."""

from __future__ import annotations

import polyrelu


def mixture():
    return polyrelu.OrthonormalMixture(dim=1000, positive=6, negative=4, alpha=0.1)


def trained(p):
    net = polyrelu.PolyReLUNet(1000, 200, p=p, init="gaussian", scale=1e-7, seed=0)
    return polyrelu.flow(net, mixture().sample(20_000, seed=0), loss="exp", until=1e-2).net


def test_points(count):
    """The first ``count`` of 1000 points the nets have not seen."""
    data = mixture().sample(1000, seed=1)
    return data.X[:count], data.y[:count]
