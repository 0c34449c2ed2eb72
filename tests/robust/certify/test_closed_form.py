"""Closed-form radii against brute force of two kinds, and against what must be true of any radius."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from polyrelu.data import OrthonormalMixture
from polyrelu.errors import InputError
from polyrelu.nets import CentreClassifier
from polyrelu.robust import centre_radius

EVERY_P = [1, 1.01, 1.3, 1.5, 1.9, 2, 2.2, 2.5, 3, 4, 6]


def basis(K1: int, K2: int, dim: int | None = None) -> tuple[Tensor, Tensor]:
    labels = torch.tensor([1.0] * K1 + [-1.0] * K2, dtype=torch.float64)
    return torch.eye(K1 + K2, dim or K1 + K2, dtype=torch.float64), labels


def points(K1: int, K2: int, n: int, seed: int) -> Tensor:
    """Noisy centres, Gaussian points, points far from every opposite centre, and points of all centres at once."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, K1 + K2))
    X[0::5] = np.eye(K1 + K2)[0] + 0.1 * X[0::5]
    X[1::5, K1:] = -np.abs(X[1::5, K1:]) * rng.choice([0.01, 0.1, 0.5], size=(len(X[1::5]), 1))
    X[2::5] = rng.uniform(0, 1, X[2::5].shape) * ([1.0] * K1 + [0.5] * K2)
    X[3::5, :K1] = np.eye(K1)[0]
    X[3::5, K1:] = rng.uniform(-0.4, 0.1, X[3::5, K1:].shape)
    return torch.from_numpy(X)


def slsqp(x: np.ndarray, K1: int, p: float, starts: int) -> float:
    """min |z - x| : F^(p)(z) <= 0 for y = +1, many starts; an upper bound on the radius."""
    rng = np.random.default_rng(0)
    sign = np.r_[np.ones(K1), -np.ones(len(x) - K1)]

    def length(z: np.ndarray) -> float:  # P^(1/p): the same constraint, evenly scaled for every p
        return float((np.maximum(z, 0) ** p).sum() ** (1 / p))

    def slope(z: np.ndarray) -> np.ndarray:
        return (z > 0) * (np.maximum(z, 0) / max(length(z), 1e-300)) ** (p - 1)

    def f(z: np.ndarray) -> float:
        return length(z[:K1]) - length(z[K1:])

    best = float(np.linalg.norm(np.maximum(x[:K1], 0)))
    if f(x) <= 0:
        return 0.0
    constraint = {"type": "ineq", "fun": lambda z: -f(z), "jac": lambda z: np.r_[-slope(z[:K1]), slope(z[K1:])]}
    for k in range(starts):
        start = x + rng.normal(size=len(x)) * rng.choice([0.1, 0.5, 1.0])
        start[K1:] = np.abs(start[K1:])
        if k < len(x) - K1:  # the k + 1 largest opposite coordinates lifted
            rise = K1 + np.argsort(-x[K1:])[: k + 1]
            start = np.where(sign > 0, 0.6 * x, x)
            start[rise] = np.maximum(x[rise], 0.6 * x[:K1].max() / (k + 1))
        found = minimize(
            lambda z: ((z - x) ** 2).sum() / 2,
            start,
            jac=lambda z: z - x,
            constraints=[constraint],
            method="SLSQP",
            options={"maxiter": 200, "ftol": 1e-15},
        )
        if f(found.x) <= 1e-10:
            best = min(best, float(np.linalg.norm(found.x - x)))
    return best


