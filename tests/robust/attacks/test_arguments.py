"""Bad and borderline input: clear words, no crash, no silent clipping."""

import math

import pytest
import torch
from torch import nn

from polyrelu.data import Dataset, OrthonormalMixture
from polyrelu.errors import InputError
from polyrelu.nets import CentreClassifier
from polyrelu.robust import AttackStatus, margin_of
from polyrelu.robust.attacks import (
    APGD,
    PGD,
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

EVERY = [
    PGD(steps=10),
    APGD(steps=10),
    PublishedPGD(steps=10),
    BoundaryWalk(steps=10),
    CarliniWagner(steps=10, searches=2, starts=(ZeroStart(), OtherClassStart(2))),
    UniversalDirection(),
    CentreToCentre(),
    MinimalFromRadius(PGD(steps=10, starts=(ZeroStart(), RandomStart(1), OtherClassStart(2))), rounds=3),
    RadiusFromMinimal(BoundaryWalk(steps=10)),
]
every = pytest.mark.parametrize("attack", EVERY, ids=lambda attack: type(attack).__name__)

MIX = OrthonormalMixture(dim=6, positive=2, negative=2, alpha=0.1, dtype=torch.float64)
NET = CentreClassifier(MIX.centres, MIX.labels, 3)
X, Y = MIX.centres, MIX.labels


def call(attack, score=NET, X=X, y=Y, **given):
    return attack(score, X, y, **(given if isinstance(attack, MinimalAttack) else {"radius": 0.8, **given}))


@every
def test_misclassified_points_and_the_origin_have_radius_zero(attack):
    # F(0) = 0, and a margin of 0 counts as broken.
    points = torch.cat([X[:1], X[:1], torch.zeros(1, 6).double(), X[2:3]])
    found = call(attack, X=points, y=torch.tensor([1.0, -1.0, 1.0, -1.0]))
    assert found.status[1:3] == (AttackStatus.ALREADY_WRONG,) * 2
    assert (found.radius[1:3] == 0).all() and found.success[1:3].all() and (found.perturbation[1:3] == 0).all()
    assert found.status[0] != AttackStatus.ALREADY_WRONG


@every
@pytest.mark.parametrize("classes", [1, 3])
def test_constant_nets_and_one_class_predictions_hold(attack, classes):
    def constant(Z):
        return torch.ones(len(Z)).to(Z) if classes == 1 else torch.tensor([3.0, 1.0, 2.0]).to(Z).expand(len(Z), 3)

    y = Y if classes == 1 else torch.tensor([0, 0, 1, 2])
    found = call(attack, constant, y=y)
    held, wrong = AttackStatus.UNBROKEN, AttackStatus.ALREADY_WRONG
    assert found.status == (held, held, wrong, wrong)
    assert found.radius.tolist() == [math.inf, math.inf, 0, 0] and (found.perturbation == 0).all()


@every
def test_a_net_whose_gradient_is_nan_does_no_harm(attack):
    def score(Z):  # the root's slope at x_1 = 1, where the positive points sit, is infinite, and 0 * inf is NaN
        return 0.5 + ((Z[:, 0] - 1).abs().sqrt() * 0 + Z[:, 0] - Z[:, 2]) * 0.5

    found = call(attack, score, X=X[:3], y=torch.tensor([1.0, 1.0, 1.0]), pool=Dataset(X, Y))
    assert not found.perturbation.isnan().any() and not found.radius.isnan().any()


@every
def test_boxes_are_kept_and_never_clip_the_input(attack):
    bounds = (-0.2, 1.0)
    found = call(attack, bounds=bounds)
    Z = X + found.perturbation
    assert torch.equal(Z, Z.clamp(*bounds))
    assert torch.equal(margin_of(NET(Z), Y) <= 0, found.success)
    with pytest.raises(InputError, match=r"X\[0, 0\]=1: expected a number inside bounds=\(-0.2, 0.9\), or bounds=None"):
        call(attack, bounds=(-0.2, 0.9))


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_radius_in_a_box_is_that_of_the_box(norm):
    # f = x_1 + x_2/10 - .4 on [0, 1]^2 at (.8, 0): x_2 is at its wall, so only x_1 may move, by .4 in any norm.
    def score(Z):
        return Z[:, 0] + Z[:, 1] / 10 - 0.4

    x, y = torch.tensor([[0.8, 0.0]]).double(), torch.ones(1).double()
    pool = Dataset(torch.tensor([[0.8, 0.0], [0.1, 0.1]]).double(), torch.tensor([1.0, -1.0]))
    attacks = [MinimalFromRadius(kind(steps=30, starts=(ZeroStart(),)), rounds=6) for kind in (PGD, APGD)]
    for attack in [*attacks, BoundaryWalk(starts=(ZeroStart(),)), *[CarliniWagner()] * (norm == 2)]:
        found = attack(score, x, y, norm=norm, bounds=(0, 1), pool=pool)
        assert found.radius.item() == pytest.approx(0.4, rel=0.01)


BAD = [
    ({"X": torch.full((4, 6), math.nan)}, "X=NaN or infinity: expected finite numbers"),
    ({"X": torch.ones(4, 5).double()}, r"X of shape \(1, 5\): expected \(n, 6\)"),
    ({"X": torch.ones(6).double()}, r"X.shape=\(6,\): expected \(n, D\)"),
    ({"y": torch.ones(3)}, r"y.shape=\(3,\): expected \(4,\)"),
    ({"y": torch.tensor([0, 1, 2, 3])}, "labels .1 and -1"),
    ({"norm": 3}, "norm=3: expected 1, 2 or inf"),
    ({"norm": "l0"}, "norm=l0: expected 1, 2 or inf"),
    ({"bounds": (1, 0)}, r"bounds=\(1, 0\): expected \(low, high\)"),
    ({"batch": 0}, "batch=0: expected a whole number >= 1"),
    ({"seed": -1}, "seed=-1: expected a whole number >= 0"),
    ({"pool": Dataset(torch.eye(5), torch.tensor([1, -1, 1, -1, 1]))}, "pool=5 columns: expected 6"),
    ({"pool": Dataset(torch.eye(6), torch.tensor([0, 1, 2, 0, 1, 2]))}, "pool.y=.*: expected .1/-1"),
]


@every
@pytest.mark.parametrize("given, words", BAD, ids=[words[:18] for _, words in BAD])
def test_bad_input_is_refused_in_words(attack, given, words):
    with pytest.raises(InputError, match=words):
        call(attack, **given)


@pytest.mark.parametrize("attack", [PublishedPGD(), CarliniWagner()], ids=["published", "carlini-wagner"])
def test_euclidean_attacks_refuse_other_norms(attack):
    with pytest.raises(InputError, match="norm=inf: expected 2 for"):
        call(attack, norm=math.inf)


@pytest.mark.parametrize("radius", [-1.0, math.nan, math.inf, torch.ones(3)])
def test_a_radius_must_be_a_finite_number(radius):
    with pytest.raises(InputError, match="radius"):
        PGD()(NET, X, Y, radius=radius)


def test_a_budget_of_zero_breaks_only_what_is_already_wrong():
    for attack in (PGD(), APGD(), PublishedPGD(steps=5), RadiusFromMinimal(BoundaryWalk())):
        found = attack(NET, X, -Y * torch.tensor([1.0, -1.0, 1.0, -1.0]), radius=0.0)
        assert found.success.tolist() == [True, False, True, False] and (found.perturbation == 0).all()
    for settings in ({"steps": 0}, {"starts": ()}, {"last": 0.0}):
        with pytest.raises(InputError, match=next(iter(settings))):
            PGD(**settings)
    with pytest.raises(InputError, match="rounds=0: expected a whole number >= 1"):
        MinimalFromRadius(PGD(), rounds=0)


def test_directed_starts_need_another_class():
    with pytest.raises(InputError, match=r"pool=2 rows, all of class 1: expected rows of a class other than 1"):
        PGD()(NET, X[:2], Y[:2], radius=0.8)
    assert PGD()(NET, X[:2], Y[:2], radius=0.8, pool=MIX.sample(8, seed=0)).success.all()
    assert PGD(starts=(ZeroStart(),))(NET, X[:2], Y[:2], radius=1.01).success.all()  # F reaches 0 at the origin


def test_scores_that_are_no_functions_or_no_numbers_are_refused():
    restless = nn.Sequential(nn.Linear(6, 3), nn.Dropout()).double()
    with pytest.raises(InputError, match=r"score=a net with Dropout in training mode: expected a net after .eval\(\)"):
        PGD()(restless, X, torch.tensor([0, 1, 2, 0]), radius=1.0)
    PGD(steps=2)(restless.eval(), X, torch.tensor([0, 1, 2, 0]), radius=1.0)
    with pytest.raises(InputError, match=r"score\(X\)=NaN in row"):
        PGD()(lambda Z: Z[:, 0] * math.nan, X, Y, radius=1.0)
    with pytest.raises(InputError, match="expected what the score takes, but it says"):
        PGD()(nn.Linear(5, 3).double(), X, torch.tensor([0, 1, 2, 0]), radius=1.0)


def test_evaluations_are_counted():
    seen = 0

    def score(Z):
        nonlocal seen
        seen += len(Z)
        return NET(Z)

    found = PGD(steps=7, starts=(ZeroStart(),))(
        score, X.repeat(4, 1), Y.repeat(4), radius=0.5
    )  # 16 rows, a whole block
    assert found.evaluations == 16 * (1 + 7 + 1) == seen - 2  # clean, steps, last; and two looks at the shape
