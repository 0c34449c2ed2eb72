"""The layers of a classifier fitted elsewhere, read from what scikit-learn documents of it; nothing is run."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn

from polyrelu.errors import require
from polyrelu.nets import Net
from polyrelu.robust.norms import lengths

ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "logistic": nn.Sigmoid, "identity": nn.Identity}
QUERY = "give its predict function instead, which is attacked by queries alone"


@final
class Flat(nn.Module):
    """(n, 1) becomes (n,): one logit, positive for the second class; several stay as they are."""

    def forward(self, Z: Tensor) -> Tensor:
        """Logits as the rest of the package takes them."""
        return Z[:, 0] if Z.ndim == 2 and Z.shape[1] == 1 else Z


@final
class UnitRows(nn.Module):
    """x/|x| in the norm given; 0 stays 0."""

    def __init__(self, norm: float) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, X: Tensor) -> Tensor:
        """Rows of length 1."""
        size = lengths(X, self.norm)[:, None]
        return X / torch.where(size > 0, size, 1.0)


@final
class Kernel(nn.Module):
    """k(x, s_i) for every support vector s_i: rbf exp(-gamma |x - s|^2), poly (gamma <x, s> + c)^degree, sigmoid."""

    vectors: Tensor

    def __init__(self, kind: str, vectors: Tensor, gamma: float, degree: int, constant: float) -> None:
        super().__init__()
        self.kind, self.gamma, self.degree, self.constant = kind, gamma, degree, constant
        self.register_buffer("vectors", vectors)

    def forward(self, X: Tensor) -> Tensor:
        """(n, D) -> (n, number of support vectors)."""
        inner = X @ self.vectors.T
        if self.kind == "rbf":
            square = X.square().sum(dim=1, keepdim=True) - 2 * inner + self.vectors.square().sum(dim=1)
            return (-self.gamma * square.clamp(min=0)).exp()
        inner = inner if self.kind == "linear" else self.gamma * inner + self.constant
        return inner.pow(self.degree) if self.kind == "poly" else inner.tanh() if self.kind == "sigmoid" else inner


@final
class Duels(nn.Module):
    """One-against-one decisions g_cd as C logits s_c = min_d g_cd, the class with most votes in front.

    A class that wins all its duels has the only positive s_c. Where none does, the first with the most votes (``sums``:
    with the largest sum of decisions among them) is lifted above the others, so that decisions are libsvm's everywhere.
    """

    def __init__(self, classes: int, sums: bool) -> None:
        super().__init__()
        self.classes, self.sums = classes, sums

    def duels(self, g: Tensor) -> Tensor:
        """(n, C(C-1)/2) -> (n, C, C), antisymmetric."""
        first, second = torch.triu_indices(self.classes, self.classes, 1, device=g.device)
        table = g.new_zeros(len(g), self.classes, self.classes)
        table[:, first, second], table[:, second, first] = g, -g
        return table

    def forward(self, g: Tensor) -> Tensor:
        """Logits (n, C)."""
        table = self.duels(g)
        own = torch.eye(self.classes, dtype=torch.bool, device=g.device)
        scores = table.masked_fill(own, torch.inf).amin(dim=2)
        with torch.no_grad():
            votes = (table > 0).sum(dim=2).to(g)
            total = table.sum(dim=2)
            votes = votes + total / (3 * (total.abs() + 1)) if self.sums else votes
            winner = votes.argmax(dim=1, keepdim=True)
        top, mine = scores.amax(dim=1, keepdim=True), scores.gather(1, winner)
        return scores.scatter(1, winner, torch.where(mine >= top, mine, top - mine))


def layers_of(model: Any) -> Iterator[nn.Module]:
    """The layers of a fitted model, first to last."""
    name = type(model).__name__
    if isinstance(model, nn.Module):
        yield copy.deepcopy(model)
    elif hasattr(model, "best_estimator_"):
        yield from layers_of(model.best_estimator_)
    elif isinstance(getattr(model, "net_", None), Net):
        yield copy.deepcopy(model.net_)
    elif hasattr(model, "steps"):
        for _, step in model.steps[:-1]:
            yield from _transform(step)
        yield from layers_of(model.steps[-1][1])
    elif hasattr(model, "coefs_") and hasattr(model, "classes_"):
        yield from _perceptron(model)
    elif hasattr(model, "dual_coef_") and hasattr(model, "support_vectors_") and hasattr(model, "classes_"):
        yield from _machine(model)
    elif hasattr(model, "coef_") and hasattr(model, "intercept_") and hasattr(model, "classes_"):
        yield _affine(np.atleast_2d(model.coef_), model.intercept_)
    else:
        fitted = "a fitted linear model, MLPClassifier, SVC, a Pipeline of one, PolyReLUClassifier or a torch module"
        require(False, "model", name, f"{fitted}; of another kind, {QUERY}")


def _transform(step: Any) -> Iterator[nn.Module]:
    """One step of a pipeline."""
    name = type(step).__name__
    if step is None or step == "passthrough":
        return
    if name == "Normalizer":
        yield UnitRows({"l1": 1.0, "l2": 2.0, "max": math.inf}[step.norm])
        return
    affine = AFFINE.get(name)
    plain = affine is not None and not getattr(step, "clip", False)
    require(plain, "pipeline step", name, f"{', '.join(AFFINE)} or Normalizer; with another step, {QUERY}")
    assert affine is not None
    yield _affine(*affine(step))


def _scaled(scale: Any, offset: Any) -> tuple[Any, Any]:
    """x -> scale x + offset, column by column; either may be None."""
    size = len(scale) if scale is not None else len(offset)
    return np.diag(np.ones(size) if scale is None else scale), np.zeros(size) if offset is None else offset


def _standard(step: Any) -> tuple[Any, Any]:
    middle = step.center_ if type(step).__name__ == "RobustScaler" else step.mean_ if step.with_mean else None
    if step.scale_ is None and middle is None:
        return _scaled(np.ones(step.n_features_in_), None)
    inverse = np.ones(step.n_features_in_) if step.scale_ is None else 1 / step.scale_
    return _scaled(inverse, None if middle is None else -middle * inverse)


def _components(step: Any) -> tuple[Any, Any]:
    rows = step.components_
    if getattr(step, "whiten", False):
        rows = rows / np.sqrt(step.explained_variance_)[:, None]
    middle = getattr(step, "mean_", None)
    return rows, np.zeros(len(rows)) if middle is None else -rows @ middle


AFFINE: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "StandardScaler": _standard,
    "RobustScaler": _standard,
    "MinMaxScaler": lambda step: _scaled(step.scale_, step.min_),
    "MaxAbsScaler": lambda step: _scaled(1 / step.scale_, None),
    "PCA": _components,
    "IncrementalPCA": _components,
    "TruncatedSVD": _components,
}


def _affine(weight: Any, bias: Any) -> nn.Linear:
    rows = torch.as_tensor(np.array(weight, dtype=np.float64))
    layer = nn.Linear(rows.shape[1], rows.shape[0], dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(rows)
        layer.bias.copy_(torch.as_tensor(np.array(bias, dtype=np.float64)).expand(len(rows)))
    return layer.requires_grad_(False)


def _perceptron(model: Any) -> Iterator[nn.Module]:
    """MLPClassifier: affine maps with the activation between them."""
    several = model.out_activation_ == "logistic" and model.n_outputs_ > 1
    require(not several, "model", "MLPClassifier for several labels a row", "one label a row")
    *hidden, last = zip(model.coefs_, model.intercepts_, strict=True)
    for weight, bias in hidden:
        yield _affine(weight.T, bias)
        yield ACTIVATIONS[model.activation]()
    yield _affine(last[0].T, last[1])


def _machine(model: Any) -> Iterator[nn.Module]:
    """SVC, NuSVC: kernel values of the support vectors, their weights in each duel, and the duels if more than two."""
    kinds = ("linear", "rbf", "poly", "sigmoid")
    dense = isinstance(model.dual_coef_, np.ndarray)
    require(dense and model.kernel in kinds, "kernel", model.kernel, f"{', '.join(kinds)} on dense rows; else {QUERY}")
    dual, vectors, classes = model.dual_coef_, model.support_vectors_, len(model.classes_)
    if classes > 2:
        dual = _dual_of_duels(dual, model.n_support_)
    if model.kernel == "linear":
        yield _affine(dual @ vectors, model.intercept_)
    else:
        rows = torch.as_tensor(np.array(vectors, dtype=np.float64))
        yield Kernel(model.kernel, rows, float(model._gamma), int(model.degree), float(model.coef0))
        yield _affine(dual, model.intercept_)
    if classes > 2:
        yield Duels(classes, bool(model.break_ties) and model.decision_function_shape == "ovr")


def _dual_of_duels(dual: Any, counts: Any) -> Any:
    """Weights (C(C-1)/2, n) of all support vectors in every duel; libsvm keeps, for each, those against the others."""
    ends = np.cumsum(counts)
    spans = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    rows = []
    for i in range(len(spans)):
        for j in range(i + 1, len(spans)):
            row = np.zeros(dual.shape[1])
            row[spans[i]], row[spans[j]] = dual[j - 1, spans[i]], dual[i, spans[j]]
            rows.append(row)
    return np.array(rows)
