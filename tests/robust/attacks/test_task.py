"""What an attack may do to a point: the ball, the box, what is remembered, and labels as the score wants them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from polyrelu.errors import InputError, require
from polyrelu.robust import LabelledRows, check_points, lengths, margin_of
from polyrelu.robust.attacks import AttackTask
from polyrelu.robust.attacks.task import BestFound, CountedScore
from polyrelu.robust.core import linear_minimiser, project, steepest, to_hyperplane, unit

NORMS = [1.0, 2.0, math.inf]


def draws(n: int, dim: int, seed: int = 0) -> Tensor:
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def task(norm: float, radius: Tensor | None, bounds: tuple[float, float] | None, X: Tensor | None = None) -> AttackTask:
    X = draws(6, 5).clamp(-0.9, 0.9) if X is None else X
    y = torch.ones(len(X), dtype=X.dtype)
    y[0] = -1
    score = CountedScore(lambda Z: Z.sum(dim=1))
    rows, best = torch.arange(len(X)), BestFound.none(X)
    return AttackTask(
        score=score,
        X=X,
        y=y,
        rows=rows,
        target=y,
        norm=norm,
        bounds=bounds,
        pool=LabelledRows(X, y),
        radius=radius,
        best=best,
    )


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("bounds", [None, (-1.0, 1.0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_projection_is_into_ball_and_box_and_leaves_what_is_inside(norm, bounds, dtype):
    X = draws(6, 5).clamp(-0.9, 0.9).to(dtype)
    radius = torch.linspace(0.1, 2, 6, dtype=torch.float64)
    one = task(norm, radius, bounds, X)
    for scale in (0.01, 0.3, 1.0, 10.0):
        Z = one.project(X + scale * draws(6, 5, 1).to(dtype))
        loose = 1 + scale * 64 * torch.finfo(dtype).eps  # points far outside come back with their own rounding
        assert (lengths(Z.double() - X.double(), norm) <= radius * loose).all()
        if bounds:
            assert (Z >= -1).all() and (Z <= 1).all()
    near = X + 1e-3 * draws(6, 5, 2).to(dtype)
    assert torch.equal(one.project(near), X + (near - X)) or torch.allclose(one.project(near), near, atol=1e-6)
    far = one.project(X + 100 * draws(6, 5, 1).to(dtype))
    if bounds is None:  # no shorter than need be
        assert (lengths(far.double() - X.double(), norm) >= radius * (1 - 1e-3)).all()


@pytest.mark.parametrize("norm", NORMS)
def test_without_a_radius_only_the_box_counts(norm):
    one = task(norm, None, (-1.0, 1.0))
    Z = one.project(one.X + 100)
    assert torch.equal(Z, torch.ones_like(Z))
    free = task(norm, None, None)
    assert torch.equal(free.project(free.X + 100), free.X + 100)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("bounds", [None, (-1.0, 1.0)])
def test_a_point_is_drawn_back_along_its_way(norm, bounds):
    radius = torch.linspace(0.1, 2, 6, dtype=torch.float64)
    one = task(norm, radius, bounds)
    step = 10 * draws(6, 5, 3)
    Z, r = one.inside(one.X + step)
    assert torch.equal(r, radius) and (lengths(Z - one.X, norm) <= radius).all()
    if bounds is None:
        size = lengths(step, norm)
        assert torch.allclose(Z, one.X + step * (radius / size)[:, None], rtol=1e-9)
    small = one.X + 1e-4 * step
    assert torch.allclose(one.inside(small)[0], small, rtol=1e-12)
    still, _ = one.inside(one.X)
    assert torch.allclose(still, one.X)
    free = task(norm, None, bounds)
    assert torch.equal(free.inside(free.X)[1], free.reach())


def test_what_is_remembered_is_broken_shortest_and_within_the_ball():
    one = task(2.0, torch.full((6,), 1.0, dtype=torch.float64), None)

    def shifted(size: float) -> Tensor:
        Z = one.X.clone()
        Z[:, 0] += size
        return Z

    margin = torch.tensor([-1.0, 0.0, 1e-30, -1.0, -1.0, -1.0], dtype=torch.float64)
    one.remember(shifted(0.5), margin)
    found = torch.tensor([0.5, 0.5, math.inf, 0.5, 0.5, 0.5], dtype=torch.float64)
    assert torch.allclose(one.best.size, found)  # a margin of 0 is broken, one above is not
    assert torch.equal(one.best.Z[2], one.X[2]) and torch.equal(one.best.Z[0], shifted(0.5)[0])
    one.remember(shifted(0.7), margin)
    assert torch.allclose(one.best.size, found)  # longer
    one.remember(shifted(0.2), margin)
    assert torch.allclose(one.best.size, torch.where(found.isfinite(), 0.2, torch.inf).double())  # shorter
    far = task(2.0, torch.full((6,), 1.0, dtype=torch.float64), None)
    far.remember(shifted(1.5), margin)
    assert far.best.size.isinf().all()  # beyond the ball
    far.remember(shifted(1.0), margin)
    edge = far.best.size.isfinite()
    assert (far.best.size[edge] <= 1).all()
    free = task(2.0, None, None)
    free.remember(shifted(1.5), margin)
    assert torch.allclose(free.best.size, torch.where(found.isfinite(), 1.5, torch.inf).double())
    free.remember(shifted(0.1), torch.ones(6, dtype=torch.float64))
    assert torch.allclose(free.best.size, torch.where(found.isfinite(), 1.5, torch.inf).double())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("norm", NORMS)
def test_the_ball_is_smaller_by_what_rounding_may_add(norm, dtype):
    X = (1000 * draws(6, 50)).to(dtype)
    radius = torch.full((6,), 0.5, dtype=torch.float64)
    one = task(norm, radius, None, X)
    within = one.within()
    assert within.dtype == dtype and (within <= radius).all() and (within >= 0).all()
    steps = project((100 * draws(6, 50, 1)).to(dtype), within, norm)
    assert (lengths((X + steps).double() - X.double(), norm) <= radius).all()
    eps = torch.finfo(dtype).eps
    grain = eps * X.abs().amax(dim=1).double() * 50 ** (1 / norm)
    assert torch.equal(within, (radius * (1 - 4 * eps) - grain).clamp(min=0).to(dtype))
    small = task(norm, radius, None, 1e-6 * X)  # where only the factor counts
    assert (small.within().double() < 0.5).all() and torch.allclose(small.within().double(), radius, rtol=1e-5)
    free = task(norm, None, None, X)
    assert torch.equal(free.within(), (free.reach() * (1 - 4 * eps) - grain).clamp(min=0).to(dtype))
    tiny = task(norm, torch.full((6,), 1e-30, dtype=torch.float64), None, X)
    assert (tiny.within() == 0).all()


# ------------------------------------------------------------------------------------------------------ norms


@pytest.mark.parametrize("norm", NORMS)
def test_projections_are_the_nearest_points(norm):
    # Against every other point of the ball that random search finds, and by the condition <z - Pz, w - Pz> <= 0.
    rows, radius = draws(20, 4), torch.linspace(0.05, 3, 20, dtype=torch.float64)
    found = project(rows, radius, norm)
    assert (lengths(found, norm) <= radius * (1 + 1e-12)).all()
    inside = lengths(rows, norm) <= radius
    assert torch.equal(found[inside], rows[inside])
    assert torch.allclose(lengths(found, norm)[~inside], radius[~inside])
    for seed in range(30):
        other = draws(20, 4, 10 + seed)
        other = other / lengths(other, norm)[:, None] * radius[:, None]
        assert (((rows - found) * (other - found)).sum(dim=1) <= 1e-12).all()


@pytest.mark.parametrize("norm", NORMS)
def test_steepest_and_lowest_steps(norm):
    g, radius = draws(20, 4), torch.linspace(0.05, 3, 20, dtype=torch.float64)
    g[0] = 0
    dual = {1.0: math.inf, 2.0: 2.0, math.inf: 1.0}[norm]
    assert torch.allclose((g * steepest(g, norm)).sum(1), lengths(g, dual)) and (steepest(g, norm)[0] == 0).all()
    assert (lengths(steepest(g, norm), norm) <= 1 + 1e-12).all()
    assert torch.allclose((g * linear_minimiser(g, radius, norm)).sum(1), -radius * lengths(g, dual))
    below, above = draws(20, 4, 1).abs(), draws(20, 4, 2).abs()
    below[3, 1] = above[4, 2] = 0
    boxed = linear_minimiser(g, radius, norm, (below, above))
    assert (boxed >= -below).all() and (boxed <= above).all() and (lengths(boxed, norm) <= radius * (1 + 1e-9)).all()
    value = (g * boxed).sum(1)
    for seed in range(40):
        d = draws(20, 4, 50 + seed)
        d = torch.minimum(torch.maximum(d, -below), above)
        d = d * torch.minimum(torch.ones(20).double(), radius / lengths(d, norm).clamp(min=1e-300))[:, None]
        assert (value <= (g * d).sum(1) + 1e-9).all()


@pytest.mark.parametrize("norm", NORMS)
def test_the_shortest_step_to_a_plane(norm):
    g, value = draws(20, 4), draws(20, 1, 5)[:, 0]
    d = to_hyperplane(g, value, norm)
    dual = {1.0: math.inf, 2.0: 2.0, math.inf: 1.0}[norm]
    assert torch.allclose(value + (g * d).sum(1), torch.zeros(20).double(), atol=1e-12)
    assert torch.allclose(lengths(d, norm), value.abs() / lengths(g, dual))
    below, above = draws(20, 4, 1).abs(), draws(20, 4, 2).abs()
    boxed = to_hyperplane(g, value, norm, (below, above))
    assert (boxed >= -below - 1e-12).all() and (boxed <= above + 1e-12).all()
    most = torch.where(-value.sign()[:, None] * g > 0, above, below)
    reach = (g.abs() * most).sum(1)
    left = value + (g * boxed).sum(1)
    can = reach >= value.abs()
    assert can.any() and (~can).any()
    assert torch.allclose(left[can], torch.zeros_like(left[can]), atol=1e-10)
    assert torch.allclose(left[~can].abs(), (value.abs() - reach)[~can])
    for seed in range(40):  # nothing shorter in the box reaches the plane
        d = draws(20, 4, 80 + seed) * 2
        d = torch.minimum(torch.maximum(d, -below), above)
        there = (value.sign() * (value + (g * d).sum(1)) <= 0) & can
        assert (lengths(boxed, norm)[there] <= lengths(d, norm)[there] + 1e-10).all()
    zero = to_hyperplane(torch.zeros(1, 4).double(), torch.ones(1).double(), norm, (below[:1], above[:1]))
    assert (zero == 0).all() and (to_hyperplane(torch.zeros(1, 4).double(), torch.ones(1).double(), norm) == 0).all()


def test_unit_rows_neither_overflow_nor_vanish():
    rows = torch.tensor([[3.0, 4.0], [3e-300, 4e-300], [3e300, 4e300], [0.0, 0.0]], dtype=torch.float64)
    assert torch.allclose(unit(rows), torch.tensor([[0.6, 0.8]] * 3 + [[0.0, 0.0]], dtype=torch.float64))


# ------------------------------------------------------------------------------------------------------ points

ONE, THREE = (lambda X: X.sum(dim=1)), (lambda X: torch.cat([X, X[:, :1]], dim=1))
X2 = torch.ones(3, 2)


@pytest.mark.parametrize(
    ("score", "X", "y", "message"),
    [
        (ONE, torch.ones(3), torch.ones(3), r"X\.shape"),
        (ONE, torch.ones(0, 2), torch.ones(0), r"X\.shape"),
        (ONE, torch.ones(3, 2, dtype=torch.int64), torch.ones(3), r"X\.dtype"),
        (ONE, torch.tensor([[1.0, math.nan]]), torch.ones(1), "finite"),
        (ONE, torch.tensor([[1.0, math.inf]]), torch.ones(1), "finite"),
        (ONE, X2, torch.ones(2), r"y\.shape"),
        (ONE, X2, torch.ones(3, 1), r"y\.shape"),
        (lambda X: X[:, :1], X2, torch.ones(3), r"score\(X\)"),
        (lambda X: X[:, None], X2, torch.ones(3), r"score\(X\)"),
        (lambda X: X[:, :, None], X2, torch.zeros(3, dtype=torch.int64), r"score\(X\)"),
        (ONE, X2, torch.zeros(3), r"labels \+1 and -1"),
        (ONE, X2, torch.tensor([1.0, -1.0, 2.0]), r"labels \+1 and -1"),
        (THREE, X2, torch.tensor([0.0, 1.0, 2.0]), r"whole numbers 0\.\.2"),
        (THREE, X2, torch.tensor([0, 1, 3]), r"whole numbers 0\.\.2"),
        (THREE, X2, torch.tensor([0, 1, -1]), r"whole numbers 0\.\.2"),
        (lambda X: X @ torch.ones(5), X2, torch.ones(3), "what the score takes"),
    ],
)
def test_points_that_cannot_be_right_are_refused(score, X, y, message):
    with pytest.raises(InputError, match=message):
        check_points(score, X, y)


def test_points_that_are_right_pass():
    X, y = check_points(ONE, X2, torch.tensor([1, -1, 1]))
    assert y.dtype == X.dtype
    assert check_points(THREE, X2, torch.tensor([0, 2, 1]))[1].dtype == torch.int64
    assert margin_of(torch.tensor([2.0, -3.0]), torch.tensor([1.0, 1.0])).tolist() == [2.0, -3.0]
    logits = torch.tensor([[1.0, 4.0, 2.0], [1.0, 4.0, 2.0]])
    assert margin_of(logits, torch.tensor([1, 2])).tolist() == [2.0, -2.0]


def test_require_says_what_was_wrong():
    require(True, "x", 1, "anything")
    with pytest.raises(InputError, match=r"^x=1: expected something else\.$"):
        require(False, "x", 1, "something else")
