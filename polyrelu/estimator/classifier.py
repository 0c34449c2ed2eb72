"""A robust head for any embedding, with a proof in hand, as a scikit-learn classifier.

f(x) = sum_j v_j relu(<x - c, w_j>)^p / (|w_j| |x - c|)^(p-1)        (Min & Vidal, ICML 2024)

head = PolyReLUClassifier(p=3).fit(X, y)
head.predict(X_new), head.certify(X_new).lower            # decisions, and how far each is proven to hold
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from polyrelu.data import InputSchema, check_finite, read_rows
from polyrelu.errors import InputError, require
from polyrelu.estimator.head_training.adam import AdamState, portion_location
from polyrelu.estimator.head_training.head_data import (
    Array,
    Targets,
    TrainingSet,
    as_input_error,
    as_targets,
    class_numbers,
    labels_of,
    rows_of,
    subclass_labels,
    weights_of,
)
from polyrelu.estimator.head_training.head_settings import HeadSettings, TrainingStopped
from polyrelu.estimator.robustness_mixin import RobustnessMixin
from polyrelu.nets import (
    HEAD_VERSION,
    PolyReLUNet,
    ReadOut,
    classes_from_json,
    classes_to_json,
    load_about,
)
from polyrelu.nets import load as load_net
from polyrelu.nets import save as save_net
from polyrelu.progress import Progress
from polyrelu.train import Trajectory

ROWS = 4096  # at a time in predict


class PolyReLUClassifier(RobustnessMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A two-layer polynomial-ReLU head f, one logit for two classes and one for each of several (Min & Vidal 2024).

    With p > 2 its neurons find the sub-classes within the classes instead of averaging them, and no small perturbation
    is wrong for all: `certify` proves how far each decision holds, in the unit of X (l2).

    Parameters
    ----------
    p : real >= 1 (1 is the ordinary ReLU head), or "auto": the one of 1, 2, 3, 4 with the largest certified accuracy at
        ``radius`` in three-fold cross-validation
    width : number of neurons, or "auto": 500; with ``init="rows"`` no more than there are different rows
    solver : "adam", on shuffled batches of the mean cross-entropy; "flow", the gradient flow of the theory, for small
        sets: from a balanced start of size ``scale`` to the mean loss ``until``, error-controlled
    epochs : passes over the data, or "auto": at least 10 passes and 300 updates; of the flow, at most 1000 passes
    rate, batch : learning rate and rows of an update (all rows if there are fewer) of Adam
    init : where Adam starts: "rows", neurons at training rows, or "random", as published, which takes longer
    bias : whether an output bias is trained
    normalise_input : divide by |x - c|^(p-1), the published choice for real data; f is then of degree 1 in x - c
    early_stopping : set ``validation_fraction`` of the rows (10 000 at most) aside and keep the weights with the least
        loss on them; end when it has not fallen for ``patience`` looks, a hundred in ``epochs``, at most one an epoch
    radius : for p="auto", as a fraction of the median distance of the training rows from their mean (l2)
    random_state : int, RandomState or None, where the weights and the order of the rows come from

    Attributes
    ----------
    classes_ : (C,) labels in order
    net_ : a `PolyReLUNet` of one logit (positive: ``classes_[1]``) or C logits, in the unit of X; with more sub-classes
        than classes a `ReadOut`, g_c = max of the logits of the sub-classes of class c
    p_, n_iter_, n_features_in_, feature_names_in_ : the power; passes made; columns and, if X had them, their names
    fine_classes_, fine_of_ : with ``fine_labels``, the sub-classes in the order of the logits and the class of each
    radius_, cv_results_ : with p="auto", the radius in the unit of X; what every power reached

    X may be an array, a data frame, a torch tensor (training is where it is) or a memory-mapped array of floats, which
    is read block by block in bounded memory. Float64 rows train in float64 if they fit into one batch, else in float32.

    Examples
    --------
    >>> head = PolyReLUClassifier(p=3, random_state=0).fit(X, y)
    >>> head.robust_score(X_test, y_test, radius=0.2)      # accuracy that no perturbation of that length can lower
    >>> head.save("head.safetensors")
    """

    _adam_state: AdamState | None
    classes_: Array

    def __init__(
        self,
        p: float | str = 3,
        *,
        width: int | str = "auto",
        solver: str = "adam",
        epochs: int | str = "auto",
        rate: float = 1e-3,
        batch: int = 200,
        init: str = "rows",
        bias: bool = False,
        normalise_input: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 20,
        scale: float = 1e-3,
        until: float = 1e-2,
        radius: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.p = p
        self.width = width
        self.solver = solver
        self.epochs = epochs
        self.rate = rate
        self.batch = batch
        self.init = init
        self.bias = bias
        self.normalise_input = normalise_input
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.scale = scale
        self.until = until
        self.radius = radius
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, fine_labels: Any = None, *, progress: Progress | None = None
    ) -> PolyReLUClassifier:
        """Train on rows X (n, D) with labels y (n,) of any kind.

        Parameters
        ----------
        sample_weight : (n,) weights >= 0; a weight of 2 is a row twice, one of 0 a row left out
        fine_labels : (n,) sub-classes of any kind, each within one class: every one gets a logit of its own and the
            largest decides. "discover" finds them by `polyrelu.bias.subclasses.estimate_subclasses`, unweighted
        progress : told of every pass, see `polyrelu.progress.Progress`

        Ctrl-C leaves the estimator as it was; the KeyboardInterrupt's ``head`` is one fitted by the whole passes made.
        """
        settings = self._settings(sample_weight)
        good = progress is None or isinstance(progress, Progress)
        require(good, "progress", type(progress).__name__, "None or a polyrelu.progress.Progress")
        rows = rows_of(self, X, reset=True)
        targets = Targets.from_labels(y, rows.shape[0], sample_weight)
        seed = self._seed()
        fine = subclass_labels(fine_labels, rows, targets, seed)
        problem = TrainingSet.from_rows(rows, targets, fine)
        learnt: dict[str, Any] = {"classes_": targets.classes, "_adam_state": None}
        if fine is not None:
            learnt |= {"fine_classes_": fine.names, "fine_of_": targets.classes[fine.class_of]}
        if isinstance(settings.p, str):
            learnt |= settings.choose_power(problem, seed)
        else:
            learnt["p_"] = float(settings.p)
        try:
            out = settings.train(problem, learnt["p_"], seed, progress)
        except TrainingStopped as stopped:
            if stopped.reached.evaluations > 0.5:
                stopped.head = copy.copy(self)._learnt(problem, stopped.reached, learnt)
            raise
        return self._learnt(problem, out, learnt)

    def _learnt(self, problem: TrainingSet, out: Trajectory, learnt: dict[str, Any]) -> PolyReLUClassifier:
        """The estimator as a training leaves it."""
        for name in ("fine_classes_", "fine_of_", "radius_", "cv_results_"):
            self.__dict__.pop(name, None)
        self.__dict__ |= learnt
        self.net_, self.n_iter_ = problem.net(out.net), max(1, math.ceil(out.evaluations - 0.5))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> PolyReLUClassifier:
        """One pass of Adam over these rows; ``classes`` (all there will be) is needed in the first call.

        The start is random. The centre c and the unit of length are those of the first call and stay. Moments are kept
        from call to call; after `fit` or `load` they begin anew. Weights count as they are, not by their ratios.
        """
        settings, first = self._settings(sample_weight), not hasattr(self, "net_")
        require(not first or classes is not None, "classes", None, "all classes, in the first call of partial_fit")
        listed = classes is None or isinstance(classes, Sequence | np.ndarray | Tensor | set | frozenset)
        require(listed, "classes", type(classes).__name__, "a list of all classes")
        classes = sorted(classes, key=str) if isinstance(classes, set | frozenset) else classes
        known = self.classes_ if classes is None else np.unique(labels_of(classes, len(classes), "classes"))
        same = first or np.array_equal(known, self.classes_)
        require(same, "classes", classes, "those of the first call")
        plain = first or isinstance(self.net_, PolyReLUNet)
        require(plain, "partial_fit", "a head with sub-classes", "one without; their labels are not known here")
        rows = rows_of(self, X, reset=first)
        targets = Targets.from_labels(y, rows.shape[0], sample_weight, known)
        x = read_rows(rows, 0, rows.shape[0])
        check_finite(x)
        labels, weights = targets.tensors(x.device)
        if first or self._adam_state is None:
            seed = self._seed()
            centre, unit = portion_location(x, weights, None if first else self.net_.centre)
            if first:
                self.net_ = settings.begin(centre, unit, len(targets.classes), seed)
                self.classes_, self.p_, self.n_iter_ = targets.classes, self.net_.p, 0
            self._adam_state = AdamState(unit, seed)
        self._adam_state = self._adam_state.epoch(self.net_, x, labels, weights, int(settings.batch), settings.rate)
        self.n_iter_ += 1
        return self

    def predict(self, X: Any) -> Array:
        """The class of each row."""
        scores = self.decision_function(X)
        found: Array = self.classes_[(scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)]
        return found

    def decision_function(self, X: Any) -> Array:
        """f(x): (n,) for two classes, positive for ``classes_[1]``; (n, C) for more. Rows are read in blocks."""
        check_is_fitted(self)
        rows = rows_of(self, X, reset=False)
        weight, found = next(self.net_.parameters()), []
        with torch.no_grad(), torch.autocast(weight.device.type, enabled=False):  # `certify` is about this arithmetic
            for start in range(0, rows.shape[0], ROWS):
                x = read_rows(rows, start, min(start + ROWS, rows.shape[0]))
                if not bool(x.isfinite().all()):
                    check_finite(rows)
                found.append(self.net_(x.to(weight)).cpu())
        scores: Array = torch.cat(found).numpy()
        return scores[:, 1] - scores[:, 0] if scores.ndim == 2 and len(self.classes_) == 2 else scores

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`, exact also where that is 0 or 1."""
        scores = torch.from_numpy(self.decision_function(X)).double()
        both = torch.stack([torch.zeros_like(scores), scores], dim=1) if scores.ndim == 1 else scores
        logs: Array = both.log_softmax(dim=1).numpy()
        return logs

    def predict_proba(self, X: Any) -> Array:
        """Softmax of the logits, (n, C); for two classes 1/(1 + e^-f) in column 1; without any temperature.

        Where sub-classes were trained, the softmax over classes of the largest logit in each.
        """
        return np.exp(self.predict_log_proba(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy."""
        labels = labels_of(y, len(found := self.predict(X)))
        weights = None if sample_weight is None else weights_of(sample_weight, len(found))
        with as_input_error(), np.errstate(invalid="ignore"):
            return float(accuracy_score(labels, found, sample_weight=weights))

    def save(self, path: str | Path) -> Path:
        """Write the head to a .safetensors file, whole or not at all; `load` and `polyrelu.load` read it.

        All that predicts and proves is kept; what ``p="auto"`` compared (``radius_``, ``cv_results_``) is not.
        """
        check_is_fitted(self)
        names, state = getattr(self, "feature_names_in_", None), self.random_state
        params = self.get_params() | {"random_state": int(state) if isinstance(state, Integral) else None}
        about = {
            "head": HEAD_VERSION,
            **classes_to_json(self.classes_),
            "features": None if names is None else names.tolist(),
            "params": {key: value.item() if isinstance(value, np.generic) else value for key, value in params.items()},
            "passes": self.n_iter_,
        }
        if hasattr(self, "fine_classes_"):
            about |= {**classes_to_json(self.fine_classes_, "fine"), **classes_to_json(self.fine_of_, "fine_of")}
        return save_net(self.net_, path, about=about)

    @classmethod
    def load(cls, path: str | Path) -> PolyReLUClassifier:
        """The head that `save` wrote, on the CPU, with the same predictions to the last bit. No code in it is run."""
        about = load_about(path)
        require("head" in about, "path", path, "a head saved by PolyReLUClassifier.save")
        known = about["head"] == HEAD_VERSION
        require(known, "path", path, f"a head of version {HEAD_VERSION}, not {about['head']}; upgrade polyrelu")
        try:
            head, passes = cls(**about["params"]), int(about.get("passes", 0))
            head._settings(None)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"path={path}: expected a head saved by PolyReLUClassifier.save ({error}).") from None
        head.classes_, head.net_ = classes_from_json(about, path), load_net(path)
        inner = head.net_.net if isinstance(head.net_, ReadOut) else head.net_
        require(isinstance(inner, PolyReLUNet), "path", path, "a PolyReLUNet or a ReadOut of one")
        outputs = max(2, head.net_.outputs)
        require(outputs == len(head.classes_), "path", path, f"{outputs} classes, it names {len(head.classes_)}")
        head.p_, head.n_features_in_ = float(inner.p), int(inner.dim)
        head.n_iter_, head._adam_state = passes, None
        if "fine" in about:
            head.fine_classes_, head.fine_of_ = (classes_from_json(about, path, name) for name in ("fine", "fine_of"))
            fits = len(head.fine_classes_) == len(head.fine_of_) == inner.outputs
            require(fits, "path", path, f"{inner.outputs} sub-classes, one for each logit")
        if (names := InputSchema.from_json(about, path, inner.dim).names) is not None:
            head.feature_names_in_ = np.array(names, dtype=object)
        return head

    def _settings(self, sample_weight: Any) -> HeadSettings:
        params = {key: value for key, value in self.get_params(deep=False).items() if key != "random_state"}
        return HeadSettings.from_params(params, weighted=sample_weight is not None)

    def _seed(self) -> int:
        with as_input_error():
            return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _points(self, X: Any, y: Any) -> tuple[Tensor, Tensor]:
        """Rows in memory on the CPU, and labels as the net takes them; the predicted ones if y is None."""
        check_is_fitted(self)
        self._check_net()
        rows = rows_of(self, X, reset=False)
        check_finite(rows)
        labels = self.predict(X) if y is None else labels_of(y, rows.shape[0])
        codes = torch.from_numpy(class_numbers(labels, self.classes_, "y"))
        codes = as_targets(codes, 2) if self.net_.outputs == 1 else codes
        return read_rows(rows, 0, rows.shape[0]).double().cpu(), codes

    def _check_net(self) -> None:
        """An InputError if ``net_`` was put in the place of the one that was trained and does not fit."""
        net = self.net_
        require(isinstance(net, PolyReLUNet | ReadOut), "net_", type(net).__name__, "a PolyReLUNet or a ReadOut of one")
        net.check_settings()
        fits = (net.dim, max(2, net.outputs)) == (self.n_features_in_, len(self.classes_))
        wanted = f"{self.n_features_in_} columns and {len(self.classes_)} classes"
        require(fits, "net_", f"{net.dim} columns and {net.outputs} logits", wanted)
