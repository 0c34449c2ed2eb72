"""Every attack against exact answers: linear models in all norms, and the ideal F^(p)."""

import inspect
import math
from dataclasses import dataclass, replace
from itertools import product

import pytest
import torch
from torch import nn

from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.nets import AverageClassifier, CentreClassifier, PolyReLUNet
from polyrelu.robust import AttackStatus, LabelledRows, average_radius, centre_radius, lengths, margin_of
from polyrelu.robust.attacks import (
    APGD,
    ATTACKS,
    CROSS_ENTROPY,
    EXPONENTIAL,
    MARGIN,
    PGD,
    STRONGEST,
    TARGETED,
    Attack,
    BoundaryWalk,
    CarliniWagner,
    CentreToCentre,
    MinimalAttack,
    MinimalFromRadius,
    OtherClassStart,
    PublishedPGD,
    RadiusFromMinimal,
    RandomStart,
    UniversalDirection,
    ZeroStart,
)
from polyrelu.robust.attacks.decision_based import DecisionWalk, StraightLines
from polyrelu.robust.core import dual

MIX = OrthonormalMixture(dim=20, positive=5, negative=3, alpha=0.1, rotate=7, dtype=torch.float64)
POOL = MIX.sample(200, seed=1)
NOISY = MIX.sample(8, seed=2)


@dataclass(frozen=True)
class Row:
    """What an attack must reach: norms on linear models, powers p of F^(p), and whether it breaks the averaging F."""

    name: str
    norms: tuple[float, ...] = (1, 2, math.inf)
    classes: tuple[int, ...] = (2, 4)
    powers: tuple[int, ...] = (1, 2, 3, 4)
    average: bool = True

    @property
    def attack(self) -> MinimalAttack:
        attack = ATTACKS[self.name]  # as registered, only with fewer steps where the radius is sought by bisection
        return attack if isinstance(attack, MinimalAttack) else MinimalFromRadius(replace(attack, steps=40), rounds=6)


TABLE = [
    Row("pgd"),
    Row("apgd-targeted"),
    Row("frank-wolfe"),
    # For one logit every loss is y f (a test below), so these need not repeat all of the row above.
    Row("apgd-ce", powers=(1, 3), average=False),
    Row("apgd-margin", powers=(1, 3), average=False),
    # The searches of `strongest`, together in test_combined.py; each alone may not meet the nearest of four classes.
    *(Row(name, classes=(2,), powers=(), average=False) for name in STRONGEST),
    Row("boundary"),
    Row("carlini-wagner", norms=(2,)),
    # Exact for p >= 2 and 4 % long for p = 1: a test of its own.
    Row("convex-concave", norms=(2,)),
    # One direction each: right for one kind of net, and for a linear one whose weights are that direction.
    Row("universal", norms=(2,), classes=(2,), powers=()),
    Row("centre", norms=(2,), classes=(2,), powers=(2, 3, 4), average=False),
    # l1 only, and tests of its own in test_apgd_sparse.py.
    Row("apgd-sparse", norms=(), powers=(), average=False),
    # Fooled by flat nets, and its guard by sure ones: two tests below show how.
    Row("published", norms=(), powers=(), average=False),
]


def cases(*fields):
    choices = [(row, *items) for row in TABLE for items in product(*(getattr(row, field) for field in fields))]
    return [pytest.param(*case, id="-".join([case[0].name, *map(str, case[1:])])) for case in choices]


def test_every_registered_attack_has_a_row():
    assert {row.name for row in TABLE} == set(ATTACKS)


def test_every_attack_is_registered():
    found, left = set(), [Attack]
    while left:
        kind = left.pop()
        left += kind.__subclasses__()
        if kind.__module__.startswith("polyrelu.robust.attacks.") and not inspect.isabstract(kind):
            found.add(kind)
    wrappers = {RadiusFromMinimal, MinimalFromRadius}
    parts = {StraightLines, DecisionWalk}  # of `decision_attack`
    assert found == {type(attack) for attack in ATTACKS.values()} | wrappers | parts


