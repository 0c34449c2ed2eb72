import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from polyrelu.data import NearlyOrthogonalSphere
from polyrelu.errors import InputError


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_lie_on_the_sphere(dtype):
    data = NearlyOrthogonalSphere(100, dtype).sample(2000, seed=0)
    assert torch.allclose(data.rows().norm(dim=1), torch.full((2000,), 10.0, dtype=dtype), rtol=1e-6)


def test_rows_are_uniform_and_nearly_orthogonal():
    d, n = 100, 2000
    X = NearlyOrthogonalSphere(d, torch.float64).sample(n, seed=1).rows()
    # A coordinate has mean 0, variance 1 and fourth moment 3d/(d+2) <= 3.
    assert X.mean(0).abs().max() < 5 / math.sqrt(n)
    assert ((X**2).mean(0) - 1).abs().max() < 5 * math.sqrt(2 / n)
    # <x_i, x_j> has mean 0 and variance d; neighbours also across the border of two blocks.
    products = (X[1:] * X[:-1]).sum(1)
    assert abs(products.mean()) < 5 * math.sqrt(d / n)
    assert abs((products**2).mean() / d - 1) < 5 * math.sqrt(2 / n)
    assert products.abs().max() < 6 * math.sqrt(d) < d


def test_labels_are_fair_coins_independent_of_the_rows():
    data = NearlyOrthogonalSphere(50).sample(10000, seed=2)
    assert abs(data.y.mean()) < 5 / math.sqrt(10000)
    assert (data.y @ data.rows() / 10000).abs().max() < 5 / math.sqrt(10000)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_both_labels_always_occur(n):
    labels = [tuple(NearlyOrthogonalSphere(2).sample(n, seed=s).y.tolist()) for s in range(100)]
    assert all(set(y) == {1.0, -1.0} for y in labels) and len(set(labels)) == 2**n - 2


def test_seeds():
    sphere = NearlyOrthogonalSphere(10)
    a, b, c = (sphere.sample(1500, seed=s) for s in (1, 1, 2))
    assert torch.equal(a.rows(), b.rows()) and torch.equal(a.y, b.y)
    assert not torch.equal(a.rows(), c.rows()) and not torch.equal(a.y, c.y)
    assert torch.equal(NearlyOrthogonalSphere(10, torch.float64).sample(1500, seed=1).rows().float(), a.rows())
    assert a.name == "sphere:dim=10,n=1500,seed=1"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NearlyOrthogonalSphere(1), r"dim=1: expected a whole number >= 2\."),
        (
            lambda: NearlyOrthogonalSphere(5, torch.int64),
            r"dtype=torch.int64: expected torch.float32 or torch.float64\.",
        ),
        (lambda: NearlyOrthogonalSphere(5).sample(1, 0), r"n=1: expected a whole number >= 2\."),
        (lambda: NearlyOrthogonalSphere(5).sample(5, -2), r"seed=-2: expected a whole number >= 0\."),
    ],
)
def test_bad_settings_are_named(make, message):
    with pytest.raises(InputError, match="^" + message):
        make()


@given(dim=st.integers(2, 20), n=st.integers(2, 1100), dtype=st.sampled_from([torch.float32, torch.float64]))
def test_shapes_and_types_for_any_size(dim, n, dtype):
    data = NearlyOrthogonalSphere(dim, dtype).sample(n, seed=n)
    assert data.rows().shape == (n, dim) and data.rows().dtype == data.y.dtype == dtype
