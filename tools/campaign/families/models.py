"""Ideal classifiers with closed forms, classifiers of other people, and heads of the estimator."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from polyrelu import PolyReLUClassifier
from polyrelu.nets import AverageClassifier, CentreClassifier, NearestCentre, ReadOut
from tools.campaign.families.draw import (
    Drawn,
    Random,
    build,
    drawn,
    family,
    normal,
    power,
    scattered,
    signs,
    sizes,
)
from tools.campaign.scores import Array, Scores


def _centres(rng: Random) -> tuple[Any, Any, Array]:
    """Orthonormal centres with labels of both signs, and points at and around them."""
    K = int(rng.integers(2, 6))
    D = int(rng.integers(K, K + 2))
    Q = np.linalg.qr(rng.standard_normal((D, D)))[0][:K]
    labels = np.where(rng.random(K) < 0.5, 1.0, -1.0)
    labels[:2] = 1, -1
    around = Q[rng.integers(0, K, 8)] + rng.choice([0.05, 0.3, 1.0]) * rng.standard_normal((8, D))
    return torch.as_tensor(Q), torch.as_tensor(labels), np.concatenate([Q, around])


def _centre_classifier(rng: Random) -> Drawn:
    centres, labels, X = _centres(rng)
    p = power(rng)
    net = CentreClassifier(centres, labels, p=p).as_polyrelu_net()
    return drawn(rng, net, X, ideal="centre", centres=centres, labels=labels)


def _average_classifier(rng: Random) -> Drawn:
    centres, labels, X = _centres(rng)
    net = AverageClassifier(centres, labels).as_polyrelu_net()
    return drawn(rng, net, X, ideal="average", centres=centres, labels=labels)


def _nearest_centre(rng: Random) -> Drawn:
    centres, labels, X = _centres(rng)
    of = np.where(labels.numpy() > 0, 1, 0)  # the maximum of <x, mu_k> over each class
    scores = Scores.affine(centres.numpy(), np.zeros(len(centres)), of=of)
    net = NearestCentre(centres, labels)
    return Drawn(net, X, scores, extra={"ideal": "nearest", "centres": centres, "labels": labels})


def _fitted(model: Any, rng: Random, D: int, classes: int) -> Any:
    """``model`` fitted on a few rows of unlike scales; what it learnt is of no interest."""
    X = normal(rng, 30, D) * 10.0 ** rng.uniform(-2, 2, D) + rng.standard_normal(D)
    y = np.arange(30) % classes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X + y[:, None], y)


def _scale(rng: Random, shape: tuple[int, ...]) -> Array:
    rows: Array = rng.standard_normal(shape) * 10.0 ** rng.uniform(-3, 3)
    return rows


def _points(rng: Random, model: Any, scores: Scores) -> Drawn:
    D = len(scores.centre)
    size = np.ones(D) if scores.divisor is None else scores.divisor
    X = scores.centre + size * normal(rng, 8, D) * 10 ** rng.uniform(-1, 1)
    near = np.array([x + rng.random() * (X[0] - x) for x in X[1:5]])
    return Drawn(model, np.concatenate([X, near]), scores)


def _step(rng: Random, D: int, classes: int, last: Any) -> tuple[Any, dict[str, Any], int]:
    """The model alone, or after a scaler or PCA; what the step does, and the dimension it leaves."""
    kind = rng.choice(["alone", "scaler", "pca"])
    if kind == "alone" or D == 1:
        return _fitted(last, rng, D, classes), {}, D
    if kind == "scaler":
        model = _fitted(make_pipeline(StandardScaler(), last), rng, D, classes)
        return model, {"centre": model[0].mean_, "divisor": model[0].scale_}, D
    k = int(rng.integers(1, D + 1))
    model = _fitted(make_pipeline(PCA(k), last), rng, D, classes)
    return model, {"centre": model[0].mean_, "divisor": np.ones(D), "matrix": model[0].components_}, k


def _linear(rng: Random) -> Drawn:
    D, classes = int(rng.integers(1, 6)), int(rng.integers(2, 5))
    S = 1 if classes == 2 else classes
    last = LogisticRegression(max_iter=1) if rng.random() < 0.5 else LinearSVC(max_iter=1)
    model, step, k = _step(rng, D, classes, last)
    last.coef_, last.intercept_ = _scale(rng, (S, k)), _scale(rng, (S,))
    return _points(rng, model, Scores.affine(last.coef_, last.intercept_, **step))


def _perceptron(rng: Random) -> Drawn:
    D, h, classes = int(rng.integers(1, 5)), int(rng.integers(1, 9)), int(rng.integers(2, 4))
    S = 1 if classes == 2 else classes
    last = MLPClassifier((h,), max_iter=1)
    model, step, k = _step(rng, D, classes, last)
    last.coefs_ = [_scale(rng, (k, h)), _scale(rng, (h, S))]
    last.intercepts_ = [_scale(rng, (h,)), _scale(rng, (S,))]
    scores = Scores.perceptron(last.coefs_[0].T, last.intercepts_[0], last.coefs_[1].T, last.intercepts_[1], **step)
    return _points(rng, model, scores)


def _module(rng: Random) -> Drawn:
    D, h, S = int(rng.integers(1, 5)), int(rng.integers(1, 9)), int(rng.choice([1, 2, 3]))
    model = torch.nn.Sequential(torch.nn.Linear(D, h), torch.nn.ReLU(), torch.nn.Linear(h, S)).double()
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.as_tensor(_scale(rng, tuple(weight.shape))))
    W, b, V, c = (weight.detach().numpy() for weight in model.parameters())
    return _points(rng, model, Scores.perceptron(W, b, V, c))


def _machine(rng: Random) -> Drawn:
    D, classes = int(rng.integers(1, 5)), int(rng.integers(2, 4))
    model = _fitted(SVC(kernel="linear", C=10 ** rng.uniform(-2, 2)), rng, D, classes)
    dual, vectors = model.dual_coef_, model.support_vectors_
    if classes == 2:
        return _points(rng, model, Scores.affine(dual, model.intercept_, matrix=vectors))
    # Duels 0-1, 0-2, 1-2: a class of three that loses one has no more votes than who won it, so it breaks there.
    ends = np.cumsum(model.n_support_)
    span = [slice(end - count, end) for end, count in zip(ends, model.n_support_, strict=True)]
    rows = np.zeros((3, dual.shape[1]))
    for row, (i, j) in zip(rows, ((0, 1), (0, 2), (1, 2)), strict=True):
        row[span[i]], row[span[j]] = dual[j - 1, span[i]], dual[i, span[j]]
    rows, constants = np.concatenate([rows, -rows]), np.concatenate([model.intercept_, -model.intercept_])
    of = np.array([0, 0, 1, 1, 2, 2])
    return _points(rng, model, Scores.affine(rows, constants, matrix=vectors, of=of, duelling=True))


def _trained(rng: Random) -> Drawn:
    D, h, classes = int(rng.integers(2, 5)), int(rng.integers(2, 12)), int(rng.integers(2, 4))
    X = normal(rng, 40, D) + 2.0 * np.eye(max(D, classes))[np.arange(40) % classes, :D]
    dtype = np.float32 if rng.random() < 0.5 else np.float64
    bias, normalise = bool(rng.random() < 0.5), bool(rng.random() < 0.7)
    head = PolyReLUClassifier(power(rng), width=h, epochs=3, bias=bias, normalise_input=normalise, random_state=0)
    head.fit(X.astype(dtype), np.arange(40) % classes)
    scores = Scores.of_net(head.net_)
    X = scattered(rng, scores, float(np.abs(X - scores.centre).mean()))
    return Drawn(head, X.astype(dtype).astype(np.float64), scores)


def _constructed(rng: Random) -> Drawn:
    D, h, _ = sizes(rng)
    S, dtype = int(rng.choice([1, 3, 4])), torch.float32 if rng.random() < 0.5 else torch.float64
    bias = rng.standard_normal(S) if rng.random() < 0.5 else None
    log_scale = -rng.uniform(0, 30, h) if rng.random() < 0.3 else None
    net: Any = build(
        normal(rng, h, D) * 10 ** rng.uniform(-4, 4),
        signs(rng, S, h),
        power(rng),
        log_scale=log_scale,
        bias=bias,
        centre=rng.standard_normal(D),
        normalise=bool(rng.random() < 0.7),
        dtype=dtype,
    )
    of = [0, 1, 0, 1] if S == 4 else list(range(max(S, 2)))
    net = ReadOut(net, of) if S == 4 else net
    classes = max(of) + 1
    head = PolyReLUClassifier(width=2, epochs=1, random_state=0).fit(normal(rng, 8, D), np.arange(8) % classes)
    head.net_, head.p_ = net, float(getattr(net, "net", net).p)
    scores = Scores.of_net(net)
    return Drawn(head, scattered(rng, scores).astype(np.float32).astype(np.float64), scores)


@family("ideal")
def _(rng: Random) -> Drawn:
    return (_centre_classifier, _centre_classifier, _average_classifier, _nearest_centre)[rng.integers(4)](rng)


@family("foreign")
def _(rng: Random) -> Drawn:
    return (_linear, _perceptron, _module, _machine)[rng.integers(4)](rng)


@family("heads")
def _(rng: Random) -> Drawn:
    return (_trained, _constructed)[rng.integers(2)](rng)
