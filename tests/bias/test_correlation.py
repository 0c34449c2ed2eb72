"""The correlation map against cosines written out pair by pair, closed forms, and the digits."""

from __future__ import annotations

import math

import pytest
import torch

from polyrelu.bias import correlation
from polyrelu.data import Dataset, OrthonormalMixture, read
from polyrelu.errors import InputError


def brute(X: torch.Tensor, centre: bool) -> torch.Tensor:
    X = X.double() - (X.double().mean(dim=0) if centre else 0)
    U = X / X.norm(dim=1, keepdim=True)
    return U @ U.T


@pytest.mark.parametrize("centre", [True, False])
def test_means_are_those_of_all_pairs(centre):
    data = read("digits", limit=150)
    found, cosines = correlation(data, centre), brute(data.X, centre)
    off = ~torch.eye(150, dtype=torch.bool)
    same = (data.y[:, None] == data.y) & off
    for a, b in ((0, 0), (3, 3), (2, 7)):
        pairs = (data.y[:, None] == a) & (data.y == b) & off
        assert float(found.means[a, b]) == pytest.approx(float(cosines[pairs].mean()), abs=1e-12)
    assert found.within == pytest.approx(float(cosines[same].mean()), abs=1e-12)
    assert found.between == pytest.approx(float(cosines[~same & off].mean()), abs=1e-12)
    assert found.matrix == pytest.approx(cosines[found.index][:, found.index], abs=1e-12)
    assert found.means == pytest.approx(found.means.T, abs=1e-14)


def test_the_digits_of_claim_d6():
    """.424 and -.047 (where a pair may be i = i; without those .421)."""
    digits = read("digits")
    found = correlation(digits)
    counts = found.counts.double()
    with_itself = (found.means.diag() * counts * (counts - 1) + counts).sum() / counts.square().sum()
    assert float(with_itself) == pytest.approx(0.424, abs=5e-4)
    assert found.within == pytest.approx(0.421, abs=5e-4)
    assert found.between == pytest.approx(-0.047, abs=5e-4)
    parity = correlation(read("digits:parity"))  # the hidden digit, even ones first
    assert parity.within == pytest.approx(found.within, abs=1e-12)
    assert parity.names[:6] == tuple(f"cluster {k}" for k in (0, 2, 4, 6, 8, 1))


def test_orthonormal_centres_have_cosines_one_and_zero():
    data = OrthonormalMixture(12, 3, 2, 0.0).sample(50, 0)
    found = correlation(data, centre=False)
    assert found.means == pytest.approx(torch.eye(5), abs=1e-7)
    assert (found.within, found.between) == (pytest.approx(1), pytest.approx(0, abs=1e-7))
    centred = correlation(data)  # mu_k - mean: cosine -1/(K - 1)
    assert centred.between == pytest.approx(-1 / 4, abs=1e-6)


def test_sub_sample_is_sorted_repeatable_and_of_rows_that_exist():
    data = read("digits")
    one, two = correlation(data, most=100, seed=3), correlation(data, most=100, seed=3)
    assert one.matrix.shape == (100, 100)
    assert torch.equal(one.index, two.index)
    assert len(set(one.index.tolist())) == 100
    assert not torch.equal(one.index, correlation(data, most=100, seed=4).index)
    assert torch.equal(one.group, data.y[one.index])
    assert (one.group.diff() >= 0).all()
    starts = [0, *one.boundaries.tolist(), 100]
    for k in range(10):
        assert (one.group[starts[k] : starts[k + 1]] == k).all()
    assert one.within == correlation(data, most=5).within  # the means do not depend on what is shown


def test_binary_rotated_and_with_a_row_that_has_no_direction():
    X = torch.tensor([[1.0, 0], [-1, 0], [0, 2], [0, -2], [0, 0]], dtype=torch.float64)
    y = torch.tensor([1.0, -1, -1, -1, 1])
    found = correlation(Dataset(X, y))  # the mean is 0, the last row is at it
    assert found.names == ("y=+1", "y=-1")
    assert found.index.tolist() == [0, 1, 2, 3]
    assert found.counts.tolist() == [1, 3]
    assert math.isnan(float(found.means[0, 0]))  # one row is no pair
    assert float(found.means[1, 1]) == pytest.approx(-1 / 3)  # pairs: 0, 0, -1
    assert float(found.means[0, 1]) == pytest.approx(-1 / 3)
    turn = torch.linalg.qr(torch.randn(2, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)).Q
    assert correlation(Dataset(7 * X @ turn, y)).matrix == pytest.approx(found.matrix, abs=1e-12)


def test_bad_input_is_refused_in_words():
    data = read("digits", limit=20)
    with pytest.raises(InputError, match="most=0"):
        correlation(data, most=0)
    with pytest.raises(InputError, match="rows that differ"):
        correlation(Dataset(torch.ones(4, 2), torch.tensor([1.0, -1, 1, -1])))
    with pytest.raises(InputError, match="rows of two classes"):
        correlation(Dataset(torch.randn(4, 2), torch.tensor([1.0, -1, 1, -1]), cluster=torch.zeros(4).long()))


def test_one_row_a_class_has_no_mean_cosine_within():
    found = correlation(Dataset(torch.eye(3), torch.arange(3)))
    assert math.isnan(found.within) and found.means.diagonal().isnan().all() and math.isfinite(found.between)
