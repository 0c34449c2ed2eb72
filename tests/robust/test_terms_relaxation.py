"""One leaf against exact rational arithmetic, where the rounding of its own sums is all that matters."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from polyrelu.robust.certify.relaxation import Relaxation, solve


def exact_dot(a: torch.Tensor, b: torch.Tensor) -> Fraction:
    return sum((Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)), Fraction(0))


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("far", [1e3, 1e5, 1e8])
def test_a_half_space_far_from_the_origin_is_never_proven_farther_than_it_is(k: int, far: float) -> None:
    # 0 <= c - <a, z>: the distance of s is (<a, s> - c)/|a|, here 1e-6 or so while <a, s> and c are large: phi is the
    # difference of numbers whose rounding is as large as itself, and only the rounding term keeps the bound below.
    draw = torch.Generator().manual_seed(k)
    n = 8
    a = torch.randn(n, k, generator=draw, dtype=torch.float64)
    s = far * torch.randn(n, k, generator=draw, dtype=torch.float64)
    gap = 10 ** torch.linspace(-9, -3, n, dtype=torch.float64) * (far * 1e-3) ** 0.5
    constant = (a * s).sum(1) - gap
    over = useful = 0
    for i in range(n):  # a leaf has one set of directions: 60 points each
        at = s[i : i + 1] + torch.randn(60, k, generator=draw, dtype=torch.float64) * float(gap[i])
        zero, thin = torch.zeros(60, 1, dtype=torch.float64), torch.zeros(60, dtype=torch.float64)
        leaf = Relaxation(
            C=a[i : i + 1],
            p=1.0,
            q=torch.ones(60, 1, dtype=torch.float64),
            s=at,
            own=zero,
            own_constant=thin,
            weight=zero,
            slope=zero - 1,
            constant=constant[i].expand(60),
            share=zero,
        )
        start = gap[i].expand(60) / a[i].square().sum()
        got = solve(leaf, at - start[:, None] * a[i], start, torch.full((60,), torch.inf, dtype=torch.float64))
        square = exact_dot(a[i], a[i])
        for point, bound in zip(at, got.bound.tolist(), strict=True):
            beyond = max(Fraction(0), exact_dot(a[i], point) - Fraction(float(constant[i])))
            over += Fraction(bound) ** 2 * square > beyond**2
            useful += bool(beyond > 0 and Fraction(bound) ** 2 * square > beyond**2 / 2)
    assert over == 0
    assert useful > (60 if far < 1e8 else 0)
