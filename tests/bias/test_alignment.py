"""Cosines, carriers and balance on nets whose answer is known; the field against loops, autograd and descent."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from polyrelu import Dataset, InputError, OrthonormalMixture, PolyReLUNet
from polyrelu.bias import alignment, alignment_field, alignment_speed, balance, dominant_neurons, weighted_quantiles
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


def mixture(dim=20, n=200, positive=6, negative=4, alpha=0.1, seed=0, rotate=None):
    return OrthonormalMixture(dim, positive, negative, alpha, rotate=rotate, dtype=F64).sample(n, seed=seed)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, 4.2])
def test_the_field_is_the_printed_sum(p, rough):
    data, W = rough(), torch.randn(5, 8, dtype=F64, generator=torch.Generator().manual_seed(0))
    field = alignment_field(data, W, p)
    for w, found in zip(W, field, strict=True):
        wanted = torch.zeros(8, dtype=F64)
        for x, y in zip(data.X, data.y, strict=True):
            cosine = x @ w / x.norm() / w.norm()
            if cosine > 0:
                wanted += y * p * cosine ** (p - 1) * x
        assert torch.allclose(found, wanted, rtol=1e-12, atol=1e-12)
    assert torch.allclose(alignment_field(data, 1e-200 * W, p), field, rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
def test_the_speed_is_that_of_the_true_gradient(p, normalise, classes, rough):
    # A net of size 1e-12 has f = 0 to twelve digits: its loss gradient is the alignment field times |v|/|w|.
    data, outputs = rough(classes), 1 if classes == 2 else 3
    settings = {"centre": torch.full((8,), 0.3), "normalise_input": normalise, "scale": 1e-6, "dtype": F64}
    net = PolyReLUNet(8, 30, p, outputs, **settings)
    f = net(data.X)
    loss = (-data.y * f).exp().sum() if classes == 2 else torch.nn.functional.cross_entropy(f, data.y, reduction="sum")
    loss.backward()
    W, v = net.weight.detach(), net.output.detach().T
    r, u = W.norm(dim=1, keepdim=True), normalize(W)
    pull = -net.weight.grad
    turn = (pull - (pull * u).sum(1, keepdim=True) * u) / r
    speed = alignment_speed(net, data) * v.norm(dim=1, keepdim=True) / r
    assert classes > 2 or {-1.0, 1.0} == set(v[:, 0].sign().tolist())
    assert torch.allclose(speed, turn, rtol=1e-7, atol=1e-7 * float(turn.abs().max()))
    assert float(torch.cosine_similarity(speed, turn).min()) >= 0.9999


def test_a_step_of_descent_turns_neurons_along_the_printed_field():
    # B27: D = 20, start 1e-8, finite difference of directions; without sign(v) the negative ones go the wrong way.
    data = mixture()
    for p in (1.0, 3.0):
        net = PolyReLUNet(20, 40, p, init="balanced", scale=1e-8, dtype=F64)
        before = net.directions()
        (-data.y * net(data.X)).exp().sum().backward()
        with torch.no_grad():
            net.weight -= 1e-6 * net.weight.grad
        moved = (net.directions() - before) / 1e-6
        printed = alignment_field(data, before, p)
        across = printed - (printed * before).sum(1, keepdim=True) * before
        cosines = torch.cosine_similarity(moved, across)
        sign = net.output.detach()[0].sign()
        assert float((sign * cosines).min()) >= 0.999
        assert float(cosines[sign < 0].max()) <= -0.999
        assert float(torch.cosine_similarity(moved, alignment_speed(net, data)).min()) >= 0.9999


def test_classes_pull_with_their_share(rough):
    # 1[y=1] - 1/3 = (y' + 1/3)/2 with y' = +1 for class 1 and -1 for the others, so twice the field of class 1 is
    # that of y' plus a third of that of all rows, counted +1 (the last one is the origin, which pulls nowhere).
    data, W = rough(3), torch.randn(4, 8, dtype=F64, generator=torch.Generator().manual_seed(1))
    fields = [alignment_field(data, W, 2, target=c) for c in range(3)]
    assert torch.allclose(sum(fields), torch.zeros(4, 8, dtype=F64), atol=1e-12)
    one = Dataset(data.X, torch.where(data.y == 1, 1.0, -1.0).to(F64))
    signs = torch.ones(61, dtype=F64)
    signs[-1] = -1
    every = Dataset(torch.cat([data.X, torch.zeros(1, 8, dtype=F64)]), signs)
    assert torch.allclose(2 * fields[1], alignment_field(one, W, 2) + alignment_field(every, W, 2) / 3, atol=1e-10)


def test_the_field_turns_with_the_data(rough):
    data, W = rough(), torch.randn(4, 8, dtype=F64, generator=torch.Generator().manual_seed(1))
    Q = torch.linalg.qr(torch.randn(8, 8, dtype=F64, generator=torch.Generator().manual_seed(2)))[0]
    turned = alignment_field(Dataset(data.X @ Q, data.y), W @ Q, 2.5)
    assert torch.allclose(turned, alignment_field(data, W, 2.5) @ Q, atol=1e-10)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda rough: alignment_field(rough(), torch.ones(3, 7), 1), "one row per neuron"),
        (lambda rough: alignment_field(rough(), torch.ones(3, 8), 0.5), "p=0.5"),
        (lambda rough: alignment_field(rough(), torch.ones(3, 8), 1, target=0), "None for labels"),
        (lambda rough: alignment_field(rough(3), torch.ones(3, 8), 1), "a class 0..2"),
        (lambda rough: alignment_speed(PolyReLUNet(8, 3, 1, 3), rough()), "net.outputs=3"),
    ],
)
def test_bad_input(call, words, rough):
    with pytest.raises(InputError, match=words):
        call(rough)
