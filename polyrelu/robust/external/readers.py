"""The layers of a fitted classifier, read from what scikit-learn documents of it: its stored numbers, or a refusal.

Nothing of it is run here, but of support vector machines their decision function, which confirms what was read.
"""

from __future__ import annotations

import copy
import importlib
import math
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import nn

from polyrelu.errors import InputError, require
from polyrelu.nets import Net
from polyrelu.robust.core.external_layers import ACTIVATIONS, Diagonal, Kernel, OneVersusOne, UnitRows
from polyrelu.robust.core.model_copy import QUERY, copied
from polyrelu.robust.core.scaled_net import UNIT

TINY = 1e-280  # scales below it have no inverse with full precision
PROBES = 8  # random rows, at which a support vector machine is compared with its decision function
FITS = 1e-8  # of the size of the terms: how near a kernel machine must come to its decision function
DECADES, TRIED = 3, 121  # where gamma is searched, around that of the support vectors, and how finely at first


def layers_of(model: Any) -> Iterator[nn.Module]:
    """The layers of a fitted model, first to last."""
    if isinstance(model, nn.Module):
        yield copied(model)
    elif hasattr(model, "best_estimator_"):
        yield from layers_of(model.best_estimator_)
    elif isinstance(getattr(model, "net_", None), Net):
        yield copied(model.net_)
    elif hasattr(model, "steps"):
        for _, step in model.steps[:-1]:
            yield from _transform(step)
        yield from layers_of(model.steps[-1][1])
    elif hasattr(model, "coefs_") and hasattr(model, "classes_"):
        yield from _perceptron(model)
    elif hasattr(model, "dual_coef_") and hasattr(model, "support_vectors_") and hasattr(model, "classes_"):
        yield from svm_layers(model)
    elif hasattr(model, "coef_") and hasattr(model, "intercept_") and hasattr(model, "classes_"):
        yield affine_layer(np.atleast_2d(stored_numbers(model.coef_, "coef_")), model.intercept_, _logits(model))
    else:
        fitted = "a fitted linear model, MLPClassifier, SVC, a Pipeline of one, PolyReLUClassifier or a torch module"
        require(False, "model", type(model).__name__, f"{fitted}; of another kind, {QUERY}")


def _logits(model: Any) -> int:
    """One logit for two classes, else one for each."""
    return 1 if len(model.classes_) == 2 else len(model.classes_)


def _transform(step: Any) -> Iterator[nn.Module]:
    """One step of a pipeline."""
    name = type(step).__name__
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return
    if name == "Normalizer":
        yield UnitRows({"l1": 1.0, "l2": 2.0, "max": math.inf}[step.norm])
        return
    reader = TRANSFORMS.get(name)
    plain = reader is not None and not getattr(step, "clip", False)
    require(plain, "pipeline step", name, f"{', '.join(TRANSFORMS)} or Normalizer; with another step, {QUERY}")
    assert reader is not None
    yield from reader(step)


def _diagonal(size: int, centre: Any = None, factor: Any = None, offset: Any = None) -> Diagonal:
    """(x - centre) factor + offset of columns; what is None does nothing."""
    columns = [stored_numbers(plain if given is None else given, "a column of a scaler")
               for given, plain in ((centre, 0.0), (factor, 1.0), (offset, 0.0))]  # fmt: skip
    fits = all(column.shape in ((), (size,)) for column in columns)
    require(fits, "scaler", [column.shape for column in columns], f"{size} columns, as n_features_in_ says; {QUERY}")
    return Diagonal(*(torch.from_numpy(np.broadcast_to(column, (size,)).copy()) for column in columns))


def _standard(step: Any) -> Iterator[nn.Module]:
    """StandardScaler and RobustScaler: (x - centre)/scale, as far as their switches say at the time of predicting."""
    robust = type(step).__name__ == "RobustScaler"
    centred, scaled = (step.with_centering, step.with_scaling) if robust else (step.with_mean, step.with_std)
    centre = (step.center_ if robust else step.mean_) if centred else None
    yield _diagonal(step.n_features_in_, centre, _inverse(step.scale_) if scaled else None)


def _inverse(scale: Any) -> Any:
    columns = stored_numbers(scale, "scale_")
    require(bool((abs(columns) > TINY).all()), "scale_", "0", f"columns of a scale above {TINY:g}; {QUERY}")
    return 1 / columns


