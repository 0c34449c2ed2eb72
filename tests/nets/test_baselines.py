"""The baselines against their formulas; degrees, starts, shapes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from polyrelu.errors import InputError
from polyrelu.nets import (
    MLP,
    FixedOutputNet,
    GroupedNet,
    LeakyReLUNet,
    LogisticRegression,
    PlainPolyNet,
    PolyReLUNet,
    SmallCNN,
    TanhNet,
)

X = torch.randn(6, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
DOUBLE = {"dtype": torch.float64, "seed": 2}
TRAINED = {
    "PlainPolyNet": lambda outputs=1, **o: PlainPolyNet(5, 7, 2.5, outputs, **o),
    "TanhNet": lambda outputs=1, **o: TanhNet(5, 7, outputs, **o),
    "LeakyReLUNet": lambda outputs=1, **o: LeakyReLUNet(5, 7, outputs, **o),
    "LogisticRegression": lambda outputs=1, **o: LogisticRegression(5, outputs, **o),
    "MLP": lambda outputs=1, **o: MLP(5, 7, 3, outputs, **o),
}


@pytest.mark.parametrize(("make", "phi"), [
    (lambda C: PlainPolyNet(5, 7, 2.5, C, **DOUBLE), lambda z: max(z, 0.0) ** 2.5),
    (lambda C: TanhNet(5, 7, C, **DOUBLE), math.tanh),
    (lambda C: LeakyReLUNet(5, 7, C, slope=0.2, **DOUBLE), lambda z: max(z, 0.2 * z)),
], ids=["plain", "tanh", "leaky"])  # fmt: skip
@pytest.mark.parametrize("outputs", [1, 3])
def test_two_layer_nets_are_their_formulas(make, phi, outputs):
    net = make(outputs)
    expected = torch.zeros(6, outputs, dtype=torch.float64)
    for i in range(6):
        for c in range(outputs):
            for j in range(7):
                expected[i, c] += net.output[c, j].item() * phi(float(X[i] @ net.weight[j].detach()))
    torch.testing.assert_close(net(X), expected[:, 0] if outputs == 1 else expected)


def test_plain_power_net_is_the_normalised_one_on_unit_rows():
    plain, net = PlainPolyNet(5, 7, **DOUBLE), PolyReLUNet(5, 7, **DOUBLE)
    assert torch.allclose(plain.weight, net.weight)  # one seed, one gaussian start
    with torch.no_grad():
        for module in (plain, net):
            module.weight.div_(module.weight.norm(dim=1, keepdim=True))
    torch.testing.assert_close(plain(X), net(X))


def test_degrees_in_the_weights():
    for net, degree in (
        (PlainPolyNet(5, 7, 2.5, **DOUBLE), 3.5),
        (LeakyReLUNet(5, 7, **DOUBLE), 2),
        (MLP(5, 7, 4, **DOUBLE), 4),
        (SmallCNN(6, 3, hidden=8, bias="first", **DOUBLE), 4),
    ):
        inputs = X if net.dim == 5 else torch.rand(4, 36, dtype=torch.float64)
        before = net(inputs)
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.mul_(1.3)
        torch.testing.assert_close(net(inputs), 1.3**degree * before)


def test_logistic_regression_is_linear_and_starts_at_zero():
    assert (LogisticRegression(5)(X.float()) == 0).all()
    net = LogisticRegression(5, 3, scale=1.0, **DOUBLE)
    with torch.no_grad():
        net.bias.fill_(0.5)
    torch.testing.assert_close(net(X), X @ net.weight.T + 0.5)
    assert LogisticRegression(5, bias=False).bias is None


@pytest.mark.parametrize("activation", ["relu", "tanh", "leaky_relu", "sigmoid", "gelu", "softplus"])
@pytest.mark.parametrize("bias", [False, True])
def test_mlp_against_torchs_own_layers(activation, bias):
    net = MLP(5, 7, 4, 2, activation=activation, bias=bias, **DOUBLE)
    assert len(net.weights) == 4
    assert [tuple(weight.shape) for weight in net.weights] == [(7, 5), (7, 7), (7, 7), (2, 7)]
    if bias:
        with torch.no_grad():
            for b in net.biases:
                b.normal_(generator=torch.Generator().manual_seed(0))
    hidden = X
    for k, weight in enumerate(net.weights):
        hidden = hidden @ weight.T + (net.biases[k] if bias else 0)
        hidden = getattr(torch.nn.functional, activation)(hidden) if k < 3 else hidden
    torch.testing.assert_close(net(X), hidden)


def test_depth_one_is_linear():
    net = MLP(5, 7, 1, **DOUBLE)
    torch.testing.assert_close(net(2 * X - 1), 2 * net(X) - net(torch.ones_like(X)))


def test_fixed_output_net_formula_and_theory_start():
    net = FixedOutputNet(5, 4, **DOUBLE)
    hidden = (X @ net.weight.T + net.bias).relu()
    torch.testing.assert_close(net(X), hidden[:, :4].mean(dim=1) - hidden[:, 4:].mean(dim=1))
    assert {name for name, _ in net.named_parameters()} == {"weight", "bias"}  # output layer is not trained
    wide = FixedOutputNet(100, 500, seed=1)
    assert wide.weight.std().item() == pytest.approx(0.1, rel=0.02)
    assert wide.bias.std().item() == pytest.approx(0.01, rel=0.1)
    small = FixedOutputNet(100, 500, scale=1e-5)
    assert small.weight.std().item() == pytest.approx(1e-5, rel=0.02)
    assert small.bias.std().item() == pytest.approx(1e-5, rel=0.1)


def test_grouped_net_formula_and_read_outs():
    net = GroupedNet(5, 4, 3, **DOUBLE)
    logits = net(X)
    for i in range(4):
        torch.testing.assert_close(logits[:, i], (X @ net.weight[i].T).relu().mean(dim=1))
    labels = torch.tensor([1, -1, 1, -1])
    summed = logits[:, 0] + logits[:, 2] - logits[:, 1] - logits[:, 3]
    torch.testing.assert_close(net.binary(X, labels), summed)
    largest = torch.maximum(logits[:, 0], logits[:, 2]) - torch.maximum(logits[:, 1], logits[:, 3])
    torch.testing.assert_close(net.binary(X, labels, "max"), largest)
    with pytest.raises(InputError, match=r"labels=\[1, 1\]: expected 4 labels"):
        net.binary(X, torch.tensor([1, 1]))
    with pytest.raises(InputError, match="rule='mean': expected 'sum' or 'max'"):
        net.binary(X, labels, "mean")


@pytest.mark.parametrize(("bias", "biases"), [("all", 4), ("first", 1), ("none", 0)])
def test_small_cnn_is_the_published_one(bias, biases):
    net = SmallCNN(bias=bias)
    shapes = [tuple(weight.shape) for weight in net.weights]
    assert shapes == [(32, 1, 5, 5), (64, 32, 3, 3), (1024, 3136), (10, 1024)]
    assert len(net.biases) == biases and all((b == 0).all() for b in net.biases)
    for weight, fan_in in zip(net.weights, (25, 288, 3136, 1024), strict=True):
        assert weight.std().item() == pytest.approx(math.sqrt(2 / fan_in), rel=0.1)
    images = torch.rand(2, 1, 28, 28)
    assert net(images).shape == (2, 10)
    torch.testing.assert_close(net(images.reshape(2, 784)), net(images))


def test_small_cnn_layers_and_odd_sides():
    net = SmallCNN(7, 1, hidden=9, **DOUBLE)  # 7 -> 4 -> 2 with SAME pools
    images = torch.rand(3, 1, 7, 7, dtype=torch.float64)
    layers = torch.nn.functional
    hidden = layers.max_pool2d(layers.conv2d(images, net.weights[0], padding=2).relu(), 2, ceil_mode=True)
    hidden = layers.max_pool2d(layers.conv2d(hidden, net.weights[1], padding=1).relu(), 2, ceil_mode=True)
    expected = (hidden.flatten(1) @ net.weights[2].T).relu() @ net.weights[3].T
    torch.testing.assert_close(net(images), expected[:, 0])
    with pytest.raises(InputError, match=r"expected \(n, 49\) or \(n, 1, 7, 7\)"):
        net(torch.rand(3, 7, 7))


@pytest.mark.parametrize("name", TRAINED)
def test_seed_scale_and_dtype(name):
    make = TRAINED[name]
    a, b = make(scale=1.0, **DOUBLE), make(scale=1e-6, **DOUBLE)
    for x, y in zip(a.parameters(), b.parameters(), strict=True):
        torch.testing.assert_close(1e-6 * x, y, rtol=1e-14, atol=0)
    single = make(scale=1.0, seed=2)
    for x, y in zip(a.parameters(), single.parameters(), strict=True):
        assert torch.equal(x.float(), y)
    assert not torch.equal(next(a.parameters()), next(make(scale=1.0, seed=3, dtype=torch.float64).parameters()))
    with pytest.raises(InputError, match=r"X of shape \(6, 4\): expected \(n, 5\)"):
        a(X[:, :4])


@settings(max_examples=30, deadline=None)
@given(
    name=st.sampled_from(sorted(TRAINED)),
    n=st.integers(0, 4),
    outputs=st.integers(1, 3),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_shapes_dtypes_and_finite_gradients(name, n, outputs, dtype):
    net = TRAINED[name](outputs, dtype=dtype)
    out = net(torch.zeros(n, 5, dtype=dtype))
    assert out.shape == ((n,) if outputs == 1 else (n, outputs)) and out.dtype == dtype == net.dtype
    out.sum().backward()
    assert all(p.grad.isfinite().all() for p in net.parameters())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PlainPolyNet(5, 7, 0.5), "p=0.5: expected a finite number >= 1"),
        (lambda: TanhNet(5, 0), "width=0: expected a whole number >= 1"),
        (lambda: TanhNet(5, 3, scale=-1.0), "scale=-1.0: expected a finite number >= 0"),
        (lambda: LeakyReLUNet(5, 3, slope=1.5), "slope=1.5: expected a number between 0 and 1"),
        (lambda: MLP(5, 3, 0), "depth=0: expected a whole number >= 1"),
        (lambda: MLP(5, 3, activation="relo"), "activation='relo': expected 'relu' or"),
        (lambda: GroupedNet(5, 1), "groups=1: expected a whole number >= 2"),
        (lambda: FixedOutputNet(5, 2, scale=-1), "scale=-1: expected a finite number >= 0"),
        (lambda: SmallCNN(bias="some"), "bias='some': expected 'all' or 'first' or 'none'"),
        (lambda: LogisticRegression(5, dtype=torch.bfloat16), "dtype=torch.bfloat16"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "plain", "odd"),
    [
        (lambda side: SmallCNN(side, 2, hidden=2), 20, np.uint8(20)),  # 20 * 20 wraps around
        (lambda width: FixedOutputNet(2, width), 200, np.uint8(200)),
        (lambda scale: PolyReLUNet(2, 3, scale=scale, bias=True), 2.0**64, np.uint64(2**64 - 1)),
    ],
)
def test_sizes_and_scales_of_numpy_are_as_python_s(make, plain, odd) -> None:
    first, second = make(plain).state_dict(), make(odd).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
