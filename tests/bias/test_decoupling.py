import math

import pytest
import torch

from polyrelu.bias import ONE_SUBCLASS, decoupling, known_subclasses
from polyrelu.bias.decoupling import bootstrap_centres
from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.errors import InputError
from polyrelu.nets import AverageClassifier, CentreClassifier, PolyReLUNet

MIX = OrthonormalMixture(50, 3, 2, 0.3, rotate=2, dtype=torch.float64)
DATA = MIX.sample(500, seed=1)
UNKNOWN = Dataset(DATA.X, DATA.y)
IDEALS = [(AverageClassifier(MIX.centres, MIX.labels), 0.0, "class averages")]
IDEALS += [(CentreClassifier(MIX.centres, MIX.labels, 3), 1.0, "single centres")]


@pytest.mark.parametrize(("net", "score", "verdict"), IDEALS, ids=["F", "F^(3)"])
def test_ideal_nets_whatever_is_known_of_the_subclasses(net, score, verdict):
    given = decoupling(net, UNKNOWN, MIX.centres, MIX.labels)
    known = decoupling(net, DATA)
    means = decoupling(net, Dataset(DATA.X, DATA.y, DATA.cluster))
    estimated = decoupling(net, UNKNOWN, most=5)
    kinds = ["given", "known", "means of known sub-classes", "estimated"]
    assert [found.centres for found in (given, known, means, estimated)] == kinds
    for found in (given, known):
        assert found.learned.score == pytest.approx(score, abs=1e-12) and found.deviation == 0
        assert found.learned.low == found.learned.high == found.learned.score
    for found in (means, estimated):
        assert found.learned.verdict == verdict and found.learned.score == pytest.approx(score, abs=0.02)
        assert 0 <= found.learned.low <= found.learned.score <= found.learned.high <= 1 and found.deviation > 0
    assert means.others == {} and set(estimated.others) == {(2, 2), (4, 2), (3, 1), (3, 3)}
    assert (
        estimated.learned.high - estimated.learned.low >= max(abs(s - score) for s in estimated.others.values()) - 0.02
    )


def test_estimate_ignores_what_the_data_know():
    assert decoupling(IDEALS[0][0], DATA, estimate=True, count=2).subclasses.counts == (2, 2)


def test_bootstrapped_means_spread_like_means_of_the_rows():
    # the mean of m rows with noise alpha/sqrt(D) a coordinate has deviation alpha/sqrt(D m), and is unbiased
    found = known_subclasses(Dataset(DATA.X, DATA.y, DATA.cluster))
    drawn = bootstrap_centres(DATA, found, 400, seed=0)
    expected = 0.3 / math.sqrt(50 * 100)
    assert drawn.std(dim=0).mean() == pytest.approx(expected, rel=0.05)
    assert (drawn.mean(dim=0) - found.centres).abs().max() < 6 * expected / math.sqrt(400)
    torch.testing.assert_close(drawn, bootstrap_centres(DATA, found, 400, seed=0))


def test_the_deviation_shrinks_with_the_root_of_the_rows():
    def deviation(n):
        data = MIX.sample(n, seed=4)
        return decoupling(IDEALS[1][0], Dataset(data.X, data.y, data.cluster), bootstraps=60).deviation

    assert deviation(250) / deviation(4000) == pytest.approx(4, rel=0.5)


def test_single_blobs_are_undefined_in_words():
    blobs = OrthonormalMixture(50, 1, 1, 0.3).sample(300, seed=0)
    found = decoupling(PolyReLUNet(50, 5, 1.0), Dataset(blobs.X, blobs.y), most=4)
    assert (
        found.learned.verdict == ONE_SUBCLASS and math.isnan(found.learned.score) and found.subclasses.counts == (1, 1)
    )


def test_subclasses_are_sought_from_where_the_net_looks():
    # class +1 at c + e1 and c - e1, c = 30 e1: opposite directions from c, one and the same from 0
    e = torch.eye(50).double()
    where = torch.stack([31 * e[0], 29 * e[0], 30 * e[0] + e[1], 30 * e[0] + e[2]])
    noise = torch.randn(400, 50, generator=torch.Generator().manual_seed(0)).double() / 100
    data = Dataset(where.repeat(100, 1) + noise, torch.tensor([1.0, 1, -1, -1]).repeat(100))
    counts = [
        decoupling(PolyReLUNet(50, 5, 1.0, centre=c, dtype=torch.float64), data, most=4).subclasses.counts
        for c in (30 * e[0], None)
    ]
    assert counts == [(2, 2), (1, 2)]


def test_bad_input_is_explained():
    with pytest.raises(InputError, match="both or neither"):
        decoupling(IDEALS[0][0], DATA, MIX.centres)
    with pytest.raises(InputError, match="bootstraps"):
        decoupling(IDEALS[0][0], DATA, bootstraps=1)
