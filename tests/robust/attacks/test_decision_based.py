"""The attack that sees decisions only, against exact answers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import nnls
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from polyrelu.errors import InputError
from polyrelu.robust import AttackStatus
from polyrelu.robust.attacks import DecisionScore, decision_attack
from polyrelu.robust.external import certified, label_codes

NAMES = np.array(["left", "right", "up"])


def clouds(classes=2, n=60, dim=6, seed=0):
    random = np.random.default_rng(seed)
    numbers = np.arange(n) % classes
    return random.standard_normal((n, dim)) + 3 * np.eye(dim)[numbers], NAMES[numbers]


def test_an_answer_never_seen_before_is_a_wrong_one():
    X = np.array([[0.0, 0.0], [0.5, 0.0]])

    def predict(rows):
        return np.where(np.abs(rows[:, 0]) < 1, "known", "strange")

    found = decision_attack(
        predict,
        torch.from_numpy(X),
        ["known"] * 2,
        classes=["known", "other"],
        pool=torch.tensor([[2.0, 0.0], [0.0, 0.0]]).double(),
    )
    assert found.radius.tolist() == pytest.approx([1.0, 0.5], rel=0.02)


def nearest_other_cell(x, rows, labels, own):
    """Exact radius of 1-NN: min over rows s_j of other classes of |d| : |x + d - s_j| <= |x + d - s_i| for all own s_i.

    2 <s_j - s_i, x + d> >= |s_j|^2 - |s_i|^2, the least distance to half-spaces G d >= h: Lawson & Hanson's LDP, by
    non-negative least squares.
    """
    best = np.inf
    mine = rows[labels == own]
    for s in rows[labels != own]:
        G = 2 * (s - mine)
        h = (s @ s - (mine**2).sum(1)) - G @ x
        u, rest = nnls(np.vstack([G.T, h]), np.append(np.zeros(len(x)), 1.0))
        r = np.vstack([G.T, h]) @ u - np.append(np.zeros(len(x)), 1.0)
        if rest > 1e-9:
            best = min(best, np.linalg.norm(r[:-1] / r[-1]))
    return best


@pytest.mark.parametrize("classes", [2, 3])
def test_near_the_exact_radius_of_a_linear_model_and_never_below(classes):
    X, y = clouds(classes)
    model = LogisticRegression().fit(X, y)
    rows = torch.from_numpy(X[:20])
    exact = certified(model, rows, label_codes(y[:20], model.classes_, 1 if classes == 2 else classes))
    found = decision_attack(model.predict, rows, y[:20], classes=model.classes_, pool=torch.from_numpy(X), queries=2000)
    right = exact > 0
    ratio = (found.radius / exact)[right]
    assert right.sum() > 10 and (ratio >= 1 - 1e-9).all()
    assert (
        ratio.median() < 1.01 and (ratio < 1.01).double().mean() > 0.9
    )  # of three, a farther class is met now and then
    assert found.evaluations < 1.1 * 2000 * 20 + len(X)


def test_more_queries_find_shorter_perturbations():
    X, y = clouds(dim=20)
    model = LogisticRegression().fit(X, y)
    rows = torch.from_numpy(X[:15])
    few, many = (
        decision_attack(model.predict, rows, y[:15], classes=model.classes_, pool=torch.from_numpy(X), queries=count)
        for count in (400, 1600)
    )
    assert many.radius.sum() < 0.97 * few.radius.sum()
    assert few.evaluations < 400 * 15 * 1.15 < many.evaluations


def test_near_the_exact_radius_of_the_nearest_neighbour():
    X, y = clouds(n=30, dim=4)
    model = KNeighborsClassifier(1).fit(X[:20], y[:20])
    points, said = X[20:], y[20:]
    exact = torch.tensor([nearest_other_cell(x, X[:20], y[:20], own) for x, own in zip(points, said, strict=True)])
    exact[torch.from_numpy(model.predict(points) != said)] = 0
    found = decision_attack(
        model.predict,
        torch.from_numpy(points),
        said,
        classes=model.classes_,
        pool=torch.from_numpy(X[:20]),
        queries=2000,
    )
    assert (found.radius >= exact * (1 - 1e-9)).all()
    ratio = (found.radius / exact)[exact > 0]
    assert len(ratio) > 5 and ratio.median() < 1.03 and ratio.max() < 1.25


def test_a_tree_breaks_at_its_nearest_threshold():
    # One split at 0 of the first coordinate: the radius is |x_1|, and no other coordinate need move.
    X = np.random.default_rng(1).standard_normal((200, 8))
    y = NAMES[(X[:, 0] > 0).astype(int)]
    model = DecisionTreeClassifier().fit(X, y)
    threshold = float(model.tree_.threshold[0])
    points = torch.from_numpy(X[:20])
    found = decision_attack(model.predict, points, y[:20], classes=model.classes_, pool=torch.from_numpy(X))
    exact = (points[:, 0] - threshold).abs()
    assert model.tree_.node_count == 3 and (found.radius >= exact * (1 - 1e-9)).all()
    assert ((found.radius - exact) < 0.02).double().mean() > 0.8


def test_every_answer_is_decided_otherwise_and_repeats():
    X, y = clouds(3)
    middles = np.stack([X[y == name].mean(0) for name in NAMES])
    predict = lambda Z: NAMES[((Z[:, None] - middles) ** 2).sum(2).argmin(1)]  # noqa: E731
    rows = torch.from_numpy(X[:20]).float()
    right = predict(rows.numpy()) == y[:20]
    a, b, c = (decision_attack(predict, rows, y[:20], classes=NAMES, queries=400, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(a.perturbation, b.perturbation) and a.success.all() and (a.radius != c.radius).any()
    assert (predict((rows + a.perturbation).numpy()) != y[:20]).all() and 10 < right.sum() < 20
    torch.testing.assert_close(a.radius, ((rows + a.perturbation).double() - rows.double()).norm(dim=1))
    assert torch.equal(a.radius > 0, torch.from_numpy(right))


def test_wrong_points_have_radius_zero_and_a_constant_is_never_broken():
    X, y = clouds()
    found = decision_attack(lambda rows: np.full(len(rows), "left"), torch.from_numpy(X[:4]), y[:4], classes=NAMES[:2])
    expected = {"left": AttackStatus.UNBROKEN, "right": AttackStatus.ALREADY_WRONG}
    assert list(found.status) == [expected[name] for name in y[:4]]
    assert found.radius.tolist() == [torch.inf, 0, torch.inf, 0]


def test_bad_answers_and_labels_are_refused():
    rows = torch.zeros(3, 2)
    with pytest.raises(InputError, match="one label per row"):
        DecisionScore(lambda rows: rows, NAMES)(rows)
    assert DecisionScore(lambda rows: ["down"] * len(rows), NAMES)(rows).argmax(1).tolist() == [
        3,
        3,
        3,
    ]  # one class more
    with pytest.raises(InputError, match="queries=10"):
        decision_attack(lambda rows: ["up"] * len(rows), rows, ["up"] * 3, classes=NAMES, queries=10)
    with pytest.raises(InputError, match="y=down"):
        decision_attack(lambda rows: ["up"] * len(rows), rows, ["down"] * 3, classes=NAMES)
