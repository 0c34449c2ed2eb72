"""The cascade at one radius, its conditional-gradient search, and the starts and steps they are made of."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from polyrelu.data import OrthonormalMixture
from polyrelu.errors import InputError
from polyrelu.nets import CentreClassifier, PolyReLUNet
from polyrelu.robust import NORMS, AttackStatus, lengths, margin_of
from polyrelu.robust.attacks import (
    APGD,
    ATTACKS,
    STRONGEST,
    BoundaryWalk,
    CentreToCentre,
    ConvexConcave,
    FrankWolfe,
    LikeliestRivalsStart,
    MinimalFromRadius,
    NearestRivalStart,
    RadiusAttack,
    ZeroStart,
    strongest,
)
from polyrelu.robust.attacks.contract import attack_task
from polyrelu.robust.core import dual, linear_minimiser

MIX = OrthonormalMixture(dim=12, positive=3, negative=3, alpha=0.05, dtype=torch.float64)


def images(count=20, dim=40, classes=4, seed=0, dtype=torch.float32):
    """A random normalised net with centre and bias, as the published ones, and points of the box that it gets right."""
    draw = torch.Generator().manual_seed(seed)
    X = torch.rand(count, dim, generator=draw, dtype=dtype).round(decimals=1)  # many pixels at the walls
    centre = torch.full((dim,), 0.5, dtype=dtype)
    net = PolyReLUNet(
        dim, 30, 3.0, classes, init="kaiming", seed=seed, centre=centre, bias=True, normalise_input=True, dtype=dtype
    )
    with torch.no_grad():
        net.output.copy_(torch.randn(classes, 30, generator=draw, dtype=dtype))
        net.bias.mul_(0.1)
        return net, X, net(X).argmax(dim=1)


def test_lowest_in_ball_and_box_by_hand():
    g = torch.tensor([[3.0, -2.0, 1.0]])
    room = (torch.tensor([[0.5, 0.5, 0.5]]), torch.tensor([[0.5, 0.4, 0.5]]))
    expected = {1.0: [-0.5, 0.3, 0.0], math.inf: [-0.5, 0.4, -0.5]}
    for norm, d in expected.items():
        torch.testing.assert_close(linear_minimiser(g, torch.tensor([0.8]), norm, room), torch.tensor([d]))
    walls = (torch.tensor([[0.3, 9.0]]), torch.tensor([[9.0, 9.0]]))
    found = linear_minimiser(torch.tensor([[4.0, 3.0]]), torch.ones(1), 2.0, walls)
    torch.testing.assert_close(found, torch.tensor([[-0.3, -math.sqrt(0.91)]]))  # stopped in one, farther in the other
    assert (linear_minimiser(torch.zeros(1, 3), torch.ones(1), 2.0, room) == 0).all()


@pytest.mark.parametrize("norm", NORMS)
def test_nothing_in_ball_and_box_is_lower(norm):
    draw = torch.Generator().manual_seed(3)
    g = torch.randn(6, 5, generator=draw, dtype=torch.float64)
    room = tuple(torch.rand(6, 5, generator=draw, dtype=torch.float64) * 0.4 for _ in range(2))
    radius = torch.full((6,), 0.5, dtype=torch.float64)
    d = linear_minimiser(g, radius, norm, room)
    assert (lengths(d, norm) <= radius * (1 + 1e-12)).all() and (d <= room[1]).all() and (-d <= room[0]).all()
    others = torch.randn(20_000, 6, 5, generator=draw, dtype=torch.float64)
    others = others * (
        0.5 * torch.rand(20_000, 6, 1, generator=draw, dtype=torch.float64) / lengths(others, norm)[..., None]
    )
    inside = ((others <= room[1]) & (-others <= room[0])).all(dim=2)
    lower = ((g * others).sum(dim=2) < (g * d).sum(dim=1) - 1e-12) & inside
    assert inside.any(dim=0).all() and not lower.any()


@pytest.mark.slow
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exact_on_linear_nets(norm, dtype):
    draw = torch.Generator().manual_seed(1)
    net = nn.Linear(10, 4, dtype=dtype)
    X = torch.randn(15, 10, generator=draw, dtype=dtype)
    with torch.no_grad():
        net.weight.copy_(torch.randn(4, 10, generator=draw, dtype=dtype))
        net.bias.zero_()
        y, W = net(X).argmax(dim=1), net.weight
        gap = net(X).gather(1, y[:, None]) - net(X)
        exact = (gap / lengths(W[y][:, None] - W, dual(norm))).nan_to_num(nan=math.inf).amin(dim=1).double()
    X, y, exact = X[exact > 0.05], y[exact > 0.05], exact[exact > 0.05]  # float32 has no .1 % of less
    assert len(X) > 5
    assert strongest(net, X, y, 1.001 * exact, norm=norm).success.all()
    assert not strongest(net, X, y, 0.999 * exact, norm=norm).success.any()


def test_data_of_the_other_class_lead_where_the_gradient_does_not():
    net, y = CentreClassifier(MIX.centres, MIX.labels, p=3), MIX.labels  # every centre breaks at sqrt(2)/2
    pool = MIX.sample(200, seed=1)
    assert strongest(net, MIX.centres, y, 0.72, pool=pool).success.all()
    assert not strongest(net, MIX.centres, y, 0.70, pool=pool).success.any()
    assert not FrankWolfe(steps=50, starts=(ZeroStart(),))(net, MIX.centres, y, radius=0.72, pool=pool).success.any()


@pytest.mark.slow
@pytest.mark.parametrize("norm, radius", [(1.0, 0.4), (2.0, 0.15), (math.inf, 0.03)])
def test_answers_are_honest_and_no_weaker_than_auto_pgd(norm, radius):
    net, X, y = images()
    found = strongest(net, X, y, radius, norm=norm, bounds=(0.0, 1.0))
    Z = X + found.perturbation
    with torch.no_grad():
        assert torch.equal(margin_of(net(Z), y) <= 0, found.success)
    assert torch.equal(Z, Z.clamp(0, 1)) and (lengths(Z.double() - X.double(), norm) <= radius).all()
    assert 0 < int(found.success.sum()) < len(X)  # or the comparison below would be empty
    peer = APGD(steps=100)(net, X, y, radius=radius, norm=norm, bounds=(0.0, 1.0))
    assert not (peer.success & ~found.success).any()
    again = strongest(net, X, y, radius, norm=norm, bounds=(0.0, 1.0))
    assert torch.equal(again.perturbation, found.perturbation)


def test_only_those_that_hold_go_on():
    net, X, y = images()
    few, all_ = strongest(net, X, y, 50.0), strongest(net, X, y, 1e-4)
    assert few.success.all() and not all_.success.any()
    assert few.evaluations * 10 < all_.evaluations


def test_points_already_wrong_and_radii_of_their_own():
    net, X, y = images()
    y = torch.cat([(y[:1] + 1) % 4, y[1:]])
    radius = torch.full((len(X),), 50.0)
    radius[1] = 1e-4
    found = strongest(net, X, y, radius)
    kinds = [AttackStatus.ALREADY_WRONG, AttackStatus.UNBROKEN, AttackStatus.BROKEN]
    assert list(found.status[:3]) == kinds and found.radius[:2].tolist() == [0, math.inf]


def test_one_class_alone_has_nothing_to_start_from_and_is_attacked_all_the_same():
    net, X, y = images()
    one = y == y[0]
    assert strongest(net, X[one], y[one], 50.0).success.all()


@pytest.mark.parametrize("new", [FrankWolfe(steps=20, starts=(NearestRivalStart(),)), BoundaryWalk()])
def test_an_attack_named_in_the_table_is_tried(new, monkeypatch):
    # at radius .72 the gradient at the centres knows nothing of the other class, so the first search breaks none
    net, y, pool = CentreClassifier(MIX.centres, MIX.labels, p=3), MIX.labels, MIX.sample(200, seed=1)
    for name in list(STRONGEST)[1:]:
        monkeypatch.delitem(STRONGEST, name)
    assert not strongest(net, MIX.centres, y, 0.72, pool=pool).success.any()
    monkeypatch.setitem(ATTACKS, "new", new)
    monkeypatch.setitem(STRONGEST, "new", (1.0,))
    assert not strongest(net, MIX.centres, y, 0.72, pool=pool).success.any()  # not in this norm
    monkeypatch.setitem(STRONGEST, "new", (2.0,))
    found = strongest(net, MIX.centres, y, 0.72, pool=pool)
    assert found.success.all() and (found.radius <= 0.72).all()


def test_what_strongest_tries_is_in_the_table_and_made_for_its_norms():
    assert all(set(norms) <= set(ATTACKS[name].norms) for name, norms in STRONGEST.items())


def test_attacks_say_whether_they_need_another_class():
    net, X, y = images()
    one = y == y[0]
    for attack in (*ATTACKS.values(), MinimalFromRadius(ATTACKS["frank-wolfe-towards"]), CentreToCentre()):
        options = {"radius": 1.0} if isinstance(attack, RadiusAttack) else {}
        if isinstance(attack, ConvexConcave):
            continue
        if attack.needs_other_class:
            with pytest.raises(InputError, match="pool"):
                attack(net, X[one], y[one], norm=attack.norms[-1], **options)
        else:
            attack(net, X[one], y[one], norm=attack.norms[-1], **options)


def test_float32_points_reach_the_edge_of_a_small_ball():
    # x + d rounds to a multiple of 6e-8: without room for that, no l-infinity step of .05 counts as inside
    net, X, y = images(dim=300)
    found = FrankWolfe(steps=3)(net, X, y, radius=0.05, norm=math.inf, bounds=(0.0, 1.0))
    longest = lengths((X + found.perturbation).double() - X.double(), math.inf)
    assert found.success.any() and (longest <= 0.05).all() and longest.max() > 0.0499


def test_rivals_are_ordered_by_where_the_linearised_margin_falls():
    net = nn.Linear(2, 3, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[0.0, 0.0], [-1.0, 0.0], [0.0, -3.0]]))
    X, y = torch.tensor([[1.0, 2.0]]), torch.tensor([0])  # margins 1 and 6, which a step r lowers by r and 3 r
    for radius, first in ((0.5, 1), (4.0, 2)):
        task = attack_task(net, X, y, norm=2.0, radius=radius)
        assert [int(target) for _, target in LikeliestRivalsStart(2).anchors(task)] == [first, 3 - first]


def test_the_nearest_rows_of_every_other_class():
    net = nn.Linear(1, 3)
    X, y = torch.tensor([[0.0], [10.0]]), torch.tensor([0, 1])

    class Few:
        y, cluster, centres = torch.tensor([0, 1, 1, 2]), None, None

        def rows(self):
            return torch.tensor([[1.0], [4.0], [9.0], [-3.0]])

    task = attack_task(net, X, y, norm=2.0, pool=Few(), radius=100.0)
    found = {
        (int(t), float(z)) for Z, target in NearestRivalStart().anchors(task) for t, z in zip(target, Z, strict=True)
    }
    assert found == {(1, 4.0), (2, -3.0), (0, 1.0)}


@pytest.mark.parametrize("radius", [-1.0, math.nan])
def test_bad_radii(radius):
    net, X, y = images(3)
    with pytest.raises(InputError, match="radius"):
        strongest(net, X, y, radius)
