"""The classifiers of `heads.py`: how each is fitted, and what is left of it under attack."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

from polyrelu import Budget, PolyReLUClassifier
from polyrelu.robust import LabelledRows, margin_of, quadratic_radius
from polyrelu.robust.attacks import strongest
from polyrelu.robust.external import as_module, certified

RADII = (0.1, 0.2, 0.3)  # of the median centred norm
TUNED = 2000  # training rows at most, and
HELD = 100  # held-out ones, on which settings of a rival are compared
NEAREST = 5


@dataclass(frozen=True)
class Row:
    """A line of the table; ``proven`` is None where no certificate exists."""

    name: str
    clean: float
    attacked: list[float]
    proven: list[float] | None
    seconds: float


def share(flags):
    return float(flags.double().mean())


def survivors(model, points, pool):
    """For each radius, which of the ``points`` (X, y) no attack broke: `strongest`, towards the rows of ``pool``."""
    net = as_module(model)
    (X, y), (rows, labels) = (labelled(net, *part) for part in (points, pool))
    with torch.no_grad():
        alive = margin_of(net(X), y) > 0
    left = []
    for radius in RADII:
        here = alive.nonzero()[:, 0]
        if len(here):
            alive[here] = ~strongest(net, X[here], y[here], radius, pool=LabelledRows(rows, labels)).success
        left.append(alive.clone())
    return left


def labelled(net, X, y):
    """Rows and labels +-1 as the net takes them: places 0 and 1 if it has two logits."""
    X, y = torch.from_numpy(X), torch.from_numpy(y).double()
    return X, y if net(X[:1]).ndim == 1 else (y > 0).long()


def exact(model, points):
    """Radii of a linear model; None if it is not one."""
    return certified(model, *labelled(as_module(model), *points)) if hasattr(model, "coef_") else None


def tuned(models, task):
    """Of those within 1 point of the most accurate, the one best at .2, all on a fifth of the training rows."""
    X, y = task.train[:2]
    rows = np.random.default_rng(0).permutation(len(X))
    held, rest = rows[: len(X) // 5], rows[len(X) // 5 :][:TUNED]
    few = X[held[:HELD]], y[held[:HELD]]
    fitted = [make().fit(X[rest], y[rest]) for _, make in models]
    clean = np.array([model.score(X[held], y[held]) for model in fitted])
    found = np.full(len(models), -1.0)
    for number in np.flatnonzero(clean >= clean.max() - 0.01):
        radius = exact(fitted[number], few)
        left = survivors(fitted[number], few, (X[rest], y[rest]))[1] if radius is None else radius > RADII[1]
        found[number] = share(left)
    return models[int(found.argmax())]


def heads(seed):
    """Name, head and where its fine labels come from."""
    for p, name in ((1, "ReLU head"), (2, "p=2"), (3, "p=3"), (4, "p=4")):
        yield name, PolyReLUClassifier(p=p, random_state=seed), None
    for kind, word in (("given", "given"), ("discover", "discovered")):
        yield f"p=3, fine labels {word}", PolyReLUClassifier(p=3, random_state=seed), kind


def rivals(task):
    """Name and model of those with gradients; the widths and penalties of each tuned for robustness."""
    penalties = [0.01, 0.1, 1.0, 10.0]
    logistic = partial(LogisticRegression, max_iter=5000)
    yield tuned([(f"logistic regression, C={C:g}", partial(logistic, C=C)) for C in penalties], task)
    linear = partial(LinearSVC, dual="auto", max_iter=50_000)
    yield tuned([(f"linear SVM, C={C:g}", partial(linear, C=C)) for C in penalties], task)
    yield tuned([(f"RBF SVM, gamma={g}, C=10", partial(SVC, gamma=g, C=10)) for g in (1, 2, 3, 4, 6)], task)


def timed(fit):
    """What ``fit`` gives, and its CPU seconds."""
    begin = time.process_time()
    model = fit()
    return model, time.process_time() - begin


def rows(task, seed):
    """Every line of the table, one at a time."""
    X, y, fine = task.train
    points, pool = task.test[:2], task.train[:2]
    for name, make in rivals(task):
        model, seconds = timed(lambda make=make: make().fit(X, y))
        radius = exact(model, points)
        left = survivors(model, points, pool) if radius is None else [radius > r for r in RADII]
        shares = [share(one) for one in left]
        yield Row(name, model.score(*points), shares, None if radius is None else shares, seconds)
    yield neighbours(task)
    for name, head, kind in heads(seed):
        given = fine if kind == "given" else kind
        head, seconds = timed(lambda head=head, given=given: head.fit(X, y, fine_labels=given))
        left, radius = survivors(head, points, pool), proven(head, points, pool)
        yield Row(name, head.score(*points), [share(one) for one in left], [share(radius > r) for r in RADII], seconds)


def proven(head, points, pool):
    """Radii of `certify`; for p = 1, where its search is slow, of the quadratic certificate up to the largest."""
    if head.p_ > 1:
        return head.certify(*points, pool=pool, tol=0.02, budget=Budget(nodes=10)).lower
    net = as_module(head)
    return quadratic_radius(net, *labelled(net, *points), limit=1.001 * RADII[-1])


def neighbours(task):
    """Five nearest neighbours, attacked through the score whose sign is their vote."""
    model, seconds = timed(lambda: KNeighborsClassifier(NEAREST).fit(*task.train[:2]))
    points, pool = task.test[:2], task.train[:2]
    left = survivors(Vote(*map(torch.from_numpy, pool)), points, pool)
    return Row(f"{NEAREST} nearest neighbours", model.score(*points), [share(one) for one in left], None, seconds)


class Vote(torch.nn.Module):
    """|x - n|^2 - |x - m|^2, m and n the third nearest rows of class +1 and -1: the first three there win the vote."""

    def __init__(self, rows, y):
        super().__init__()
        self.classes = rows[y < 0], rows[y > 0]

    def forward(self, X):
        n, m = (squares(X, rows).kthvalue((NEAREST + 1) // 2, dim=1).values for rows in self.classes)
        return n - m


def squares(X, rows):
    """|x - x_i|^2."""
    return X.square().sum(dim=1, keepdim=True) - 2 * X @ rows.T + rows.square().sum(dim=1)
