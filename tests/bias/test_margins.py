"""Margins by hand, against 60-digit arithmetic, and the bounds between them."""

import math
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from polyrelu import Status, Until, flow
from polyrelu.bias import margin_history, margins, monotone, smoothed_log_margin
from polyrelu.data import Dataset
from polyrelu.errors import InputError
from polyrelu.nets import MLP, LogisticRegression, PlainPolyNet, PolyReLUNet, TanhNet

F64 = torch.float64
TWO = Dataset(torch.tensor([[1.0, 0.0], [-1.0, 0.5]], dtype=F64), torch.tensor([1.0, -1.0]))


def linear(weight, dtype=F64):
    weight = torch.as_tensor(weight, dtype=dtype)
    net = LogisticRegression(weight.shape[1], outputs=len(weight), bias=False, dtype=dtype)
    net.weight.data.copy_(weight)
    return net


def one_neuron(w, v, p, kind=PolyReLUNet):
    net = kind(2, 1, p=p, dtype=F64)
    net.weight.data.copy_(torch.tensor([[w, 0.0]]))
    net.output.data.copy_(torch.tensor([[v]]))
    return net


def test_two_points_by_hand():
    # q = (2, 2), rho = 2, L = 1, S = 2 e^-2: smoothed = (2 - log 2)/2, which is also its lower bound
    found = margins(linear([[2.0, 0.0]]), TWO)
    assert found.values.tolist() == pytest.approx([2, 2])
    assert (found.smallest, found.normalised, found.product) == pytest.approx((2, 1, 1))
    assert found.smoothed == pytest.approx((2 - math.log(2)) / 2, abs=1e-14) == found.lower
    assert found.log_loss == pytest.approx(math.log(2) - 2)
    assert found.log10_loss == pytest.approx(-2 / math.log(10))
    assert found.separated and found.reason == "" and found.degree == 1


def test_one_neuron_by_hand():
    # f(t, .) = v w t^p (or v w^p t^p): q = 6 at (1, 0), and 0 at (-1, .5), which is not separated
    data = Dataset(torch.tensor([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.5]]), torch.tensor([1.0, 1.0, -1.0]))
    found = margins(one_neuron(2.0, 3.0, 3.0), data)
    assert found.values.tolist() == pytest.approx([6, 48, 0])
    assert (found.smallest, found.sample, found.normalised) == (0, 2, 0)
    assert not found.separated and math.isnan(found.smoothed) and "row 2" in found.reason
    plain = margins(one_neuron(2.0, -3.0, 2.0, PlainPolyNet), data)  # f = -12 t^2
    assert plain.degree == 3 and plain.smallest == pytest.approx(-48) and plain.sample == 1
    assert plain.normalised == pytest.approx(-48 / 13**1.5) and plain.product == pytest.approx(-48 / (4 * 3))


def test_three_classes_by_hand():
    data = Dataset(torch.eye(3, dtype=F64), torch.tensor([0, 1, 2]))
    found = margins(linear([[6.0, 0, 0], [1, 7, 0], [0, 0, 9]]), data, loss="cross_entropy")
    assert found.values.tolist() == pytest.approx([5, 7, 9])
    total = sum(math.log1p(e) for e in (math.exp(-5) + math.exp(-6), 2 * math.exp(-7), 2 * math.exp(-9)))
    assert found.log_loss == pytest.approx(math.log(total), abs=1e-14)
    assert found.smoothed == pytest.approx(-math.log(math.expm1(total)) / math.sqrt(36 + 1 + 49 + 81), abs=1e-14)


def test_summed_loss_too_large_is_said():
    for loss, limit in (("exp", "below 1"), ("logistic", "below log 2")):
        found = margins(linear([[0.1, 0.0]]), TWO, loss)
        assert found.separated and math.isnan(found.smoothed) and math.isnan(found.lower) and limit in found.reason


def exact(q, loss):
    """log10 of the mean loss and l^-1 of the summed loss of exponents -q (n, rivals), in 60 digits."""
    with mpmath.workdps(60), np.errstate(all="ignore"):
        each = [mpmath.fsum(mpmath.exp(-mpmath.mpf(float(one))) for one in row) for row in q]
        if loss == "exp":
            total = mpmath.fsum(each)
            return float(mpmath.log10(total / len(q))), float(-mpmath.log(total))
        mpmath.mp.dps = 6000  # 1 + 1e-5000
        total = mpmath.fsum(mpmath.log1p(e) for e in each)
        return float(mpmath.log10(total / len(q))), float(-mpmath.log(mpmath.expm1(total)))


