r"""Classifiers that were fitted elsewhere: as modules that can be attacked, with a proof where there is one.

    linear            r = min_c  (f_y - f_c)(x) / |w_y - w_c|_dual                exact, in l1, l2, l-infinity
    one hidden layer  V relu(W x + b) + c = f_1([x, s]),  rows [W_j, b_j/s], f_1 a PolyReLUNet of p = 1, any s > 0:
                      changes that leave the last input alone are some of all, so a radius proven for f_1 holds
    after x -> A x    r_x >= r_z / |A|, |A| the largest stretch of a perturbation

A module here is an ``nn.Sequential`` of plain layers in float64: one look at its layers says what can be proven.
"""

from __future__ import annotations

import importlib
import warnings
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from polyrelu.checks import plain_tensor, with_numbers
from polyrelu.errors import InputError, require
from polyrelu.nets import Net, PolyReLUNet
from polyrelu.robust._foreign_layers import QUERY, Duels, Flat, layers_of
from polyrelu.robust.bounds import FEW
from polyrelu.robust.bracket import bracket
from polyrelu.robust.certify.branch import Budget
from polyrelu.robust.margin import check_points, margin_of
from polyrelu.robust.norms import check_norm, dual, lengths
from polyrelu.robust.shallow import UNIT

CONSTANT = 100.0  # the input s that carries biases, in units of the longest row; the larger, the less it loses


def as_module(model: Any, X_like: Any = None) -> nn.Module:
    """A fitted classifier as a differentiable float64 module with the same decisions, on the CPU.

    Of two classes one logit (n,), positive for ``classes_[1]``; otherwise (n, C) in the order of ``classes_``.

    Parameters
    ----------
    model : anything with ``coef_`` and ``intercept_`` (LogisticRegression, LinearSVC, RidgeClassifier, SGDClassifier,
        Perceptron, LinearDiscriminantAnalysis, ...), MLPClassifier, SVC and NuSVC (linear, rbf, poly, sigmoid), a
        Pipeline of one of them after scalers, PCA, TruncatedSVD or Normalizer, a search that holds one
        (``best_estimator_``), PolyReLUClassifier, or a torch module on (n, D), of which a copy is taken
    X_like : rows (n, D) on which decisions are compared with ``model.predict``; an InputError says where they differ
    """
    layers = list(layers_of(with_numbers(model) if isinstance(model, nn.Module) else model))
    alone = len(layers) == 1 and isinstance(layers[0], Net)
    module = (layers[0] if alone else nn.Sequential(*layers, Flat())).double().cpu().eval()
    if X_like is not None and not isinstance(model, nn.Module):
        _compare(model, module, np.asarray(X_like, dtype=np.float64))
    return module


def certified(
    model: Any, X: Tensor, y: Tensor, norm: float | str = 2, *, budget: Budget | None = None
) -> Tensor | None:
    """A proven radius of each row of X (n, D), (n,) float64; 0 where misclassified; None where no proof is known.

    Exact for linear models, up to rounding; lower bounds for one hidden ReLU layer and for PolyReLU heads. ``y``: +1/-1
    for one logit, 0..C-1 for C (see `as_module`); ``budget`` as in `polyrelu.bracket`.
    """
    norm = check_norm(norm)
    module = as_module(model)
    X, y = check_points(module, plain_tensor("X", X).double(), y)
    if hooked(module):
        return None
    prove = partial(bracket, norm=norm, budget=budget, widest=FEW)
    A, a, rest = _folded(_plain(module))
    if A is not None and not rest:
        return _linear(A, a, X, y, norm)
    if A is not None and len(rest) == 1 and isinstance(rest[0], Duels):
        return _duels(rest[0], A, a, X, y, norm)
    if A is not None and len(rest) == 2 and type(rest[0]) is nn.ReLU and type(rest[1]) is nn.Linear:
        net, lifted = _lifted(A, a, rest[1], X)
        return prove(net, lifted, y).lower
    if len(rest) == 1 and isinstance(rest[0], Net) and provable(rest[0]):
        if A is None:
            return prove(rest[0], X, y).lower
        off = lengths(_rounding(A, a, X), norm)  # how far the rows that are proven may be from the true ones
        return (prove(rest[0], X @ A.T + a, y).lower - off).clamp(min=0) / _stretch(A, norm)
    return None


def decisions(model: Any, X: Any) -> Any:
    """``model.predict`` of plain rows, which get the names of the columns that the model was fitted on, if it was."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None and find_spec("pandas") is not None:
        X = importlib.import_module("pandas").DataFrame(np.asarray(X), columns=names)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return model.predict(X)


def codes(y: Any, classes: Any, logits: int) -> Tensor:
    """Labels as logits count them: places in ``classes``, or for one logit +1 for ``classes[1]``, -1 for the other."""
    place = {name: number for number, name in enumerate(np.asarray(classes).tolist())}
    given = np.asarray(y).tolist()
    strange = next((label for label in given if label not in place), None)
    require(strange is None, "y", strange, f"one of the model's classes, {', '.join(map(str, place))}")
    number = torch.tensor([place[label] for label in given])
    return 2.0 * number.double() - 1 if logits == 1 else number


def hooked(module: nn.Module) -> bool:
    """Does something run beside the layers themselves? Then they do not tell what the module computes."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "parametrizations")
    return any(getattr(layer, name, None) for layer in module.modules() for name in hooks)


