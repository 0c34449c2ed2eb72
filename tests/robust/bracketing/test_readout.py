"""Brackets of classes read out from sub-classes: exact radii, soundness, every norm, one class alone."""

from __future__ import annotations

import math

import pytest
import torch

from polyrelu.errors import InputError
from polyrelu.nets import PolyReLUNet, ReadOut
from polyrelu.robust import BracketStatus, Budget, bracket, lengths, margin_of
from polyrelu.robust.attacks import strongest

DOUBLE = torch.float64


def centres(p, of, dim=None):
    """f_s(x) = relu(x_s)^p: one neuron a sub-class."""
    k = len(of)
    net = PolyReLUNet(dim or k, k, p, k, dtype=DOUBLE)
    with torch.no_grad():
        net.weight.copy_(torch.eye(k, dim or k))
        net.output.copy_(torch.eye(k))
    return ReadOut(net, of)


def head(p, width, seed=0, dim=6, bias=True, normalise=False):
    """A random head of five sub-classes in two classes, and points with the classes it gives them."""
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=draw, dtype=DOUBLE)

    net = PolyReLUNet(dim, width, p, 5, bias=bias, centre=0.1 * normal(dim), normalise_input=normalise, dtype=DOUBLE)
    with torch.no_grad():
        net.weight.copy_(normal(width, dim))
        net.output.copy_(normal(5, width))
        if net.bias is not None:
            net.bias.copy_(0.2 * normal(5))
        read = ReadOut(net, (0, 0, 1, 1, 0))
        X = normal(6, dim)
        return read, X, read(X).argmax(dim=1)


def honest(net, X, y, found, norm=2.0):
    """Each upper bound breaks the read-out itself, and nothing on many rays inside the lower one does."""
    draw = torch.Generator().manual_seed(5)
    D = torch.randn(3000, X.shape[1], generator=draw, dtype=DOUBLE)
    D = D / lengths(D, norm)[:, None]
    with torch.no_grad():
        broken = margin_of(net(X + found.perturbation), y)[found.upper.isfinite()] <= 0
        assert broken.all()
        for i, (x, radius) in enumerate(zip(X, found.lower, strict=True)):
            way = found.perturbation[i] / max(float(found.upper[i]), 1e-300) if found.upper[i].isfinite() else D[0]
            for share in (0.5, 0.9, 1 - 1e-9):
                Z = x + share * radius.clamp(max=100) * torch.cat([D, way[None]])
                assert (margin_of(net(Z), y[i].expand(len(Z))) > 0).all()
    torch.testing.assert_close(
        lengths(found.perturbation, norm)[found.upper.isfinite()],
        found.upper[found.upper.isfinite()],
        rtol=1e-9,
        atol=0,
    )


@pytest.mark.slow
@pytest.mark.parametrize("p", (1, 3))
def test_the_maximum_holds_to_half_the_distance_of_the_centres(p):
    # At a centre the nearest broken point has x_t = x_s: sqrt(1/2), however many sub-classes; a sum has 1/sqrt(K).
    net = centres(p, (0, 0, 0, 1, 1, 1), dim=8)
    X, y = torch.eye(6, 8, dtype=DOUBLE)[2:4], net.class_of[2:4]
    found = bracket(net, X, y)
    honest(net, X, y, found)
    torch.testing.assert_close(found.upper, torch.full((2,), math.sqrt(0.5), dtype=DOUBLE), rtol=1e-5, atol=0)
    torch.testing.assert_close(found.lower, torch.full((2,), math.sqrt(0.5), dtype=DOUBLE), rtol=2e-3, atol=0)
    assert set(found.status) == {BracketStatus.CLOSED}


@pytest.mark.slow
def test_an_attack_on_the_winner_alone_does_not_count():
    # From (1, .9, 0) x_0 = x_2 is sqrt(1/2) away, but sub-class 1 takes over there: all three must meet, at their mean.
    net, X, y = centres(1, (0, 0, 1)), torch.tensor([[1.0, 0.9, 0.0]], dtype=DOUBLE), torch.tensor([0])
    found = bracket(net, X, y)
    exact = math.sqrt(((X[0] - X[0].mean()) ** 2).sum())
    honest(net, X, y, found)
    assert found.upper[0] == pytest.approx(exact, rel=1e-2)  # at a kink the walk is not exact
    assert math.sqrt(0.5) * 0.998 < found.lower[0] < exact


