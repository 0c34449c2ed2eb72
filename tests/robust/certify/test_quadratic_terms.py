"""Quadratic certificates against exact least values: every term counts, also with a solver that is wrong.

With p = 2 and every neuron active in the ball, margin(z + d) = sum_j a_j <u_j, z + d>^2 + beta is itself a quadratic,
whose least value on a ball is max over lambda >= 0, M + lambda I >= 0, of c - <g, (M + lambda I)^-1 g>/4 - lambda rho^2
(S-procedure): one eigenvalue decomposition and a bisection, in float64 far from any rounding that matters here.
"""

from __future__ import annotations

import math
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from polyrelu.nets import PolyReLUNet
from polyrelu.robust import quadratic_radius
from polyrelu.robust.certify import krylov, krylov_radius, quadratic


class Ball:
    """constant + <g, d> + <d, M d> and its least value on balls |d| <= rho."""

    def __init__(self, constant: float, g: Tensor, M: Tensor) -> None:
        values, vectors = np.linalg.eigh(M.numpy())
        self.constant, self.values, self.squares = constant, values, (vectors.T @ g.numpy()) ** 2

    def least(self, rho: float) -> float:
        """Exact, but for the rounding of sums of a few terms."""
        low = max(0.0, -self.values[0])
        high = low + math.sqrt(self.squares.sum()) / (2 * rho) + 1e-300
        for _ in range(60):
            middle = (low + high) / 2
            outside = (self.squares / (4 * (self.values + middle) ** 2)).sum() > rho * rho
            low, high = (middle, high) if outside else (low, middle)
        return self.constant - (self.squares / (self.values + high)).sum() / 4 - high * rho * rho


def active_net(seed: int, dim: int, width: int, outputs: int = 1) -> tuple[PolyReLUNet, Tensor, Tensor]:
    """p = 2, neurons within 45 degrees or so of one direction, and points along it: all active far around."""
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    net = PolyReLUNet(
        dim, width, 2, outputs, bias=bool(seed % 2), centre=0.1 * normal(dim) if seed % 3 else None, dtype=torch.float64
    ).requires_grad_(False)
    along = torch.nn.functional.normalize(normal(dim), dim=0)
    net.weight.copy_(along + normal(width, dim) / math.sqrt(dim))
    net.output.copy_(normal(outputs, width))
    if net.bias is not None:
        net.bias.copy_(0.3 * normal(outputs))
    X = along * (1 + torch.rand(4, 1, generator=draw, dtype=torch.float64)) + 0.1 * normal(4, dim) / math.sqrt(dim)
    X = X if net.centre is None else X + net.centre
    logits = net(X)
    return net, X, torch.where(logits > 0, 1.0, -1.0).double() if outputs == 1 else logits.argmax(dim=1)


@cache
def exact_case(seed: int, dim: int, width: int, outputs: int = 1) -> tuple[PolyReLUNet, Tensor, Tensor, Tensor]:
    """The net, points and labels above, and the exact radii; inf where a neuron may turn off before that."""
    net, X, y = active_net(seed, dim, width, outputs)
    U = torch.nn.functional.normalize(net.weight, dim=1)
    V, b = net.output * net.weight.norm(dim=1), torch.zeros(net.outputs) if net.bias is None else net.bias
    found = []
    for x, label in zip(X if net.centre is None else X - net.centre, y.tolist(), strict=True):
        t = U @ x
        others = [c for c in range(net.outputs) if c != label]
        rows = (
            [(label * V[0], label * b[0])] if net.outputs == 1 else [(V[label] - V[c], b[label] - b[c]) for c in others]
        )
        limit = float(t.amin())
        for a, beta in rows:
            ball = Ball(float((a * t.square()).sum() + beta), 2 * U.T @ (a * t), (U.T * a) @ U)
            low, high = 0.0, float(t.amin())
            if ball.least(high) > 0:
                continue
            for _ in range(40):
                middle = (low + high) / 2
                low, high = (middle, high) if ball.least(middle) > 0 else (low, middle)
            limit = min(limit, high)
        found.append(limit if limit < float(t.amin()) else math.inf)
    return net, X, y, torch.tensor(found, dtype=torch.float64)


SIZES = [(3, 5), (6, 40), (20, 12), (30, 60), (50, 25)]


