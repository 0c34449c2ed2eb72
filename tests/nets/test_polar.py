"""Polar form: log-norms from 1e-300 to 1e3 in both dtypes, there and back."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from polyrelu.errors import InputError
from polyrelu.nets import Polar, PolyReLUNet

DTYPES = [torch.float32, torch.float64]
EPS = {torch.float32: 1e-6, torch.float64: 1e-12}  # logs near 700 are known to 1e-13
LOG_NORM = st.floats(math.log(1e-300), math.log(1e3))


def unit(rows: int, columns: int, seed: int) -> torch.Tensor:
    X = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return X / X.norm(dim=1, keepdim=True)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    logs=st.lists(st.tuples(LOG_NORM, LOG_NORM), min_size=1, max_size=6),
    outputs=st.integers(1, 3),
    dtype=st.sampled_from(DTYPES),
)
def test_round_trip(logs, outputs, dtype):
    h = len(logs)
    log_r, log_s = torch.tensor(logs, dtype=torch.float64).T
    polar = Polar(unit(h, 4, 0).to(dtype), unit(h, outputs, 1).to(dtype), log_r, log_s)
    like = PolyReLUNet(4, 9, 2.5, outputs, dtype=dtype, bias=True, centre=torch.ones(4), normalise_input=True)
    with torch.no_grad():
        like.bias.fill_(0.7)
    net = PolyReLUNet.from_polar(polar, like=like)
    again = net.polar()
    assert net.width == h and net.weight.dtype == dtype and again.u.dtype == again.q.dtype == dtype
    assert again.log_r.dtype == again.log_s.dtype == torch.float64
    for name in ("u", "q", "log_r", "log_s"):
        torch.testing.assert_close(
            getattr(again, name).double(), getattr(polar, name).double(), rtol=1e-15, atol=EPS[dtype]
        )
    assert net.config() == {**like.config(), "width": h}
    assert torch.equal(net.bias, like.bias) and torch.equal(net.centre, like.centre)
    limit = 1e-12 if dtype == torch.float32 else 1e-140
    plain = (torch.stack([log_r, log_s]).amin(dim=0) > math.log(limit)) & (log_r < 27) & (log_s < 27)
    assert (net.log_scale[plain] == 0).all() and (net.log_balance[plain] == 0).all()
    assert (net.log_scale[~plain] != 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("init", ["gaussian", "balanced", "kaiming"])
def test_tiny_scale_is_only_a_number_added_to_the_logs(dtype, init):
    ordinary = PolyReLUNet(50, 20, init=init, dtype=dtype, seed=4)
    tiny = PolyReLUNet(50, 20, init=init, dtype=dtype, seed=4, scale=1e-300)
    a, b = ordinary.polar(), tiny.polar()
    assert not tiny.is_plain() and ordinary.is_plain()
    torch.testing.assert_close(b.u, a.u, rtol=0, atol=EPS[dtype])
    for name in ("log_r", "log_s"):
        shift = getattr(b, name) - getattr(a, name)
        torch.testing.assert_close(shift, torch.full_like(shift, math.log(1e-300)), rtol=0, atol=EPS[dtype])
    # |w_j| = exp(log_scale_j) |weight_j|: the contract with anyone who reads the tensors directly
    norms = tiny.log_scale + tiny.weight.double().norm(dim=1).log()
    torch.testing.assert_close(norms, b.log_r, rtol=0, atol=1e-12)
    X = torch.randn(8, 50, dtype=dtype, requires_grad=True)
    out = tiny(X)
    out.sum().backward()
    assert (out == 0).all() and (X.grad == 0).all() and tiny.weight.grad.isfinite().all()


@pytest.mark.parametrize(("dtype", "scale", "plain"), [
    (torch.float32, 1e-7, True), (torch.float32, 1e-20, False),
    (torch.float64, 1e-100, True), (torch.float64, 1e-150, False),
])  # fmt: skip
def test_weights_are_plain_where_they_comfortably_can_be(dtype, scale, plain):
    assert PolyReLUNet(50, 20, dtype=dtype, scale=scale).is_plain() is plain


@pytest.mark.parametrize("scale", [1.0, 1e-7, 1e-20, 1e-100, 1e-200, 1e-300])
def test_conversion_keeps_norms_and_the_float64_logs(scale):
    double = PolyReLUNet(6, 5, scale=scale, dtype=torch.float64, seed=2)
    single = PolyReLUNet(6, 5, scale=scale, dtype=torch.float32, seed=2)
    before = double.polar()
    to_single, to_double = double.float(), single.to(torch.float64)
    for net, dtype in ((to_single, torch.float32), (to_double, torch.float64)):
        assert net.weight.dtype == net.output.dtype == dtype
        assert net.log_scale.dtype == net.log_balance.dtype == torch.float64
        torch.testing.assert_close(net.polar().log_r, before.log_r, rtol=0, atol=1e-6)
        torch.testing.assert_close(net.polar().log_s, before.log_s, rtol=0, atol=1e-6)
        assert net.is_plain() is (scale > (1e-10 if dtype == torch.float32 else 1e-139))


def test_conversion_is_a_plain_cast_for_plain_weights():
    net = PolyReLUNet(6, 5, seed=2)
    weight = net.weight.detach().clone()
    assert torch.equal(net.double().weight, weight.double())
    assert torch.equal(net.float().weight, weight)
    with pytest.raises(InputError, match="float16"):
        net.half()
    assert net.weight.dtype == torch.float32 and torch.equal(net.weight, weight)


def test_parameters_stay_the_optimisers_own_after_conversion():
    net = PolyReLUNet(6, 5, scale=1e-20, dtype=torch.float64)
    weight = net.weight
    assert net.float().weight is weight


def test_zero_neurons_are_named_by_polar_and_harmless_elsewhere():
    net = PolyReLUNet(6, 5, dtype=torch.float64)
    with torch.no_grad():
        net.weight[3] = 0
    with pytest.raises(InputError, match=r"neuron 3: \|w_j\| = 0"):
        net.polar()
    assert (net.directions()[3] == 0).all()
    assert net.contributions()[3] == 0 and net.log_contributions()[3] == -math.inf
    assert net.float().weight.isfinite().all() and net.log_scale.isfinite().all()
    other = PolyReLUNet(6, 5, 3.0, 2)
    with torch.no_grad():
        other.output[:, 1] = 0
    with pytest.raises(InputError, match=r"neuron 1: \|v_j\| = 0"):
        other.polar()


def test_contributions_are_products_of_norms():
    net = PolyReLUNet(6, 5, 3.0, 2, dtype=torch.float64)
    expected = net.weight.norm(dim=1) * net.output.norm(dim=0)
    torch.testing.assert_close(net.contributions(), expected.detach())
    torch.testing.assert_close(net.log_contributions(), expected.detach().log())
    torch.testing.assert_close(net.directions(), (net.weight / net.weight.norm(dim=1, keepdim=True)).detach())


def test_one_output_has_signs():
    net = PolyReLUNet(6, 5)
    assert torch.equal(net.polar().q, net.output.detach().T.sign())


def test_polar_neurons_can_be_picked_and_rescaled():
    net = PolyReLUNet(6, 5, dtype=torch.float64)
    polar = net.polar()
    halves = [PolyReLUNet.from_polar(polar.neurons(torch.tensor(i)), like=net) for i in ([0, 3], [1, 2, 4])]
    X = torch.randn(7, 6, dtype=torch.float64)
    torch.testing.assert_close(halves[0](X) + halves[1](X), net(X))
    doubled = PolyReLUNet.from_polar(polar.shifted(math.log(2)), like=net)
    torch.testing.assert_close(doubled(X), 4 * net(X))


def test_from_polar_takes_a_zero_norm_and_refuses_nonsense():
    net = PolyReLUNet(6, 5, dtype=torch.float64)
    polar = net.polar()
    dead = Polar(polar.u, polar.q, polar.log_r, polar.log_s.index_fill(0, torch.tensor(2), -math.inf))
    assert (PolyReLUNet.from_polar(dead, like=net).output[:, 2] == 0).all()
    zero = torch.zeros(1)
    for bad, message in [
        (lambda: Polar(polar.u, polar.q, polar.log_r * math.nan, polar.log_s), "log-norms of u=NaN"),
        (lambda: Polar(polar.u * math.nan, polar.q, polar.log_r, polar.log_s), "u=NaN"),
        (lambda: Polar(polar.u * 0, polar.q, polar.log_r, polar.log_s), "u=0 in row"),
        (lambda: Polar(polar.u, polar.q, zero, polar.log_s), r"log_r.shape=\(1,\)"),
        (lambda: Polar(polar.u, polar.q[:, 0], polar.log_r, polar.log_s), "q.shape"),
        (lambda: Polar(polar.u[:, :4], polar.q, polar.log_r, polar.log_s), r"polar.u.shape\[1\]=4: expected 6"),
        (lambda: Polar(polar.u, polar.q.expand(5, 2), polar.log_r, polar.log_s), r"polar.q.shape\[1\]=2: expected 1"),
    ]:
        with pytest.raises(InputError, match=message):
            PolyReLUNet.from_polar(bad(), like=net)
