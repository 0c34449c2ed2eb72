"""One small run of each kind, trained once."""

import pytest

import polyrelu


def trained(p, **settings):
    data = polyrelu.OrthonormalMixture(dim=50, positive=3, negative=2, alpha=0.1).sample(500, seed=0)
    net = polyrelu.PolyReLUNet(50, 40, p=p, init="balanced", scale=1e-7, seed=0)
    return polyrelu.flow(net, data, **settings), data


@pytest.fixture(scope="session")
def averages():
    """p = 1: a trajectory and its data."""
    return trained(1)


@pytest.fixture(scope="session")
def centres():
    """p = 3: a trajectory and its data."""
    return trained(3)
