"""The quadratic certificate in few dimensions: never above the truth, near it on a trained head, for any step given."""

from __future__ import annotations

import pytest
import torch

from polyrelu.data import read
from polyrelu.nets import CentreClassifier, PolyReLUNet, relu_power
from polyrelu.robust import QUICK_DIRECTIONS, BracketStatus, bracket, margin_of, quadratic_radius
from polyrelu.robust.attacks.convex_concave import lifted_perturbations
from polyrelu.robust.attacks.nearest_boundary import nearest_boundary_points
from polyrelu.robust.certify import krylov, krylov_radius
from polyrelu.robust.certify.lipschitz import ScaledNet
from polyrelu.robust.certify.quadratic import QuadraticRows, SpanCoordinates
from polyrelu.robust.core import ReducedNet
from polyrelu.train import published_head

POWERS = (1, 2, 2.5, 4)


def random_net(p, seed, dim=3, width=9, outputs=1):
    """A net of any kind, and points it is right about."""
    draw = torch.Generator().manual_seed(1000 * seed + int(10 * p))

    def normal(*shape):
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    bias, normalise = bool(seed % 2), bool(seed // 2 % 2)
    centre = 0.3 * normal(dim) if seed % 3 else None
    net = PolyReLUNet(dim, width, p, outputs, centre=centre, bias=bias, normalise_input=normalise, dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(normal(width, dim))
        net.output.copy_(normal(outputs, width))
        if net.bias is not None:
            net.bias.copy_(0.3 * normal(outputs))
        X = normal(5, dim)
        logits = net(X)
    return net, X, torch.where(logits > 0, 1.0, -1.0).double() if outputs == 1 else logits.argmax(dim=1)


def nearest_broken(net, X, y):
    """An upper bound of each radius: the convex-concave attack, and points that are broken on rays all around."""
    shallow = ReducedNet.from_net(net)
    rows = shallow.rows(X, y)
    best = lifted_perturbations(net, shallow, X, y, rows, nearest_boundary_points(shallow, rows)).radius
    draw = torch.Generator().manual_seed(0)
    U = torch.nn.functional.normalize(torch.randn(300, X.shape[1], generator=draw, dtype=torch.float64), dim=1)
    for share in torch.linspace(0.02, 1, 30, dtype=torch.float64):
        far = share * (2 * X.norm(dim=1) + 2)
        Z = X[:, None] + far[:, None, None] * U
        with torch.no_grad():
            broken = margin_of(net(Z.flatten(0, 1)), y.repeat_interleave(300)).view(len(X), 300) <= 0
        best = torch.where(broken.any(dim=1), torch.minimum(best, far), best)
    return best


@pytest.mark.slow
@pytest.mark.parametrize("p", POWERS)
def test_never_above_the_truth_whatever_the_step(p):
    for seed in range(4):
        net, X, y = random_net(p, seed, outputs=1 + 3 * (seed > 1))
        known = nearest_broken(net, X, y)
        step = (torch.zeros_like(X), X.flip(0), torch.zeros_like(X), -100 * X)[seed]
        radius = krylov_radius(net, X, y, step)
        assert radius.isfinite().all() and (radius >= 0).all() and (radius <= known).all(), (seed, radius / known)
        if not step.any():  # it does prove something
            assert (radius / known)[known > 0].median() > 0.5


@pytest.mark.parametrize("most", [1, 3, 16])
@pytest.mark.parametrize("p", (1, 2, 3.5))
def test_the_bound_is_below_the_margin_on_its_whole_ball(p, most):
    draw = torch.Generator().manual_seed(int(p))

    def normal(*shape):
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    net, X, _ = random_net(p, 0, dim=5, width=14)  # without bias and normalisation
    neurons = ScaledNet.from_net(net)
    frame = SpanCoordinates.from_net(neurons)
    placed, R = neurons.place(X, 2.0), len(X)
    A, zero = normal(R, 14), torch.zeros(R, dtype=torch.float64)
    inner = (X - neurons.centre) / placed.scale[:, None]
    rows = QuadraticRows(neurons, frame, placed.T, A, zero, inner, zero, placed.length, placed.blur)
    d = torch.nn.functional.normalize(normal(4000, 5), dim=1)
    for rho in (0.05, 0.4, 2.0):
        radius = torch.full_like(zero, rho)
        value, least, _ = krylov._bound(rows, radius, 0.5 * normal(R, 14), most)
        steps = rho * torch.cat([d, d * torch.rand(4000, 1, generator=draw, dtype=torch.float64)]) @ neurons.U.T
        steps = torch.cat([steps.expand(R, -1, -1), rho * least[:, None]], dim=1)  # and where the bound is least
        margin = (A[:, None] * relu_power(placed.T[:, None] + steps, p)).sum(dim=2)
        assert (value <= margin.amin(dim=1)).all()
        if most == 16 and rho == 0.05:  # five dimensions: nothing is left out
            assert (value > margin.amin(dim=1) - 0.1 * A.abs().sum(dim=1)).all()


@pytest.mark.parametrize("p", (2, 3, 4))
def test_near_the_truth_at_the_centres_of_an_ideal_classifier(p):
    labels = torch.tensor([1.0] * 3 + [-1.0] * 3, dtype=torch.float64)
    centres = torch.eye(6, dtype=torch.float64)
    net = CentreClassifier(centres, labels, p).as_polyrelu_net().double()
    step = torch.eye(6, dtype=torch.float64).roll(3, 0) / 2 - torch.eye(6, dtype=torch.float64) / 2
    radius = krylov_radius(net, centres, labels, step)
    assert (radius <= 0.5**0.5).all()
    assert (radius > 0.75 * 0.5**0.5).all()


@pytest.mark.slow
def test_a_head_is_bracketed_without_branching():
    data = read("digits:parity")
    net = published_head(data.subset(slice(400)), 3, width=80, epochs=20, batch=100).net
    X, y = data.rows()[400:430], data.y[400:430]
    found = bracket(net, X, y, widest=QUICK_DIRECTIONS)
    right = found.upper > 0
    assert right.sum() >= 25 and (found.nodes == 0).all()
    assert {status for status, one in zip(found.status, right, strict=True) if one} == {BracketStatus.UNPROVEN}
    exact, points = net.double(), X[right].double()
    with torch.no_grad():
        assert (margin_of(exact(points + found.perturbation[right]), y[right].double()) <= 0).all()
    ratio = (found.lower / found.upper)[right]
    assert ratio.median() > 0.9 and ratio.min() > 0.7
    old = quadratic_radius(exact, points, y[right].double())
    assert (found.lower[right] / old).median() > 1  # longer than the certificate that factors the whole matrix


def test_steps_to_where_the_net_overflows_prove_something_all_the_same():
    net = PolyReLUNet(2, 4, 3, 3, seed=0, dtype=torch.float64)
    X = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = net(X).argmax(dim=1)
    radius = krylov_radius(net, X, y, torch.full_like(X, 1e300))
    assert bool((radius >= 0).all() and radius.isfinite().all())
