"""The flow of any module: closed forms, an independent solver, and the polar flow of the same net."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from polyrelu import Dataset, OrthonormalMixture, PolyReLUNet, Status, Until, flow
from polyrelu.nets import MLP, LogisticRegression, TanhNet
from polyrelu.progress import Progress

F64 = torch.float64


def line():
    return Dataset(torch.tensor([[1.0], [-1.0]], dtype=F64), torch.tensor([1.0, -1.0], dtype=F64))


def test_exponential_loss_in_closed_form():
    # f = w x, both points alike: w' = e^-w, so w = log(t + 1) from zero
    out = flow(LogisticRegression(1, bias=False, dtype=F64), line(), loss="exp", until=Until(time=50.0), rtol=1e-5)
    assert out.status is Status.TIME and out.time == pytest.approx(50)
    assert float(out.net.weight.detach()[0, 0]) == pytest.approx(math.log(51), rel=1e-4)
    assert np.allclose(-out.history.log_loss[1:], np.log1p(out.history.time[1:]), rtol=1e-3)


def test_squared_loss_in_closed_form():
    # w' = 1 - w in ordinary time
    out = flow(LogisticRegression(1, bias=False, dtype=F64), line(), loss="squared", until=Until(time=2.0), rtol=1e-5)
    assert float(out.net.weight.detach()[0, 0]) == pytest.approx(1 - math.exp(-2), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("net", [TanhNet(4, 6, scale=0.5, dtype=F64), MLP(4, 6, 3, activation="softplus", dtype=F64)])
def test_against_an_independent_solver(net):
    source = torch.Generator().manual_seed(0)
    X = torch.randn(30, 4, generator=source, dtype=F64)
    data = Dataset(X, torch.sign(X[:, 0] + 0.3 * torch.randn(30, generator=source, dtype=F64)))
    out = flow(net, data, loss="logistic", until=Until(time=4.0), rtol=1e-6)
    shapes = [p.shape for p in net.parameters()]

    def slope(_, theta):
        parts = torch.split(torch.tensor(theta), [math.prod(shape) for shape in shapes])
        weights = [part.reshape(shape).requires_grad_() for part, shape in zip(parts, shapes, strict=True)]
        names = [name for name, _ in net.named_parameters()]
        f = torch.func.functional_call(net, dict(zip(names, weights, strict=True)), (X,))
        loss = torch.nn.functional.softplus(-data.y * f).mean()
        return -torch.cat([part.flatten() for part in torch.autograd.grad(loss, weights)]).numpy()

    start = torch.cat([p.detach().flatten() for p in net.parameters()]).numpy()
    exact = solve_ivp(slope, (0, 4), start, method="DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
    found = torch.cat([p.detach().flatten() for p in out.net.parameters()]).numpy()
    assert np.linalg.norm(found - exact) <= 1e-4 * np.linalg.norm(exact)


@pytest.mark.slow
def test_a_two_layer_relu_net_flows_as_its_polar_twin():
    data = OrthonormalMixture(dim=20, positive=2, negative=2, alpha=0.1, dtype=F64).sample(80, seed=0)
    twin = PolyReLUNet(20, 10, 1.0, init="balanced", scale=0.05, seed=0, dtype=F64)
    net = MLP(20, 10, 2, dtype=F64)
    with torch.no_grad():
        net.weights[0].copy_(twin.weight)
        net.weights[1].copy_(twin.output)
    a, b = (flow(one, data, loss="exp", until=1e-3, rtol=1e-4) for one in (net, twin))
    assert a.history.log_time[-1] == pytest.approx(b.history.log_time[-1], abs=5e-3)
    f, g = a.net(data.rows()).detach(), b.net(data.rows()).detach()
    assert float((f - g).norm() / g.norm()) < 5e-3


def test_the_initial_scale_does_not_matter():
    data = OrthonormalMixture(dim=10, positive=1, negative=1, alpha=0.1, dtype=F64).sample(40, seed=0)
    out = flow(MLP(10, 8, 2, scale=1e-6, dtype=F64), data, until=1e-2)
    assert out.status is Status.LOSS and out.accuracy == 1
    assert (np.diff(out.history.log_loss) <= 1e-6).all()


def test_nothing_moves_where_the_slope_is_zero():
    net = MLP(1, 3, 2, dtype=F64)
    with torch.no_grad():
        net.weights[0].fill_(-1.0)
        net.weights[1].zero_()
    data = Dataset(torch.tensor([[1.0], [2.0]], dtype=F64), torch.tensor([1.0, -1.0], dtype=F64))
    assert flow(net, data).status is Status.STALLED


def test_interrupt_and_going_on():
    class Stop(Progress):
        left = 3

        def update(self, **_):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

    net = LogisticRegression(1, bias=False, dtype=F64)
    half = flow(net, line(), until=Until(time=50.0), rtol=1e-5, progress=Stop())
    assert half.status is Status.INTERRUPTED and 0 < half.time < 50
    out = flow(half.net, line(), until=Until(time=50.0), rtol=1e-5, after=half)
    assert float(out.net.weight.detach()[0, 0]) == pytest.approx(math.log(51), rel=1e-4)
    assert len(out.history.clock) > len(half.history.clock)