def honest(score, X, y, found, norm=2.0, bounds=None):
    """What every result promises, looked at from outside."""
    Z = X + found.perturbation
    assert Z.dtype == X.dtype and found.radius.dtype == torch.float64
    with torch.no_grad():
        broken = margin_of(score(Z), y) <= 0
    assert torch.equal(broken, found.success)
    size = lengths(Z.double() - X.double(), norm)
    torch.testing.assert_close(found.radius[broken], size[broken], rtol=0, atol=0)
    assert found.radius[~broken].isinf().all() and (found.perturbation[~broken] == 0).all()
    if bounds is not None:
        assert torch.equal(Z, Z.clamp(*bounds))


def linear(classes, seed=0, dim=10):
    """An affine score, points on both sides, and the exact distances: min_c |f_y - f_c| / |w_y - w_c|_dual."""
    draw = torch.Generator().manual_seed(seed)
    W, b = (torch.randn(*shape, generator=draw, dtype=torch.float64) for shape in ((classes, dim), (classes,)))
    X = 3 * torch.randn(12, dim, generator=draw, dtype=torch.float64)
    y = (X @ W.T + b).argmax(1)

    def exact(norm):
        gap = (X @ W.T + b).gather(1, y[:, None]) - (X @ W.T + b)
        ratio = gap / lengths(W[y][:, None] - W, dual(norm))
        return ratio.nan_to_num(nan=torch.inf).amin(1)

    if classes > 2:
        return shallow_linear(W, b), X, y, exact, None
    w = W[1] - W[0]
    signs = 2.0 * y.double() - 1
    centres = torch.stack([-w, w]) / w.norm()
    pool = Dataset(X, signs, cluster=y, centres=centres)
    return shallow_linear(w[None], b[1:] - b[:1]), X, signs, exact, pool


def shallow_linear(W, b):
    """W x + b as the p = 1 net sum_c (relu(<w_c, x>) - relu(<-w_c, x>)) + b_c, for attacks that want neurons."""
    classes, dim = W.shape
    net = PolyReLUNet(dim, 2 * classes, p=1, outputs=classes, bias=True, dtype=W.dtype)
    with torch.no_grad():
        net.weight.copy_(torch.cat([W, -W]))
        net.output.copy_(torch.cat([torch.eye(classes), -torch.eye(classes)], dim=1))
        net.bias.copy_(b)
    return net


@pytest.mark.slow
@pytest.mark.parametrize("row, norm, classes", cases("norms", "classes"))
def test_linear_models_within_five_percent(row, norm, classes):
    score, X, y, exact, pool = linear(classes)
    found = row.attack(score, X, y, norm=norm, pool=pool)
    honest(score, X, y, found, norm)
    ratio = found.radius / exact(norm)
    assert (ratio <= 1.05).all() and (ratio >= 1 - 1e-9).all()  # never below the truth


@pytest.mark.slow
@pytest.mark.parametrize("row, p", cases("powers"))
def test_ideal_nets_within_one_percent(row, p):
    net = CentreClassifier(MIX.centres, MIX.labels, p)
    # Noise-free centres: 1/sqrt(1 + m^(2/p - 1)), smallest over the number m of opposite centres used.
    opposite = torch.where(MIX.labels > 0, MIX.negative, MIX.positive).tolist()
    formula = [min((1 + m ** (2 / p - 1)) ** -0.5 for m in range(1, most + 1)) for most in opposite]
    noisy = centre_radius(NOISY.rows(), NOISY.y, MIX.centres, MIX.labels, p)
    exact = torch.cat([torch.tensor(formula, dtype=torch.float64), noisy])
    X, y = torch.cat([MIX.centres, NOISY.rows()]), torch.cat([MIX.labels, NOISY.y])
    found = row.attack(net, X, y, pool=POOL)
    honest(net, X, y, found)
    ratio = found.radius / exact
    # The centre-to-centre direction is exact at centres only: for p = 2 noise makes mixtures of centres shorter.
    most = 1.04 if row.name == "centre" and p == 2 else 1.01
    assert (ratio[: len(formula)] <= 1.01).all() and (ratio <= most).all() and (ratio >= 1 - 1e-9).all()


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_the_convex_concave_attack_is_exact_on_ideal_nets(p):
    # p = 1 is solved with slightly rounded kinks
    net, X, y = CentreClassifier(MIX.centres, MIX.labels, p), NOISY.rows(), NOISY.y
    found = ATTACKS["convex-concave"](net, X, y)
    honest(net, X, y, found)
    ratio = found.radius / centre_radius(X, y, MIX.centres, MIX.labels, p)
    assert (ratio >= 1 - 1e-9).all() and (ratio <= (1.003 if p == 1 else 1 + 1e-6)).all()


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in TABLE if row.average], ids=lambda row: row.name)
def test_the_averaging_net_within_one_percent(row):
    net = AverageClassifier(MIX.centres, MIX.labels)
    X, y = torch.cat([MIX.centres, NOISY.rows()]), torch.cat([MIX.labels, NOISY.y])
    found = row.attack(net, X, y, pool=POOL)
    honest(net, X, y, found)
    ratio = found.radius / average_radius(X, y, MIX.centres, MIX.labels)
    assert (ratio <= 1.01).all() and (ratio >= 1 - 1e-9).all()


