"""The layers of a fitted classifier, read from what scikit-learn documents of it; nothing of it is run here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from polyrelu.errors import require
from polyrelu.nets import Net
from polyrelu.robust.core.external_layers import ACTIVATIONS, Diagonal, UnitRows
from polyrelu.robust.core.model_copy import QUERY, copied
from polyrelu.robust.external.support_vector_machine import svm_layers
from polyrelu.robust.external.weights import affine_layer, stored_numbers

TINY = 1e-280  # scales below it have no inverse with full precision


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
    for number, (weight, bias) in enumerate(layers):
        yield affine_layer(
            stored_numbers(weight, "coefs_").T, bias, logits if number == len(layers) - 1 else weight.shape[1]
        )
        if number < len(layers) - 1:
            yield ACTIVATIONS[model.activation]()
