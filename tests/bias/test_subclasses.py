import numpy as np
import pytest
import torch

from polyrelu.bias import estimate_subclasses, known_subclasses
from polyrelu.bias.subclasses import spherical_kmeans, stability
from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.errors import InputError


def mixture(alpha, positive=6, negative=4, n=1000, seed=3, dim=100):
    return OrthonormalMixture(dim, positive, negative, alpha, rotate=1).sample(n, seed)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_the_number_of_subclasses_and_their_centres_are_recovered(alpha):
    data = mixture(alpha)
    found = estimate_subclasses(data, most=9, seed=2)
    assert found.counts == (6, 4) and [len(s) for s in found.stabilities] == [9, 9]
    distance = torch.cdist(found.centres, data.centres.double())
    match = distance.argmin(dim=1)
    assert sorted(match.tolist()) == list(range(10)) and torch.equal(match[found.cluster], data.cluster)
    assert distance.amin(dim=1).max() < 1.3 * alpha / 10  # a mean of 100 rows is alpha/10 off
    assert torch.equal(found.labels, data.y[[int((found.cluster == k).int().argmax()) for k in range(10)]])
    assert found.sizes.tolist() == [100] * 10


@pytest.mark.slow
def test_more_rows_than_the_search_looks_at():
    data = OrthonormalMixture(300, 3, 2, 0.1).sample(6000, seed=0, lazy=True)
    found = estimate_subclasses(data, most=5, rows=300)
    assert found.counts == (3, 2) and found.sizes.tolist() == [1200] * 5


def test_single_blobs_have_one_subclass():
    found = estimate_subclasses(mixture(0.5, 1, 1), most=6)
    assert found.counts == (1, 1) and found.fewer == (None, None)


def test_several_classes():
    mix = OrthonormalMixture(20, 3, 3, 0.1).sample(600, 0)
    found = estimate_subclasses(Dataset(mix.rows(), mix.cluster // 2), most=4)
    assert found.counts == (2, 2, 2) and found.labels.tolist() == [0, 0, 1, 1, 2, 2]


def test_a_given_number_is_used_and_the_seed_decides_the_rest():
    data = mixture(1.0, n=200)
    one, two = (estimate_subclasses(data, (3, 5), seed=7) for _ in range(2))
    assert one.counts == (3, 5) and one.stabilities == () and torch.equal(one.cluster, two.cluster)
    assert estimate_subclasses(data, 2).counts == (2, 2)
    assert [len(rows) for rows in one.more] == [4, 6] and [len(rows) for rows in one.fewer] == [2, 4]


def test_known_subclasses_are_ordered_by_class_and_labelled_by_most_of_their_rows():
    X = torch.tensor([[1.0, 0], [3, 0], [0, 1], [0, 5], [0, 3], [-1, 0]])
    y, cluster = torch.tensor([-1, -1, 1, 1, -1, 1]), torch.tensor([2, 2, 5, 5, 5, 0])
    found = known_subclasses(Dataset(X, y, cluster))
    torch.testing.assert_close(found.centres, torch.tensor([[-1.0, 0], [0, 3], [2, 0]]).double())
    assert found.labels.tolist() == [1, 1, -1] and found.counts == (2, 1) and not found.exact
    assert found.cluster.tolist() == [2, 2, 1, 1, 1, 0] and found.sizes.tolist() == [1, 3, 2]


def test_true_centres_are_kept_and_rows_are_given_to_the_nearest_where_clusters_are_unknown():
    data = mixture(0.1, n=50)
    found = known_subclasses(data)
    assert found.exact and torch.equal(found.centres, data.centres.double()) and found.counts == (6, 4)
    bare = known_subclasses(Dataset(data.X, data.y, centres=data.centres))
    assert torch.equal(bare.cluster, found.cluster) and torch.equal(bare.labels, found.labels)
    assert known_subclasses(Dataset(data.X, data.y)) is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"count": 200}, "has 30 rows; ask for fewer"),
        ({"count": (1, 2, 3)}, "one for each class"),
        ({"count": 0}, "count"),
        ({"most": 0}, "most"),
        ({"seed": -1}, "seed"),
        ({"origin": torch.zeros(3)}, "origin"),
    ],
)
def test_bad_input_is_explained(options, words):
    with pytest.raises(InputError, match=words):
        estimate_subclasses(mixture(0.1, n=50), **options)


def test_true_centres_without_rows_are_left_out_and_the_others_stay_with_theirs():
    centres = torch.eye(4)
    data = Dataset(centres[[0, 2, 3]], torch.tensor([1.0, 1.0, -1.0]), torch.tensor([0, 2, 3]), centres)
    found = known_subclasses(data)
    assert torch.equal(found.centres[found.cluster], data.rows().double()) and found.counts == (2, 1)


def test_more_sub_classes_than_are_looked_at_and_odd_counts():
    data = Dataset(torch.randn(400, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([1.0, -1.0] * 200))
    assert estimate_subclasses(data, count=10, rows=5).counts == (10, 10)
    assert estimate_subclasses(data, count=np.int64(2)).counts == (2, 2)
    for count in (300, 2.5, "two"):
        with pytest.raises(InputError, match="count="):
            estimate_subclasses(data, count=count)


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