@pytest.mark.slow
@pytest.mark.parametrize("digits", [3, 300, 5000])
@pytest.mark.parametrize(("loss", "classes"), [("exp", 2), ("logistic", 2), ("exp", 3), ("cross_entropy", 3)])
def test_losses_far_below_floating_point(loss, classes, digits):
    generator = torch.Generator().manual_seed(digits)
    scale = digits * math.log(10)
    if classes == 2:
        y = torch.tensor([1.0, -1, 1, -1, 1], dtype=F64)
        X = y[:, None] * torch.stack([1 + 2e-4 * torch.rand(5, generator=generator, dtype=F64), torch.zeros(5)], 1)
        net, q = linear([[scale + 2, 0.0]]), (scale + 2) * (y * X[:, 0])[:, None]
    else:
        y = torch.tensor([0, 1, 2, 0, 1])
        X = torch.nn.functional.one_hot(y, 3) * (1 + 2e-4 * torch.rand(5, 1, generator=generator, dtype=F64))
        net = linear((scale + 2) * torch.eye(3, dtype=F64))
        q = ((scale + 2) * X.amax(1))[:, None].repeat(1, 2)
    found = margins(net, Dataset(X, y), loss)
    log10_loss, inverse = exact(q.numpy(), loss)
    assert found.log10_loss == pytest.approx(log10_loss, rel=1e-13, abs=1e-12)
    assert found.smoothed * math.exp(found.degree * found.log_rho) == pytest.approx(inverse, rel=1e-13)
    assert found.log10_loss < -digits + 1


@given(st.integers(0, 10**6), st.sampled_from(["exp", "logistic"]), st.integers(1, 4))
def test_bounds_and_scale(seed, loss, classes):
    # every net classifies its own answers; bounds of the module docstring, and normalised margins ignore the scale
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(12, 3, generator=generator, dtype=F64)
    net = MLP(3, 6, depth=3, outputs=classes, seed=seed, scale=3.0, dtype=F64)
    with torch.no_grad():
        f = net(X)
        y = torch.where(f > 0, 1.0, -1.0).double() if classes == 1 else f.argmax(1)
    if len(y.unique()) < 2:
        return
    found = margins(net, Dataset(X, y), loss)
    with torch.no_grad():
        for part in net.parameters():
            part.mul_(2.0)
    twice = margins(net, Dataset(X, y), loss)
    assert twice.normalised == pytest.approx(found.normalised, rel=1e-9, abs=1e-14)
    assert twice.product == pytest.approx(found.product, rel=1e-9, abs=1e-14)
    if not found.reason:
        assert found.lower <= found.smoothed * (1 + 1e-9) <= found.normalised * (1 + 2e-9)
        assert twice.smoothed > found.smoothed  # log N weighs less


def test_weights_no_float_holds():
    nets = [PolyReLUNet(2, 40, p=3.0, init="balanced", scale=scale, seed=1) for scale in (1e-300, 1.0)]
    small, plain = (margins(net, TWO) for net in nets)
    assert small.normalised == pytest.approx(plain.normalised, rel=1e-6)
    assert small.product == pytest.approx(plain.product, rel=1e-6)
    assert small.log_rho == pytest.approx(plain.log_rho - 300 * math.log(10), abs=1e-6)
    assert math.isnan(small.smoothed)


def test_float32_nets_are_measured_in_float64():
    net = PolyReLUNet(2, 40, p=3.0, seed=1, scale=9.0)
    data = TWO.to(torch.float32)
    assert margins(net, data).normalised == pytest.approx(margins(net.double(), TWO).normalised, rel=1e-12)


@pytest.mark.parametrize("loss", ["exp", "logistic"])
def test_smoothed_log_margin_is_elementwise(loss):
    logs, rho = np.array([0.5, -1.0, -16.0, -1e4]), np.array([0.0, 1.0, -500.0, 3.0])
    found = smoothed_log_margin(logs, rho, 2.0, loss)
    assert math.isnan(found[0])
    with mpmath.workdps(5000):
        for log, r, one in zip(logs[1:], rho[1:], found[1:], strict=True):
            z = mpmath.exp(mpmath.mpf(float(log)))
            inverse = -mpmath.log(z) if loss == "exp" else -mpmath.log(mpmath.expm1(z))
            assert float(one) == pytest.approx(float(mpmath.log(inverse) - 2 * mpmath.mpf(float(r))), rel=1e-14)


