"""The linear certificate: exact where the bound is, never above the truth, in every norm."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from polyrelu.data import OrthonormalMixture
from polyrelu.errors import InputError
from polyrelu.nets import AverageClassifier, CentreClassifier, PolyReLUNet
from polyrelu.robust import (
    average_radius,
    centre_radius,
    certified_radius,
    linear_radius,
    margin_of,
    root_lipschitz_radius,
)
from polyrelu.robust.certify.linear import DualCoordinates
from polyrelu.robust.certify.lipschitz import ScaledNet

EVERY_P = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0]
NORMS = [1.0, 2.0, math.inf]


def net_of(W: list[list[float]], v: list[list[float]], p: float, bias: list[float] | None = None, **more: bool):
    net = PolyReLUNet(
        len(W[0]), len(W), p, len(v), init="zeros", bias=bias is not None, dtype=torch.float64, **more
    ).requires_grad_(False)
    net.weight.copy_(torch.tensor(W, dtype=torch.float64))
    net.output.copy_(torch.tensor(v, dtype=torch.float64))
    if net.bias is not None:
        net.bias.copy_(torch.tensor(bias))
    return net


def small_net(seed: int, p: float, outputs: int) -> PolyReLUNet:
    """D = 2, h = 3..8; bias, centre and input normalisation by turns, every other net with directions that coincide."""
    rng = torch.Generator().manual_seed(1000 + seed)
    h, D = 3 + seed % 6, 2
    centre = torch.randn(D, generator=rng, dtype=torch.float64) if seed & 1 else None
    net = PolyReLUNet(
        D, h, p, outputs, bias=bool(seed & 2), centre=centre, normalise_input=bool(seed & 4), dtype=torch.float64
    ).requires_grad_(False)
    angle = torch.rand(h, generator=rng, dtype=torch.float64) * 2 * math.pi
    if seed & 8:
        angle = (angle * 4 / math.pi).round() * math.pi / 4
    net.weight.copy_(torch.stack([angle.cos(), angle.sin()], dim=1) * (0.3 + torch.rand(h, 1, generator=rng)))
    net.output.copy_(torch.randn(outputs, h, generator=rng, dtype=torch.float64))
    if net.bias is not None:
        net.bias.copy_(0.3 * torch.randn(outputs, generator=rng, dtype=torch.float64))
    return net


def labelled(net: PolyReLUNet, X: Tensor) -> Tensor:
    """The labels the net gives."""
    logits = net(X)
    return torch.where(logits > 0, 1, -1) if logits.ndim == 1 else logits.argmax(dim=1)


def points(seed: int, n: int, dim: int = 2) -> Tensor:
    return 1.5 * torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def true_radii(net: PolyReLUNet, X: Tensor, y: Tensor) -> dict[float, Tensor]:
    """Upper bounds of the true radius by norm: the shortest breaking perturbation on a grid of the plane, refined."""
    turn = torch.arange(120, dtype=torch.float64) * math.pi / 60
    way = torch.stack([turn.cos(), turn.sin()], dim=1)
    radii = torch.linspace(0, 1, 41, dtype=torch.float64).square() * 6

    def breaks(r: Tensor) -> Tensor:
        Z = X[:, None, None] + r[..., None] * way[:, None]
        margin = margin_of(net(Z.view(-1, 2)), y.repeat_interleave(Z[0, ..., 0].numel()))
        return (margin < -1e-13).view(Z.shape[:3])

    first = breaks(radii.expand(len(X), len(way), -1))
    at = first.int().argmax(dim=2)
    high, low = radii[at], radii[(at - 1).clamp(min=0)]
    for _ in range(20):
        middle = (low + high) / 2
        here = breaks(middle[..., None])[..., 0]
        high, low = torch.where(here, middle, high), torch.where(here, low, middle)
    high = torch.where(first.any(dim=2), high, torch.inf)
    return {norm: (high * torch.linalg.vector_norm(way, ord=norm, dim=1)).amin(dim=1) for norm in NORMS}


@pytest.mark.slow
@pytest.mark.parametrize("p", EVERY_P)
@pytest.mark.parametrize("outputs", [1, 3])
def test_never_above_the_radius_found_on_a_dense_grid(p: float, outputs: int) -> None:
    useful = 0
    for seed in range(17):
        net = small_net(seed, p, outputs)
        X = points(seed, 3)
        y = labelled(net, X)
        truth = true_radii(net, X, y)
        for norm in NORMS:
            radius = linear_radius(net, X, y, norm, steps=4)
            assert (radius <= truth[norm]).all(), (seed, norm)
            useful += int((radius > 0.2 * truth[norm]).sum())
    assert useful > 17 * 3


def test_an_affine_margin_is_exact_in_every_norm() -> None:
    # p = 1, both neurons active in the whole ball: margin = <(2, 0) - (0, 1), x> = 2 x_1 - x_2 = 5 at (4, 3), gradient
    # (2, -1): distance 5/|(2, -1)|_dual = 5/2 (l1), sqrt(5) (l2), 5/3 (l-infinity), all before a pre-activation turns
    net = net_of([[1.0, 0.0], [0.0, 1.0]], [[2.0, -1.0]], 1.0)
    x = torch.tensor([[4.0, 3.0]], dtype=torch.float64)
    for norm, true in zip(NORMS, (2.5, math.sqrt(5), 5 / 3), strict=True):
        assert linear_radius(net, x, torch.ones(1), norm).item() == pytest.approx(true, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("p", EVERY_P)
def test_one_neuron_by_hand(p: float) -> None:
    # f = relu(<w, x>)^p, w = (3, 4)/5, <w, x> = 2: it breaks at 2/|w|_dual, and the tangent of its root is exact
    net, x = net_of([[0.6, 0.8]], [[1.0]], p), torch.tensor([[2.0, 1.0]], dtype=torch.float64)
    for norm, dual in zip(NORMS, (0.8, 1.0, 1.4), strict=True):
        assert linear_radius(net, x, torch.ones(1), norm).item() == pytest.approx(2 / dual, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("p", EVERY_P)
def test_biases_by_hand(p: float) -> None:
    # f = relu(x)^p - 0.5, x = 2: broken at 0.5^(1/p). f = 0.5 - relu(x)^p, x = -2: broken at 2 + 0.5^(1/p)
    x, one, root = torch.tensor([[2.0]], dtype=torch.float64), torch.ones(1), 0.5 ** (1 / p)
    assert linear_radius(net_of([[1.0]], [[1.0]], p, [-0.5]), x, one).item() == pytest.approx(2 - root, rel=1e-6)
    radius = linear_radius(net_of([[1.0]], [[-1.0]], p, [0.5]), -x, one).item()
    assert 2 <= radius <= 2 + root  # a chord over [-2 - r, -2 + r] says so
    # normalised, on the line: f = relu(x) - 0.5 for every p
    radius = linear_radius(net_of([[1.0]], [[1.0]], p, [-0.5], normalise_input=True), x, one).item()
    assert 0.1 < radius <= 1.5


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 4.0])
def test_is_close_to_the_closed_form_at_noisy_points(p: float) -> None:
    mixture = OrthonormalMixture(200, 6, 4, 0.1, rotate=2, dtype=torch.float64)
    data = mixture.sample(60, seed=0)
    X, y = data.rows(), data.y.double()
    true = centre_radius(X, y, mixture.centres, mixture.labels, p)
    net = CentreClassifier(mixture.centres, mixture.labels, p).as_polyrelu_net()
    ratio = linear_radius(net, X, y) / true
    assert ratio.max() <= 1
    assert ratio.min() >= 0.9
    best = certified_radius(net, X, y) / true
    assert best.max() <= 1
    assert (best >= ratio * (1 - 1e-12)).all()


def test_average_classifier() -> None:
    mixture = OrthonormalMixture(200, 6, 4, 0.1, rotate=2, dtype=torch.float64)
    data = mixture.sample(60, seed=0)
    X, y = data.rows(), data.y.double()
    net = AverageClassifier(mixture.centres, mixture.labels).as_polyrelu_net()
    ratio = linear_radius(net, X, y) / average_radius(X, y, mixture.centres, mixture.labels)
    assert ratio.max() <= 1
    assert ratio.min() >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("outputs", [1, 3])
def test_certified_is_the_larger_of_both(norm: float, outputs: int) -> None:
    net = PolyReLUNet(20, 15, 1.5, outputs, bias=True, dtype=torch.float64)
    X = points(0, 30, 20)
    y = labelled(net, X)
    both = torch.maximum(root_lipschitz_radius(net, X, y, norm), linear_radius(net, X, y, norm))
    assert certified_radius(net, X, y, norm) == pytest.approx(both, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 3.0])
@pytest.mark.parametrize("norm", NORMS)
def test_units_and_batches_do_not_matter(p: float, norm: float) -> None:
    net = small_net(8, p, 3)  # no bias, no centre
    X = points(3, 6)
    y = labelled(net, X)
    plain = linear_radius(net, X, y, norm)
    assert linear_radius(net, 1e-30 * X, y, norm) * 1e30 == pytest.approx(plain, rel=1e-4)
    singles = [linear_radius(net, X[i : i + 1], y[i : i + 1], norm).item() for i in range(len(X))]
    assert singles == pytest.approx(plain.tolist(), rel=1e-4)
    net.output.mul_(1e20)
    assert linear_radius(net, X, y, norm) == pytest.approx(plain, rel=1e-4)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("outputs", [1, 3])
def test_misclassified_points_have_radius_0(norm: float, outputs: int) -> None:
    net = PolyReLUNet(5, 8, 2.0, outputs, dtype=torch.float64)
    X = points(0, 10, 5)
    y = labelled(net, X)
    wrong = -y if outputs == 1 else (y + 1) % 3
    assert (linear_radius(net, X, y, norm) > 0).all()
    assert (linear_radius(net, X, wrong, norm) == 0).all()


@pytest.mark.parametrize("norm", NORMS)
def test_what_cannot_break_gets_a_large_radius(norm: float) -> None:
    x, one = torch.ones(1, 2, dtype=torch.float64), torch.ones(1)
    assert linear_radius(net_of([[1.0, 0.0]], [[1.0]], 2.0, [1.0]), x, one, norm).item() > 1e3
    assert linear_radius(net_of([[0.0, 0.0]], [[1.0]], 2.0), x, one, norm).item() == 0


def test_the_frame_of_few_neurons_keeps_lengths() -> None:
    neurons = ScaledNet.from_net(PolyReLUNet(300, 20, 3.0, dtype=torch.float64))
    frame = DualCoordinates.from_net(neurons, 2.0)
    assert frame.B.shape == (20, 20)
    assert frame.stretch - 1 < 1e-10
    assert frame.spare.max() < 1e-10
    K = points(0, 50, 20)
    true, seen = torch.linalg.vector_norm(K @ neurons.U, dim=1), torch.linalg.vector_norm(K @ frame.B, dim=1)
    assert seen == pytest.approx(true, rel=1e-12)
    assert (true <= seen * frame.stretch + K.abs() @ frame.spare).all()


def test_float32_nets_and_bad_arguments() -> None:
    net = PolyReLUNet(6, 9, 3.0, bias=True, normalise_input=True)
    X = points(0, 8, 6).float()
    y = labelled(net, X)
    radius = linear_radius(net, X, y, "inf")
    assert radius.dtype == torch.float64
    assert (radius > 0).all()
    with pytest.raises(InputError, match="norm=3"):
        linear_radius(net, X, y, 3)
    with pytest.raises(InputError, match="steps=0"):
        linear_radius(net, X, y, steps=0)
