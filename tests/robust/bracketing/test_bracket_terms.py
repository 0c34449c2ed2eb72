"""Brackets, branch and bound included, between the truth and a floor, where each term counts."""

from __future__ import annotations

import math

import pytest
import torch

from polyrelu.nets import PolyReLUNet
from polyrelu.robust import Budget, bracket
from polyrelu.robust.certify import certify
from polyrelu.robust.certify.root_relaxation import Ball
from polyrelu.robust.core import ReducedNet
from polyrelu.robust.core import reduced_net as shallow


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "bias", "normalised", "classes", "one side"])
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 7.5])
def test_lower_bounds_are_between_the_truth_and_a_floor(sandwiched, kind: str, p: float) -> None:
    def lower(net, X, y, norm):
        return bracket(net, X[:4], y[:4], norm=norm, budget=Budget(nodes=40)).lower

    sandwiched("bracket", lower, kind, [p], [2.0], [2, 12])


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.5, 2.0, 3.0, 7.5])
@pytest.mark.parametrize("b", [0.3, 0.6, 0.9])
def test_an_opposite_bias_counts_at_the_length_of_the_point(p: float, b: float) -> None:
    # relu(z_1)^p / |z|^(p-1) <= b: on a ray at the angle theta to e_1 up to r = b / cos(theta)^p, on the others always
    net = PolyReLUNet(2, 1, p, bias=True, normalise_input=True, dtype=torch.float64).requires_grad_(False)
    net.weight.copy_(torch.tensor([[1.0, 0.0]]))
    net.output.fill_(1.0)
    net.bias.fill_(-b)
    X = torch.tensor([[math.cos(a), math.sin(a)] for a in (0.0, 0.2, 0.5, 1.0)], dtype=torch.float64)
    X, y = X[net(X) > 0], torch.ones(4, dtype=torch.float64)[net(X) > 0]
    angle = torch.linspace(-math.pi, math.pi, 400_001, dtype=torch.float64)
    last = torch.where(angle.cos() > 0, b / angle.cos().clamp(min=1e-300).pow(p), torch.inf)
    rays = torch.stack([angle.cos(), angle.sin()])
    at = torch.minimum((X @ rays).clamp(min=0), last)
    exact = (1 + at.square() - 2 * at * (X @ rays)).clamp(min=0).amin(dim=1).sqrt()
    reduced = ReducedNet.from_net(net)
    rows = reduced.rows(X, y)
    lower = certify(reduced, X, y, rows, rows.s, exact * 1.01, tol=1e-6, budget=Budget(nodes=50)).lower
    assert (lower <= exact * (1 + 1e-9)).all()
    torch.testing.assert_close(lower, torch.minimum(X[:, 0] - b ** (1 / p), exact * 1.01), rtol=1e-4, atol=1e-9)


def test_steps_in_a_basis_that_is_not_orthonormal_are_stretched_as_much_as_it_says(monkeypatch) -> None:
    inner, draw = shallow._basis, torch.Generator().manual_seed(0)

    def skewed(*given):
        Q = inner(*given)
        return Q + 1e-3 * torch.randn(Q.shape, generator=draw, dtype=Q.dtype)

    monkeypatch.setattr(shallow, "_basis", skewed)
    for width in (1, 3, 8):
        found = ReducedNet.from_net(PolyReLUNet(5, width, 2.0, dtype=torch.float64, seed=width))
        longest = float(torch.linalg.matrix_norm(found.Q, 2))  # |Q d| of the worst step of length 1
        assert abs(longest - 1) > 1e-5
        assert longest <= found.stretch <= 1 + 3e-2


@pytest.mark.parametrize(("R", "loose"), [(0.1, 1.5), (20.0, 4.0)])
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_the_slack_covers_neurons_of_a_group_on_both_sides_of_its_mean(p: float, R: float, loose: float) -> None:
    # relu(<u, z>)^p - relu(<v, z>)^p is nothing for the group, whose coefficients cancel, but something for the net
    net = PolyReLUNet(2, 2, p, dtype=torch.float64).requires_grad_(False)
    net.weight.copy_(torch.tensor([[math.cos(0.1), math.sin(0.1)], [math.cos(0.1), -math.sin(0.1)]]))
    net.output.copy_(torch.tensor([[1.0, -1.0]]))
    X, y = torch.tensor([[3.0, 2.0]], dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    reduced = ReducedNet.from_net(net, tol=20.0)
    rows = reduced.rows(X, y)
    assert reduced.groups == 1
    turn = torch.linspace(0, 2 * math.pi, 1000, dtype=torch.float64)
    Z = X + R * torch.stack([turn.cos(), turn.sin()], dim=1)
    kept = ((Z @ reduced.Q.T @ reduced.C.T).clamp(min=0).pow(p) * rows.coefficient).sum(dim=1)
    missed = (net(Z) * math.exp(-reduced.whole.log_unit) - kept).abs().amax()
    assert missed <= reduced.slack(y, rows, torch.full((1,), R, dtype=torch.float64)) <= loose * missed


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
@pytest.mark.parametrize("label", [1.0, -1.0])
def test_constants_of_a_normalised_net_are_those_at_the_worst_length(p: float, label: float) -> None:
    # b |z|^(p-1): an own one at |x| - R, an opposite one at |x|, which is 1 in scaled rows
    net = PolyReLUNet(2, 1, p, bias=True, normalise_input=True, dtype=torch.float64).requires_grad_(False)
    net.bias.fill_(0.3)
    X, y = torch.tensor([[3.0, 2.0]], dtype=torch.float64), torch.full((1,), label, dtype=torch.float64)
    reduced = ReducedNet.from_net(net)
    rows = reduced.rows(X, y).scaled(reduced)
    ball = Ball(reduced, y, torch.full((1,), 0.25, dtype=torch.float64), rows, rows.s)
    wanted = rows.beta.abs() * (0.75 ** (p - 1) if label > 0 else 1.0)
    found, none = (ball.part.own_constant, ball.part.opposite_constant)[:: int(label)]
    assert none == 0 and float(wanted) > 0
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=0)
    assert label * found < label * wanted


def test_a_straightened_leaf_touches_the_root_it_replaces() -> None:
    # q = 1: P^(1/p) >= <slope, t> + constant with equality where it was straightened, an own constant included
    net = PolyReLUNet(2, 3, 3.0, bias=True, dtype=torch.float64, seed=0).requires_grad_(False)
    net.output.abs_()
    net.bias.fill_(0.4)
    X, y = torch.tensor([[0.6, 0.5]], dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    reduced = ReducedNet.from_net(net)
    rows = reduced.rows(X, y).scaled(reduced)
    ball = Ball(reduced, y, torch.full((1,), 0.1, dtype=torch.float64), rows, rows.s)
    row, none = torch.zeros(1, dtype=torch.long), torch.zeros(1, reduced.groups, dtype=torch.float64)
    leaf = ball.relax(row, none, None, torch.full((1,), 0.2, dtype=torch.float64), 1.0)
    for z in (rows.s, rows.s + 0.05):
        T = z @ leaf.C.T
        root = ((leaf.own * T.clamp(min=0).pow(3)).sum(1) + leaf.own_constant).pow(1 / 3)
        line = leaf.straightened(z)
        torch.testing.assert_close(-(line.slope * T).sum(1) - line.constant, root - 0.2, rtol=1e-6, atol=0)
