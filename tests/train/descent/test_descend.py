"""Descent against hand-written loops, closed forms and its own promises."""

import math

import numpy as np
import pytest
import torch

from polyrelu import Dataset, InputError, OrthonormalMixture, PolyReLUNet, Status, Until, descend
from polyrelu.nets import MLP, LeakyReLUNet, LogisticRegression, PlainPolyNet

F64 = torch.float64


@pytest.fixture
def data():
    return OrthonormalMixture(dim=15, positive=2, negative=2, alpha=0.2, dtype=F64).sample(80, seed=1)


@pytest.mark.parametrize("loss", ["exp", "logistic", "squared"])
def test_gd_is_the_plain_loop(data, loss):
    net = PolyReLUNet(15, 6, 3.0, init="gaussian", scale=0.2, seed=0, dtype=F64)
    W, v = (t.detach().clone().requires_grad_() for t in (net.weight, net.output))
    X, y = data.rows(), data.y
    for _ in range(25):
        f = ((X @ W.T).relu() ** 3 / W.norm(dim=1) ** 2) @ v[0]
        mean = {
            "exp": lambda f=f: torch.exp(-y * f).mean(),
            "logistic": lambda f=f: torch.log1p(torch.exp(-y * f)).mean(),
            "squared": lambda f=f: ((y - f) ** 2).mean() / 2,
        }[loss]()
        gW, gv = torch.autograd.grad(mean, (W, v))
        W, v = ((t - 0.3 * g).detach().requires_grad_() for t, g in ((W, gW), (v, gv)))
    out = descend(net, data, method="gd", rate=0.3, loss=loss, until=1e-9, steps=25)
    assert out.status is Status.BUDGET
    assert torch.allclose(out.net.weight, W, atol=1e-12)
    assert torch.allclose(out.net.output, v, atol=1e-12)
    assert out.time == pytest.approx(25 * 0.3)
    assert len(out.history.clock) == 26


def test_sgd_visits_every_row_once_an_epoch_and_repeats_itself():
    # Linear net, squared loss, one-hot rows: a step of rate 1 on the batch mean moves exactly the batch's weights.
    data = Dataset(torch.eye(10, dtype=F64), torch.tensor([1.0, -1.0] * 5))
    net = LogisticRegression(10, bias=False, dtype=F64)
    out = descend(net, data, method="sgd", batch=5, rate=1.0, loss="squared", until=1e-30, steps=2)
    assert torch.allclose(next(out.net.parameters()).flatten(), data.y / 5)
    first, second = (
        descend(LogisticRegression(10, bias=False, dtype=F64), data, method="sgd", batch=3, steps=17, seed=s)
        for s in (4, 4)
    )
    assert torch.equal(next(first.net.parameters()), next(second.net.parameters()))
    assert out.counts["steps"] == 2
    assert first.counts["steps"] == 17


@pytest.mark.slow
def test_logistic_regression_reaches_the_max_margin_direction_at_a_loss_no_float_holds():
    # E11 in loss time: two points per side; the max-margin direction of this set is e1 exactly.
    X = torch.tensor([[1.0, 2.0], [1.0, -2.0], [-1.0, 2.0], [-1.0, -2.0], [3.0, 1.0]], dtype=F64)
    data = Dataset(X, torch.tensor([1.0, 1.0, -1.0, -1.0, 1.0]))
    net = LogisticRegression(2, bias=False, scale=0.1, seed=1, dtype=F64)
    out = descend(
        net, data, loss="logistic", rate=0.1, loss_based=True, until=Until(loss=1e-300), steps=20_000, every=50
    )
    assert out.status is Status.LOSS
    weight = next(out.net.parameters()).detach().flatten()
    assert float(weight[0] / weight.norm()) > 0.9999
    out = descend(out.net, data, loss="exp", rate=1.0, loss_based=True, until=Until(time=1e9), steps=3000, every=100)
    assert out.log10_loss < -700  # far below the smallest float64
    assert math.isfinite(out.log_loss)