def test_losses_agree_where_they_must():
    # One logit: all are y f. Several: the margin is the smallest targeted one, the other log p_y/(1 - p_y).
    draw = torch.Generator().manual_seed(0)
    f, y = torch.randn(9, generator=draw), torch.randn(9, generator=draw).sign()
    for loss in (MARGIN, TARGETED, CROSS_ENTROPY):
        assert torch.equal(loss.value(f, y, y), y * f)
    torch.testing.assert_close(EXPONENTIAL.value(f, y, y), -(-y * f).exp())
    logits, y = torch.randn(9, 5, generator=draw), torch.arange(9) % 5
    targets = torch.stack([TARGETED.value(logits, y, (y + turn) % 5) for turn in range(1, 5)])
    torch.testing.assert_close(MARGIN.value(logits, y, y), targets.amin(0))
    p = logits.softmax(1).gather(1, y[:, None])[:, 0]
    torch.testing.assert_close(CROSS_ENTROPY.value(logits, y, y), (p / (1 - p)).log())


def test_universal_direction_from_given_centres_and_from_class_means():
    # x - y r d0 flips F at r = 1/sqrt(K) at every centre; the difference of class means is not d0 when K1 != K2:
    # d = mu_+/K1 - mu_-/K2 moves s and t by r/|d| each, so r = |d|/2 = sqrt(1/K1 + 1/K2)/2.
    net = AverageClassifier(MIX.centres, MIX.labels)
    given = UniversalDirection(MIX.centres, MIX.labels)(net, MIX.centres, MIX.labels)
    torch.testing.assert_close(given.radius, torch.full((8,), 8**-0.5).double())
    estimated = UniversalDirection()(net, MIX.centres, MIX.labels)
    torch.testing.assert_close(estimated.radius, torch.full((8,), math.sqrt(1 / 5 + 1 / 3) / 2).double())


def test_centre_to_centre_without_centres_goes_to_samples():
    net = CentreClassifier(MIX.centres, MIX.labels, 3)
    found = CentreToCentre()(net, MIX.centres, MIX.labels)  # the only samples are the centres themselves
    torch.testing.assert_close(found.radius, torch.full((8,), 0.5**0.5).double())


