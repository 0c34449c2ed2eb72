"""Brackets, certificates, attacks, curves and distances refuse what they cannot take, in words."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from polyrelu import Bracket, Budget, InputError, OrthonormalMixture, PolyReLUNet, bracket, curve, dist
from polyrelu.robust import (
    average_radius,
    bounds_at_radius,
    centre_radius,
    certified_radius,
    check_points,
    linear_radius,
    proven_at_radius,
    quadratic_radius,
    root_lipschitz_radius,
)
from polyrelu.robust.attacks import (
    APGD,
    PGD,
    BoundaryWalk,
    CarliniWagner,
    MinimalFromRadius,
    RadiusFromMinimal,
    strongest,
)
from polyrelu.robust.theory import average_critical_radius, universal_perturbation_samples

NET = PolyReLUNet(3, 4, 2.0, seed=1)
X = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
Y = torch.tensor([1.0, -1.0, 1.0, -1.0])
CALLS = {
    "bracket": lambda net, X, y: bracket(net, X, y, budget=Budget(nodes=1)), "cheap": root_lipschitz_radius,
    "linear": linear_radius, "certified": certified_radius,
    "quadratic": quadratic_radius, "held": lambda net, X, y: bounds_at_radius(net, X, y, 0.1), "cheaply": lambda net, X,
    y: proven_at_radius(net, X, y, 0.1),
    "pgd": lambda net, X, y: PGD(steps=2)(net, X, y, radius=0.1), "walk": BoundaryWalk(steps=2),
    "points": check_points,
    "strongest": lambda net, X, y: strongest(net, X, y, 0.1),
}  # fmt: skip
ROWS = [
    None, "a", 5, [], {}, X[0], X[None], X[:0], X[:, :2], X.long(), X.bool(), X.to(torch.complex64), X.to_sparse(),
    X.to("meta"), X * math.nan, X * math.inf,
    [*X.tolist()[:2], [1]], np.array([["a"] * 3] * 4), X.numpy().astype(object), X.to(torch.float8_e4m3fn),
    np.zeros((4, 3), "M8[s]"), object(), 2**63,
]  # fmt: skip
LABELS = [
    None,
    "abcd",
    5,
    [],
    Y[:3],
    Y[:, None],
    Y * 2,
    Y * 0,
    Y.to("meta"),
    Y * math.nan,
    Y.to_sparse(),
    np.array(["a"] * 4),
    [1, -1, 1],
    object(),
    1j * Y,
]
NETS = [
    None,
    "net",
    5,
    {},
    nn.Linear,
    NET.state_dict(),
    nn.Module(),
    nn.Linear(2, 1),
    nn.LazyLinear(1),
    PolyReLUNet(2, 3),
    PolyReLUNet(3, 3, outputs=3),
]


@pytest.mark.parametrize("name", CALLS)
def test_rows_labels_and_nets(name):
    call = CALLS[name]
    call(NET, X, Y)
    for rows in ROWS:
        with pytest.raises(InputError):
            call(NET, rows, Y)
    for labels in LABELS:
        with pytest.raises(InputError):
            call(NET, X, labels)
    for net in NETS:
        with pytest.raises(InputError):
            call(net, X, Y)


def test_rows_that_are_laid_out_oddly_give_the_same_numbers():
    expected = bracket(NET, X, Y, budget=Budget(nodes=1)).lower
    twice = torch.stack([X, X], dim=2)[..., 0]
    for rows in (twice, X.T.contiguous().T, X.clone().requires_grad_(), X.numpy()):
        found = bracket(NET, rows, Y.numpy(), budget=Budget(nodes=1)).lower
        torch.testing.assert_close(found, expected)
    one = torch.ones(1).expand(4)
    assert len(certified_radius(NET, X, one)) == 4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("norm", 3), ("norm", None), ("norm", "l3"), ("norm", [2]), ("tol", "a"), ("tol", None), ("tol", -1),
        ("tol", math.nan), ("budget", 5), ("budget", {}),
        ("widest", "a"), ("widest", 1.5), ("pool", 5), ("pool", []), ("pool", X), ("seed", "a"),
        ("seed", 2**70), ("progress", 5), ("progress", {1}),
    ],
)  # fmt: skip
def test_options_of_bracket(name, value):
    with pytest.raises(InputError):
        bracket(NET, X, Y, **{name: value})


@pytest.mark.parametrize("nodes", [-1, 1.5, "a", math.nan, True])
def test_budgets(nodes):
    with pytest.raises(InputError):
        bracket(NET, X, Y, budget=Budget(nodes=nodes))


@pytest.mark.parametrize(
    "make",
    [
        lambda: PGD(steps="a"), lambda: PGD(loss=5), lambda: PGD(starts=5), lambda: PGD(starts=()),
        lambda: PGD(starts=("a",)), lambda: PGD(last=None),
        lambda: APGD(steps=1.5), lambda: APGD(loss="margin"), lambda: CarliniWagner(rate="a"),
        lambda: CarliniWagner(kappa=None), lambda: MinimalFromRadius(5),
        lambda: MinimalFromRadius(BoundaryWalk()), lambda: RadiusFromMinimal("a"), lambda: RadiusFromMinimal(PGD()),
        lambda: BoundaryWalk(steps=None),
    ],
)  # fmt: skip
def test_settings_of_attacks(make):
    with pytest.raises(InputError):
        make()


@pytest.mark.parametrize(
    "options",
    [
        {"radius": "a"}, {"radius": None}, {"radius": -1.0}, {"radius": math.nan}, {"radius": X}, {"bounds": 5},
        {"bounds": (1,)}, {"bounds": (1, 0)},
        {"bounds": ([1], [2])}, {"bounds": ("a", "b")}, {"batch": 0}, {"batch": "a"}, {"norm": 7}, {"seed": None},
        {"pool": X},
    ],
)  # fmt: skip
def test_options_of_attacks(options):
    with pytest.raises(InputError):
        PGD(steps=2)(NET, X, Y, **{"radius": 0.1, **options})


def test_curves():
    good = bracket(NET, X, Y, budget=Budget(nodes=1))
    for odd in (None, 5, "a", [], [5], [good, None], X, {}, [good, bracket(NET, X, Y, norm=1)]):
        with pytest.raises(InputError):
            curve(odd)
    with pytest.raises(InputError):
        curve(Bracket(good.lower, good.upper, good.perturbation, good.status, 5.0, good.nodes))
    line = curve(good)
    for radius in (None, "a", [None], "auto", 1j, object(), -1, math.nan, np.array(["a"]), b"a"):
        for look in (line.certified, line.attacked, line.unproven, line.certified_band, line.attacked_band):
            with pytest.raises(InputError, match=r"^radius="):
                look(radius)


def test_distances():
    mixture = OrthonormalMixture(3, 1, 1, 0.1)
    for odd in (None, "F", 5, nn.Linear(3, 1), PolyReLUNet(3, 2, outputs=2), PolyReLUNet(4, 2)):
        with pytest.raises(InputError):
            dist(NET, odd)
        with pytest.raises(InputError):
            dist(odd, NET)
    for options in (
        {"c": "worst"},
        {"c": -1.0},
        {"c": None},
        {"c": math.nan},
        {"c": "published"},
        {"c": "published", "mixture": 5},
        {"seed": "a"},
        {"seed": -1},
    ):
        with pytest.raises(InputError):
            dist(NET, NET, **options)
    assert dist(NET, NET, c="published", mixture=mixture).value < 1e-6


@pytest.mark.parametrize(
    "odd", [None, "a", X.to_sparse(), X[0], X * math.nan, X.to("meta"), np.array([["a"]]), X.numpy().astype(object)]
)
def test_closed_forms(odd):
    centres, labels = torch.eye(3)[:2], torch.tensor([1.0, -1.0])
    assert len(average_radius(X, Y, centres, labels)) == len(centre_radius(X, Y, centres, labels, 3.0)) == 4
    with pytest.raises(InputError, match="at most 100000"):
        centre_radius(X, Y, centres, labels, 1e15)
    for radius in (average_radius, lambda *given: centre_radius(*given, 3.0)):
        with pytest.raises(InputError):
            radius(odd, Y, centres, labels)
        with pytest.raises(InputError):
            radius(X, Y, odd, labels)


def test_theory():
    for odd in (None, "a", 1.5, -1, 0, math.nan, True, [4]):
        with pytest.raises(InputError):
            average_critical_radius(odd)
    low, high = universal_perturbation_samples(10**15, 2, 0.1, 0.1)  # d^(ln d) is beyond any float
    assert 0 < low < high < math.inf
    with pytest.raises(InputError, match="delta"):
        universal_perturbation_samples(3, 2, 0.1, 0.1)
