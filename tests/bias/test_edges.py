"""Corner cases of several measurements, each of which once gave a wrong number or a crash."""

import importlib
import math

import numpy as np
import pytest
import torch

from polyrelu import Dataset, InputError, OrthonormalMixture, PolyReLUNet, Status, Until, flow
from polyrelu.bias import correlation, estimate_subclasses, kkt, layers, margins, monotone, stationary_directions
from polyrelu.nets import PlainPolyNet

F64 = torch.float64


def blobs(n=60, dim=6):
    return OrthonormalMixture(dim=dim, positive=1, negative=1, alpha=0.1, dtype=F64).sample(n, seed=0)


def test_more_sub_classes_than_are_looked_at_and_odd_counts():
    data = Dataset(torch.randn(400, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([1.0, -1.0] * 200))
    assert estimate_subclasses(data, count=10, rows=5).counts == (10, 10)
    assert estimate_subclasses(data, count=np.int64(2)).counts == (2, 2)
    for count in (300, 2.5, "two"):
        with pytest.raises(InputError, match="count="):
            estimate_subclasses(data, count=count)


def test_one_row_a_class_has_no_mean_cosine_within():
    found = correlation(Dataset(torch.eye(3), torch.arange(3)))
    assert math.isnan(found.within) and found.means.diagonal().isnan().all() and math.isfinite(found.between)


def test_rows_that_switch_a_drawn_net_off_do_not_hide_its_degrees():
    X = torch.zeros(16, 5, dtype=F64)
    for seed in range(20):
        net = PolyReLUNet(5, 2, 3.0, seed=seed, dtype=F64)
        assert [layer.degree for layer in layers(net, X)] == [1, 1]


def test_frozen_layers_of_a_polyrelu_net_are_refused():
    net = PolyReLUNet(6, 4, 1.0, scale=0.1, dtype=F64)
    net.output.requires_grad_(False)
    with pytest.raises(InputError, match=r"frozen output.*descend"):
        flow(net, blobs())


def test_an_interrupt_between_phases_keeps_the_run(monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module("polyrelu.train.gradient_flow.flow"), "ready", stop)
    out = flow(PolyReLUNet(6, 20, 3.0, init="balanced", scale=0.1, dtype=F64), blobs(), until=Until(log10_loss=-50))
    assert out.status is Status.INTERRUPTED and out.log10_loss < -4


def test_a_degree_that_is_no_round_number_is_a_degree_too():
    data = blobs()
    out = flow(PlainPolyNet(6, 20, p=4 / 3, scale=0.3, dtype=F64), data, until=Until(log10_loss=-60))
    assert out.status is Status.LOSS and margins(out.net, data).degree == pytest.approx(7 / 3)


def test_gates_beyond_the_most_keep_theirs_and_are_counted(monkeypatch):
    room = importlib.import_module("polyrelu.bias.kkt")
    data = blobs(40, 30)
    net = flow(PolyReLUNet(30, 10, 1.0, init="balanced", scale=0.1, dtype=F64), data, until=1e-6).net
    whole = kkt(net, data, widen=0.1, active=1.0)
    monkeypatch.setattr(room, "MAX_FREE_GATES", 3)
    few = kkt(net, data, widen=0.1, active=1.0)
    assert whole.kinks > 3 == few.kinks and few.kinks_left == whole.kinks - 3 and whole.kinks_left == 0
    assert whole.free.stationarity <= few.free.stationarity + 1e-9 <= whole.least_squares.stationarity + 2e-9
    assert whole.least_squares.stationarity == few.least_squares.stationarity


def test_infinity_beside_infinity_has_not_fallen():
    assert monotone((math.nan, math.inf, math.inf)).ok
    fallen = monotone((1.0, math.inf, 2.0))
    assert not fallen.ok and fallen.largest_fall == math.inf and fallen.where == 2


def test_rows_as_seen_must_be_tensors():
    with pytest.raises(InputError, match=r"preprocess\(X\)=ndarray"):
        stationary_directions(blobs(), 3, preprocess=lambda X: X.numpy())