def test_loss_based_rate_never_keeps_a_worse_epoch(data):
    net = PolyReLUNet(15, 10, 3.0, init="balanced", scale=0.3, seed=0, dtype=F64)
    out = descend(net, data, loss="exp", rate=1.0, loss_based=True, until=1e-60, steps=4000)
    assert out.status is Status.LOSS
    assert np.all(np.diff(out.history.log_loss) <= 0)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["sgd", "adam"])
def test_batched_methods_fit_the_mixture_with_any_module(data, method):
    for net in (
        PolyReLUNet(15, 20, 3.0, init="kaiming", seed=0, dtype=F64),
        MLP(15, 16, seed=0, dtype=F64),
        LeakyReLUNet(15, 16, seed=0, dtype=F64),
        PlainPolyNet(15, 16, 2.0, scale=0.3, seed=0, dtype=F64),
    ):
        rate = 0.01 if method == "adam" else 0.1
        out = descend(net, data, method=method, rate=rate, batch=20, loss="logistic", until=0.1, steps=4000)
        assert out.status is Status.LOSS, type(net).__name__
        assert out.accuracy > 0.97


def test_rows_that_are_not_in_memory_train_the_same_by_gd():
    mix = OrthonormalMixture(dim=20, positive=2, negative=2, alpha=0.1)
    net = PolyReLUNet(20, 10, 3.0, init="balanced", scale=0.1, seed=1)
    held, lazy = (descend(net, mix.sample(1500, seed=3, lazy=lazy), steps=5) for lazy in (False, True))
    assert torch.equal(held.net.weight, lazy.net.weight)
    out = descend(net, mix.sample(1500, seed=3, lazy=True), method="sgd", steps=30, until=1e-9)
    assert out.log_loss < 0


def test_divergence_keeps_the_last_finite_network(data):
    net = PlainPolyNet(15, 16, 3.0, scale=0.5, seed=0, dtype=F64)
    out = descend(net, data, loss="squared", rate=1e4, until=1e-9, steps=50)
    assert out.status is Status.DIVERGED
    assert all(bool(t.isfinite().all()) for t in out.net.parameters())
    f = out.net(data.rows()).detach()  # the record is of the network that is handed back
    assert out.log_loss == pytest.approx(math.log(float(((data.y - f) ** 2 / 2).mean())), rel=1e-9)
    assert out.counts["steps"] == out.history.clock[-1]


def test_going_on_after_an_earlier_run(data):
    net = PolyReLUNet(15, 6, 3.0, init="gaussian", scale=0.2, seed=0, dtype=F64)
    whole = descend(net, data, rate=0.3, until=1e-9, steps=40)
    part = descend(net, data, rate=0.3, until=1e-9, steps=15)
    rest = descend(part.net, data, rate=0.3, until=1e-9, steps=40, after=part)
    assert torch.allclose(rest.net.weight, whole.net.weight, atol=1e-12)
    assert np.allclose(rest.history.log_loss, whole.history.log_loss)


def test_bad_input_is_named(data):
    net = PolyReLUNet(15, 6, 3.0, seed=0, dtype=F64)
    classes = Dataset(data.rows(), (data.y > 0).long())
    tiny = PolyReLUNet(15, 6, 3.0, init="balanced", scale=1e-300, seed=0, dtype=F64)
    for call, message in [
        (lambda: descend(net, data, method="newton"), "method=newton: expected one of gd, sgd, adam"),
        (lambda: descend(net, data, rate=0.0), "rate=0.0: expected a positive number"),
        (lambda: descend(net, data, steps=0), "steps=0: expected a whole number >= 1"),
        (lambda: descend(net, data, loss="hinge"), "loss=hinge"),
        (lambda: descend(tiny, data), "weights too small"),
        (lambda: descend(net, data.rows()), "data=Tensor: expected a Dataset"),
        (lambda: descend(LogisticRegression(15, dtype=F64), classes), "net=1 outputs: expected 2"),
        (lambda: descend(MLP(15, 4, dtype=F64), data, until=Until(alignment=0.9)), "until.alignment=0.9"),
    ]:
        with pytest.raises(InputError, match=message):
            call()
