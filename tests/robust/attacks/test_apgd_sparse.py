"""Auto-PGD for l1: the projection is exact, ball and box hold, and a linear score breaks where it must."""

import dataclasses

import pytest
import torch

from polyrelu.errors import InputError
from polyrelu.nets import PolyReLUNet, polar_form
from polyrelu.robust.attacks import SparseAPGD
from polyrelu.robust.attacks.apgd import _onto
from polyrelu.robust.attacks.contract import attack_task

BOX = (0.0, 1.0)


def linear(a):
    """f(x) = <a, x> as a net: relu(<a, x>) - relu(-<a, x>)."""
    like = PolyReLUNet(len(a), 2, 1, dtype=torch.float64)
    return PolyReLUNet.from_polar(polar_form(torch.stack([a, -a]), torch.tensor([[1.0], [-1.0]]).double()), like=like)


def task(X, bounds):
    score = linear(torch.ones(X.shape[1], dtype=torch.float64))
    return attack_task(score, X, torch.ones(len(X), dtype=torch.float64), norm=1.0, bounds=bounds, radius=1.0)


@pytest.mark.parametrize("bounds", [None, BOX])
def test_the_projection_is_the_nearest_point_of_ball_and_box(bounds):
    source = torch.Generator().manual_seed(0)
    X, U = torch.rand(40, 12, generator=source).double(), torch.randn(40, 12, generator=source).double()
    radius = torch.linspace(0.2, 4, 40).double()
    found = _onto(task(X, bounds), X + U, radius) - X
    assert (found.abs().sum(1) <= radius + 1e-9).all()
    room = torch.full_like(X, torch.inf) if bounds is None else torch.where(U > 0, 1 - X, X)
    low, high = torch.zeros(40, 1).double(), U.abs().amax(dim=1, keepdim=True)
    for _ in range(80):  # the multiplier by halving
        t = (low + high) / 2
        over = torch.minimum((U.abs() - t).clamp(min=0), room).sum(1, keepdim=True) > radius[:, None]
        low, high = torch.where(over, t, low), torch.where(over, high, t)
    torch.testing.assert_close(found, U.sign() * torch.minimum((U.abs() - high).clamp(min=0), room), rtol=0, atol=1e-9)


def test_a_point_inside_is_not_moved():
    X = torch.full((1, 5), 0.5).double()
    Z = X + torch.tensor([[0.2, -0.1, 0.0, 0.05, 0.0]]).double()
    torch.testing.assert_close(_onto(task(X, BOX), Z, torch.tensor([0.4]).double()), Z, rtol=0, atol=1e-15)


@pytest.mark.parametrize(("bounds", "radius"), [(None, 0.6), (BOX, 0.8)])
def test_a_linear_score_breaks_exactly_beyond_its_radius(bounds, radius):
    """<a, x> = .6 with a_0 = 1 and x_0 = .2: without a box all of it on x_0; with one, .4 is left for a_1 = 2/3."""
    a = torch.tensor([1.0, 2 / 3, 0.1, 0.0]).double()
    X = torch.tensor([[0.2, 0.6, 0.0, 1.0]]).double()  # <a, x> = .6
    y = torch.ones(1).double()
    attack = SparseAPGD(steps=100)
    near = attack(linear(a), X, y, radius=1.02 * radius, norm=1, bounds=bounds)
    assert near.success.all() and near.radius.item() <= 1.02 * radius
    assert not attack(linear(a), X, y, radius=0.98 * radius, norm=1, bounds=bounds).success.any()
    if bounds is not None:
        moved = X + near.perturbation
        assert (moved >= 0).all() and (moved <= 1).all()


def test_only_l1_and_only_whole_numbers_of_steps():
    X, y = torch.rand(2, 3).double(), torch.ones(2).double()
    with pytest.raises(InputError, match="norm=2"):
        SparseAPGD()(linear(torch.ones(3).double()), X, y, radius=0.1, norm=2)
    with pytest.raises(InputError, match="steps=0"):
        dataclasses.replace(SparseAPGD(), steps=0)
