"""Cosines, carriers and balance on nets whose answer is known; weighted quantiles."""

import math

import numpy as np
import pytest
import torch

from polyrelu import Dataset, InputError, OrthonormalMixture, PolyReLUNet
from polyrelu.bias import alignment, balance, dominant_neurons, weighted_quantiles
from polyrelu.nets import AverageClassifier, CentreClassifier

F64 = torch.float64
MIX = OrthonormalMixture(dim=20, positive=6, negative=4, alpha=0.0, rotate=3, dtype=F64)


def test_carriers_are_the_fewest_that_reach_the_share():
    # Contributions 1, 60, 30, 9: 60 + 30 + 9 = 99 of 100 is just enough, the 1 is not needed.
    logs = np.log([1.0, 60.0, 30.0, 9.0])
    assert dominant_neurons(logs, 0.98).tolist() == [1, 2, 3]
    assert dominant_neurons(logs, 0.5).tolist() == [1]
    assert dominant_neurons(logs, 0.995).tolist() == [1, 2, 3, 0]


def test_carriers_do_not_depend_on_the_size_of_the_net():
    logs = np.log([5.0, 1.0, 3.0, 0.001])
    assert dominant_neurons(logs - 2000).tolist() == dominant_neurons(logs).tolist() == [0, 2, 1]


@pytest.mark.parametrize("logs", [[], [-np.inf, -np.inf], [np.nan, 0.0]])
def test_nothing_carries_an_empty_or_broken_net(logs):
    assert dominant_neurons(np.array(logs)).size == 0


def test_a_dead_neuron_carries_nothing():
    assert dominant_neurons(np.array([0.0, -np.inf])).tolist() == [0]


def test_quantiles_with_equal_weights_are_order_statistics():
    values = np.random.default_rng(0).normal(size=(7, 11))
    found = weighted_quantiles(values, np.ones(11), (0.1, 0.5, 0.9))
    ordered = np.sort(values, axis=1)
    assert np.array_equal(found, ordered[:, [1, 5, 9]])  # ceil(11 level) - 1


def test_a_heavy_neuron_is_the_median():
    found = weighted_quantiles(np.array([[0.1, 0.9, 0.5]]), np.array([0.2, 0.7, 0.1]), (0.1, 0.5, 0.9))
    assert found.tolist() == [[0.1, 0.9, 0.9]]


def test_the_ideal_nets_point_at_what_they_are_made_of():
    data = MIX.sample(100, seed=0)
    one = alignment(AverageClassifier(MIX.centres, MIX.labels).as_polyrelu_net(), data)
    assert torch.allclose(one.averages, torch.eye(2, dtype=F64), atol=1e-12)
    own = torch.tensor([[6**-0.5] * 6 + [0] * 4, [0] * 6 + [0.5] * 4], dtype=F64)
    assert torch.allclose(one.centres, own, atol=1e-12)
    assert one.best_average == pytest.approx(1)
    assert not bool(one.covered.any())
    assert torch.allclose(one.contributions, torch.tensor([6**0.5, 2.0], dtype=F64))
    three = alignment(CentreClassifier(MIX.centres, MIX.labels).as_polyrelu_net(), data)
    assert torch.allclose(three.centres, torch.eye(10, dtype=F64), atol=1e-12)
    assert three.best_centre == pytest.approx(1)
    assert three.best_average == pytest.approx(6**-0.5)
    assert bool(three.covered.all())
    assert sorted(three.dominant.tolist()) == list(range(10))


def net_of(W, v, **settings):
    net = PolyReLUNet(W.shape[1], len(W), 3, init="zeros", dtype=F64, **settings)
    with torch.no_grad():
        net.weight.copy_(W)
        net.output.copy_(v)
    return net


def test_small_neurons_count_for_little():
    data = MIX.sample(100, seed=0)
    W = torch.cat([MIX.centres[:2], -MIX.centres[:3]])
    found = alignment(net_of(W, torch.tensor([60.0, 38, 1, 0.5, 0.5])), data)
    assert found.dominant.tolist() == [0, 1, 2]
    assert found.covered.tolist() == [True, True] + [False] * 8
    assert found.best_centre == pytest.approx(1)