def grid(a: float, b: np.ndarray, p: float) -> float:
    """One own coordinate and two opposite ones: t = min(a, (u1^p + u2^p)^(1/p)), and (u1, u2) by refinement."""

    def cost(U: np.ndarray) -> np.ndarray:
        t = np.minimum(a, (np.maximum(U, 0) ** p).sum(axis=1) ** (1 / p))
        return (a - t) ** 2 + ((U - b) ** 2).sum(axis=1)

    axes = [np.r_[beta, 0, np.linspace(max(beta, 0), max(beta, 0) + a, 250)] for beta in b]
    U = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    width, square = a / 100, np.stack(np.meshgrid(*2 * [np.linspace(-1, 1, 5)]), axis=-1).reshape(-1, 2)
    U = U[np.argsort(cost(U))[:300]]
    for _ in range(50):
        resting = [np.where([k == 0, k == 1], b, U[:20]) for k in range(2)]
        U = np.vstack([(U[:, None] + width * square).reshape(-1, 2), *resting])
        U, width = U[np.argsort(cost(U))[:20]], 0.6 * width
    return math.sqrt(cost(U).min())


@pytest.mark.slow
@pytest.mark.parametrize("p", EVERY_P)
@pytest.mark.parametrize(("K1", "K2"), [(1, 1), (2, 6), (6, 4)])
def test_no_solver_finds_less_and_some_solver_finds_as_much(p, K1, K2):
    X = points(K1, K2, 5, seed=K1)
    exact = centre_radius(X, torch.ones(5), *basis(K1, K2), p)
    found = torch.tensor([slsqp(x, K1, p, starts=9) for x in X.numpy()], dtype=torch.float64)
    assert (exact <= found + 1e-8).all()  # SLSQP may end 1e-10 outside the constraint
    assert (exact >= found - 1e-8).all()


