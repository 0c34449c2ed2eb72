r"""Classifiers that were fitted elsewhere: as modules that can be attacked, with a proof where there is one.

    linear            r = min_c  (f_y - f_c)(x) / |w_y - w_c|_dual                exact, in l1, l2, l-infinity
    one hidden layer  V relu(W x + b) + c = f_1([x, s]),  rows [W_j, b_j/s], f_1 a PolyReLUNet of p = 1, any s > 0:
                      changes that leave the last input alone are some of all, so a radius proven for f_1 holds
    after x -> A x    r_x >= r_z / |A|, |A| the largest stretch of a perturbation

A module here is an ``nn.Sequential`` of plain layers in float64: its layers say what can be proven. Proven
is what a class says that is known by identity and unchanged (`robust.core.integrity`), for real arithmetic with the
stored weights; the rounding of what is computed here is taken off the radius.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from polyrelu.checks import check_module, checked_output, plain_tensor
from polyrelu.data import class_numbers
from polyrelu.errors import InputError, require
from polyrelu.nets import Net, PolyReLUNet, as_float64, as_polyrelu_net
from polyrelu.robust.bracketing.bracket import Bracket, bracket
from polyrelu.robust.bracketing.strategies import QUICK_DIRECTIONS
from polyrelu.robust.certify.contract import WITHOUT_BRANCHING, Budget
from polyrelu.robust.certify.table import applicable
from polyrelu.robust.core.external_layers import OneVersusOne, SqueezeSingleLogit
from polyrelu.robust.core.integrity import altered
from polyrelu.robust.core.margin import check_points, margin_of
from polyrelu.robust.core.model_copy import QUERY
from polyrelu.robust.core.norms import check_norm, dual
from polyrelu.robust.external.affine_map import TINY, AffineMap, folded, growth, size_above, stored
from polyrelu.robust.external.readers import affine_layer, call_with_feature_names, layers_of

Prove = partial[Bracket]

CONSTANT = 100.0  # the input s that carries biases, at most, in units of the longest row; s is a power of two below it
REACHES = (10.0, 1e4, 1e8)  # how far hidden layers after a map are proven, in units of the longest row, in turn


def as_module(model: Any, X_like: Any = None) -> nn.Module:
    """A fitted classifier as a differentiable float64 module in eval mode on the CPU, with the decisions its class has.

    Of two classes one logit (n,), positive for ``classes_[1]``; otherwise (n, C) in the order of ``classes_``. Weights
    are read by what attributes there are, so a subclass that decides otherwise gets the module of its parent: only
    what `robust.core.integrity.altered` has nothing to say about is sure to decide like this, everywhere.

    Parameters
    ----------
    model : anything with ``coef_`` and ``intercept_`` (LogisticRegression, LinearSVC, RidgeClassifier, SGDClassifier,
        Perceptron, LinearDiscriminantAnalysis, ...), MLPClassifier, SVC and NuSVC (linear, rbf, poly, sigmoid), a
        Pipeline of one of them after scalers, PCA, TruncatedSVD or Normalizer, a search that holds one
        (``best_estimator_``), PolyReLUClassifier, or a torch module on (n, D), of which a copy is taken
    X_like : rows (n, D) on which decisions are compared with ``model.predict``; an InputError says where they differ
    """
    return _checked(model, _joined(_layers(check_module(model) if isinstance(model, nn.Module) else model)), X_like)


def certified(
    model: Any, X: Tensor, y: Tensor, norm: float | str = 2, *, budget: Budget | None = None
) -> Tensor | None:
    """A proven radius of each row of X (n, D), (n,) float64; 0 where misclassified; None where no proof is known.

    Exact for linear models, up to rounding; lower bounds for one hidden ReLU layer and for PolyReLU heads. It holds in
    real arithmetic with the stored weights, of a torch module in eval mode. None for every class that is not the known
    one itself or was changed, see `robust.core.integrity.altered`, and where ``model.predict`` of X contradicts the
    weights. ``y``: +1/-1 for one logit, 0..C-1 for C (see `as_module`); ``budget`` as in `polyrelu.bracket`.
    """
    norm = check_norm(norm)
    if altered(model):
        return None
    module = _checked(model, _layers(model), None)
    X, y = check_points(module, plain_tensor("X", X).double(), y)
    try:
        right = _right(model, module, X, y)
    except InputError:
        return None
    radius = _proven(_plain(module), X, y, norm, partial(bracket, norm=norm, budget=budget, widest=QUICK_DIRECTIONS))
    return None if radius is None else torch.where(right & ~radius.isnan(), radius, 0.0)


def decisions(model: Any, X: Any) -> Any:
    """``model.predict`` of plain rows, which get the names of the columns that the model was fitted on, if it was."""
    return call_with_feature_names(model, "predict", X)


def predicted_labels(predict: Callable[[Any], Any], X: Any) -> Any:
    """``predict(X)`` as an array of n labels; whatever it raises instead, and every other shape, is an InputError."""
    try:
        found = np.asarray(predict(X))
    except InputError:
        raise
    except Exception as error:  # a function of someone else's may raise anything
        what = f"predict of X of shape {X.shape}"
        raise InputError(f"{what}: expected one label per row, but it raises {error_summary(error)}.") from error
    require(found.shape == (len(X),), "predict(X).shape", found.shape, f"({len(X)},), one label per row; {QUERY}")
    return found


def label_codes(y: Any, classes: Any, logits: int) -> Tensor:
    """Labels as logits count them: places in ``classes``, or for one logit +1 for ``classes[1]``, -1 for the other."""
    number = class_numbers(y, classes, "y", "one of the model's classes,")
    return 2.0 * number.double() - 1 if logits == 1 else number


def provable(net: nn.Module) -> bool:
    """Does the bracket prove anything of it?"""
    return not altered(net) and applicable(WITHOUT_BRANCHING, as_polyrelu_net(net), 2.0) is not None


def is_linear(module: nn.Module) -> bool:
    """AffineMap maps alone, of which closed forms are exact; duels of three classes and more are proven, not exact."""
    return not folded(_plain(module))[1]


def _layers(model: Any) -> list[nn.Module]:
    """The layers, or an InputError where they cannot be read: a class of someone else's may have any attributes."""
    try:
        return list(layers_of(model))
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"model={type(model).__name__}: cannot be read ({error_summary(error)}); {QUERY}.") from error


