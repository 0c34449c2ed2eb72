"""Support vector machines as layers, confirmed by their own decision function.

What SVC and NuSVC predict with are private copies made by ``fit``: of the dual coefficients, the intercept, and of
gamma, which for gamma="scale" depends on training rows that are gone. ``dual_coef_``, ``intercept_`` and ``gamma`` may
have been set since. So the public numbers count only if they give the values of ``decision_function`` at random rows:
two affine functions that differ agree at a random row with probability 0, and up to rounding at eight of them hardly
more often. Of the kernels that need gamma nothing is proven; there it serves the attack alone, and where the public
value does not fit (or is "scale") it is solved for.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import nn

from polyrelu.errors import InputError, require
from polyrelu.robust.core.external_layers import Kernel, OneVersusOne
from polyrelu.robust.core.model_copy import QUERY
from polyrelu.robust.core.scaled_net import UNIT
from polyrelu.robust.external.weights import affine_layer, call_with_feature_names, stored_numbers

PROBES = 8  # random rows
FITS = 1e-8  # of the size of the terms: how near a kernel machine must come to its decision function
DECADES, TRIED = 3, 121  # where gamma is searched, around that of the support vectors, and how finely at first


def svm_layers(model: Any) -> Iterator[nn.Module]:
    """SVC, NuSVC: kernel values of the support vectors, their weights in each duel, and the duels if more than two."""
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
