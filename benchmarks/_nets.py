"""The nets the robustness benchmarks share: D=1000, alpha=.1, trained by flow to loss 1e-2."""

from __future__ import annotations

import polyrelu


def mixture(positive=6, negative=4):
    return polyrelu.OrthonormalMixture(dim=1000, positive=positive, negative=negative, alpha=0.1)


def trained(p, *, width=200, seed=0, init="gaussian", scale=1e-7, samples=20_000, mix=None):
    net = polyrelu.PolyReLUNet(1000, width, p=p, init=init, scale=scale, seed=seed)
    data = (mix or mixture()).sample(samples, seed=seed)
    return polyrelu.flow(net, data, loss="exp", until=1e-2).net


def test_data(count, seed=1):
    """Points the nets have not seen."""
    return mixture().sample(count, seed=seed)


def test_points(count):
    """The first ``count`` of 1000 points the nets have not seen."""
    data = test_data(1000)
    return data.X[:count], data.y[:count]