@pytest.mark.slow
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("dim, width", SIZES)
@pytest.mark.parametrize("most", [1, 3, 16])
def test_quick_radii_are_exact_or_below_where_margins_are_quadratic(monkeypatch, dim, width, outputs, most):
    monkeypatch.setattr(krylov, "PROOF_DIMENSIONS", most)
    ratios = []
    for seed in range(4):
        net, X, y, exact = exact_case(seed, dim, width, outputs)
        for step in (torch.zeros_like(X), -0.3 * X):
            radius = krylov_radius(net, X, y, step)
            assert (radius <= exact).all(), (seed, radius / exact)
            ratios.append((radius / exact)[exact.isfinite()])
    ratio = torch.cat(ratios)
    assert len(ratio) >= 6
    assert ratio.median() > {1: 0.3, 3: 0.75, 16: 0.95}[most]


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("dim, width", SIZES)
def test_quadratic_radii_are_exact_where_margins_are_quadratic(dim, width, outputs):
    for seed in range(4):
        net, X, y, exact = exact_case(seed, dim, width, outputs)
        radius = quadratic_radius(net, X, y, tol=1e-3)
        assert (radius <= exact).all(), (seed, radius / exact)
        assert (radius > 0.99 * exact)[exact.isfinite()].all(), (seed, radius / exact)


class Seen:
    """Every bound that is claimed while radii are searched, beside the exact least value of its own quadratic."""

    def __init__(self) -> None:
        self.claimed: list[float] = []
        self.exact: list[float] = []

    def add(self, rows, rho: Tensor, touch: Tensor, value: Tensor) -> None:
        B = rows.frame.B
        for k, (constant, g, side, K, curve) in enumerate(zip(*rows.below(rho, touch), strict=True)):
            if k % 3 == len(self.claimed) % 3 or not bool(curve.isfinite()) or not bool(value[k].isfinite()):
                continue
            M = torch.zeros(len(g) + 1, len(g) + 1).double()  # what the point has outside of the frame
            M[:-1, :-1] = (B.T * K) @ B
            M.diagonal().add_(curve)
            self.claimed.append(float(value[k]))
            self.exact.append(Ball(float(constant), torch.cat([g, side[None]]), M).least(float(rho[k])))

    def check(self, near: float | None = None) -> None:
        claimed, exact = (torch.tensor(part, dtype=torch.float64) for part in (self.claimed, self.exact))
        assert len(claimed) >= 12
        size = exact.abs() + 1e-9
        assert (claimed <= exact + 1e-13 * size).all(), float(((claimed - exact) / size).amax())
        if near is not None:
            assert ((exact - claimed) / size).median() < near


def random_net(seed: int, p: float, dim: int, width: int, outputs: int = 3) -> tuple[PolyReLUNet, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(100 * seed + int(10 * p))

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    kinds = {"bias": bool(seed % 2), "normalise_input": seed % 3 > 0, "centre": normal(dim) / 4 if seed % 4 else None}
    net = PolyReLUNet(dim, width, p, outputs, dtype=torch.float64, **kinds).requires_grad_(False)
    net.weight.copy_(normal(width, dim))
    net.output.copy_(normal(outputs, width))
    if net.bias is not None:
        net.bias.copy_(0.3 * normal(outputs))
    X = normal(4, dim)
    logits = net(X)
    return net, X, torch.where(logits > 0, 1.0, -1.0).double() if outputs == 1 else logits.argmax(dim=1)


def spied_krylov(monkeypatch, seen: Seen) -> None:
    inner = krylov._bound

    def bound(rows, rho, touch, most):
        found = inner(rows, rho, touch, most)
        at = rho[:, None] * torch.where(rows.A > 0, touch / krylov.OWN_TOUCH, touch / krylov.OPPOSITE_TOUCH)
        seen.add(rows, rho, at, found[0])
        return found

    monkeypatch.setattr(krylov, "_bound", bound)


def spied_quadratic(monkeypatch, seen: Seen) -> None:
    inner = quadratic.QuadraticRows.bound

    def bound(self, rho, touch, at):
        found = inner(self, rho, touch, at)
        seen.add(self, rho, touch, found[0])
        return found

    monkeypatch.setattr(quadratic.QuadraticRows, "bound", bound)


POWERS = [1.0, 2.0, 3.0, 7.5]
SHAPES = [(5, 14), (20, 30), (40, 24)]


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 3, 16])
@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("dim, width", SHAPES)
def test_a_quick_bound_is_at_most_the_least_value_of_its_quadratic(monkeypatch, dim, width, p, most):
    monkeypatch.setattr(krylov, "PROOF_DIMENSIONS", most)
    monkeypatch.setattr(krylov, "SEARCH_DIMENSIONS", most)
    monkeypatch.setattr(krylov, "NEAREST_ROUNDS", 4)
    seen = Seen()
    spied_krylov(monkeypatch, seen)
    for seed in range(4):
        net, X, y = random_net(seed, p, dim, width)
        krylov_radius(net, X, y, torch.zeros_like(X) if seed % 2 else -0.2 * X)
    seen.check(near=0.05 if most == 16 and dim == 5 else None)