@pytest.mark.slow
@pytest.mark.parametrize("p", EVERY_P)
def test_agrees_with_refined_grids_to_ten_digits(p):
    rng = np.random.default_rng(3)
    own, other = rng.uniform(0.1, 1.3, 8), rng.normal(size=(8, 2)) * rng.choice([0.05, 0.3, 0.7], size=(8, 1))
    other[::2] = -np.abs(other[::2])
    right = own**p > (np.maximum(other, 0) ** p).sum(axis=1)
    assert right.sum() >= 5
    exact = centre_radius(torch.from_numpy(np.c_[own, other]), torch.ones(8), *basis(1, 2), p)
    for radius, a, b, good in zip(exact.tolist(), own, other, right, strict=True):
        assert radius == pytest.approx(grid(a, b, p) if good else 0.0, rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("p", [*EVERY_P, 17, 300])
def test_at_a_centre(p):
    # against m opposite centres 1/sqrt(1 + m^(2/p-1)); the smallest is at m = 1 for p >= 2, at all of them below
    for K1, K2 in ((6, 4), (2, 1), (3, 9)):
        centres, labels = basis(K1, K2, 15)
        for sign, opposite in ((1, K2), (-1, K1)):
            wanted = min(1 / math.sqrt(1 + m ** (2 / p - 1)) for m in range(1, opposite + 1))
            radius = centre_radius(centres[labels == sign], labels[labels == sign], centres, labels, p)
            torch.testing.assert_close(radius, torch.full_like(radius, wanted), rtol=1e-12, atol=0)


def test_p_two_is_a_plane_problem():
    # (3, 4) own, (0.6, 0.8) opposite: lengths 5 and 1, so (5 - 1)/sqrt(2). No opposite one positive: the largest
    # counts, (5 + 0.5)/sqrt(2), unless setting the own ones to 0 is nearer, 5 < (5 + 4)/sqrt(2)
    x = torch.tensor([[3, 4, 0.6, 0.8], [3, 4, -0.5, -0.6], [3, 4, -4, -5]], dtype=torch.float64)
    wanted = torch.tensor([4 / math.sqrt(2), 5.5 / math.sqrt(2), 5], dtype=torch.float64)
    torch.testing.assert_close(centre_radius(x, torch.ones(3), *basis(2, 2), 2), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("middle", [1.0, 2.0])
def test_the_three_solutions_meet(middle):
    X = points(3, 4, 200, seed=1)
    at = centre_radius(X, torch.ones(200), *basis(3, 4), middle)
    for step in (1e-3, 1e-6):
        for p in {max(middle - step, 1), middle + step}:
            assert (centre_radius(X, torch.ones(200), *basis(3, 4), p) - at).abs().max() < 3 * step


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
def test_what_every_radius_must_do(p):
    centres, labels = basis(3, 4, 9)
    X = torch.cat([points(3, 4, 60, seed=2), torch.randn(60, 2, dtype=torch.float64)], dim=1)
    y = torch.tensor([1.0, -1.0]).repeat(30)
    radius = centre_radius(X, y, centres, labels, p)
    margin = y * CentreClassifier(centres, labels, p)(X)
    assert ((radius > 0) == (margin > 0)).all()
    shift = 0.01 * torch.randn(X.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    moved = centre_radius(X + shift, y, centres, labels, p)
    assert ((moved - radius).abs() <= shift.norm(dim=1) + 1e-12).all()  # a distance to a set
    order = torch.tensor([2, 6, 0, 5, 1, 3, 4])
    torch.testing.assert_close(centre_radius(X, y, centres[order], labels[order], p), radius)
    torch.testing.assert_close(centre_radius(5e3 * X, y, 20 * centres, labels, p), 5e3 * radius)
    turn = torch.linalg.qr(torch.randn(9, 9, dtype=torch.float64)).Q
    torch.testing.assert_close(centre_radius(X @ turn, y, centres @ turn, labels, p), radius)
    torch.testing.assert_close(centre_radius(X, -y, centres, -labels, p), radius)
    torch.testing.assert_close(centre_radius(X[7:8], y[7:8], centres, labels, p), radius[7:8])


def test_close_to_the_boundary_the_digits_stay():
    # p = 3, K = 1+1, x = (1, 1 - e): the boundary is x_1 = x_2, distance e/sqrt(2)
    for e in (1e-3, 1e-6, 1e-9):
        x = torch.tensor([[1, 1 - e]], dtype=torch.float64)
        for p in (1, 1.5, 2, 3):
            gap = (x[0, 0] - x[0, 1]).item()
            radius = centre_radius(x, torch.ones(1), *basis(1, 1), p).item()
            assert radius == pytest.approx(gap / math.sqrt(2), rel=1e-12 + 1e-14 / e)


def test_wrong_points_and_the_origin_have_radius_zero():
    centres, labels = basis(2, 2)
    X = torch.tensor([[0, 0, 0, 0], [1, 0, 1, 0], [0.1, 0, 2, 0], [-1, -1, -2, -2]], dtype=torch.float64)
    for p in (1, 1.5, 2, 3):
        assert (centre_radius(X, torch.ones(4), centres, labels, p) == 0).all()


def test_float32_mixtures_are_accepted_and_answered_in_float64():
    mix = OrthonormalMixture(300, 6, 4, alpha=0.1, rotate=1)
    data = mix.sample(50, seed=0)
    plain = OrthonormalMixture(300, 6, 4, alpha=0.1, rotate=1, dtype=torch.float64)
    for p in (1, 3):
        radius = centre_radius(data.X, data.y, mix.centres, mix.labels, p)
        wanted = centre_radius(data.X, data.y, plain.centres, plain.labels, p)
        assert radius.dtype == torch.float64 and (radius - wanted).abs().max() < 1e-6


def test_bad_input_is_named():
    centres, labels = basis(2, 2)
    X, y = torch.zeros(1, 4), torch.ones(1)
    for changed, name in (
        ({"centres": centres + 1e-6}, "orthogonal"),
        ({"centres": centres * torch.tensor([1, 2, 1, 1])[:, None]}, "orthogonal"),
        ({"p": 0.9}, "p=0.9"),
        ({"y": torch.zeros(1)}, "y="),
        ({"y": torch.ones(2)}, "y.shape"),
        ({"X": torch.zeros(1, 3)}, "X.shape"),
        ({"X": torch.full((1, 4), math.nan)}, "finite"),
        ({"labels": torch.ones(4)}, "labels"),
    ):
        with pytest.raises(InputError, match=name):
            centre_radius(**{"X": X, "y": y, "centres": centres, "labels": labels, "p": 3.0, **changed})