def _plain(module: nn.Module) -> list[nn.Module]:
    """The layers of nested ``nn.Sequential``s that do something in ``eval`` mode; a subclass may do anything."""
    if type(module) is nn.Sequential:
        return [layer for part in module for layer in _plain(part)]
    return [] if type(module) in (Flat, nn.Identity, nn.Dropout) else [module]


def _folded(layers: list[nn.Module]) -> tuple[Tensor | None, Tensor, list[nn.Module]]:
    """Leading affine layers as one, x -> A x + a (A is None where there are none), and the layers after them."""
    A, a = None, torch.zeros((), dtype=torch.float64)
    for number, layer in enumerate(layers):
        if type(layer) is not nn.Linear:
            return A, a, layers[number:]
        weight = layer.weight.detach().double()
        bias = weight.new_zeros(len(weight)) if layer.bias is None else layer.bias.detach().double()
        A, a = (weight, bias) if A is None else (weight @ A, weight @ a + bias)
    return A, a, []


def _linear(A: Tensor, a: Tensor, X: Tensor, y: Tensor, norm: float) -> Tensor:
    """margin / |w_y - w_c|_dual, the least over rivals."""
    if len(A) == 1:
        A, a, y = torch.cat([-A, A]) / 2, torch.cat([-a, a]) / 2, (y > 0).long()
    logits, rounding = X @ A.T + a, _rounding(A, a, X)
    margins = logits.gather(1, y[:, None]) - logits - (rounding.gather(1, y[:, None]) + rounding)
    return _nearest(margins, lengths(A[:, None] - A, dual(norm))[y], y)


def _duels(duels: Duels, A: Tensor, a: Tensor, X: Tensor, y: Tensor, norm: float) -> Tensor:
    """The first lost duel: a class that wins all of them is the answer; where it does not, nothing is proven."""
    sizes = duels.duels(lengths(A, dual(norm))[None]).abs()[0]
    rows = torch.arange(len(X), device=X.device)
    rounding = duels.duels(_rounding(A, a, X)).abs()
    return _nearest((duels.duels(X @ A.T + a) - rounding)[rows, y], sizes[y], y)


def _rounding(A: Tensor, a: Tensor, X: Tensor) -> Tensor:
    """A bound on the rounding of X A^T + a in float64, (n, rows of A)."""
    return 2 * (X.shape[1] + 16) * UNIT * (X.abs() @ A.abs().T + a.abs())


def _nearest(margins: Tensor, slopes: Tensor, y: Tensor) -> Tensor:
    """min over rivals of margin/slope (n,); inf where no change of x changes a positive margin, 0 where one is not."""
    radii = torch.where(margins > 0, margins / slopes * (1 - 1e-12), 0.0)
    return radii.scatter(1, y[:, None], torch.inf).amin(dim=1)


def _lifted(A: Tensor, a: Tensor, last: nn.Linear, X: Tensor) -> tuple[PolyReLUNet, Tensor]:
    """V relu(A x + a) + c as a PolyReLUNet of p = 1 on [x, s], and those rows."""
    s = CONSTANT * float(lengths(X, 2.0).amax()) or 1.0
    V = last.weight.detach().double()
    net = PolyReLUNet(X.shape[1] + 1, len(A), 1.0, len(V), init="zeros", bias=True, dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(torch.cat([A, a[:, None] / s], dim=1))
        net.output.copy_(V)
        assert net.bias is not None
        net.bias.copy_(0.0 if last.bias is None else last.bias.double())
    return net, torch.cat([X, X.new_full((len(X), 1), s)], dim=1)


def provable(net: Net) -> bool:
    """Does the bracket prove anything of it?"""
    return isinstance(net, PolyReLUNet) or type(net).__name__ in ("ReadOut", "AverageClassifier", "CentreClassifier")


def _stretch(A: Tensor, norm: float) -> float:
    """sup |A d|/|d|: the largest column sum (l1), row sum (l-infinity) or singular value, a little above it."""
    return float(torch.linalg.matrix_norm(A, ord=norm)) * (1 + 1e-12)


def _compare(model: Any, module: nn.Module, X: Any) -> None:
    """Decisions of both on some rows; only a margin of rounding size excuses a difference."""
    with torch.no_grad():
        logits = module(torch.as_tensor(X))
    margin = margin_of(logits, codes(decisions(model, X), model.classes_, 1 if logits.ndim == 1 else len(logits[0])))
    wrong = (margin < -1e-5 * logits.abs().amax().clamp(min=1e-30)).nonzero()[:, 0].tolist()
    if wrong:
        raise InputError(
            f"model={type(model).__name__}: its predict and its weights disagree in row {wrong[0]} of {len(X)}; "
            f"expected the model's own predict; {QUERY}."
        )