@pytest.mark.slow
@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("dim, width", SHAPES)
def test_a_quadratic_bound_is_at_most_the_least_value_of_its_quadratic(monkeypatch, dim, width, p):
    seen = Seen()
    spied_quadratic(monkeypatch, seen)
    for seed in range(4):
        quadratic_radius(*random_net(seed, p, dim, width))
    seen.check(near=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [1e-9, 1e-3, 0.3])
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_a_solver_that_is_wrong_proves_less_and_never_more(monkeypatch, p, wrong):
    # Any d proves: the residual, |g + 2 N d|^2/(4 delta), is taken off. Without that term bounds would be too large.
    inner, draw = torch.cholesky_solve, torch.Generator().manual_seed(0)

    def disturbed(b: Tensor, L: Tensor) -> Tensor:
        d = inner(b, L)
        return d + wrong * d.norm(dim=1, keepdim=True) * torch.randn(d.shape, generator=draw, dtype=d.dtype)

    monkeypatch.setattr(torch, "cholesky_solve", disturbed)
    for spy in (spied_krylov, spied_quadratic):
        seen = Seen()
        with monkeypatch.context() as patch:
            spy(patch, seen)
            for seed in range(3):
                net, X, y = random_net(seed, p, 8, 20)
                _ = krylov_radius(net, X, y, -0.2 * X) if spy is spied_krylov else quadratic_radius(net, X, y)
        seen.check()
    for seed in range(3):
        net, X, y, exact = exact_case(seed, 8, 20)
        assert (quadratic_radius(net, X, y) <= exact).all()
        assert (krylov_radius(net, X, y, -0.3 * X) <= exact).all()


KINDS = ["plain", "bias", "normalised", "classes", "one side"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_quadratic_radii_are_between_the_truth_and_a_floor(sandwiched, kind):
    sandwiched("quadratic", lambda net, X, y, norm: quadratic_radius(net, X, y), kind, [1.0, 2.0, 3.0, 4.0, 7.5], [2.0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_quick_radii_are_between_the_truth_and_a_floor(sandwiched, kind):
    def quick(net, X, y, norm):
        return krylov_radius(net, X, y, torch.zeros_like(X))

    sandwiched("quick", quick, kind, [1.0, 2.0, 3.0, 4.0, 7.5], [2.0])


@pytest.mark.parametrize("p", [2.0, 2.5, 3.0, 3.1, 4.0, 7.5])
@pytest.mark.parametrize("beta", [-0.7, 0.7])
@pytest.mark.parametrize("rho", [0.1, 0.6, 1.0, 2.5])  # also beyond the centre
def test_a_bias_of_normalised_inputs_is_above_its_parabola_and_as_near_as_can_be(p, beta, rho):
    length = torch.tensor([1.3], dtype=torch.float64)
    rows = SimpleNamespace(net=SimpleNamespace(normalised=True, p=p), beta=torch.full_like(length, beta), length=length)
    rho = rho * length
    constant, along, curve = quadratic.QuadraticRows._bias(rows, rho)
    size, angle = torch.meshgrid(torch.linspace(0, 1, 201), torch.linspace(0, math.pi, 201), indexing="ij")
    d = rho * size.double()[1:]  # the length of a step, and its angle to the point
    inner = length * d * angle.double()[1:].cos()
    far = (length.square() + 2 * inner + d.square()).clamp(min=0)
    gap = beta * far.pow((p - 1) / 2) - constant - along * inner - curve * d.square()
    assert (gap >= -1e-13 * (length + rho).pow(p - 1)).all()
    if (beta > 0) == (p >= 3):  # it meets the bias wherever |z + d| = |z|
        least = (gap / d.square())[far.sub(length.square()).abs() < 0.02 * rho * length].abs()
        assert len(least) and least.amin() < 1e-3