def error_summary(error: Exception) -> str:
    """An error in a message: its name, and what it says in its first line."""
    return f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".")


def _checked(model: Any, layers: list[nn.Module], X_like: Any) -> nn.Module:
    alone = len(layers) == 1 and isinstance(layers[0], Net)
    module = layers[0] if alone else nn.Sequential(*layers, SqueezeSingleLogit())
    try:
        module = as_float64(module).cpu().eval()
    except Exception as error:
        raise InputError(f"model={type(model).__name__}: not in float64 ({error_summary(error)}); {QUERY}.") from error
    if X_like is not None and not isinstance(model, nn.Module):
        _compare(model, module, torch.as_tensor(np.asarray(X_like, dtype=np.float64)))
    return module


def _joined(layers: list[nn.Module]) -> list[nn.Module]:
    """Products with support vectors and the map after them as one, which costs less; in `certified` they stay two."""
    for k, (first, second) in enumerate(pairwise(layers)):
        if isinstance(first, nn.Linear) and first.bias is None and isinstance(second, nn.Linear):
            whole = affine_layer((second.weight @ first.weight).numpy(), second.bias.numpy(), second.out_features)
            return [*layers[:k], whole, *layers[k + 2 :]]
    return layers


def _plain(module: nn.Module) -> list[nn.Module]:
    """The layers of nested ``nn.Sequential``s that do something with rows in ``eval`` mode."""
    if type(module) is nn.Sequential:
        return [layer for part in module for layer in _plain(part)]
    flat = isinstance(module, nn.Flatten) and module.start_dim == 1 and module.end_dim in (-1, 1)
    return [] if flat or type(module) in (SqueezeSingleLogit, nn.Identity, nn.Dropout) else [module]


def _proven(layers: list[nn.Module], X: Tensor, y: Tensor, norm: float, prove: Prove) -> Tensor | None:
    """The radii, by what the layers are."""
    affine, rest = folded(layers)
    if affine is None:
        return prove(rest[0], X, y).lower if len(rest) == 1 and provable(rest[0]) else None
    if len(rest) == 1 and provable(rest[0]):
        Z, wrong = affine.values(X)  # off: how far the rows that are proven may be from the true ones
        off, stretch = size_above(wrong, norm), affine.stretch(norm)
        return _ratios(prove(rest[0], Z, y).lower - off, torch.full_like(off, stretch))
    if affine.A.ndim == 1:
        return None
    if not rest:
        return _linear(affine, X, y, norm)
    if len(rest) == 1 and isinstance(rest[0], OneVersusOne):
        return _duels(rest[0], affine, X, y, norm)
    if len(rest) == 2 and type(rest[0]) is nn.ReLU and type(rest[1]) is nn.Linear:
        return _hidden(affine, rest[1], X, y, norm, prove)
    return None


def _linear(affine: AffineMap, X: Tensor, y: Tensor, norm: float) -> Tensor:
    """margin / |w_y - w_c|_dual, the least over rivals."""
    (logits, wrong), (A, B) = affine.values(X), (affine.A, affine.B)
    if len(A) == 1:
        margins, slopes = y[:, None] * logits - wrong, affine.slopes(A, B, dual(norm)).expand(len(X))[:, None]
        return _ratios(margins, slopes)[:, 0]
    own = y[:, None]
    margins = logits.gather(1, own) - logits - (wrong.gather(1, own) + wrong)
    slopes = torch.stack([affine.slopes(a - A, b + B, dual(norm)) for a, b in zip(A, B, strict=True)])
    return _nearest(margins, slopes[y], y)


