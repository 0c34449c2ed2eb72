"""A fitted classifier as attacks see it: of scikit-learn or ours, a torch module, or a bare predict function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from polyrelu.checks import checked_output
from polyrelu.errors import InputError, require
from polyrelu.robust import Score, altered
from polyrelu.robust.attacks import DecisionScore
from polyrelu.robust.core import Opaque, SqueezeSingleLogit, check_initialised
from polyrelu.robust.external import as_module, decisions, label_codes, predicted_labels

# Share of some rows from which a copy that decides like its original is attacked in its place; what breaks is asked of
# the original too.
AGREEMENT = 0.99
Array = NDArray[Any]


@final
@dataclass(frozen=True, eq=False)
class TargetModel:
    """A fitted classifier as attacks see it.

    model : what was given, which proofs are about
    module : gives its logits, differentiable; None where only its bare decisions are known, ``why`` says why
    logits : 1, or one for each class
    predict : its own decisions, rows as numpy -> labels; None for a torch module, which is its own judge
    altered : why nothing is proven of it, where its class is not a known one unchanged; else ""
    """

    name: str
    model: Any
    module: nn.Module | None
    classes: Array
    logits: int
    predict: Callable[[Any], Any] | None
    why: str = ""
    altered: str = ""

    @cached_property
    def score(self) -> Score:
        """Its logits, or its bare decisions as if they were logits."""
        if self.module is not None:
            return self.module
        assert self.predict is not None
        return DecisionScore(self.predict, self.classes)

    def labels(self, y: Any) -> Tensor:
        """Labels as the logits count them."""
        return label_codes(y, self.classes, self.logits)

    def decide(self, X: Tensor) -> Array:
        """The class of each row, from the classifier itself."""
        if self.predict is not None:
            return np.asarray(self.predict(X.numpy()))
        with torch.no_grad():
            scores = torch.cat([checked_output(self.score, rows, "model") for rows in torch.split(X, 4096)])
        return _named(scores, self.classes)


def as_target(model: Any, X: Tensor, y: Any, name: str | None = None) -> TargetModel:
    """What can be done with ``model``: a classifier of scikit-learn or ours, a torch module, or a predict function.

    X, y : rows on which a module's decisions are compared with the model's, and all labels there are, from which the
        classes of torch modules and bare functions are taken (in order; 0..C-1 for a module of C logits)
    """
    name = str(getattr(model, "__name__", type(model).__name__)) if name is None else name
    predict = getattr(model, "predict", model)
    if isinstance(model, nn.Module):
        return _of_module(model, X, np.unique(y), name)
    require(callable(predict), "model", name, "a fitted classifier, a torch module or a predict function")
    if predict is model:
        predict = partial(predicted_labels, model)
        classes = _sorted(np.asarray(y), predict(X.numpy()))
        return TargetModel(name, model, None, classes, len(classes), predict, "a bare predict function")
    require(hasattr(model, "classes_"), "model", name, "a fitted classifier: this one has no classes_ yet")
    predict = partial(predicted_labels, partial(decisions, model))
    classes = np.asarray(model.classes_)
    try:
        module = as_module(model, X[:500].numpy())
    except InputError as error:
        return TargetModel(name, model, None, classes, len(classes), predict, str(error))
    said = altered(model)
    module = Opaque(module) if said else module
    return TargetModel(name, model, module, classes, _logits(module, X), predict, altered=said)


def _sorted(y: Array, said: Array) -> Array:
    """All labels given and said, in order."""
    try:
        return np.unique(np.concatenate([y, said]))
    except (TypeError, ValueError) as error:
        why = f"labels of y's kind, {y.dtype}, that have an order"
        raise InputError(f"predict(X).dtype={said.dtype}: expected {why} ({error}).") from error


def _of_module(model: nn.Module, X: Tensor, present: Array, name: str) -> TargetModel:
    """A torch module, by a copy of it in float64 and eval mode; if altered, only where the copy decides like it."""
    check_initialised(model)
    said, copied, why = altered(model), None, ""
    try:
        copied = as_module(model)
    except InputError as error:
        why = str(error)
    if copied is not None and not said:
        logits = _logits(copied, X)
        return TargetModel(name, model, copied, _classes(logits, present), logits, None)
    logits = _logits(partial(_eval_logits, model), X)
    classes = _classes(logits, present)

    def decided(rows: Any) -> Array:
        parts = torch.split(torch.as_tensor(rows), 4096)
        return _named(torch.cat([_eval_logits(model, part) for part in parts]), classes)

    if copied is not None and _agree(copied, decided, X[:500], classes):
        module = Opaque(copied)
        return TargetModel(name, model, module, classes, logits, decided, altered=said)
    why = why or "a copy of it in float64 does not decide like it"
    return TargetModel(name, model, None, classes, len(classes), decided, why, said)


def _agree(module: nn.Module, decided: Callable[[Any], Array], X: Tensor, classes: Array) -> bool:
    """Does a copy decide like its original, about nearly all rows? What breaks is asked of the original besides."""
    try:
        with torch.no_grad():
            return float((_named(module(X), classes) == decided(X)).mean()) >= AGREEMENT
    except Exception:  # a module of someone else's may do anything in float64
        return False


def _eval_logits(model: nn.Module, X: Tensor) -> Tensor:
    """Logits of the module itself, in its dtype and on its device; it is in eval mode meanwhile, and not after."""
    like = next((one for one in model.parameters() if one.is_floating_point()), X)
    before = {layer: layer.training for layer in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            logits: Tensor = SqueezeSingleLogit()(model(X.to(like)).cpu().double())
            return logits
    finally:
        for layer, training in before.items():
            layer.training = training


def _named(scores: Tensor, classes: Array) -> Array:
    """The class with the largest logit, or of two by the sign of one."""
    found: Array = classes[((scores > 0).long() if scores.ndim == 1 else scores.argmax(dim=1)).numpy()]
    return found


def _logits(score: Score, X: Tensor) -> int:
    """How many logits it gives the first row; an InputError if it does not take it."""
    with torch.no_grad():
        found = checked_output(score, X[:1], "model")
    return 1 if found.ndim == 1 else found.shape[1]


def _classes(logits: int, present: Array) -> Array:
    """The classes of a torch module: 0..C-1 where the labels are such numbers, else the labels there are, in order."""
    if logits > 1 and set(present.tolist()) <= set(range(logits)):
        return np.arange(logits)
    wanted = f"{max(2, logits)} classes, one for each logit of the model (two for one logit)"
    require(len(present) == max(2, logits), "y", present.tolist()[:10], wanted)
    return present
