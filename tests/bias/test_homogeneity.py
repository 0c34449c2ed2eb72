"""Layers and degrees of every net of the package, of plain modules, and words for those that are not homogeneous."""

import copy
import math

import pytest
import torch
from torch import nn

from polyrelu.bias import HomogeneousLayer, layers, unit_norm_net
from polyrelu.errors import InputError
from polyrelu.nets import (
    MLP,
    AverageClassifier,
    FixedOutputNet,
    GroupedNet,
    LeakyReLUNet,
    LogisticRegression,
    PlainPolyNet,
    PolyReLUNet,
    SmallCNN,
    TanhNet,
)

CNN = nn.Sequential(
    nn.Unflatten(1, (1, 6, 6)),
    nn.Conv2d(1, 3, 3),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(12, 2, bias=False),
)


def degrees(net, **given):
    return {layer.parameters: layer.degree for layer in layers(net, **given)}


@pytest.mark.parametrize(
    ("net", "expected"),
    [
        (PolyReLUNet(4, 6, p=3.0, scale=1e-300), {("weight",): 1, ("output",): 1}),
        (PolyReLUNet(4, 6, p=1.7, outputs=3, normalise_input=True), {("weight",): 1, ("output",): 1}),
        (PlainPolyNet(4, 6, p=2.5), {("weight",): 2.5, ("output",): 1}),
        (LeakyReLUNet(4, 6, slope=0.5, scale=1e-9), {("weight",): 1, ("output",): 1}),
        (LogisticRegression(4), {("weight", "bias"): 1}),
        (LogisticRegression(4, bias=False, outputs=3), {("weight",): 1}),
        (MLP(4, 5, depth=3), {("weights.0",): 1, ("weights.1",): 1, ("weights.2",): 1}),
        (MLP(4, 5, depth=1, bias=True), {("weights.0", "biases.0"): 1}),
        (FixedOutputNet(4, 5, scale=1e-5), {("weight", "bias"): 1}),
        (GroupedNet(4, 3, 2), {("weight",): 1}),
        (
            SmallCNN(8, 3, hidden=4, bias="first"),
            {("weights.0", "biases.0"): 1, ("weights.1",): 1, ("weights.2",): 1, ("weights.3",): 1},
        ),
        (
            nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1, bias=False)),
            {("0.weight", "0.bias"): 1, ("2.weight",): 1},
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_layers_of_the_nets(net, expected):
    assert degrees(net) == expected


def test_rows_tell_the_layers_of_a_convolutional_module():
    X = torch.randn(5, 36, generator=torch.Generator().manual_seed(0))
    assert degrees(CNN, X=X) == {("1.weight", "1.bias"): 1, ("5.weight",): 1}
    with pytest.raises(InputError, match="rows to try a Sequential on"):
        layers(CNN)


@pytest.mark.parametrize(
    ("net", "words"),
    [
        (TanhNet(4, 6, scale=1e-9), r"layer 1 \(weight\) breaks it"),  # tanh z = z to rounding at its own weights
        (PolyReLUNet(4, 6, bias=True), r"the bias of layer 2 \(bias\)"),
        (SmallCNN(8, 3, hidden=4, bias="all"), r"the bias of layer 2 \(biases.1\)"),  # zero in the net itself
        (MLP(4, 5, depth=3, bias=True), r"the bias of layer 2 \(biases.1\)"),
        (MLP(4, 5, depth=2, activation="gelu"), r"layer 1 \(weights.0\) breaks it"),
        (nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1)), r"the bias of layer 2 \(2.bias\)"),
        (AverageClassifier(torch.eye(4), torch.tensor([1.0, 1, -1, -1])), "trained parameters"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_nets_that_are_not_homogeneous_say_where(net, words):
    with pytest.raises(InputError, match=words):
        layers(net)


class Skip(nn.Module):
    """f = <a, relu(A x)> + <b, relu(B x)>: degree 2 in all weights at once, of no degree in any alone."""

    def __init__(self):
        super().__init__()
        self.one, self.two = PolyReLUNet(3, 4, p=1.0, seed=1), PolyReLUNet(3, 4, p=1.0, seed=2)

    def forward(self, X):
        return self.one(X) + self.two(X)


def test_a_net_homogeneous_only_as_a_whole_is_one_layer():
    X = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    (layer,) = layers(Skip(), X)
    assert layer.degree == 2 and len(layer.parameters) == 4


def test_groups_given_by_the_user():
    biased = PolyReLUNet(4, 6, bias=True)  # starts at zero; a constant when not named
    assert degrees(biased, groups=[["weight"], ["output"]]) == {("weight",): 1, ("output",): 1}
    assert degrees(PlainPolyNet(4, 6, p=3.0), groups=[["weight", "output"]]) == {("weight", "output"): 4}
    assert layers(TanhNet(4, 6), groups=[["output"]])[0].degree == 1
    known = (HomogeneousLayer("both", ("weight", "output"), 2.0),)
    assert layers(biased, groups=known) == known
    for wrong in ([["nothing"]], [["weight"], ["weight"]], [[]], ["weight"]):
        with pytest.raises(InputError, match="layers="):
            layers(biased, groups=wrong)


def test_a_frozen_layer_is_a_constant():
    net = LeakyReLUNet(4, 6)
    net.output.requires_grad_(False)
    assert degrees(net) == {("weight",): 1}


@pytest.mark.parametrize(
    "net", [PolyReLUNet(4, 6, p=3.0, outputs=2), PlainPolyNet(4, 6, p=3.0), SmallCNN(2, hidden=3, bias="none")]
)
def test_unit_divides_the_norm_out(net):
    X = torch.randn(7, 4, generator=torch.Generator().manual_seed(0)).double()
    one = unit_norm_net(net, X)
    rho = math.sqrt(sum(float(part.detach().double().square().sum()) for part in net.parameters()))
    assert one.log_rho == pytest.approx(math.log(rho), abs=1e-7)
    assert sum(float(part.square().sum()) for part in one.net.parameters()) == pytest.approx(1, abs=1e-12)
    assert torch.allclose(one.net(X) * rho**one.degree, copy.deepcopy(net).double()(X), rtol=1e-6)
    assert sum(math.exp(2 * log) for log in one.log_norms) == pytest.approx(rho**2, rel=1e-6)


def test_unit_of_weights_no_float_holds():
    # |w_j| = 1e-300 sqrt(D): |theta|^2 would underflow, log |theta| does not, and the direction is kept
    small, plain = (PolyReLUNet(4, 6, p=3.0, init="balanced", scale=scale, seed=3) for scale in (1e-300, 1.0))
    X = torch.randn(7, 4, generator=torch.Generator().manual_seed(0)).double()
    a, b = unit_norm_net(small, X), unit_norm_net(plain, X)
    assert a.log_rho - b.log_rho == pytest.approx(-300 * math.log(10), abs=1e-6)
    assert torch.allclose(a.net(X), b.net(X), rtol=1e-6)


def test_zero_weights_have_no_direction():
    with pytest.raises(InputError, match="not all 0"):
        unit_norm_net(LogisticRegression(4), torch.eye(4))


def test_rows_that_switch_a_drawn_net_off_do_not_hide_its_degrees():
    X = torch.zeros(16, 5, dtype=torch.float64)
    for seed in range(20):
        net = PolyReLUNet(5, 2, 3.0, seed=seed, dtype=torch.float64)
        assert [layer.degree for layer in layers(net, X)] == [1, 1]