def _components(step: Any) -> Iterator[nn.Module]:
    """PCA and its kin: their centre, then their components, divided by the deviations where they whiten."""
    rows, middle = stored_numbers(step.components_, "components_"), getattr(step, "mean_", None)
    if middle is not None:
        yield _diagonal(rows.shape[1], middle)
    yield affine_layer(rows, 0.0, len(rows))
    if getattr(step, "whiten", False):
        deviations = np.sqrt(stored_numbers(step.explained_variance_, "explained_variance_"))
        least = np.finfo(np.asarray(step.explained_variance_).dtype).eps  # as PCA does
        yield _diagonal(len(rows), factor=1 / np.maximum(deviations, least))


TRANSFORMS: dict[str, Callable[[Any], Iterator[nn.Module]]] = {
    "StandardScaler": _standard,
    "RobustScaler": _standard,
    "MinMaxScaler": lambda step: iter([_diagonal(step.n_features_in_, factor=step.scale_, offset=step.min_)]),
    "MaxAbsScaler": lambda step: iter([_diagonal(step.n_features_in_, factor=_inverse(step.scale_))]),
    "PCA": _components,
    "IncrementalPCA": _components,
    "TruncatedSVD": _components,
}


def _perceptron(model: Any) -> Iterator[nn.Module]:
    """MLPClassifier: affine maps with the activation between them."""
    logits = _logits(model)
    wanted = "logistic" if logits == 1 else "softmax"
    one = model.out_activation_ == wanted and model.n_outputs_ == logits
    require(one, "model", f"MLPClassifier of {model.n_outputs_} {model.out_activation_} outputs", "one label a row")
    layers = list(zip(model.coefs_, model.intercepts_, strict=True))
    require(len(layers) == model.n_layers_ - 1, "coefs_", len(layers), f"{model.n_layers_ - 1}, as n_layers_ says")
    *hidden, (weight, bias) = layers
    for inner, shift in hidden:
        yield affine_layer(stored_numbers(inner, "coefs_").T, shift, inner.shape[1])
        yield ACTIVATIONS[model.activation]()
    yield affine_layer(stored_numbers(weight, "coefs_").T, bias, logits)


