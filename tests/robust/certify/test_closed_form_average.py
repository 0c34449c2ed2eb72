"""The radius of F at any point, for any centres."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
import torch

from polyrelu.nets import AverageClassifier
from polyrelu.robust import average_radius


@pytest.mark.parametrize(("K1", "K2"), [(6, 4), (1, 1), (2, 7)])
def test_average_radius_is_reached_and_not_undercut(K1, K2):
    labels = torch.tensor([1.0] * K1 + [-1.0] * K2, dtype=torch.float64)
    generator = torch.Generator().manual_seed(K1)
    for centres in (
        torch.eye(K1 + K2, dtype=torch.float64),
        torch.randn(K1 + K2, K1 + K2, generator=generator, dtype=torch.float64),
    ):
        net = AverageClassifier(centres, labels)
        X = torch.randn(300, K1 + K2, generator=generator, dtype=torch.float64)
        y = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(150)
        radius = average_radius(X, y, centres, labels)
        right = y * net(X) > 0
        assert ((radius > 0) == right).all() and right.sum() > 50
        plus, minus = net.sums()
        own = torch.where(y[:, None] > 0, plus, minus)
        broken = torch.zeros_like(right)
        for away in (own, own - torch.where(y[:, None] > 0, minus, plus)):  # the two half-spaces' normals
            away = away / away.norm(dim=1, keepdim=True)
            broken |= y * net(X - (radius + 1e-9)[:, None] * away) <= 0
        assert broken.all()
        for _ in range(100):  # nothing nearer, in any direction
            d = torch.randn(X.shape, generator=generator, dtype=torch.float64)
            inside = X + (radius * (1 - 1e-9))[:, None] * d / d.norm(dim=1, keepdim=True)
            assert (y * net(inside) > 0)[right].all()
    centres = torch.eye(K1 + K2, dtype=torch.float64)
    radius = average_radius(centres, labels, centres, labels)
    torch.testing.assert_close(radius, torch.full_like(radius, 1 / math.sqrt(K1 + K2)))


def test_points_that_cannot_be_right_have_radius_zero():
    centres, labels = torch.eye(4, dtype=torch.float64), torch.tensor([1.0, 1.0, -1.0, -1.0])
    X = torch.tensor([[0, 0, 0, 0], [1, 0, 1, 0], [0.1, 0, 2, 0], [-1, -1, -2, -2]], dtype=torch.float64)
    assert (average_radius(X, torch.ones(4), centres, labels) == 0).all()
    same = torch.ones(2, 4, dtype=torch.float64)  # mu_+ = mu_-: F is 0 everywhere
    assert (average_radius(X, torch.ones(4), same, torch.tensor([1.0, -1.0])) == 0).all()


def exact_average_radius(x, own, other):
    """max(0, min over the two half-spaces), in rational numbers and mpmath."""

    def distance(normal):
        square = sum(one * one for one in normal)
        value = sum(Fraction(one) * two for one, two in zip(x, normal, strict=True))
        return (
            mpmath.mpf(value.numerator)
            / value.denominator
            / mpmath.sqrt(mpmath.mpf(square.numerator) / square.denominator)
        )

    return max(mpmath.mpf(0), min(distance(own), distance([a - b for a, b in zip(own, other, strict=True)])))


@pytest.mark.slow
@pytest.mark.parametrize("size", [1.0, 1e3, 1e6, 1e9, 1e12, 1e17])
def test_sums_of_both_classes_that_nearly_agree(size):
    draw = torch.Generator().manual_seed(1)
    for _ in range(30):
        centres = torch.randn(4, 3, generator=draw, dtype=torch.float64)
        centres[::2] += size * torch.randn(3, generator=draw, dtype=torch.float64)
        exact = [[Fraction(one) for one in row] for row in centres.tolist()]
        plus, minus = ([a + b for a, b in zip(*exact[k : k + 2], strict=True)] for k in (0, 2))
        X = torch.randn(8, 3, generator=draw, dtype=torch.float64)
        labels = torch.tensor([1.0, 1, -1, -1], dtype=torch.float64)
        for sign, own, other in ((1.0, plus, minus), (-1.0, minus, plus)):
            found = average_radius(X, torch.full((8,), sign), centres, labels).tolist()
            for x, radius in zip(X.tolist(), found, strict=True):
                assert radius == pytest.approx(float(exact_average_radius(x, own, other)), rel=0, abs=2e-15)