@pytest.mark.parametrize("labels", [(1.0, -1.0), (0, 1, 2, 3)])
def test_what_a_pool_has_against_a_class_is_of_the_others_only(labels):
    X = torch.randn(24, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = torch.tensor(labels).repeat(24 // len(labels))
    for label in labels:
        rows, found = LabelledRows(X, y).against(label, 5, 0)
        others = {other: X[y == other].mean(dim=0) for other in sorted(labels) if other != label}
        assert label not in found.tolist() and found[5:].tolist() == list(others)
        torch.testing.assert_close(rows[5:], torch.stack(list(others.values())))
        assert all(((X == row).all(dim=1) & (y == own)).any() for row, own in zip(rows[:5], found[:5], strict=True))


@pytest.mark.slow
def test_zero_start_is_fooled_on_the_cubic_net_and_ours_is_not():
    # Every point of F^(3) breaks at radius .75 > sqrt(2)/2; from x itself no slope leads to the other class.
    mix = OrthonormalMixture(dim=50, positive=6, negative=4, alpha=0.05, dtype=torch.float64)
    data = mix.sample(30, seed=3)
    X, y, net = data.rows(), data.y, CentreClassifier(mix.centres, mix.labels, 3)
    assert (centre_radius(X, y, mix.centres, mix.labels, 3) < 0.75).all()
    fooled = PublishedPGD(steps=300), PGD(starts=(ZeroStart(),)), APGD(starts=(ZeroStart(),), loss=CROSS_ENTROPY)
    for attack in fooled:
        assert attack(net, X, y, radius=0.75).success.double().mean() < 0.1
    for attack in (
        PGD(),
        APGD(),
        RadiusFromMinimal(BoundaryWalk()),
        RadiusFromMinimal(CarliniWagner(starts=(OtherClassStart(),), steps=50)),
    ):
        found = attack(net, X, y, radius=0.75)
        honest(net, X, y, found)
        assert found.success.all() and (found.radius <= 0.75).all()


def test_the_guard_of_the_published_attack_stops_it_where_exact_normalisation_does_not():
    # f = 30 x_1, at x_1 = 1: the gradient of exp(-30)/20000 is 30 e^-30/20000 = 1.4e-16, far below the guard of 1e-7.
    def score(Z):
        return 30 * Z[:, 0]

    X, y = torch.eye(1, 3).double(), torch.ones(1).double()
    assert not PublishedPGD(steps=100)(score, X, y, radius=1.5).success.any()
    assert PublishedPGD(steps=100, guard=1e-300)(score, X, y, radius=1.5).success.all()
    assert PGD(starts=(ZeroStart(),), steps=5)(score, X, y, radius=1.01).success.all()


QUICK = [
    PGD(steps=20, starts=(ZeroStart(), RandomStart(2), OtherClassStart(3))),
    APGD(steps=20, starts=(OtherClassStart(3),), loss=MARGIN),
    MinimalFromRadius(PGD(steps=15, starts=(OtherClassStart(3),)), rounds=5),
    BoundaryWalk(steps=15, starts=(ZeroStart(), RandomStart(1), OtherClassStart(3))),
    CarliniWagner(steps=20, searches=3, starts=(OtherClassStart(3),)),
    UniversalDirection(),
    CentreToCentre(),
]
names = pytest.mark.parametrize("attack", QUICK, ids=lambda attack: type(attack).__name__)


def call(attack, score, X, y, **given):
    return attack(score, X, y, **(given if isinstance(attack, MinimalAttack) else {"radius": 0.72, **given}))


class Wide(nn.Module):
    """A random smooth net of several classes."""

    def __init__(self, dim=8, classes=4, seed=0):
        super().__init__()
        draw = torch.Generator().manual_seed(seed)
        self.first = nn.Parameter(torch.randn(16, dim, generator=draw, dtype=torch.float64) / dim**0.5)
        self.last = nn.Parameter(torch.randn(classes, 16, generator=draw, dtype=torch.float64) / 4)

    def forward(self, X):
        return (X @ self.first.T).tanh() @ self.last.T


def wide(n=10):
    net, X = Wide(), torch.randn(n, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return net, X, net(X).argmax(1)


@pytest.mark.slow
@names
def test_same_answer_for_any_batch(attack):
    cubic = CentreClassifier(MIX.centres, MIX.labels, 3), NOISY.rows(), NOISY.y, POOL
    for (net, X, y, pool), batches in ((cubic, (1, 5)), ((*wide(6), None), (4,))):
        whole = call(attack, net, X, y, pool=pool, seed=3)
        honest(net, X, y, whole)
        for batch in batches:
            part = call(attack, net, X, y, pool=pool, seed=3, batch=batch)
            torch.testing.assert_close(part.perturbation, whole.perturbation, rtol=0, atol=1e-12)
            torch.testing.assert_close(part.radius, whole.radius, rtol=0, atol=1e-12)


def test_random_starts_depend_on_the_seed():
    net, X, y = wide()
    attack = PGD(steps=1, starts=(RandomStart(1),))
    first, again, second = (attack(net, X, y, radius=3.0, seed=seed).perturbation for seed in (0, 0, 1))
    assert torch.equal(first, again) and (first != second).any()


@names
def test_both_dtypes_agree(attack):
    net = CentreClassifier(MIX.centres, MIX.labels, 3)
    X, y = NOISY.rows(), NOISY.y
    double = call(attack, net, X, y, pool=POOL)
    single = call(attack, net.float(), X.float(), y.float(), pool=POOL)
    honest(net, X.float(), y.float(), single)
    torch.testing.assert_close(single.radius, double.radius, rtol=2e-3, atol=0)


@pytest.mark.slow
@names
def test_rotation_changes_nothing(attack):
    # Random starts are not rotated with the points: leave them out. Adam works by coordinate, so it is only close.
    turn = torch.linalg.qr(torch.randn(20, 20, generator=torch.Generator().manual_seed(5), dtype=torch.float64)).Q
    X, y = NOISY.rows(), NOISY.y
    plain = call(attack, CentreClassifier(MIX.centres, MIX.labels, 3), X, y, pool=POOL)
    pool = Dataset(POOL.rows() @ turn, POOL.y, POOL.cluster, MIX.centres @ turn)
    turned = call(attack, CentreClassifier(MIX.centres @ turn, MIX.labels, 3), X @ turn, y, pool=pool)
    torch.testing.assert_close(turned.radius, plain.radius, rtol=5e-3, atol=0)


@pytest.mark.slow
@names
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_logit_scale_changes_nothing(attack, dtype):
    # Powers of two, which multiply without rounding: every bit of the answer must be the same.
    net, X, y = wide()
    net, X = net.to(dtype), X.to(dtype)
    plain = call(attack, net, X, y)
    for scale in (2.0**-27, 2.0**-10, 2.0**10):  # about 1e-8, 1e-3, 1e3
        scaled = call(attack, lambda Z, scale=scale: scale * net(Z), X, y)
        assert torch.equal(scaled.perturbation, plain.perturbation) and torch.equal(scaled.radius, plain.radius)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_answers_agree_near_the_walls_of_a_box_and_stay_inside(norm, dtype):
    net, X, _ = wide(8)
    bounds = (-1.1, 1.1)
    net, X = net.to(dtype), X.to(dtype).clamp(*bounds)
    y = net(X).argmax(1)
    attacks = [
        BoundaryWalk(starts=(ZeroStart(), OtherClassStart(3))),
        MinimalFromRadius(APGD(steps=40, starts=(ZeroStart(), OtherClassStart(3))), rounds=6),
    ]
    walk, gradient = (attack(net, X, y, norm=norm, bounds=bounds) for attack in attacks)
    for found in (walk, gradient):
        honest(net, X, y, found, norm, bounds)
    assert walk.success.any()
    torch.testing.assert_close(walk.radius.nan_to_num(), gradient.radius.nan_to_num(), rtol=0.05, atol=0)


@names
def test_inputs_of_any_range(attack):
    # 1000 + x: nothing is clamped, and the rounding of float32 there, 6e-5, is all that changes.
    net, X, y = wide()
    net = net.float()
    plain = call(attack, net, X.float(), y)

    def shifted(Z):
        return net(Z - 1000)

    far = (X + 1000).float()
    found = call(attack, shifted, far, y)
    honest(shifted, far, y, found)
    both = plain.success & found.success
    assert both.sum() >= plain.success.sum() - 1
    assert ((found.radius - plain.radius).abs()[both] < 0.02 * plain.radius[both] + 1e-3).all()


def test_every_other_class_is_a_target():
    # Three sectors at 120 degrees, x far out in the first and nearer to the third: only a target leads there.
    W = torch.tensor([[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]]).double()
    X, y = torch.tensor([[2.0, 1.0], [2.0, -1.0]]).double(), torch.tensor([0, 0])
    exact = torch.tensor([(W[0] - W[c]) @ x / (W[0] - W[c]).norm() for c, x in ((1, X[0]), (2, X[1]))])
    for attack in (
        MinimalFromRadius(APGD(starts=(ZeroStart(),)), rounds=5),
        BoundaryWalk(starts=(ZeroStart(),)),
        CarliniWagner(),
    ):
        found = attack(lambda Z: Z @ W.T, X, y)
        torch.testing.assert_close(found.radius, exact, rtol=1e-3, atol=0)


def test_a_radius_for_each_point():
    net, X, y = CentreClassifier(MIX.centres, MIX.labels, 3), NOISY.rows(), NOISY.y
    exact = centre_radius(X, y, MIX.centres, MIX.labels, 3)
    radius = exact * torch.where(torch.arange(8) % 2 == 0, 0.99, 1.01)
    found = PGD()(net, X, y, radius=radius, pool=POOL)
    assert torch.equal(found.success, torch.arange(8) % 2 == 1)
    assert (found.radius[found.success] <= radius[found.success]).all()
    assert set(found.status) == {AttackStatus.BROKEN, AttackStatus.UNBROKEN}
