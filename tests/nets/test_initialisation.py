"""Laws of the starting points."""

from __future__ import annotations

import math

import pytest
import torch

from polyrelu.nets import INITIALISATIONS, PolyReLUNet

DRAWN = ["gaussian", "balanced", "nudged", "kaiming"]
CENTRES = torch.eye(40, dtype=torch.float64)[:6]


def make(init: str, **options) -> PolyReLUNet:
    options = {"dtype": torch.float64, "seed": 5, "centres": CENTRES, "dim": 40, "width": 1000, **options}
    return PolyReLUNet(init=init, **options)


def test_every_initialisation_is_tested():
    assert set(INITIALISATIONS) == {*DRAWN, "zeros"}


@pytest.mark.parametrize("init", DRAWN)
@pytest.mark.parametrize("outputs", [1, 3])
def test_same_seed_same_net_and_scale_only_multiplies(init, outputs):
    a, b = make(init, outputs=outputs, bias=True), make(init, outputs=outputs, bias=True)
    for name, tensor in a.state_dict().items():
        assert torch.equal(tensor, b.state_dict()[name])
    assert not torch.equal(a.weight, make(init, outputs=outputs, seed=6).weight)
    small = make(init, outputs=outputs, bias=True, scale=1e-7)
    for name in ("weight", "output", "bias"):
        torch.testing.assert_close(getattr(small, name), 1e-7 * getattr(a, name), rtol=1e-13, atol=0)
    single = make(init, outputs=outputs, bias=True, dtype=torch.float32)
    torch.testing.assert_close(single.weight.double(), a.weight, rtol=1e-6, atol=0)


@pytest.mark.parametrize("scale", [1.0, 1e-7])
def test_gaussian_moments(scale):
    net = make("gaussian", scale=scale, outputs=2)
    # 40000 and 2000 draws: mean and variance within five standard errors.
    for X in (net.weight / scale, net.output / scale):
        n = X.numel()
        assert abs(X.mean()) < 5 / math.sqrt(n)
        assert abs(X.var() - 1) < 5 * math.sqrt(2 / n)
        assert abs((X**4).mean() - 3) < 5 * math.sqrt(96 / n)


@pytest.mark.parametrize("init", ["balanced", "nudged"])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("scale", [1.0, 1e-7, 1e-300])
def test_balance_is_exact_to_rounding(init, outputs, scale):
    polar = make(init, outputs=outputs, scale=scale).polar()
    torch.testing.assert_close(polar.log_r, polar.log_s, rtol=0, atol=1e-12)
    share = (polar.q > 0).double().mean()
    assert abs(share - 0.5) < 5 * 0.5 / math.sqrt(polar.q.numel())


def test_nudged_moves_every_neuron_towards_one_centre():
    plain = make("balanced", nudge=0.3).directions() @ CENTRES.T
    nudged_net = make("nudged", nudge=0.3)
    gain = nudged_net.directions() @ CENTRES.T - plain
    assert (gain.amax(dim=1) > 0).all()
    # w <- w + .3 (mu - w) exactly, whichever centre was drawn: (w' - .7 w)/.3 is a centre.
    drawn = (nudged_net.weight - 0.7 * make("gaussian").weight) / 0.3
    closest = (drawn[:, None] - CENTRES).norm(dim=2).min(dim=1)
    assert closest.values.max() < 1e-12
    assert set(closest.indices.tolist()) == set(range(6))
    assert torch.equal(nudged_net.polar().q, make("gaussian").polar().q)


def test_centres_may_be_a_numpy_array():
    assert torch.equal(make("nudged", centres=CENTRES.numpy()).weight, make("nudged").weight)


def test_a_whole_nudge_starts_on_the_centres():
    cosines = make("nudged", nudge=1.0).directions() @ CENTRES.T
    torch.testing.assert_close(cosines.amax(dim=1), torch.ones(1000, dtype=torch.float64))


@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_kaiming_bounds_of_the_published_mnist_nets(scale):
    net = PolyReLUNet(784, 500, 2.0, 10, init="kaiming", scale=scale, bias=True)
    for X, bound in (
        (net.weight, math.sqrt(6 / 500)),
        (net.output, 1 / math.sqrt(500)),
        (net.bias, 1 / math.sqrt(500)),
    ):
        assert X.abs().max() <= scale * bound * (1 + 1e-6)
    assert net.weight.abs().max() > 0.999 * scale * math.sqrt(6 / 500)
    assert net.output.abs().max() > 0.99 * scale / math.sqrt(500)
    # uniform: variance = bound^2/3
    assert net.weight.var().item() == pytest.approx(scale**2 * 2 / 500, rel=0.02)
    assert (net.bias != 0).all()


def test_zeros_is_the_zero_function_and_other_starts_have_zero_bias():
    net = make("zeros", bias=True)
    assert (net(torch.randn(3, 40, dtype=torch.float64)) == 0).all()
    assert (make("gaussian", bias=True).bias == 0).all()
