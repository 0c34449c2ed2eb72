import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from polyrelu.data import SymmetricSeparable
from polyrelu.errors import InputError


def leaky(z, slope=0.5):
    return torch.where(z > 0, z, slope * z)


@pytest.mark.parametrize("rotate", [None, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_row_has_its_mirror_image(rotate, dtype):
    data = SymmetricSeparable(5, rotate=rotate, dtype=dtype).sample(20, seed=0)
    X, y = data.rows(), data.y
    assert torch.equal(X[1::2], -X[::2]) and torch.equal(y[1::2], -y[::2]) and len(data) == 20


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("margin", [0.3, 1.0, 7.0])
def test_the_direction_is_the_max_margin_one_and_the_margin_exact(seed, margin):
    recipe = SymmetricSeparable(5, margin, rotate=3, dtype=torch.float64)
    data = recipe.sample(20, seed)
    inward = data.y[:, None] * data.rows()
    # Upper bound: the mean of two y_i x_i is margin u, so no unit w has min_i <w, y_i x_i> above margin. Lower: u does.
    assert torch.allclose((inward[0] + inward[2]) / 2, margin * recipe.direction, atol=1e-12)
    assert (inward @ recipe.direction).min() == pytest.approx(margin, rel=1e-12)
    assert recipe.linear_margin == margin and recipe.direction.norm() == pytest.approx(1, rel=1e-12)


def test_the_class_mean_is_not_already_the_answer():
    data = SymmetricSeparable(5, dtype=torch.float64).sample(20, seed=0)
    mean = data.class_means()[0]
    assert mean[0] / mean.norm() < 0.99


def test_spread_has_the_stated_moments():
    n = 4000
    data = SymmetricSeparable(6, 2.0, spread=0.5, rotate=1, dtype=torch.float64).sample(n, seed=5)
    recipe = SymmetricSeparable(6, 2.0, rotate=1, dtype=torch.float64)
    x = data.rows()[4::2]
    t = x @ recipe.direction
    z = x - t[:, None] * recipe.direction
    # |z|^2 / spread^2 is chi-square with 5 degrees of freedom: mean 5, variance 10; (t-margin)/spread is |N(0,1)|.
    assert abs((z**2).sum(1).mean() / 0.25 - 5) < 5 * math.sqrt(10 / len(x))
    assert abs(((t - 2) ** 2).mean() / 0.25 - 1) < 5 * math.sqrt(2 / len(x)) and t.min() >= 2
    assert torch.equal(
        SymmetricSeparable(6, 2.0, spread=0.0).sample(4, 0).rows()[0], torch.tensor([2.0, 0, 0, 0, 0, 0])
    )


@pytest.mark.parametrize("extra", [3, 5])
@pytest.mark.parametrize("rotate", [None, 2])
def test_extra_points_keep_the_direction_and_lower_the_margin(extra, rotate):
    recipe = SymmetricSeparable(5, 1.5, extra=extra, rotate=rotate, dtype=torch.float64)
    data = recipe.sample(20, seed=1)
    X, y = data.rows(), data.y
    assert len(data) == 20 + extra and torch.equal(X[1:20:2], -X[:20:2]) and (y[20:] == 1).all()
    assert (X[:20] @ recipe.side).abs().max() < 1e-12
    assert torch.allclose((X[20] + X[21]) / 2, 0.3 * recipe.direction, atol=1e-12)
    assert (y * (X @ recipe.direction)).min() == pytest.approx(0.3) == recipe.linear_margin
    assert torch.allclose(X[22:], 45 * torch.arange(1, extra - 1)[:, None] * recipe.direction, atol=1e-12)


@pytest.mark.parametrize("slope", [0.25, 0.5, 0.7])
@pytest.mark.parametrize("seed", range(3))
def test_the_hand_built_net_beats_the_linear_rule_on_changed_data(slope, seed):
    recipe = SymmetricSeparable(5, extra=3, rotate=0, dtype=torch.float64)
    data = recipe.sample(20, seed)
    along, aside = data.rows() @ recipe.direction, data.rows() @ recipe.side
    # One balanced neuron c phi(<u,x>) has |theta|^2 = 2c.
    single = (data.y * leaky(along, slope)).min() / 2
    assert single == pytest.approx(recipe.linear_margin / 2)
    # The net of the docstring: two neurons of weight a, two of weight b, |theta|^2 = 4 (a + b).
    a, b = 1 / ((1 - slope) * 2.0), 1 / (1 + slope)
    f = a * (leaky(aside, slope) + leaky(-aside, slope)) + b * (leaky(along, slope) - leaky(-along, slope))
    built = (data.y * f).min() / (4 * (a + b))
    assert built >= 0.25 / (a + b) * (1 - 1e-9) and (slope > 0.6 or built > 1.3 * single)


def test_gradient_descent_from_a_small_start_takes_the_bait():
    # Claim E16 in small: leaky ReLU, slope 1/2, 20 neurons. The positive neurons take everything, along u.
    recipe = SymmetricSeparable(5, extra=3, dtype=torch.float64)
    data = recipe.sample(20, seed=0)
    X, y = data.rows(), data.y
    generator = torch.Generator().manual_seed(1)
    W = 1e-6 * torch.randn(20, 5, generator=generator, dtype=torch.float64)
    v = W.norm(dim=1) * torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(10)
    for _ in range(1500):
        Z = X @ W.T
        r = y * torch.softmax(-y * (leaky(Z) @ v), 0)
        rate = 0.05 / (r.abs() * X.norm(dim=1)).sum()
        slopes = torch.where(Z > 0, 1.0, 0.5)
        W, v = W + rate * (r[:, None] * slopes * v).T @ X, v + rate * leaky(Z).T @ r
    margin = (y * (leaky(X @ W.T) @ v)).min() / (W.square().sum() + v.square().sum())
    assert margin > 0 and margin < 0.105 < 0.15
    assert (W.norm(dim=1) * (v < 0)).max() < 0.01 * W.norm(dim=1).max()
    assert W[W.norm(dim=1).argmax(), 0] > 0.99 * W.norm(dim=1).max()


def test_seeds_and_name():
    recipe = SymmetricSeparable(5, 0.5, extra=3, rotate=1)
    assert torch.equal(recipe.sample(20, 1).rows(), recipe.sample(20, 1).rows())
    assert not torch.equal(recipe.sample(20, 1).rows(), recipe.sample(20, 2).rows())
    assert recipe.sample(20, 1).name == "symmetric:dim=5,margin=0.5,extra=3,rotate=1,n=20,seed=1"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SymmetricSeparable(1), r"dim=1: expected a whole number >= 2\."),
        (lambda: SymmetricSeparable(2, extra=3), r"dim=2: expected a whole number >= 3\."),
        (lambda: SymmetricSeparable(5, 0.0), r"margin=0.0: expected a finite number > 0\."),
        (lambda: SymmetricSeparable(5, spread=-1.0), r"spread=-1.0: expected a finite number >= 0\."),
        (lambda: SymmetricSeparable(5, extra=2), r"extra=2: expected 0, or at least 3 \(two blockers and a hint\)\."),
        (lambda: SymmetricSeparable(5, extra=-1), r"extra=-1: expected a whole number >= 0\."),
        (lambda: SymmetricSeparable(5, rotate="a"), r"rotate='a': expected a whole number >= 0\."),
        (lambda: SymmetricSeparable(5, dtype=torch.half), r"dtype=torch.float16: expected torch.float32"),
        (lambda: SymmetricSeparable(5).sample(5, 0), r"n=5: expected an even number >= 4\."),
        (lambda: SymmetricSeparable(5).sample(2, 0), r"n=2: expected an even number >= 4\."),
        (lambda: SymmetricSeparable(5).sample(4, -1), r"seed=-1: expected a whole number >= 0\."),
    ],
)
def test_bad_settings_are_named(make, message):
    with pytest.raises(InputError, match="^" + message):
        make()


@given(
    dim=st.integers(3, 12),
    pairs=st.integers(2, 30),
    extra=st.sampled_from([0, 3, 4]),
    margin=st.floats(1e-3, 1e3),
    spread=st.floats(0, 10),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_separable_with_the_margin_for_any_setting(dim, pairs, extra, margin, spread, dtype):
    recipe = SymmetricSeparable(dim, margin, spread, extra, rotate=dim, dtype=dtype)
    data = recipe.sample(2 * pairs, seed=pairs)
    X = data.rows()
    assert X.shape == (2 * pairs + extra, dim) and X.dtype == data.y.dtype == dtype
    slack = 8 * torch.finfo(dtype).eps * float(X.norm(dim=1).max())
    assert (data.y * (X @ recipe.direction)).min() >= recipe.linear_margin - slack
