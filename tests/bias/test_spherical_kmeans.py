import pytest
import torch

from polyrelu.bias.spherical_kmeans import spherical_kmeans, stability
from polyrelu.data import OrthonormalMixture


def test_spherical_kmeans_finds_the_best_of_few_rows():
    # all 2^7 partitions of 8 rows in two: the value of a part is the length of its sum
    X = torch.nn.functional.normalize(torch.randn(8, 3, generator=torch.Generator().manual_seed(1)).double(), dim=1)
    masks = [torch.tensor([bool(code >> i & 1) for i in range(8)]) for code in range(128)]
    best = max(float(X[mask].sum(0).norm() + X[~mask].sum(0).norm()) for mask in masks)
    M = spherical_kmeans(X, 2, torch.Generator().manual_seed(0), restarts=20)
    assert float((X @ M.T).amax(1).sum()) == pytest.approx(best)
    torch.testing.assert_close(M.norm(dim=1), torch.ones(2).double())


def test_stability_is_one_for_what_comes_back_and_low_for_what_does_not():
    data = OrthonormalMixture(100, 6, 4, 0.5, rotate=1).sample(1000, 3)
    X = torch.nn.functional.normalize(data.rows()[data.y < 0], dim=1)
    source = torch.Generator().manual_seed(0)
    assert stability(X, 1, source, 3) == stability(X, 4, source, 3) == 1
    assert all(stability(X, k, source, 3) < 0.75 for k in (2, 3, 5, 6))
