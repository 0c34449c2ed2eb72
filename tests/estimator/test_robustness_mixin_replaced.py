"""What an estimator says of its own robustness: nothing is proven of a head whose methods were replaced."""

from __future__ import annotations

import numpy as np
import pytest

from polyrelu import PolyReLUClassifier
from polyrelu.robust import BracketStatus


class Other(PolyReLUClassifier):
    """Somebody else's: it says the same, but might say anything."""


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).normal(size=(20, 3))
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.slow
@pytest.mark.parametrize("kind, share", [(PolyReLUClassifier, 1.0), (Other, 0.0)])
def test_shares_are_proven_of_the_class_itself_alone(rows, kind, share):
    X, y = rows
    head = kind(width=4, epochs=3, random_state=0).fit(X, y)
    y = head.predict(X)
    certified, unbroken = head.robust_score(X, y, 1e-6, attacked=True)
    assert certified == head.robust_score(X, y, 1e-6) == share and unbroken == 1.0
    assert head.robust_score(X, 1 - y, 1e-6, attacked=True) == (0.0, 0.0)
    found = head.certify(X, y)
    assert ((found.lower > 0).all() if share else (found.lower == 0).all()) and (found.upper > 0).all()


@pytest.mark.slow
def test_what_is_found_for_an_altered_head_counts_where_it_answers_otherwise(rows):
    X, y = rows
    head = Other(width=4, epochs=3, random_state=0).fit(X, y)
    y = head.predict(X)
    y[:3] = 1 - y[:3]
    found = head.certify(X, y)
    assert found.status[:3] == (BracketStatus.WRONG,) * 3 and (found.upper[:3] == 0).all()
    assert set(found.status[3:]) <= {BracketStatus.UNPROVEN, BracketStatus.UNBROKEN}
    moved = head.predict(X + found.perturbation.numpy()) != head.predict(X)
    unproven = np.array([one is BracketStatus.UNPROVEN for one in found.status[3:]])
    assert (unproven == moved[3:]).all() and unproven.any()
    assert (found.upper.isfinite().numpy()[3:] == moved[3:]).all()
    head.predict = lambda X: np.zeros(len(X))  # what breaks the net does not change this answer
    found = head.certify(X, y)
    wrong = y != 0
    assert found.status == tuple(BracketStatus.WRONG if bad else BracketStatus.UNBROKEN for bad in wrong)
    assert 0 < wrong.sum() < len(y) and (found.upper.isinf().numpy() == ~wrong).all() and (found.lower == 0).all()
    assert (found.lower == 0).all()
