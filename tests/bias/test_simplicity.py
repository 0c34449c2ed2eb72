"""Distance to the best linear map: zero for linear nets, closed forms for mirrored rows, words for bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from polyrelu.bias import odd_map, simplicity
from polyrelu.data import Dataset, OrthonormalMixture, SymmetricSeparable
from polyrelu.errors import InputError
from polyrelu.nets import MLP, LeakyReLUNet, LogisticRegression, PolyReLUNet, TanhNet


def rows(n: int = 200, dim: int = 5, seed: int = 0) -> Dataset:
    rng = torch.Generator().manual_seed(seed)
    X = torch.randn(n, dim, generator=rng, dtype=torch.float64) + 0.5
    return Dataset(X, torch.where(X[:, 0] > 0.5, 1.0, -1.0))


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_linear_net_is_its_own_map(outputs):
    net = LogisticRegression(5, outputs, scale=1.0, dtype=torch.float64)
    torch.nn.init.constant_(net.bias, 0.7)
    net.bias.data[0] += 1
    found = simplicity(net, rows(), offset=True, probes=500)
    W, b = net.weight.detach(), net.bias.detach()
    if outputs > 1:  # what all logits share decides nothing
        W, b = W - W.mean(dim=0), b - b.mean()
    assert found.map == pytest.approx(W, abs=1e-12)
    assert found.offset == pytest.approx(b, abs=1e-12)
    assert found.residual < 1e-12 and found.probe_residual < 1e-12 and found.evenness < 1e-12
    assert found.agreement == 1
    assert simplicity(net, rows()).residual > 0.01  # without the offset it is not


@pytest.mark.parametrize("offset", [False, True])
def test_least_squares_as_numpy_has_it(offset):
    net, data = MLP(5, 8, 3, dtype=torch.float64, seed=1), rows()
    f = net(data.X).detach().numpy()
    X = np.hstack([data.X.numpy(), np.ones((200, int(offset)))])
    B, missed, *_ = np.linalg.lstsq(X, f, rcond=None)
    found = simplicity(net, data, offset=offset)
    assert found.residual == pytest.approx(math.sqrt(missed[0]) / np.linalg.norm(f), rel=1e-10)
    assert found.map[0].numpy() == pytest.approx(B[:5], rel=1e-9)
    assert float(found.offset) == pytest.approx(B[5] if offset else 0, rel=1e-9)
    assert found.agreement == ((X @ B > 0) == (f > 0)).mean()


@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0])
def test_leaky_nets_on_mirrored_rows_have_closed_forms(slope):
    # phi(t) - phi(-t) = (1 + a) t: the best map is the odd part, what is left the even part.
    data = SymmetricSeparable(5, dtype=torch.float64).sample(60, 0)
    net = LeakyReLUNet(5, 20, slope=slope, dtype=torch.float64, seed=2).requires_grad_(False)
    found = simplicity(net, data)
    assert found.map == pytest.approx(odd_map(net), abs=1e-10)
    even = (1 - slope) / 2 * (data.X @ net.weight.T).abs() @ net.output[0]
    odd = data.X @ odd_map(net)[0]
    assert found.evenness == pytest.approx(float(even.norm() / odd.norm()), rel=1e-10, abs=1e-14)
    assert found.residual == pytest.approx(found.evenness / math.hypot(1, found.evenness), rel=1e-9, abs=1e-13)


def test_a_relu_net_with_centre_and_bias_at_any_scale():
    centre = torch.tensor([1.0, -2.0, 0.5, 0.0, 3.0], dtype=torch.float64)
    net = PolyReLUNet(5, 7, p=1, centre=centre, bias=True, dtype=torch.float64, seed=4)
    net.requires_grad_(False).bias.fill_(0.3)
    z = torch.randn(9, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert (net(centre + z) - net(centre - z)) / 2 == pytest.approx((z @ odd_map(net).T)[:, 0], abs=1e-12)
    data = Dataset(torch.cat([centre + z, centre - z]), torch.tensor([1.0] * 9 + [-1.0] * 9))
    even = (net(centre + z) + net(centre - z)) / 2 - 0.3
    odd = (net(centre + z) - net(centre - z)) / 2
    assert simplicity(net, data).evenness == pytest.approx(float(even.norm() / odd.norm()), rel=1e-9)
    plain = PolyReLUNet(5, 7, p=1, seed=4, dtype=torch.float64)
    tiny = PolyReLUNet(5, 7, p=1, seed=4, scale=1e-100, dtype=torch.float64)
    assert odd_map(tiny) * 1e200 == pytest.approx(odd_map(plain), rel=1e-9)


def test_even_and_odd_nets():
    net = PolyReLUNet(2, 2, p=2, init="zeros", dtype=torch.float64)
    net.weight.data.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
    net.output.data.fill_(1.0)  # f = x_1^2
    data = rows(50, 2)
    assert simplicity(net, data).evenness == math.inf
    net.output.data.copy_(torch.tensor([1.0, -1.0]))  # f = x_1 |x_1|: odd, yet not linear
    found = simplicity(net, data)
    assert found.evenness < 1e-12
    assert found.residual > 0.1
    assert simplicity(TanhNet(2, 5, dtype=torch.float64), data).evenness < 1e-12


def test_rows_that_cannot_tell_and_probes_that_can():
    net, data = PolyReLUNet(30, 10, p=3, dtype=torch.float64), rows(20, 30)
    assert math.isnan(simplicity(net, data).residual)  # 20 rows in R^30: every function is linear there
    found = simplicity(net, data, probes=3000)
    assert 0.3 < found.probe_residual < 1
    assert found.probe_residual == simplicity(net, data, probes=3000).probe_residual
    line = LogisticRegression(30, bias=False, scale=1.0, dtype=torch.float64)
    assert simplicity(line, data, probes=3000).probe_residual < 1e-10


def test_probes_have_the_mean_and_covariance_of_the_rows():
    # f = relu(<u, x>)^2 on N(m, S): regress on (x, 1) by hand over a million draws; the probes must agree.
    data = OrthonormalMixture(4, 2, 2, 1.0, dtype=torch.float64).sample(400, 0)
    net = PolyReLUNet(4, 1, p=2, dtype=torch.float64, seed=3)
    X = data.X.numpy()
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(X.mean(0), np.cov(X.T, bias=True), 200_000)
    f = net(torch.from_numpy(draws)).detach().numpy()
    full = np.hstack([draws, np.ones((len(draws), 1))])
    left = f - full @ np.linalg.lstsq(full, f, rcond=None)[0]
    found = simplicity(net, data, offset=True, probes=100_000)
    assert found.probe_residual == pytest.approx(np.linalg.norm(left) / np.linalg.norm(f), rel=0.02)


def test_rotation_and_row_order_do_not_matter():
    net, data = PolyReLUNet(5, 9, p=3, outputs=3, dtype=torch.float64), rows()
    turn = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(3))).Q
    turned = PolyReLUNet(5, 9, p=3, outputs=3, dtype=torch.float64)
    turned.weight.data.copy_(net.weight @ turn)
    order = torch.randperm(200, generator=torch.Generator().manual_seed(1))
    one, two = simplicity(net, data), simplicity(turned, Dataset(data.X[order] @ turn, data.y[order]))
    assert two.map == pytest.approx(one.map @ turn, abs=1e-9)
    for name in ("residual", "agreement", "evenness"):
        assert getattr(two, name) == pytest.approx(getattr(one, name), rel=1e-9)


def test_bad_input_is_refused_in_words():
    with pytest.raises(InputError, match="not zero on the data"):
        simplicity(LogisticRegression(5, bias=False), rows())
    with pytest.raises(InputError, match="LeakyReLUNet, or a PolyReLUNet with p = 1"):
        odd_map(PolyReLUNet(5, 3, p=3))
    with pytest.raises(InputError, match="probes=-1"):
        simplicity(LogisticRegression(5), rows(), probes=-1)


def test_a_net_that_takes_no_single_row_is_refused_in_words():
    """Batch normalisation in training has nothing to say about one row."""
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Linear(2, 1), nn.Flatten(0))
    data = Dataset(torch.randn(9, 3, generator=torch.Generator().manual_seed(0)), torch.ones(9).cumsum(0) % 2 * 2 - 1)
    with pytest.raises(InputError, match="what the net takes"):
        simplicity(net, data)
    assert simplicity(net.eval(), data, offset=True).residual < 1e-6