def _duels(duels: OneVersusOne, affine: AffineMap, X: Tensor, y: Tensor, norm: float) -> Tensor:
    """The first lost duel: a class that wins all of them is the answer; where it does not, nothing is proven."""
    sizes = duels.duels(affine.slopes(affine.A, affine.B, dual(norm))[None]).abs()[0]
    rows = torch.arange(len(X), device=X.device)
    values, wrong = affine.values(X)
    return _nearest((duels.duels(values) - duels.duels(wrong).abs())[rows, y], sizes[y], y)


def _nearest(margins: Tensor, slopes: Tensor, y: Tensor) -> Tensor:
    """The least ratio over rivals, (n,)."""
    return _ratios(margins, slopes).scatter(1, y[:, None], torch.inf).amin(dim=1)


def _ratios(margins: Tensor, slopes: Tensor) -> Tensor:
    """margin/slope; inf where the margin is or no change of x changes it, 0 where it is not positive."""
    ratio = (margins / slopes * (1 - growth(1))).clamp(max=torch.finfo(margins.dtype).max)
    return torch.where(margins > 0, torch.where((slopes > 0) & margins.isfinite(), ratio, torch.inf), 0.0)


def _hidden(affine: AffineMap, last: nn.Linear, X: Tensor, y: Tensor, norm: float, prove: Prove) -> Tensor:
    """V relu(A x + a) + c by way of its PolyReLUNet; where A is a product, less what rounding may have changed in it.

    |a_j + A_j x - true| <= e_j + g B_j |x|, and g |B_j|_dual R more on a ball; the margin differs by at most the sum of
    |v_yj - v_cj| times that, which the own logit has to spare.
    """
    a, wrong = (part[0] for part in affine.values(X.new_zeros(1, X.shape[1])))
    V, c = stored(last)
    longest = float(size_above(X, 2.0).amax())
    s = 2.0 ** min(1000, math.floor(math.log2(CONSTANT * longest))) if longest > 0 else 1.0
    lifted = torch.cat([X, X.new_full((len(X), 1), s)], dim=1)
    W = torch.cat([affine.A, a[:, None] / s], dim=1)
    if not affine.rounding and bool((W[:, -1] * s == a).all()):  # s is a power of two: the same function exactly
        return prove(_shallow(W, V, c), lifted, y).lower
    wrong = wrong + (W[:, -1] * s - a).abs() + TINY
    spread = V.abs()[0] if len(V) == 1 else 2 * V.abs().amax(dim=0)
    radius, left = torch.zeros(len(X), dtype=torch.float64), torch.arange(len(X))
    for reach in (times * (float(size_above(X, norm).amax()) or 1.0) for times in REACHES):
        off = affine.rounding * (X[left].abs() @ affine.B.T + size_above(affine.B, dual(norm)) * reach) + wrong
        spare = off @ spread * (1 + growth(sum(W.shape)))
        for label in torch.unique(y[left]).tolist():
            here = left[y[left] == label]
            net = _shallow(W, V, _less(c, label, float(spare[y[left] == label].amax())))
            radius[here] = torch.maximum(radius[here], prove(net, lifted[here], y[here]).lower.clamp(max=reach))
        left = left[radius[left] >= reach]
        if not len(left):
            break
    return radius


def _less(c: Tensor, label: float, spare: float) -> Tensor:
    """The biases c with the margin of this label smaller by at least ``spare``."""
    place, sign = (0, label) if len(c) == 1 else (int(label), 1.0)
    bias, lower = c.clone(), sign * c[place] - spare
    bias[place] = sign * torch.nextafter(lower, lower.new_tensor(-torch.inf))
    return bias


def _shallow(W: Tensor, V: Tensor, c: Tensor) -> PolyReLUNet:
    """V relu(W x) + c."""
    net = PolyReLUNet(W.shape[1], len(W), 1.0, len(V), init="zeros", bias=True, dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(W)
        net.output.copy_(V)
        assert net.bias is not None
        net.bias.copy_(c)
    return net


def _right(model: Any, module: nn.Module, X: Tensor, y: Tensor) -> Tensor:
    """Where the classifier itself decides for y, (n,); InputError where it contradicts its weights."""
    said = y if isinstance(model, nn.Module) else _compare(model, module, X)
    with torch.no_grad():
        return (margin_of(checked_output(module, X, "model"), y) > 0) & (said == y)


def _compare(model: Any, module: nn.Module, X: Tensor) -> Tensor:
    """What the model says of some rows, (n,) as logits count; only a margin of rounding size excuses a difference."""
    with torch.no_grad():
        logits = checked_output(module, X, "model")
    given = predicted_labels(partial(decisions, model), X.numpy())
    said = label_codes(given, model.classes_, 1 if logits.ndim == 1 else len(logits[0]))
    wrong = (margin_of(logits, said) < -1e-5 * logits.abs().amax().clamp(min=1e-30)).nonzero()[:, 0].tolist()
    if wrong:
        raise InputError(
            f"model={type(model).__name__}: its predict and its weights disagree in row {wrong[0]} of {len(X)}; "
            f"expected the model's own predict; {QUERY}."
        )
    return said