def test_centres_are_seen_from_the_net_s_own_centre():
    data, shift = MIX.sample(100, seed=0), torch.linspace(-1, 1, 20, dtype=F64)
    moved = Dataset(data.X + shift, data.y, data.cluster, data.centres + shift)
    W = torch.randn(7, 20, dtype=F64, generator=torch.Generator().manual_seed(0))
    plain, there = alignment(net_of(W, torch.ones(7)), data), alignment(net_of(W, torch.ones(7), centre=shift), moved)
    assert torch.allclose(plain.centres, there.centres, atol=1e-12)
    assert torch.allclose(plain.averages, there.averages, atol=1e-12)


def test_alignment_turns_with_the_data_and_keeps_the_order_of_neurons():
    data, source = MIX.sample(100, seed=0), torch.Generator().manual_seed(0)
    W, v = torch.randn(7, 20, dtype=F64, generator=source), torch.randn(7, dtype=F64, generator=source)
    Q = torch.linalg.qr(torch.randn(20, 20, dtype=F64, generator=source))[0]
    order = torch.randperm(7, generator=source)
    turned = Dataset(data.X @ Q, data.y, data.cluster, data.centres @ Q)
    one, other = alignment(net_of(W, v), data), alignment(net_of(W[order] @ Q, v[order]), turned)
    assert torch.allclose(one.centres[order], other.centres, atol=1e-12)
    assert other.best_centre == pytest.approx(one.best_centre)
    assert [int(order[j]) for j in other.dominant] == one.dominant.tolist()


def test_classes_in_their_order_and_data_without_centres():
    X = torch.eye(3, dtype=F64)
    found = alignment(net_of(X, torch.ones(3)), Dataset(X, torch.tensor([0, 1, 2])))
    assert found.averages.tolist() == torch.eye(3).tolist()
    assert (found.centres, found.covered, found.best_centre) == (None, None, None)


def test_a_net_of_zeros_has_no_carriers():
    found = alignment(net_of(torch.zeros(3, 20), torch.zeros(3)), MIX.sample(50, seed=0))
    assert (len(found.dominant), found.best_average, found.best_centre) == (0, None, None)
    assert not bool(found.covered.any())


def test_a_start_of_any_size_is_aligned_alike():
    data = MIX.sample(50, seed=0)
    one, tiny = (
        alignment(PolyReLUNet(20, 9, 3, init="balanced", scale=s, seed=1, dtype=F64), data) for s in (1.0, 1e-300)
    )
    assert torch.allclose(one.centres, tiny.centres, atol=1e-12)
    assert one.dominant.tolist() == tiny.dominant.tolist()
    assert one.best_average == pytest.approx(tiny.best_average)


def test_other_dimensions_are_refused():
    with pytest.raises(InputError, match=r"data\.dim=20: expected 5"):
        alignment(PolyReLUNet(5, 3), MIX.sample(50, seed=0))


def test_balance_by_hand():
    # |w| = 5, |v| = 3 and |w| = 1, |v| = 1.5: differences 16 and 1.25, of 25 and 2.25.
    found = balance(net_of(torch.tensor([[3.0, 4], [1, 0]]), torch.tensor([-3.0, 1.5])))
    assert found.absolute == pytest.approx(16)
    assert found.relative == pytest.approx(max(16 / 25, 1.25 / 2.25))


def test_balance_at_any_size():
    net = PolyReLUNet(30, 8, 3, init="balanced", scale=1e-300)
    assert balance(net).relative < 1e-6
    off = PolyReLUNet(30, 8, 3, init="gaussian", scale=1e-300, dtype=F64)
    unit = PolyReLUNet(30, 8, 3, init="gaussian", dtype=F64)
    found, wanted = balance(off), balance(unit)
    assert found.relative == pytest.approx(wanted.relative)
    assert found.log_absolute == pytest.approx(wanted.log_absolute + 2 * math.log(1e-300))
    assert found.absolute == 0.0
    assert wanted.absolute == pytest.approx(
        float((unit.weight.square().sum(1) - unit.output[0].square()).detach().abs().max())
    )


def test_a_zero_neuron_is_balanced_and_half_a_one_is_not():
    assert balance(net_of(torch.zeros(2, 3), torch.zeros(2))).absolute == 0
    half = balance(net_of(torch.eye(3)[:1] * 2, torch.zeros(1)))
    assert (half.absolute, half.relative) == (pytest.approx(4), 1)
