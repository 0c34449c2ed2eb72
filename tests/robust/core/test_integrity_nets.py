"""Nets and heads of our own are proven only as they were written; what was changed is attacked."""

import copy

import numpy as np
import pytest
import torch

from polyrelu import PolyReLUClassifier, PolyReLUNet, bracket
from polyrelu.errors import InputError
from polyrelu.robust import (
    BracketStatus,
    bounds_at_radius,
    certified_radius,
    linear_radius,
    quadratic_radius,
    root_lipschitz_radius,
)


class Shifted(PolyReLUNet):
    """Looks like a PolyReLUNet, and answers for another point."""

    def forward(self, X):
        return super().forward(X + 0.5)


def plain():
    net = PolyReLUNet(2, 2, 2.0, init="zeros", dtype=torch.float64)
    net.weight.data.copy_(torch.eye(2))
    net.output.data.copy_(torch.tensor([[1.0, -1.0]]))
    return net


def shifted():
    return Shifted.restore(plain().config(), plain().state_dict())


def hooked():
    net = plain()
    net.register_forward_hook(lambda module, X, out: -out)
    return net


def replaced():
    net = plain()
    net.forward = lambda X: X[:, 1] - X[:, 0]
    return net


X = torch.tensor([[1.0, 0.2], [0.1, 1.0]], dtype=torch.float64)


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1, 2, float("inf")])
@pytest.mark.parametrize("make", [shifted, hooked, replaced])
def test_the_bracket_attacks_what_answers_and_proves_nothing(make, norm):
    net = make()
    with torch.no_grad():
        y = net(X).sign()
    found = bracket(net, X, y, norm=norm)
    assert (found.lower == 0).all() and found.upper.isfinite().all()
    assert set(found.status) == {BracketStatus.UNPROVEN}
    with torch.no_grad():
        assert (y * net(X + found.perturbation) <= 0).all()
    assert (bracket(plain(), X, plain()(X).detach().sign(), norm=norm).lower > 0).all()


@pytest.mark.parametrize("make", [shifted, hooked, replaced])
def test_certificates_refuse_it(make):
    net, y = make(), torch.ones(2, dtype=torch.float64)
    for prove in (
        root_lipschitz_radius,
        linear_radius,
        certified_radius,
        quadratic_radius,
        lambda *args: bounds_at_radius(*args, 0.1),
    ):
        with pytest.raises(InputError, match="expected a net of polyrelu as it was written, since it"):
            prove(net, X, y)


class Contrary(PolyReLUClassifier):
    """Answers the first class far from where the head would change its mind."""

    def predict(self, X):
        said = super().predict(X).copy()
        said[np.asarray(X)[:, 0] > 2.5] = self.classes_[0]
        return said


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Contrary, "instance"])
def test_of_a_head_that_predicts_otherwise_nothing_is_proven(kind):
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(60, 2)) + np.repeat([[-2.0, 0.0], [2.0, 0.0]], 30, axis=0)
    labels = np.repeat(["a", "b"], 30)
    head = PolyReLUClassifier(p=2, random_state=0).fit(rows, labels)
    true = head.certify(rows[:5])
    assert (true.lower > 0).sum() >= 4 and head.robust_score(rows, labels, 0.01) > 0.5
    if kind == "instance":
        other = copy.deepcopy(head)
        other.predict = lambda X: np.full(len(X), "a")
    else:
        other = Contrary(p=2, random_state=0).fit(rows, labels)
    found = other.certify(rows[:5])
    assert (found.lower == 0).all() and other.robust_score(rows, labels, 0.01) == 0
    assert set(found.status) <= {BracketStatus.UNPROVEN, BracketStatus.UNBROKEN, BracketStatus.WRONG}
    if kind == "instance":  # it never changes its mind, so nothing was found either
        assert found.upper[true.upper > 0].isinf().all()
