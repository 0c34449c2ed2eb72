"""The scalar problems behind the radius of F^(p): roots put into their equations, least costs against a dense scan."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from polyrelu.robust import average_radius, centre_radius
from polyrelu.robust.certify.scalar_branch_and_bound import Problems, least_cost, lower_root, own_root, upper_root

ABOVE, BELOW = [2.2, 3.0, 4.0, 7.5, 30.0], [1.1, 1.5, 1.9]


def grid(*sides: Tensor) -> list[Tensor]:
    return [part.reshape(-1, 1) for part in torch.meshgrid(*sides, indexing="ij")]


UNIT = torch.cat([torch.linspace(0.02, 0.98, 25), torch.tensor([1e-6, 1 - 1e-6])]).double()


@pytest.mark.parametrize("p", ABOVE + BELOW)
def test_own_roots_solve_their_equation(p):
    a, S = grid(torch.cat([torch.linspace(0.01, 1, 30), torch.tensor([1e-8, 0.0, -0.5])]).double(), UNIT)
    rho = own_root(a, S, p)
    assert (rho >= 0).all() and (rho[a <= 0] == 0).all()
    left = S * rho + (1 - S) * rho.pow(p - 1)
    assert torch.allclose(left[a > 0], a[a > 0], rtol=1e-10, atol=0)


@pytest.mark.parametrize("p", ABOVE)
def test_lower_roots_solve_their_equation_before_the_turn(p):
    b, S = grid(torch.linspace(0, 1, 30).double(), UNIT)
    ups = lower_root(b, S, p)
    turn = (S / ((1 - S) * (p - 1))).pow(1 / (p - 2))
    highest = S * turn - (1 - S) * turn.pow(p - 1)
    there = b < highest * (1 - 1e-6)
    assert there.any() and (~there).any()
    left = S * ups - (1 - S) * ups.pow(p - 1)
    assert torch.allclose(left[there], b[there], rtol=1e-8, atol=1e-14)
    assert (ups <= turn * (1 + 1e-9)).all() and (ups >= 0).all()
    assert torch.allclose(ups[~there & (b > highest)], turn[~there & (b > highest)], rtol=1e-3)


@pytest.mark.parametrize("p", BELOW)
def test_upper_roots_solve_their_equation_beyond_the_turn(p):
    b, S, cap = grid(torch.linspace(-1, 1, 15).double(), UNIT[::2], torch.tensor([0.1, 0.5, 1.0, 3.0, 100.0]).double())
    ups, found = upper_root(b, S, cap, p)
    turn = ((1 - S) * (p - 1) / S).pow(1 / (2 - p))
    value = S * cap - (1 - S) * cap.pow(p - 1)
    assert torch.equal(found, (cap >= turn) & (value >= b))
    some = found & (b > (S * turn - (1 - S) * turn.pow(p - 1)) + 1e-6)
    assert some.any() and (~found).any()
    left = S * ups - (1 - S) * ups.pow(p - 1)
    assert torch.allclose(left[some], b[some], rtol=1e-7, atol=1e-9)
    assert (ups[some] >= turn[some] * (1 - 1e-9)).all() and (ups[some] <= cap[some]).all()


def scanned(a: np.ndarray, b: np.ndarray, p: float) -> float:
    """min |d|^2 such that sum relu(a + d)^p <= sum relu(b + d')^p, two own and two opposite numbers, by dense scans."""
    w = np.linspace(0, 1.6, 1601) ** p
    side = np.linspace(0, 1, 601)[:, None]
    share = side**p / (side**p + (1 - side) ** p)  # as dense near both ends for every p

    def one(number: float, power: np.ndarray) -> np.ndarray:
        """The cost of relu(number + d)^p = power: what is below 0 already may stay there."""
        return np.where((power == 0) & (number < 0), 0.0, (power ** (1 / p) - number) ** 2)

    def both(pair: np.ndarray) -> np.ndarray:
        return (one(pair[0], share * w) + one(pair[1], (1 - share) * w)).min(axis=0)

    own = np.minimum.accumulate(both(a))  # own terms may be smaller
    other = np.minimum.accumulate(both(b)[::-1])[::-1]  # opposite ones larger
    return float((own + other).min())


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.2, 1.5, 1.9, 2.3, 3.0, 4.0, 7.5])
def test_radii_are_those_of_a_scan(p):
    draw = np.random.default_rng(int(10 * p))
    centres, labels = torch.eye(4, dtype=torch.float64), torch.tensor([1.0, 1.0, -1.0, -1.0]).double()
    for _ in range(4):
        a, b = draw.uniform(0.2, 1, 2), draw.uniform(-0.3, 0.45, 2)
        if (np.clip(a, 0, None) ** p).sum() <= (np.clip(b, 0, None) ** p).sum():
            continue
        x = torch.tensor(np.concatenate([a, b]))[None]
        found = float(centre_radius(x, torch.ones(1), centres, labels, p))
        assert found == pytest.approx(math.sqrt(scanned(a, b, p)), rel=2e-3)


@pytest.mark.parametrize("p", [1.5, 3.0, 4.0])
def test_a_cost_is_the_least_over_the_curve(p):
    # One own coordinate a = 1, none of the others: min over u of (u - b)^2/2 + (1 - u)^2/2, at u = (1 + b)/2
    free = torch.tensor([-0.5, 0.0, 0.3, 0.9], dtype=torch.float64)
    none = torch.zeros(4, 1, dtype=torch.float64)
    problems = Problems(torch.ones(4, 1).double(), none, torch.zeros_like(none, dtype=torch.bool), free)
    assert torch.allclose(least_cost(problems, p), (1 - free).square() / 4, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
def test_signs_scales_and_wrong_points(p):
    centres, labels = 3 * torch.eye(5, dtype=torch.float64), torch.tensor([1.0, 1.0, -1.0, -1.0, -1.0]).double()
    X = torch.rand(30, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 0.2
    y = torch.where(torch.arange(30) % 2 == 0, 1.0, -1.0).double()
    radius = centre_radius(X, y, centres, labels, p)
    power = X.clamp(min=0).pow(p) @ labels * y
    assert ((radius > 0) == (power > 0)).all() and (radius > 0).any() and (radius == 0).any()
    assert torch.allclose(centre_radius(100 * X, y, centres, labels, p), 100 * radius)
    assert torch.allclose(centre_radius(X, -y, centres, -labels, p), radius)
    draw = torch.randn(30, 400, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    far = X[:, None] + 0.999 * radius[:, None, None] * torch.nn.functional.normalize(draw, dim=2)
    margin = (far.clamp(min=0).pow(p) @ labels) * y[:, None]
    assert (margin[radius > 0] > 0).all()
    if p == 1:
        assert (average_radius(X, y, centres, labels) >= 0).all()


def test_average_radii_by_hand():
    # mu_+ = e_1 + e_2, mu_- = e_3: at (1, 0, .5) s = 1, t = .5: min(1/sqrt(2), .5/sqrt(3))
    centres, labels = torch.eye(3, dtype=torch.float64), torch.tensor([1.0, 1.0, -1.0]).double()
    X = torch.tensor([[1.0, 0.0, 0.5], [1.0, 0.0, -5.0], [0.0, 0.2, 0.9], [0.1, 0.0, 0.5]], dtype=torch.float64)
    y = torch.tensor([1.0, 1.0, -1.0, 1.0], dtype=torch.float64)
    expected = [0.5 / math.sqrt(3), 1 / math.sqrt(2), 0.7 / math.sqrt(3), 0.0]
    assert average_radius(X, y, centres, labels).tolist() == pytest.approx(expected)
