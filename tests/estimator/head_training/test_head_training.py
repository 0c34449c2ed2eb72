"""Heads: weights of samples, the unit of length, the start at rows, held-out rows, rows that are not in memory."""

import math

import numpy as np
import pytest
import torch

from polyrelu import Dataset, InputError, PolyReLUClassifier, PolyReLUNet, Status, descend, flow
from polyrelu.estimator.head_training import HeadStart, location
from polyrelu.estimator.head_training.adam import HeldOut, held_out_loss
from polyrelu.nets import MLP
from polyrelu.train.descent import adam_epochs, mean_gradient

F64 = torch.float64


def start_of(data, p, width, *, batch=200, seed=0, **more):
    return PolyReLUClassifier(width=width, batch=batch, **more)._settings(None).start(data, p, None, seed)


def trained(
    data, p, *, width, epochs, rate=1e-3, batch=60, seed=0, init="rows", normalise_input=True, held_out=None, look=None
):
    start = start_of(data, p, width, batch=batch, seed=seed, normalise_input=normalise_input)
    net = start.rows(data) if init == "rows" else start.random()

    def both(epoch, net):
        told = look is not None and look(epoch, net)
        return bool(held_out is not None and held_out(epoch, net)) or bool(told)

    run = adam_epochs(net, data, epochs=epochs, rate=rate, batch=batch, seed=seed, each_epoch=both, unit=start.unit)
    return run if held_out is None else held_out.kept(run)


def points(classes, n=60, dim=5, seed=0):
    """Noisy classes away from the origin; labels +-1 for ``classes`` = 1."""
    source = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % max(classes, 2)
    X = 0.5 * torch.randn(n, dim, generator=source, dtype=F64) + 0.3
    X[torch.arange(n), y % dim] += 2
    return Dataset(X, (2.0 * y - 1) if classes == 1 else y)


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("loss", ["cross_entropy", "squared"])
@pytest.mark.parametrize("kind", ["by hand", "by autograd"])
def test_a_weight_is_a_row_repeated(classes, loss, kind):
    data = points(classes)
    times = torch.randint(0, 4, (60,), generator=torch.Generator().manual_seed(1))
    again = data.subset(torch.arange(60).repeat_interleave(times))
    net = PolyReLUNet(5, 7, 3.0, classes, init="balanced", scale=0.3, bias=True, dtype=F64)
    if kind == "by autograd":
        net = MLP(5, 7, outputs=classes, dtype=F64)
    weighted = descend(net, data, rate=0.1, loss=loss, steps=5, until=1e-30, weights=times)
    repeated = descend(net, again, rate=0.1, loss=loss, steps=5, until=1e-30)
    for ours, theirs, start in zip(*(each.parameters() for each in (weighted.net, repeated.net, net)), strict=True):
        assert (ours - start).abs().max() > 1e-4
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)
    assert weighted.log_loss == pytest.approx(repeated.log_loss, rel=1e-10)
    assert weighted.accuracy == pytest.approx(repeated.accuracy, abs=1e-12)


def test_bad_weights_are_named():
    data, net = points(1), PolyReLUNet(5, 4, dtype=F64)
    for weights, message in [
        (torch.ones(59), r"weights.shape=\(59,\): expected \(60,\)"),
        (torch.zeros(60), "weights=0 to 0: expected numbers >= 0"),
        (-torch.ones(60), "weights=-1 to -1"),
        (torch.full((60,), torch.inf), "weights=inf to inf"),
    ]:
        with pytest.raises(InputError, match=message):
            descend(net, data, weights=weights)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 2.5, 3.0])