def svm_layers(model: Any) -> Iterator[nn.Module]:
    """SVC, NuSVC: kernel values of the support vectors, their weights in each duel, and the duels if more than two.

    What they predict with are private copies made by ``fit``: of the dual coefficients, the intercept, and of gamma,
    which for gamma="scale" depends on training rows that are gone. ``dual_coef_``, ``intercept_`` and ``gamma`` may
    have been set since. So the public numbers count only if they give the values of ``decision_function`` at random
    rows: two affine functions that differ agree at a random row with probability 0, and up to rounding at eight of
    them hardly more often. Of the kernels that need gamma nothing is proven; there it serves the attack alone, and
    where the public value does not fit (or is "scale") it is solved for.
    """
    kinds = ("linear", "rbf", "poly", "sigmoid")
    known = isinstance(model.dual_coef_, np.ndarray) and isinstance(model.kernel, str) and model.kernel in kinds
    require(known, "kernel", model.kernel, f"{', '.join(kinds)} on dense rows; else {QUERY}")
    classes, vectors = len(model.classes_), stored_numbers(model.support_vectors_, "support_vectors_")
    dual = stored_numbers(model.dual_coef_, "dual_coef_")
    dual = _dual_of_duels(dual, model.n_support_) if classes > 2 else dual
    yield from _confirmed(model, vectors, affine_layer(dual, model.intercept_, classes * (classes - 1) // 2))
    if classes > 2:
        yield OneVersusOne(classes, bool(model.break_ties) and model.decision_function_shape == "ovr")


def _confirmed(model: Any, vectors: Any, duels: nn.Linear) -> tuple[nn.Module, nn.Module]:
    """The layer before ``duels``, <s_i, x> of the support vectors s_i or their kernel; InputError if it cannot be."""
    source, spread = np.random.default_rng(0), vectors.std(axis=0)
    spread = np.where(spread > 0, spread, np.maximum(abs(vectors).max(axis=0), 1.0))
    Z = vectors[source.integers(len(vectors), size=PROBES)]
    Z = Z + 0.5 * spread * source.standard_normal(Z.shape)
    rows, wanted = torch.from_numpy(Z), torch.from_numpy(_duel_values(model, Z))

    def off(first: nn.Module) -> Any:
        """Differences, in units of the size of the terms."""
        with torch.no_grad():
            hidden = first(rows)
            return ((duels(hidden) - wanted) / (hidden.abs() @ duels.weight.abs().T + duels.bias.abs())).numpy()

    if model.kernel == "linear":
        inner = affine_layer(vectors, None, len(vectors))
        with torch.no_grad():
            terms = rows.abs() @ inner.weight.abs().T @ duels.weight.abs().T + duels.bias.abs()
            fits = (duels(inner(rows)) - wanted).abs() <= 4 * (sum(vectors.shape) + 16) * UNIT * terms
        return _if_fits(bool(fits.all()), model, inner), duels
    support = torch.from_numpy(vectors)

    def kernel(gamma: float) -> Kernel:
        return Kernel(model.kernel, support, gamma, int(model.degree), float(model.coef0))

    start = _public_gamma(model, vectors)
    if not abs(off(kernel(start))).max() < FITS:
        from scipy.optimize import least_squares  # a third of a second to load, which a bracket need not wait for

        tried = np.log(start) + np.log(10) * np.linspace(-DECADES, DECADES, TRIED)
        near = tried[np.argmin([(off(kernel(np.exp(t))) ** 2).sum() for t in tried])]
        found = least_squares(lambda t: off(kernel(np.exp(t[0]))).ravel(), near, xtol=1e-15, ftol=1e-15, gtol=1e-15)
        start = float(np.exp(found.x[0]))
    first = kernel(start)
    return _if_fits(bool(abs(off(first)).max() < FITS), model, first), duels


def _if_fits(fits: bool, model: Any, layer: nn.Module) -> nn.Module:
    said = "dual_coef_, intercept_ and gamma that give its decision_function"
    require(fits, "model", f"{type(model).__name__} with other values", f"{said}; {QUERY}")
    return layer


def _public_gamma(model: Any, vectors: Any) -> float:
    """gamma as set; for "scale", 1/(D var) of the support vectors, which is only near that of the training rows."""
    if isinstance(model.gamma, Real):
        return float(model.gamma) if float(model.gamma) > 0 else 1.0
    spread = vectors.var() if model.gamma == "scale" else 1.0
    return float(1 / (vectors.shape[1] * (spread if spread > 0 else 1.0)))


def _duel_values(model: Any, Z: Any) -> Any:
    """Its decision function, one column for every pair of classes (one for two classes)."""
    try:
        twin = copy.copy(model).set_params(decision_function_shape="ovo")
        values = np.asarray(call_with_feature_names(twin, "decision_function", Z), dtype=np.float64)
        return values.reshape(len(Z), -1)
    except Exception as error:  # a class of someone else's may do anything
        raise InputError(f"model={type(model).__name__}: its decision_function fails ({error}); {QUERY}.") from error


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


def stored_numbers(value: Any, name: str) -> Any:
    """A float64 copy of the array, the same numbers exactly; of a sparse one too (``sparsify``)."""
    value = value.toarray() if hasattr(value, "toarray") else value
    kind = type(value)
    plain = not isinstance(value, np.ndarray) or kind in (np.ndarray, np.memmap)
    array = np.asarray(value)
    plain = plain and array.dtype.kind in "fiu" and array.dtype.itemsize <= 8
    require(plain, name, f"{kind.__name__} of {array.dtype}", f"plain real numbers, of float64 at most; {QUERY}")
    array = np.array(array, dtype=np.float64)
    require(bool(np.isfinite(array).all()), name, "NaN or infinity", f"finite numbers; {QUERY}")
    return array


def affine_layer(weight: Any, bias: Any, logits: int) -> nn.Linear:
    """x -> weight x + bias with ``logits`` outputs; bias None: none."""
    given = (weight, 0.0 if bias is None else bias)
    rows, shift = (torch.from_numpy(stored_numbers(part, "weights")) for part in given)
    fits = rows.ndim == 2 and len(rows) == logits and shift.numel() in (1, logits)
    shapes = f"{tuple(rows.shape)} and {tuple(shift.shape)}"
    require(fits, "weights", shapes, f"({logits}, D) and ({logits},), as its classes_ say; {QUERY}")
    layer = nn.Linear(rows.shape[1], rows.shape[0], bias=bias is not None, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(rows)
        if bias is not None:
            layer.bias.copy_(shift.reshape(-1).expand(len(rows)))
    return layer.requires_grad_(False)


def call_with_feature_names(model: Any, method: str, X: Any) -> Any:
    """``model.method`` of a copy of plain rows, which get the names of the columns that the model was fitted on."""
    rows, names = np.array(X), getattr(model, "feature_names_in_", None)  # a scaler of copy=False writes into its rows
    if names is not None and find_spec("pandas") is not None:
        rows = importlib.import_module("pandas").DataFrame(rows, columns=names)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return getattr(model, method)(rows)
