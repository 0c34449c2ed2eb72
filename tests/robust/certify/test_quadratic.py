"""The quadratic certificate: never above what attacks find, exact where margins are quadratic, better than chords."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from polyrelu.errors import InputError
from polyrelu.nets import CentreClassifier, PolyReLUNet
from polyrelu.robust import linear_radius, margin_of, quadratic_radius
from polyrelu.robust.attacks import strongest
from polyrelu.robust.certify.lipschitz import ScaledNet
from polyrelu.robust.certify.quadratic import QuadraticRows, SpanCoordinates, rows_of


def case(p, *, outputs=3, normalised=True, bias=True, dim=8, width=20, seed=0, points=6):
    """A random net, and points of length about 3 that it gets right."""
    draw = torch.Generator().manual_seed(seed)
    net = PolyReLUNet(
        dim,
        width,
        p,
        outputs,
        init="kaiming",
        seed=seed,
        centre=torch.randn(dim, generator=draw, dtype=torch.float64) / 4,
        bias=bias,
        normalise_input=normalised,
        dtype=torch.float64,
    )
    X = torch.randn(points, dim, generator=draw, dtype=torch.float64)
    with torch.no_grad():
        if net.bias is not None:
            net.bias.copy_(torch.randn(outputs, generator=draw, dtype=torch.float64) / 10)
        scores = net(X)
    return net, X, scores.sign() if outputs == 1 else scores.argmax(dim=1)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 2.0, 2.5, 3.0, 4.0])
@pytest.mark.parametrize("kind", [{}, {"outputs": 1}, {"normalised": False}, {"bias": False}, {"dim": 30, "width": 9}])
def test_no_attack_succeeds_inside(p, kind):
    net, X, y = case(p, **kind)
    proven = quadratic_radius(net, X, y)
    assert (proven > 0).all() and not strongest(net, X, y, proven).success.any()
    assert strongest(net, X, y, 20 * proven).success.any()  # the attack is not blind here


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, 4.0])
@pytest.mark.parametrize("normalised", [True, False])
def test_the_bound_is_below_the_margin_in_the_whole_ball(p, normalised):
    net, X, y = case(p, normalised=normalised, points=1)
    neurons = ScaledNet.from_net(net)
    frame, (A, beta, *_) = SpanCoordinates.from_net(neurons), neurons.rivals(int(y))
    placed = neurons.place(X, 2.0)
    inner = ((X - neurons.centre) / placed.scale[:, None]) @ frame.Q.T
    scale = placed.scale.pow(1.0 if neurons.normalised else p)
    repeated = (
        part.expand(len(A), *part.shape[1:]) for part in (inner, torch.zeros(1).double(), placed.length, placed.blur)
    )
    rows = QuadraticRows(neurons, frame, placed.T.expand(len(A), -1), A, beta / scale, *repeated)
    rho = torch.full((len(A),), 0.3, dtype=torch.float64)
    touch = torch.zeros_like(rows.T)
    draw = torch.Generator().manual_seed(5)
    steps = torch.randn(20_000, X.shape[1], generator=draw, dtype=torch.float64)
    steps = 0.3 * steps / steps.norm(dim=1, keepdim=True) * torch.rand(20_000, 1, generator=draw).double().pow(0.2)
    Z = (X - neurons.centre) / placed.scale[:, None] + steps
    hidden = (Z @ neurons.U.T).relu().pow(p)
    lift = Z.norm(dim=1).pow(p - 1) if neurons.normalised else torch.ones(len(Z), dtype=torch.float64)
    margins = hidden @ A.T + lift[:, None] * (beta / scale)
    for _ in range(3):
        value, touch, _ = rows.bound(rho, touch, torch.full_like(rho, math.nan))
        assert value.isfinite().all() and (value <= margins.amin(dim=0)).all()


@pytest.mark.parametrize("p", [1.0, 2.0, 3.5])
@pytest.mark.parametrize("dim, width", [(30, 9), (8, 20)])
def test_neurons_away_from_their_frame_are_counted_in_proportion_to_the_radius(p, dim, width):
    net, X, y = case(p, dim=dim, width=width, points=1)
    neurons = ScaledNet.from_net(net)
    frame, rivals, placed = SpanCoordinates.from_net(neurons), neurons.rivals(int(y)), neurons.place(X, 2.0)
    rows = rows_of(neurons, frame, X, placed, rivals, torch.zeros(len(rivals.A), dtype=torch.int64))
    away = dataclasses.replace(rows, frame=dataclasses.replace(frame, spare=frame.spare + 0.1))
    for rho in torch.tensor([[0.01], [0.3], [2.0]]).double().expand(3, len(rows.beta)):
        touch = torch.zeros_like(rows.T)
        fall = rows.below(rho, touch)[0] - away.below(rho, touch)[0]
        top = (rows.T + rho[:, None]).relu()
        slope = (rows.A.abs() * p * torch.where(top > 0, top.pow(p - 1), 0.0)).sum(dim=1)
        torch.testing.assert_close(fall, 1.01 * slope * 0.1 * rho, rtol=1e-4, atol=1e-9)


def test_exact_where_the_margin_is_quadratic():
    # One own and one opposite direction, p = 2, both active: the boundary is t_1 = t_2, at (t_1 - t_2)/sqrt(2)
    net = CentreClassifier(torch.eye(2, dtype=torch.float64), torch.tensor([1.0, -1.0]).double(), p=2).as_polyrelu_net()
    X, y = torch.tensor([[2.0, 1.0], [1.0, 3.0]]).double(), torch.tensor([1.0, -1.0]).double()
    exact = torch.tensor([1.0, 2.0]).double() / math.sqrt(2)
    proven = quadratic_radius(net, X[:1], y[:1], tol=1e-3)
    assert exact[0] * 0.995 <= proven[0] <= exact[0]


@pytest.mark.parametrize("p, more", [(1.0, 1.1), (3.0, 1.2)])
def test_longer_than_chords_when_many_neurons_point_everywhere(p, more):
    net, X, y = case(p, dim=40, width=120)
    proven, chords = quadratic_radius(net, X, y), linear_radius(net, X, y)
    assert float((proven / chords).median()) > more


def test_misclassified_points_limits_and_bad_input():
    net, X, y = case(3.0)
    free = quadratic_radius(net, X, y)
    wrong = torch.cat([(y[:1] + 1) % 3, y[1:]])
    assert quadratic_radius(net, X, wrong)[0] == 0
    limit = float(free.median())
    limited = quadratic_radius(net, X, y, limit=limit)
    assert (limited <= limit * (1 + 1e-9)).all() and ((limited >= limit) == (free >= limit * 1.02)).sum() >= len(X) - 1
    with pytest.raises(InputError, match=r"net\.p"):
        quadratic_radius(case(1.5)[0], X, y)
    with pytest.raises(InputError, match="limit"):
        quadratic_radius(net, X, y, limit=0.0)


def test_float32_nets_are_certified_as_stored():
    net, X, y = case(3.0)
    net, X = net.float(), X.float()
    proven = quadratic_radius(net, X, y)
    with torch.no_grad():
        right = margin_of(net(X), y) > 0
    assert proven.dtype == torch.float64 and (proven[right] > 0).all()
