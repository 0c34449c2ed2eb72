"""One classifier on one set of points: how far each point was found to break, and how far it is proven to hold (l2).

    lower_i <= min |d| : decision(x_i + d) != y_i <= upper_i

Modules (`polyrelu.robust.external`) are attacked through their gradients, anything else by queries of its
predict function alone. Every perturbation counted was decided otherwise by the classifier itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from polyrelu.checks import answer
from polyrelu.errors import InputError, require
from polyrelu.report.pages import EXACT, NONE, PROVEN
from polyrelu.robust import (
    QUICK_DIRECTIONS,
    Bracket,
    BracketStatus,
    Budget,
    LabelledRows,
    RobustCurve,
    Score,
    altered,
    bracket,
    check_bounds,
    curve,
    recheck,
)
from polyrelu.robust.attacks import DecisionScore, decision_attack, strongest
from polyrelu.robust.core import Flat, Opaque, check_initialised
from polyrelu.robust.external import as_module, certified, decisions, is_linear, label_codes, predicted_labels, provable

EFFORT = Budget(nodes=0)  # the root of branch and bound proves nearly all there is, in a tenth of the time
ALIKE = (
    0.99  # of some rows: a copy that decides like its original is attacked in its place; what breaks is asked of both
)
QUERIES = 1000  # decisions a point where there is no gradient
BARE = "a bare predict function"
Array = NDArray[Any]


@final
@dataclass(frozen=True, eq=False)
class Subject:
    """A fitted classifier as attacks see it.

    model : what was given, which proofs are about
    score : its logits, differentiable; or its bare decisions, where ``module`` is None and ``why`` says why
    logits : 1, or one for each class
    predict : its own decisions, rows as numpy -> labels; None for a torch module, which is its own judge
    altered : why nothing is proven of it, where its class is not a known one unchanged; else ""
    """

    name: str
    model: Any
    score: Score
    module: nn.Module | None
    classes: Array
    logits: int
    predict: Callable[[Any], Any] | None
    why: str = ""
    altered: str = ""

    def labels(self, y: Any) -> Tensor:
        """Labels as the logits count them."""
        return label_codes(y, self.classes, self.logits)

    def decide(self, X: Tensor) -> Array:
        """The class of each row, from the classifier itself."""
        if self.predict is not None:
            return np.asarray(self.predict(X.numpy()))
        with torch.no_grad():
            scores = torch.cat([answer(self.score, rows, "model") for rows in torch.split(X, 4096)])
        return _named(scores, self.classes)


@final
@dataclass(frozen=True, eq=False)
class Measured:
    """A classifier's radii on some points, l2, in the unit of X.

    clean : accuracy on all rows given, not only on those attacked
    bracket : lower, upper and the perturbation behind upper, for each point attacked
    proof : "exact", "proven" (a lower bound), or "nothing is proven": then all lower are 0
    how : what attacked it, in words
    """

    name: str
    clean: float
    bracket: Bracket
    proof: str
    how: str

    @property
    def curve(self) -> RobustCurve:
        """Accuracy against the radius."""
        return curve(self.bracket)

    @property
    def broken_at(self) -> float:
        """The radius at which half of the points were found to break."""
        return self.curve.median_radius.upper

    @property
    def proven_to(self) -> float:
        """The radius up to which half of the points are proven to hold; 0 where nothing is proven."""
        return self.curve.median_radius.lower


def subject_of(model: Any, X: Tensor, y: Any, name: str | None = None) -> Subject:
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
        return Subject(name, model, DecisionScore(predict, classes), None, classes, len(classes), predict, BARE)
    require(hasattr(model, "classes_"), "model", name, "a fitted classifier: this one has no classes_ yet")
    predict = partial(predicted_labels, partial(decisions, model))
    classes = np.asarray(model.classes_)
    try:
        module = as_module(model, X[:500].numpy())
    except InputError as error:
        return Subject(name, model, DecisionScore(predict, classes), None, classes, len(classes), predict, str(error))
    said = altered(model)
    module = Opaque(module) if said else module
    return Subject(name, model, module, module, classes, _logits(module, X), predict, altered=said)


def _sorted(y: Array, said: Array) -> Array:
    """All labels given and said, in order."""
    try:
        return np.unique(np.concatenate([y, said]))
    except (TypeError, ValueError) as error:
        why = f"labels of y's kind, {y.dtype}, that have an order"
        raise InputError(f"predict(X).dtype={said.dtype}: expected {why} ({error}).") from error


def _of_module(model: nn.Module, X: Tensor, present: Array, name: str) -> Subject:
    """A torch module, by a copy of it in float64 and eval mode; if altered, only where the copy decides like it."""
    check_initialised(model)
    said, copied, why = altered(model), None, ""
    try:
        copied = as_module(model)
    except InputError as error:
        why = str(error)
    if copied is not None and not said:
        logits = _logits(copied, X)
        return Subject(name, model, copied, copied, _classes(logits, present), logits, None)
    logits = _logits(partial(_eval_logits, model), X)
    classes = _classes(logits, present)

    def decided(rows: Any) -> Array:
        parts = torch.split(torch.as_tensor(rows), 4096)
        return _named(torch.cat([_eval_logits(model, part) for part in parts]), classes)

    if copied is not None and _alike(copied, decided, X[:500], classes):
        module = Opaque(copied)
        return Subject(name, model, module, module, classes, logits, decided, altered=said)
    why = why or "a copy of it in float64 does not decide like it"
    return Subject(name, model, DecisionScore(decided, classes), None, classes, len(classes), decided, why, said)


def _alike(module: nn.Module, decided: Callable[[Any], Array], X: Tensor, classes: Array) -> bool:
    """Does a copy decide like its original, about nearly all rows? What breaks is asked of the original besides."""
    try:
        with torch.no_grad():
            return float((_named(module(X), classes) == decided(X)).mean()) >= ALIKE
    except Exception:  # a module of someone else's may do anything in float64
        return False


def _eval_logits(model: nn.Module, X: Tensor) -> Tensor:
    """Logits of the module itself, in its dtype and on its device; it is in eval mode meanwhile, and not after."""
    like = next((one for one in model.parameters() if one.is_floating_point()), X)
    before = {layer: layer.training for layer in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            logits: Tensor = Flat()(model(X.to(like)).cpu().double())
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
        found = answer(score, X[:1], "model")
    return 1 if found.ndim == 1 else found.shape[1]


def _classes(logits: int, present: Array) -> Array:
    """The classes of a torch module: 0..C-1 where the labels are such numbers, else the labels there are, in order."""
    if logits > 1 and set(present.tolist()) <= set(range(logits)):
        return np.arange(logits)
    wanted = f"{max(2, logits)} classes, one for each logit of the model (two for one logit)"
    require(len(present) == max(2, logits), "y", present.tolist()[:10], wanted)
    return present


def measure(
    subject: Subject, X: Tensor, y: Array, points: Array, pool: tuple[Tensor, Array], *, radii: Array, seed: int
) -> Measured:
    """Attack and certify the rows ``points`` of X; accuracy is over all of X.

    pool : rows and labels that attacks walk towards, best those trained on
    radii : where the strongest attack at a radius is tried besides, on what the minimal one left
    """
    clean = float((subject.decide(X) == y).mean())
    rows, said = X[torch.from_numpy(points)], y[points]
    known = np.isin(pool[1], subject.classes)
    near, names = pool[0][torch.from_numpy(known)], pool[1][known]
    labels = subject.labels(said)
    if subject.module is None and subject.predict is not None:
        found = decision_attack(
            subject.predict, rows, said, classes=subject.classes, pool=near, queries=QUERIES, seed=seed
        )
        lower, upper, step = torch.zeros(len(rows)).double(), found.radius, found.perturbation
        how, proof = f"about {found.evaluations // len(rows)} decisions a point", NONE
    else:
        assert subject.module is not None
        own = LabelledRows(near, subject.labels(names))
        both = bracket(subject.module, rows, labels, budget=EFFORT, widest=QUICK_DIRECTIONS, pool=own, seed=seed)
        lower, upper, step = both.lower, both.upper, both.perturbation
        proof, how = PROVEN, "its gradients"
        if not provable(subject.module):
            more = certified(subject.model, rows, labels, budget=EFFORT)
            proof = NONE if more is None else EXACT if is_linear(subject.module) else PROVEN
            lower = lower if more is None else torch.maximum(lower, more)
            if proof != EXACT:
                upper, step = _harder(subject.module, rows, labels, upper, step, own, radii, seed)
    upper, step = recheck(lambda some, Z: torch.from_numpy(subject.decide(Z) != said[some.numpy()]), rows, upper, step)
    lower = torch.where(upper > 0, lower, 0.0)  # its own predict may round a margin of 0 to the other side
    check_bounds(lower, upper)
    status = tuple(_status(low, high) for low, high in zip(lower.tolist(), upper.tolist(), strict=True))
    nodes = torch.zeros(len(rows), dtype=torch.long)
    return Measured(subject.name, clean, Bracket(lower, upper, step, status, 2.0, nodes), proof, how)


def _harder(
    module: nn.Module, X: Tensor, y: Tensor, upper: Tensor, step: Tensor, pool: LabelledRows, radii: Array, seed: int
) -> tuple[Tensor, Tensor]:
    """The strongest attack at each radius on the points that the minimal one left, from the smallest radius on."""
    for radius in sorted(radii.tolist()):
        left = (upper > radius).nonzero()[:, 0]
        if len(left) and radius > 0:
            found = strongest(module, X[left], y[left], radius, pool=pool, seed=seed)
            good = left[found.success]
            upper[good], step[good] = found.radius[found.success], found.perturbation[found.success]
    return upper, step


def _status(lower: float, upper: float) -> BracketStatus:
    if upper == 0:
        return BracketStatus.WRONG
    if upper == float("inf"):
        return BracketStatus.UNBREAKABLE if lower == upper else BracketStatus.UNBROKEN
    return BracketStatus.CLOSED if upper <= lower * 1.001 else BracketStatus.UNPROVEN
