"""One leaf against exact rational arithmetic, where the rounding of its own sums is all that matters."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from polyrelu.robust.core.relaxation import Relaxation, own_terms, solve


def exact_dot(a: torch.Tensor, b: torch.Tensor) -> Fraction:
    return sum((Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)), Fraction(0))


@pytest.mark.slow
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


@pytest.mark.parametrize("p, q", [(1.0, 1.0), (1.3, 1.0), (1.3, 1.3), (1.8, 1.0)])
def test_derivatives_inside_the_smoothed_kink(p: float, q: float) -> None:
    # p < 2: relu(t) is t^2/(2w) on [0, w]; value, slope and curvature there are those of that function
    draw = torch.Generator().manual_seed(int(10 * p))
    n, m = 200, 3
    C = torch.randn(m, 2, generator=draw, dtype=torch.float64)
    s = torch.randn(n, 2, generator=draw, dtype=torch.float64)
    zero = torch.zeros(n, m, dtype=torch.float64)
    leaf = Relaxation(
        C=C,
        p=p,
        q=torch.full((n, 1), q, dtype=torch.float64),
        s=s,
        own=torch.rand(n, m, generator=draw, dtype=torch.float64) + 0.1,
        own_constant=torch.rand(n, generator=draw, dtype=torch.float64),
        weight=zero,
        slope=zero,
        constant=zero[:, 0],
        share=zero,
    )
    w = leaf.width()
    T = w * (0.1 + 0.8 * torch.rand(n, m, generator=draw, dtype=torch.float64))
    terms = own_terms(leaf, T)

    def value(at: torch.Tensor) -> torch.Tensor:
        power = (at.square() / (2 * w)).pow(p)
        constant = leaf.smooth()
        total = (leaf.own * power).sum(1) + leaf.own_constant + constant
        return total.pow(q / p) - constant.pow(q / p)

    torch.testing.assert_close(terms.value, value(T), rtol=1e-9, atol=1e-15)
    at = T.clone().requires_grad_()
    (first,) = torch.autograd.grad(value(at).sum(), at, create_graph=True)
    torch.testing.assert_close(terms.first, first.detach(), rtol=1e-6, atol=1e-12)
    for j in range(m):
        (column,) = torch.autograd.grad(first[:, j].sum(), at, retain_graph=True)
        rank_one = torch.zeros_like(column) if terms.rank_one is None else terms.rank_one[:, None] * terms.vector
        hessian = rank_one * (0.0 if terms.vector is None else terms.vector[:, [j]])
        hessian[:, j] += terms.second[:, j]
        torch.testing.assert_close(hessian, column, rtol=1e-5, atol=1e-9)
    beyond = own_terms(leaf, T + w)
    linear = (leaf.own * (T + w / 2).pow(p)).sum(1) + leaf.own_constant + leaf.smooth()
    torch.testing.assert_close(beyond.value, linear.pow(q / p) - leaf.smooth().pow(q / p), rtol=1e-9, atol=1e-15)
