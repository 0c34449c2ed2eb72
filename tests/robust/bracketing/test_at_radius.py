"""What holds at a radius, against exact radii: own and rival sub-classes are coordinates, f_s = relu(x_s)^p."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from polyrelu.errors import InputError
from polyrelu.nets import PolyReLUNet, ReadOut
from polyrelu.robust import Arithmetic, bounds_at_radius, proven_at_radius

DOUBLE = torch.float64


def coordinates(p: float, of: list[int] | None) -> PolyReLUNet | ReadOut:
    net = PolyReLUNet(3, 3, p, 3, dtype=DOUBLE).requires_grad_(False)
    net.weight.copy_(torch.eye(3))
    net.output.copy_(torch.eye(3))
    return net if of is None else ReadOut(net, of)


@pytest.mark.slow
def test_a_margin_that_is_positive_by_rounding_alone_is_not_proven_at_radius_0() -> None:
    draw = torch.Generator().manual_seed(0)
    tried = 0
    for _ in range(60):
        v = torch.randn(40, generator=draw, dtype=DOUBLE)
        v[-1] -= float(sum(map(Fraction, v.tolist())))
        exact = sum(map(Fraction, v.tolist()))
        net = PolyReLUNet(1, 40, 1.0, dtype=DOUBLE).requires_grad_(False)
        net.weight.fill_(1.0)
        net.output.copy_(v[None])
        X, y = torch.ones(1, 1, dtype=DOUBLE), torch.ones(1, dtype=DOUBLE)
        if exact <= 0 and bool(net(X) > 0):
            tried += 1
            assert not bounds_at_radius(net, X, y, 0.0).proven.any() and not proven_at_radius(net, X, y, 0.0).any()
    assert tried >= 5


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("of", [None, [0, 0, 1], [0, 1, 1]])
def test_what_is_proven_holds_and_what_is_broken_does_not(p: float, of: list[int] | None) -> None:
    # All are above 0 near these points, so relu^p compares the coordinates themselves: the nearest tie of x_0 with x_2
    # is (x_0 - x_2)/sqrt(2) away; x_1, own or not, is far below both.
    X = torch.tensor([[5.0, 1.0, 4.0], [5.0, 1.0, 3.0], [5.0, 1.0, 4.5], [1.0, 0.5, 5.0]], dtype=DOUBLE)
    y, net = torch.zeros(4, dtype=torch.long), coordinates(p, of)
    exact = torch.tensor([1.0, 2.0, 0.5, 0.0], dtype=DOUBLE) / 2**0.5
    assert (
        bounds_at_radius(net, X, y, 0.0).proven.tolist()
        == bounds_at_radius(net, X, y, 0.0).unbroken.tolist()
        == [True] * 3 + [False]
    )
    assert proven_at_radius(net, X, y, 0.0).tolist() == [True] * 3 + [False]
    for radius in (0.3, 0.34, 0.36, 0.69, 0.72, 1.38, 1.45):
        found = bounds_at_radius(net, X, y, radius)
        assert found.proven.tolist() == found.unbroken.tolist() == (exact > radius).tolist(), radius
        cheap = proven_at_radius(net, X, y, radius)
        assert not (cheap & (exact < radius)).any()
        assert cheap.tolist() == (exact > radius).tolist() or p not in (1.0, 2.0), radius


@pytest.mark.parametrize("radius", [-1e-9, float("nan")])
def test_radii_are_at_least_0(radius: float) -> None:
    X, y = torch.ones(1, 3, dtype=DOUBLE), torch.zeros(1, dtype=torch.long)
    with pytest.raises(InputError, match="radius"):
        bounds_at_radius(coordinates(2.0, None), X, y, radius)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
def test_what_is_proven_is_proven_in_the_arithmetic_asked_for(p: float) -> None:
    X, y = torch.tensor([[5.0, 1.0, 4.0]], dtype=DOUBLE), torch.zeros(1, dtype=torch.long)
    coarse = Arithmetic("coarse", "coarse", 1e-3, 0.0, 1e300)  # coefficients may be 5 % off, the logits 20 % apart
    assert bounds_at_radius(coordinates(p, None), X, y, 0.6).proven.all()
    found = bounds_at_radius(coordinates(p, None), X, y, 0.6, arithmetic=coarse)
    assert not found.proven.any() and found.unbroken.all()