@pytest.mark.slow
def test_another_sub_class_of_the_own_class_may_prove_more():
    # Sub-class 0 is larger at x, but falls fast: f_0 = 10 relu(x_0), f_1 = relu(x_1), against f_2 = relu(x_2).
    net = centres(1, (0, 0, 1))
    with torch.no_grad():
        net.net.output[0, 0] = 10.0
    X, y = torch.tensor([[0.11, 1.0, 0.0]], dtype=DOUBLE), torch.tensor([0])
    found = bracket(net, X, y)
    honest(net, X, y, found)
    alone = 1.1 / math.sqrt(101)  # |10 e_0 - e_2| = sqrt(101)
    assert found.lower[0] > 5 * alone and found.upper[0] >= math.sqrt(0.5) * (1 - 1e-9)


@pytest.mark.slow
def test_a_constant_added_to_every_logit_changes_no_proof_of_another_sub_class():
    proven = []
    for constant in (0.0, -100.0):
        net = PolyReLUNet(3, 3, 1, 3, bias=True, dtype=DOUBLE)
        with torch.no_grad():
            net.weight.copy_(torch.eye(3))
            net.output.copy_(torch.diag(torch.tensor([10.0, 1.0, 1.0])))
            net.bias.fill_(constant)
        X, y = torch.tensor([[0.11, 1.0, 0.0]], dtype=DOUBLE), torch.tensor([0])
        proven.append(float(bracket(ReadOut(net, (0, 0, 1)), X, y).lower[0]))
    assert proven[1] == pytest.approx(proven[0], rel=1e-6) and proven[0] > 5 * 1.1 / math.sqrt(
        101
    )  # that of the winner


@pytest.mark.slow
@pytest.mark.parametrize("width", (8, 90))
@pytest.mark.parametrize("p", (1, 1.5, 3))
def test_sound_on_random_heads(p, width):
    net, X, y = head(p, width, bias=width == 90, normalise=width == 90)
    X, y = X[:3], y[:3]
    found = bracket(net, X, y, budget=Budget(nodes=0) if width == 8 else None)
    honest(net, X, y, found)
    assert (found.lower > 0).all()


@pytest.mark.parametrize("norm", (1, "inf"))
def test_other_norms(norm):
    net, X, y = head(2, 8)
    found = bracket(net, X, y, norm=norm)
    honest(net, X, y, found, norm=float(norm))
    assert (found.lower > 0).all() and found.upper.isfinite().all()


def test_wrong_points_and_points_that_nothing_breaks():
    net, X, y = head(3, 8)
    found = bracket(net, X, 1 - y)
    assert set(found.status) == {BracketStatus.WRONG} and not found.upper.any() and not found.lower.any()
    with torch.no_grad():
        net.net.output.zero_()
        net.net.bias.copy_(torch.tensor([1.0, 0, 0, 0, 0]))
    found = bracket(net, X, torch.zeros_like(y))
    assert set(found.status) == {BracketStatus.UNBREAKABLE} and found.lower.isinf().all()


def test_labels_are_classes_not_sub_classes():
    net, X, y = head(3, 8)
    with pytest.raises(InputError, match=r"0\.\.1"):
        bracket(net, X, y + 3)


def test_the_cascade_with_one_class_alone():
    net, X, y = head(3, 8)
    mine = y == y[0]
    reach = bracket(net, X[mine], y[mine]).upper
    found = strongest(net, X[mine], y[mine], 2 * reach)
    assert found.success.any()
    with torch.no_grad():
        assert (margin_of(net(X[mine] + found.perturbation), y[mine])[found.success] <= 0).all()
    assert not strongest(net, X[mine], y[mine], 0.01 * bracket(net, X[mine], y[mine]).lower).success.any()