def test_monotone():
    nan = math.nan
    assert monotone([nan, 1, 2, 2, 3]) == monotone([nan, 1, 2, 2, 3], 0.0)
    assert monotone([nan, 1, 2, 2, 3]).ok
    falls = monotone([nan, 1, 3, 2.9, 2.8, 4], 0.15)  # .1 and .1 add up
    assert (falls.ok, falls.where) == (False, 4) and falls.largest_fall == pytest.approx(0.2)
    assert monotone([1, 3, 2.9, 4], 0.15).ok
    assert monotone([1, nan, 2]).largest_fall == math.inf
    for empty in ([], [nan, nan]):
        with pytest.raises(InputError, match="at least one number"):
            monotone(empty)


def run(log_loss, log_rho, min_margin, loss="exp", **more):
    columns = {"log_loss": log_loss, "log_rho": log_rho, "min_margin": min_margin, "clock": log_loss}
    history = SimpleNamespace(**{name: np.array(column, dtype=np.float64) for name, column in columns.items()})
    return SimpleNamespace(net=PolyReLUNet(2, 3), history=history, settings={"loss": loss, "samples": 4, **more})


def test_margin_history_by_hand():
    # mean loss e^l of 4 samples: S = 4 e^l, smoothed = -(l + log 4)/rho^2
    found = margin_history(run([0.0, -10.0, -40.0], [0.0, 1.0, 1.5], [-0.5, 9.0, 39.0]))
    assert found.normalised == pytest.approx([-0.5, 9 / math.e**2, 39 / math.e**3])
    assert math.isnan(found.log_smoothed[0])
    expected = [math.log(10 - math.log(4)) - 2, math.log(40 - math.log(4)) - 3]
    assert found.log_smoothed[1:] == pytest.approx(expected)
    assert found.log10_loss[2] == pytest.approx(-40 / math.log(10))
    assert found.monotone is not None and found.monotone.ok
    falling = margin_history(run([-10.0, -11.0], [1.0, 2.0], [9.0, 10.0], "logistic"))
    assert falling.monotone is not None and not falling.monotone.ok and falling.monotone.where == 1
    assert margin_history(run([0.0], [0.0], [-1.0])).monotone is None
    assert math.isnan(margin_history(run([0.0], [-690.0], [0.0])).normalised[0])  # q_min = 1e-599 underflowed


def test_bad_input_is_answered_in_words():
    for trajectory, words in (
        (run([], [], []), "no recorded moments"),
        (SimpleNamespace(**{**vars(run([0.0], [0.0], [0.0])), "settings": {"loss": "exp"}}), "no margins recorded"),
        (run([-1.0], [0.0], [1.0], "squared"), "exp, logistic or cross_entropy"),
    ):
        with pytest.raises(InputError, match=words):
            margin_history(trajectory)
    classes = Dataset(torch.eye(3), torch.tensor([0, 1, 2]))
    for net, data, loss, words in (
        (linear([[1.0, 0.0]]), TWO, "squared", "exp, logistic or cross_entropy"),
        (linear([[1.0, 0.0]]), TWO, "hinge", "expected one of"),
        (TanhNet(2, 3), TWO, "exp", "layer 1"),
        (linear([[1.0, 0.0], [0.0, 1.0]]), TWO, "exp", "2 logits for labels"),
        (linear(torch.eye(2, 3)), classes, "exp", "2 logits for 3 classes"),
        (linear([[1.0, 0.0, 0.0]]), TWO, "exp", "expected"),
        (torch.nn.Sequential(torch.nn.Linear(3, 1)), TWO, "exp", "expected"),
    ):
        with pytest.raises(InputError, match=words):
            margins(net, data, loss)


def test_a_degree_that_is_no_round_number_is_a_degree_too(blobs):
    data = blobs()
    out = flow(PlainPolyNet(6, 20, p=4 / 3, scale=0.3, dtype=F64), data, until=Until(log10_loss=-60))
    assert out.status is Status.LOSS and margins(out.net, data).degree == pytest.approx(7 / 3)


def test_infinity_beside_infinity_has_not_fallen():
    assert monotone((math.nan, math.inf, math.inf)).ok
    fallen = monotone((1.0, math.inf, 2.0))
    assert not fallen.ok and fallen.largest_fall == math.inf and fallen.where == 2
