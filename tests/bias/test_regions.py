"""Regions of centres and cones of activation, on directions placed by hand and against sampling."""

import math

import pytest
import torch

from polyrelu import Dataset, InputError, OrthonormalMixture, PolyReLUNet
from polyrelu.bias import class_regions, cones, regions
from polyrelu.bias.regions import BORDER, VOID
from polyrelu.nets import AverageClassifier, CentreClassifier, FixedOutputNet

F64 = torch.float64


def at(*degrees):
    angle = torch.tensor(degrees, dtype=F64).deg2rad()
    return torch.stack([angle.cos(), angle.sin()], 1)


def test_regions_of_two_axes():
    # e1 and e2: R_1 is (-90, 45) degrees, R_2 is (45, 180), the void [180, 270].
    found = regions(3 * at(10, 40, 50, 170, 200, 260, -80, 45), torch.eye(2, dtype=F64))
    assert found.region.tolist() == [0, 0, 1, 1, VOID, VOID, 0, BORDER]
    away = torch.tensor([35.0, 5, 5, 10, 20, 10, 10, 0], dtype=F64).deg2rad()
    assert torch.allclose(found.gaps, 1 - away.cos(), atol=1e-14)
    assert (found.counts.tolist(), found.void, found.border, found.gap) == ([3, 2], 2, 1, pytest.approx(0, abs=1e-14))
    assert not found.non_degenerate
    assert regions(at(10, 50), torch.eye(2)).non_degenerate
    assert not regions(at(10, 20, 200), torch.eye(2)).non_degenerate  # nobody in R_2


def test_only_directions_of_centres_count():
    source = torch.Generator().manual_seed(0)
    U, mu = torch.randn(30, 6, generator=source, dtype=F64), torch.randn(4, 6, generator=source, dtype=F64)
    Q = torch.linalg.qr(torch.randn(6, 6, generator=source, dtype=F64))[0]
    one = regions(U, mu)
    other = regions(1e-200 * U @ Q, mu @ Q * torch.tensor([[1.0], [5], [0.1], [1e-3]]))
    assert one.region.tolist() == other.region.tolist()
    assert torch.allclose(one.gaps, other.gaps, atol=1e-12)


def test_the_gap_is_the_nearest_change_of_region():
    # Correlated centres; no turn by less than the gap's angle changes the region, and the nearest face does.
    source = torch.Generator().manual_seed(1)
    mu = torch.randn(4, 3, generator=source, dtype=F64) + torch.tensor([1.0, 0, 0])
    U = torch.nn.functional.normalize(torch.randn(40, 3, generator=source, dtype=F64))
    found = regions(U, mu)
    assert {VOID, 0, 1, 2, 3} == set(found.region.tolist())
    side = torch.nn.functional.normalize(torch.linalg.cross(U, torch.randn(40, 3, generator=source, dtype=F64)))
    other = torch.linalg.cross(U, side)
    angle = torch.acos(1 - found.gaps)[:, None]
    changed = torch.zeros(40, dtype=torch.bool)
    for turn in torch.linspace(0, 2 * math.pi, 300, dtype=F64):
        around = turn.cos() * side + turn.sin() * other
        inside = regions(U * (0.999 * angle).cos() + around * (0.999 * angle).sin(), mu)
        assert inside.region.tolist() == found.region.tolist()
        beyond = regions(U * (1.001 * angle).cos() + around * (1.001 * angle).sin(), mu)
        changed |= beyond.region != found.region
    assert bool(changed.all())


def test_a_zero_neuron_is_void_and_no_neuron_is_no_gap():
    found = regions(torch.zeros(1, 2), torch.eye(2))
    assert (found.region.tolist(), found.gap) == ([VOID], 0)
    assert regions(torch.zeros(0, 2), torch.eye(2)).gap == math.inf


def test_classes_have_regions_of_their_own():
    mix = OrthonormalMixture(dim=12, positive=3, negative=2, alpha=0.0, rotate=0, dtype=F64)
    data = mix.sample(50, seed=0)
    plus, minus = class_regions(CentreClassifier(mix.centres, mix.labels).as_polyrelu_net(), data)
    assert (plus.region.tolist(), minus.region.tolist()) == ([0, 1, 2], [0, 1])
    assert plus.non_degenerate
    assert minus.non_degenerate
    assert plus.gap == pytest.approx(1 - math.cos(math.pi / 4))  # half the angle between two centres
    for half in class_regions(AverageClassifier(mix.centres, mix.labels).as_polyrelu_net(), data):
        assert half.region.tolist() == [BORDER]


def test_regions_of_several_classes():
    X = torch.eye(4, dtype=F64)
    data = Dataset(X, torch.tensor([0, 1, 2, 2]), torch.arange(4), X)
    net = PolyReLUNet(4, 3, 3, 3, init="zeros", dtype=F64)
    with torch.no_grad():
        net.weight.copy_(X[[0, 2, 3]])
        net.output.copy_(torch.tensor([[1.0, 0, 0], [0, 0, 0], [0, 1, 1]]))
    first, second, third = class_regions(net, data)
    assert (first.region.tolist(), second.region.tolist(), third.region.tolist()) == ([0], [], [0, 1])
    assert not second.non_degenerate


ROWS = Dataset(torch.tensor([[1.0, 0], [0, 1], [-1, 0.2]], dtype=F64), torch.tensor([1.0, 1, -1], dtype=F64))


def test_cones_by_hand():
    # 45 degrees: both positive rows, not the negative. 170: the negative and e2. 185: negative alone. 260: nothing.
    # 95: e2 and the negative. -10: e1 alone, not all of +. -20 likewise.
    found = cones(at(45, 170, 185, 260, 95, -10), ROWS)
    assert found.plus.tolist() == [True, False, False, False, False, False]
    assert found.minus.tolist() == [False, False, True, False, False, False]
    assert found.dead.tolist() == [False, False, False, True, False, False]
    assert found.other.tolist() == [False, True, False, False, True, True]


def test_cones_are_a_partition_and_stream_over_blocks():
    mix = OrthonormalMixture(dim=10, positive=2, negative=2, alpha=0.3)
    data = mix.sample(3000, seed=0, lazy=True)
    net = PolyReLUNet(10, 200, 1, seed=2, centre=torch.full((10,), 0.05))
    found = cones(net, data)
    on = (net.preprocess(data.rows().double()) @ net.weight.detach().double().T) > 0
    positive = data.y > 0
    assert found.plus.tolist() == (on == positive[:, None]).all(0).tolist()
    assert found.minus.tolist() == (on != positive[:, None]).all(0).tolist()
    assert found.dead.tolist() == (~on).all(0).tolist()
    total = sum(mask.long() for mask in (found.plus, found.minus, found.dead, found.other))
    assert total.tolist() == [1] * 200


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: regions(torch.ones(3, 2), torch.ones(2, 3)), r"\(h, D\) and \(K, D\)"),
        (lambda: regions(torch.ones(3, 2), torch.zeros(2, 2)), "a zero row"),
        (lambda: class_regions(PolyReLUNet(2, 3), ROWS), "no centres or no clusters"),
        (lambda: cones(torch.ones(3, 2), Dataset(torch.eye(2), torch.tensor([0, 1]))), r"labels \+1/-1"),
        (lambda: cones(torch.ones(3, 3), ROWS), r"data\.dim=2: expected 3"),
        (lambda: cones(FixedOutputNet(2, 3), ROWS), "give net.weight"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(InputError, match=words):
        call()