@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("init", ["rows", "random"])
def test_training_does_not_depend_on_the_unit_of_length(p, normalise, init):
    # Adam on rows (x - c)/s, then the net for x: the weights of the output layer times s^-d
    data, degree = points(3), 1 if normalise else p
    centre, unit = location(data)
    torch.testing.assert_close(centre, data.rows().mean(0))
    assert unit == pytest.approx(float((data.rows() - centre).square().sum(1).mean().sqrt()))
    settings = {"width": 9, "epochs": 20, "rate": 0.01, "batch": 60, "seed": 3, "normalise_input": normalise}
    ours = trained(data, p, init=init, **settings).net
    moved = Dataset((data.rows() - centre) / unit, data.y)
    start = HeadStart(p, 9, 3, torch.zeros(5, dtype=F64), 1.0, False, normalise, F64, 3)
    net = start.random()
    if init == "rows":
        drawn = HeadStart(p, 9, 3, centre, unit, False, normalise, F64, 3).rows(data)
        with torch.no_grad():
            net.weight.copy_(drawn.weight)
            net.output.copy_(drawn.output * unit**degree)
    theirs = descend(
        net, moved, method="adam", rate=0.01, loss="cross_entropy", batch=60, steps=20, until=1e-30, seed=3
    )
    torch.testing.assert_close(ours.weight, theirs.net.weight, rtol=1e-8, atol=1e-9)
    torch.testing.assert_close(ours.output * unit**degree, theirs.net.output, rtol=1e-8, atol=1e-9)
    torch.testing.assert_close(ours(data.rows()), theirs.net(moved.rows()), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("classes", [1, 3])
def test_the_start_at_rows_sees_neither_order_nor_repetition(classes):
    data = points(classes)
    centre, unit = location(data)
    start = HeadStart(3.0, 12, classes, centre, unit, False, True, F64, 0)
    net = start.rows(data)
    assert net.width == 12
    cosines = net.weight @ torch.nn.functional.normalize(data.rows() - centre, dim=1).T
    best, row = cosines.max(1)
    torch.testing.assert_close(best, torch.ones(12, dtype=F64))
    assert len(set(row.tolist())) == 12
    size = 0.1 / unit
    if classes == 1:
        torch.testing.assert_close(net.output[0], size * data.y[row])
        assert net.output.sum().abs() < 1e-12  # as many of each class
    else:
        torch.testing.assert_close(net.output.T, size * torch.eye(3, dtype=F64)[data.y[row]])
        assert data.y[row].bincount().tolist() == [4, 4, 4]
    other = start.rows(data.subset(torch.randperm(60, generator=torch.Generator().manual_seed(0)).repeat(2)))
    torch.testing.assert_close(other.weight, net.weight)
    weights = torch.ones(60)
    weights[row[:3]] = 0
    without = start.rows(data, weights).weight
    assert not torch.isclose(without @ net.weight[:3].T, torch.ones((), dtype=F64)).any()
    assert HeadStart(3.0, 500, classes, centre, unit, False, True, F64, 0).rows(data).width == 60
    flat = Dataset(torch.ones(4, 2, dtype=F64), [1.0, -1.0, 1.0, -1.0])  # no row has a direction
    assert HeadStart(3.0, 5, 1, *location(flat), False, True, F64, 0).rows(flat).width == 5


def test_the_best_weights_on_held_out_rows_are_kept():
    rng = torch.Generator().manual_seed(0)
    X = torch.randn(80, 6, generator=rng, dtype=F64)
    y = torch.where(torch.rand(80, generator=rng) < 0.5, 1.0, -1.0)  # nothing to learn: it can only get worse
    data, aside = Dataset(X[:60], y[:60]), Dataset(X[60:], y[60:])
    losses, weights = [], []

    def look(epoch, net):
        f = net(aside.rows()).detach()
        losses.append(float(torch.nn.functional.softplus(-aside.y * f).mean()))
        weights.append(net.weight.detach().clone())

    held_out = HeldOut(aside, torch.ones(20), patience=4, every=3)
    out = trained(data, 1.0, width=20, epochs=300, rate=0.01, held_out=held_out, look=look)
    assert out.status is Status.BUDGET and len(losses) < 200
    looks = losses[::3]
    best = int(np.argmin(looks))
    assert out.counts["epoch_kept"] == 3 * best and len(looks) == best + 5
    assert torch.equal(out.net.weight, weights[3 * best])


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_held_out_rows_count_by_their_weight(share):
    # The second half are the same rows with the other labels: for both alike the best net is the one at the start, for
    # the first half alone the one at the end, and with a little of the second one in between.
    rng = torch.Generator().manual_seed(0)
    X = torch.randn(40, 4, generator=rng, dtype=F64)
    y = torch.where(X[:, 0] > 0, 1.0, -1.0)
    aside = Dataset(torch.cat([X, X]), torch.cat([y, -y]))
    weights = torch.cat([torch.ones(40), torch.full((40,), share)])
    losses = []

    def look(epoch, net):
        each = torch.nn.functional.softplus(-aside.y * net(aside.rows()).detach())
        losses.append([float((weights * each).sum() / weights.sum()), float(each.mean())])

    held_out = HeldOut(aside, weights, patience=100, every=1)
    out = trained(Dataset(X, y), 1.0, width=20, epochs=60, rate=0.05, batch=40, held_out=held_out, look=look)
    best = np.argmin(losses, axis=0)
    assert out.counts["epoch_kept"] == best[0] > best[1] == 0
    assert (best[0] < len(losses) - 1) == (share > 0)


def test_an_epoch_can_end_the_run():
    out = trained(points(1), 3.0, width=5, epochs=50, batch=20, look=lambda epoch, net: epoch == 4)
    assert out.counts["steps"] == 12 and out.evaluations == pytest.approx(4)


def test_rows_outside_memory_are_each_seen_once_in_full_batches(monkeypatch):
    monkeypatch.setattr(mean_gradient, "SHUFFLED_ROWS", 2 * mean_gradient.BLOCK)
    X = torch.arange(5000, dtype=torch.float32)[:, None].repeat(1, 2)

    class Source:
        shape, dtype = (5000, 2), torch.float32

        def __getitem__(self, rows):
            return X[rows]

    y = torch.where(torch.arange(5000) < 2500, 1.0, -1.0)  # in order of class
    data = Dataset(Source(), y)
    run = mean_gradient.Batches(data, torch.float32, 300, lambda x: x, weights=torch.arange(5000) + 1.0)
    seen, sizes = [], []
    for parts, n in run(torch.Generator().manual_seed(0)):
        ((x, labels, log_weight),) = parts
        number = x[:, 0].long()
        assert torch.equal(labels, y[number])
        torch.testing.assert_close(log_weight, ((number + 1) / 2500.5).log(), rtol=1e-5, atol=1e-5)
        seen += number.tolist()
        sizes.append(n)
    assert sorted(seen) == list(range(5000)) and sizes == [300] * 16 + [200]
    assert len({k // mean_gradient.BLOCK for k in seen[:300]}) == 2  # two blocks are mixed


def test_the_flow_of_a_head_does_not_depend_on_the_unit_of_length():
    data = points(1)
    far = Dataset(1000 * data.rows(), data.y)
    small, large = (
        flow(start_of(each, 3.0, 10, batch=60).balanced(1e-3), each, loss="cross_entropy", until=0.3)
        for each in (data, far)
    )
    assert small.status is large.status is Status.LOSS and math.exp(small.log_loss) <= 0.3
    torch.testing.assert_close(small.net(data.rows()), large.net(far.rows()), rtol=1e-3, atol=1e-3)


def test_bad_settings_are_named():
    for settings, message in [
        ({"epochs": 0}, "epochs=0"),
        ({"patience": 0}, "patience=0"),
        ({"init": "ones"}, "init='ones'"),
    ]:
        with pytest.raises(InputError, match=message):
            PolyReLUClassifier(3.0, **settings).fit(points(1).rows().numpy(), points(1).y.numpy())


def test_held_out_rows_keep_their_own_weights_beyond_the_first_block():
    source = torch.Generator().manual_seed(0)
    X = torch.randn(2500, 3, generator=source, dtype=F64)
    data = Dataset(X, torch.where(X[:, 0] > 0.3, 1.0, -1.0))
    net = PolyReLUNet(3, 4, 2.0, init="balanced", scale=1.0, dtype=F64).requires_grad_(False)
    weights = torch.rand(2500, generator=source, dtype=F64)
    mean = weights @ torch.nn.functional.softplus(-data.y * net(X)) / weights.sum()
    assert held_out_loss(net, data, weights) == pytest.approx(float(mean.log()), abs=1e-12)
