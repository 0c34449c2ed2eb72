import math

import numpy as np
import pytest
import torch
from scipy.optimize import linprog, minimize

from polyrelu.errors import InputError
from polyrelu.robust import NORMS, check_norm, lengths
from polyrelu.robust.core import dual, project, steepest, to_hyperplane, unit


def rows(n, dim, seed=0, dtype=torch.float64):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_unit_is_exact_at_any_scale_and_keeps_zero_rows(scale):
    # In float32 the squares of 1e-30 and 1e30 under- and overflow; the direction does not.
    given = rows(5, 7, dtype=torch.float32)
    torch.testing.assert_close(unit(scale * given), given / given.norm(dim=1, keepdim=True))
    assert (unit(torch.zeros(2, 3)) == 0).all()


@pytest.mark.parametrize("norm", NORMS)
def test_steepest_reaches_the_dual_norm(norm):
    g = rows(20, 6)
    d = steepest(g, norm)
    torch.testing.assert_close((g * d).sum(1), lengths(g, dual(norm)))  # max <g, d> over |d| <= 1
    torch.testing.assert_close(lengths(d, norm), torch.ones(20).double())
    assert (steepest(torch.zeros(1, 3), norm) == 0).all()


@pytest.mark.parametrize("norm", NORMS)
def test_projection_is_the_nearest_point_of_the_ball(norm):
    # z = P(a) exactly when |z| <= r and <a - z, u - z> <= 0 for every u of the ball; its extreme points suffice for
    # l1 (signed basis) and l-infinity (corners), and for l2 the point r (a - z)/|a - z|.
    a, radius = 3 * rows(30, 4), torch.linspace(0.1, 25, 30).double()
    z = project(a, radius, norm)
    assert (lengths(z, norm) <= radius * (1 + 1e-12)).all()
    inside = lengths(a, norm) <= radius
    assert inside.any() and not inside.all()
    assert torch.equal(z[inside], a[inside])
    support = radius * lengths(a - z, dual(norm)) - ((a - z) * z).sum(1)  # max over the ball of <a - z, u - z>
    assert (support <= 1e-12 * radius).all()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("box", [False, True])
def test_shortest_step_onto_a_plane_is_optimal(norm, box):
    g, value = rows(6, 5, 1), rows(6, 1, 2)[:, 0]
    below, above = rows(6, 5, 3).abs() + 0.05, rows(6, 5, 4).abs() + 0.05
    value = value.sign() * torch.minimum(value.abs(), 0.8 * (g.abs() * torch.minimum(below, above)).sum(1))  # reachable
    d = to_hyperplane(g, value, norm, (below, above) if box else None)
    torch.testing.assert_close(value + (g * d).sum(1), torch.zeros(6).double(), atol=1e-12, rtol=0)
    if not box:
        torch.testing.assert_close(lengths(d, norm), value.abs() / lengths(g, dual(norm)))
        return
    assert ((d >= -below - 1e-12) & (d <= above + 1e-12)).all()
    for i in range(6):
        best = shortest(g[i].numpy(), float(value[i]), below[i].numpy(), above[i].numpy(), norm)
        assert float(lengths(d[i], norm)) == pytest.approx(best, rel=1e-6)


def shortest(g, value, below, above, norm):
    """The same length from a general solver."""
    n = len(g)
    if norm == 2:
        plane = {"type": "eq", "fun": lambda d: value + g @ d, "jac": lambda d: g}
        box = list(zip(-below, above, strict=True))
        given = {"jac": lambda d: 2 * d, "bounds": box, "constraints": [plane], "options": {"ftol": 1e-15}}
        return math.sqrt(minimize(lambda d: d @ d, np.zeros(n), method="SLSQP", **given).fun)
    up = np.block([[np.eye(n), -np.eye(n)], [-np.eye(n), -np.eye(n)]])  # |d_i| <= t_i
    if norm == math.inf:
        up = np.hstack([up[:, :n], up[:, n:].sum(1, keepdims=True)])  # one t for all
    size = up.shape[1] - n
    box = [*zip(-below, above, strict=True), *[(0, None)] * size]
    cost, plane = np.r_[np.zeros(n), np.ones(size)], np.r_[g, np.zeros(size)][None]
    return linprog(cost, up, np.zeros(2 * n), plane, [-value], box).fun


def test_a_plane_out_of_reach_is_approached_as_far_as_the_box_allows():
    g, room = torch.tensor([[1.0, -2.0]]), (torch.full((1, 2), 0.25), torch.full((1, 2), 0.5))
    for norm in NORMS:
        torch.testing.assert_close(to_hyperplane(g, torch.tensor([9.0]), norm, room), torch.tensor([[-0.25, 0.5]]))
        assert (to_hyperplane(0 * g, torch.tensor([9.0]), norm, room) == 0).all()


def test_norms_by_name():
    assert [check_norm(name) for name in ("l1", "2", "LINF", 2, math.inf)] == [1, 2, math.inf, 2, math.inf]
    for wrong in (3, "l3", math.nan):
        with pytest.raises(InputError, match="expected 1, 2 or inf"):
            check_norm(wrong)
