"""Where a polynomial head is the wrong choice, for `heads.py --limits`: accuracy, mean of three splits.

pixels  digits by parity, every pixel changed by up to r in [0, 1] (l-infinity)
few     digits by parity, 20 to 200 rows to train
plain   two round Gaussian clouds in 50 dimensions: no sub-classes
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from polyrelu import PolyReLUClassifier
from polyrelu.data import read
from polyrelu.robust import LabelledRows
from polyrelu.robust.attacks import strongest
from polyrelu.robust.external import as_module

POINTS, SEEDS = 150, 3
FRACTIONS = (0.1, 0.2, 0.3)


def accuracies(model, train, test, radii, norm=2):
    """Clean, and what `strongest` leaves at each radius."""
    model.fit(*train)
    net = as_module(model)
    (X, y), pool = ((torch.from_numpy(a).double(), torch.from_numpy(b).double()) for a, b in (test, train))
    left = [~strongest(net, X, y, radius, norm=norm, pool=LabelledRows(*pool)).success for radius in radii]
    return [model.score(*test), *(float(one.double().mean()) for one in left)]


def head(p):
    return PolyReLUClassifier(p=p, random_state=0)


def digits(seed):
    """A permutation of the rows: 1347 to train, then the test points."""
    data = read("digits:parity")
    X, y = data.rows().double().numpy(), data.y.double().numpy()
    order = np.random.default_rng(seed).permutation(len(X))
    return (X[order[:1347]], y[order[:1347]]), (X[order[1347:][:POINTS]], y[order[1347:][:POINTS]])


def typical(X):
    return float(np.median(np.linalg.norm(X - X.mean(axis=0), axis=1)))


def pixels(seed):
    train, test = digits(seed)
    models = {"logistic": LogisticRegression(max_iter=5000), "RBF SVM": SVC(gamma=0.2, C=10)}
    models |= {"p=1": head(1), "p=3": head(3)}
    return {name: accuracies(model, train, test, (0.05, 0.1, 0.2), np.inf) for name, model in models.items()}


def few(seed):
    train, test = digits(seed)
    found, far = {}, [0.2 * typical(train[0])]
    for rows in (20, 50, 100, 200):
        some = tuple(part[:rows] for part in train)
        for name, model in (("logistic", LogisticRegression(max_iter=5000)), ("p=3", head(3))):
            found[f"{name}, {rows} rows"] = accuracies(model, some, test, far)
    return found


def plain(seed):
    draw, found = np.random.default_rng(seed), {}
    for rows in (200, 2000):
        y = np.where(draw.random(rows + POINTS) < 0.5, 1.0, -1.0)
        X = 0.8 * draw.standard_normal((rows + POINTS, 50))
        X[:, 0] += 2 * y
        train, test = (X[:rows], y[:rows]), (X[rows:], y[rows:])
        radii = [fraction * typical(train[0]) for fraction in FRACTIONS]
        for name, model in (("logistic", LogisticRegression(C=0.1)), ("p=1", head(1)), ("p=3", head(3))):
            found[f"{name}, {rows} rows"] = accuracies(model, train, test, radii)
    return found


def limits():
    """A line for each classifier: clean and robust accuracy."""
    heads = {pixels: "l-infinity .05, .1, .2", few: ".2 of the typical norm", plain: ".1, .2, .3 of the typical norm"}
    for section, radii in heads.items():
        print(f"\n## {section.__name__}: clean, then at {radii}", flush=True)
        runs = [section(seed) for seed in range(SEEDS)]
        for name in runs[0]:
            means = np.mean([run[name] for run in runs], axis=0)
            print(f"{name:20s}" + "".join(f"{mean:8.3f}" for mean in means), flush=True)
