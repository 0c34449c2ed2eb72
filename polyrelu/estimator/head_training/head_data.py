"""What a head is given: rows, classes of any kind as numbers, weights of samples, sub-classes within classes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils import assert_all_finite, check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from polyrelu.bias import estimate_subclasses
from polyrelu.checks import plain_array
from polyrelu.data import Dataset, Rows, as_row_source, is_memory_mapped
from polyrelu.errors import InputError, InputTypeError, require
from polyrelu.estimator.head_training.head_init import location
from polyrelu.nets import Net, ReadOut

Array = npt.NDArray[Any]


@final
@dataclass(frozen=True, eq=False)
class Targets:
    """Classes (C,) in order, the number 0..C-1 of each row's class (n,) int64, and weights (n,) float64 or None.

    Rows of weight 0 count as if they were not there, also for the classes; their number is 0.
    """

    classes: Array
    codes: Array
    weights: Array | None

    @classmethod
    def from_labels(cls, y: Any, n: int, sample_weight: Any = None, classes: Array | None = None) -> Targets:
        """Checked as scikit-learn does it; ``classes`` if they are known already."""
        weights = None if sample_weight is None else weights_of(sample_weight, n)
        labels = labels_of(y, n)
        counted = labels if weights is None else labels[weights > 0]
        classes = np.unique(counted) if classes is None else classes
        if len(classes) < 2:
            only = first_labels(classes[:1])
            raise InputError(f"y=one class only, {only} in every row that counts: expected at least two classes.")
        codes = class_numbers(counted, classes, "y")
        if weights is not None:
            codes, counted = np.zeros(n, dtype=np.int64), codes
            codes[weights > 0] = counted
        return cls(classes, codes, weights)

    def tensors(self, device: torch.device) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Labels as a net takes them and weights, on a device."""
        weights = None if self.weights is None else torch.from_numpy(self.weights).to(device)
        return as_targets(torch.from_numpy(self.codes), len(self.classes)).to(device), weights


def as_targets(codes: torch.Tensor, classes: int) -> torch.Tensor:
    """+1 for class 1 and -1 for class 0 where there are two, else the numbers themselves."""
    return 2.0 * codes - 1.0 if classes == 2 else codes


@final
@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Rows with the labels a net is trained on, and with those it shall answer.

    data : labels +-1 for two classes, 0..C-1 for more; or the sub-classes 0..S-1, S > C
    y : (n,) labels as `net` answers them: ``data.y``, or the classes 0..C-1 where sub-classes are trained
    weights : (n,) float64 or None
    class_of : the class of each sub-class, or None
    """

    data: Dataset
    y: torch.Tensor
    weights: torch.Tensor | None
    class_of: tuple[int, ...] | None

    @classmethod
    def from_rows(cls, rows: Any, targets: Targets, fine: SubclassLabels | None) -> TrainingSet:
        """Sub-classes are trained only where there are more of them than classes."""
        labels, weights = targets.tensors(rows[0:1].device)
        if fine is not None and len(fine.names) > len(targets.classes):
            codes = torch.from_numpy(targets.codes).to(labels.device)
            return cls(Dataset(rows, torch.from_numpy(fine.codes)), codes, weights, tuple(fine.class_of.tolist()))
        data = Dataset(rows, labels)
        return cls(data, data.y, weights, None)

    @property
    def groups(self) -> torch.Tensor:
        """(n,) numbers of what is trained, 0, 1, ..."""
        return (self.data.y > 0).long() if self.data.binary else self.data.y

    def subset(self, rows: torch.Tensor) -> TrainingSet:
        """Some of the rows, held in memory."""
        weights = None if self.weights is None else self.weights[rows]
        return TrainingSet(self.data.subset(rows), self.y[rows], weights, self.class_of)

    def net(self, trained: Any) -> Net:
        """The trained net as it answers."""
        return trained if self.class_of is None else ReadOut(trained, self.class_of)


class SubclassLabels(NamedTuple):
    """Sub-classes (S,) in order, the number of each row's sub-class (n,), and the number of the class of each (S,)."""

    names: Array
    codes: Array
    class_of: Array


def subclass_labels(fine_labels: Any, rows: Rows, targets: Targets, seed: int) -> SubclassLabels | None:
    """Sub-classes as they are given; for "discover" those found among the rows that count, unweighted."""
    if fine_labels is None:
        return None
    counted = np.arange(len(targets.codes)) if targets.weights is None else np.flatnonzero(targets.weights)
    if isinstance(fine_labels, str):
        require(fine_labels == "discover", "fine_labels", repr(fine_labels), "one label for each row, or 'discover'")
        data = Dataset(rows, torch.from_numpy(targets.codes))
        data = data if len(counted) == len(data) else data.subset(counted)
        found = estimate_subclasses(data, origin=location(data)[0], seed=seed)
        numbers, codes = np.unique(as_numpy(found.cluster), return_inverse=True)
        names, class_of = np.arange(len(numbers)), as_numpy(found.labels)[numbers]
    else:
        labels = labels_of(fine_labels, len(targets.codes), "fine_labels")
        names, codes = np.unique(labels[counted], return_inverse=True)
        class_of = _one_class_each(names, codes, targets.codes[counted], targets.classes)
    whole = np.zeros(len(targets.codes), dtype=np.int64)
    whole[counted] = codes
    return SubclassLabels(names, whole, class_of)


def _one_class_each(names: Array, fine: Array, codes: Array, classes: Array) -> Array:
    """The number of the class of each sub-class; an InputError names one with rows of several."""
    class_of = np.zeros(len(names), dtype=np.int64)
    class_of[fine] = codes
    strange = np.flatnonzero(class_of[fine] != codes)
    if len(strange):
        one = fine[strange[0]]
        several = classes[np.unique(codes[fine == one])]
        raise InputError(
            f"fine_labels={first_labels(names[[one]])}: expected every sub-class within one class, but it has rows of "
            f"{first_labels(several)}; where numbers begin anew in every class, give names such as 'class/number'."
        )
    return class_of


def rows_of(estimator: Any, X: Any, *, reset: bool) -> Rows:
    """Tensors and mapped files of floats as they are, everything else through scikit-learn's checks of X.

    Columns and their names are noted in the estimator (``reset``) or compared with what it has noted.
    """
    if isinstance(X, torch.Tensor) or (isinstance(X, np.ndarray) and X.dtype.kind == "f" and is_memory_mapped(X)):
        rows = as_row_source(X.detach() if isinstance(X, torch.Tensor) else X)
        with as_input_error():
            validate_data(estimator, X, reset=reset, skip_check_array=True)
        return rows
    with (
        as_input_error(),
        np.errstate(over="ignore", invalid="ignore"),
    ):  # numbers beyond float64 become infinite, which is refused
        return as_row_source(validate_data(estimator, X, reset=reset, dtype=(np.float64, np.float32)))


@contextmanager
def as_input_error() -> Iterator[None]:
    """What scikit-learn's checks raise is an InputError with the same words, and a TypeError where it wants one.

    So is what somebody's object raises while it is looked at.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        kind = InputTypeError if isinstance(error, TypeError) else InputError
        raise kind(str(error) or f"expected rows and labels that can be read, not {type(error).__name__}.") from None


def labels_of(y: Any, n: int, name: str = "y") -> Array:
    """One label for each of n rows, as a numpy array."""
    if y is None:
        raise InputError(f"{name}=None: this estimator requires y to be passed, but the target y is None.")
    with as_input_error(), np.errstate(invalid="ignore"):  # where scikit-learn looks whether labels are whole numbers
        labels: Array = column_or_1d(as_numpy(y), warn=True)
        require(labels.dtype.kind in "biufUSO", name, f"{labels.dtype} labels", "numbers or text")
        assert_all_finite(labels, input_name=name)
        check_classification_targets(labels)
    require(len(labels) == n, name, f"{len(labels)} labels", f"{n}, one for each row of X")
    return labels


def class_numbers(labels: Array, classes: Array, name: str) -> Array:
    """Where each label stands in ``classes``; one that does not is named."""
    try:
        place = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
        strange = labels[classes[place] != labels]
    except TypeError:  # text against numbers
        strange = labels
    if len(strange):
        raise InputError(f"{name}={first_labels(strange[:1])}: expected one of the classes {first_labels(classes)}.")
    return place.astype(np.int64)


def first_labels(labels: Array) -> str:
    """The first ten, as a person would write them."""
    return ", ".join(map(repr, labels[:10].tolist())) + (", ..." if len(labels) > 10 else "")


def weights_of(sample_weight: Any, n: int) -> Array:
    """Finite numbers >= 0, one a row, not all 0."""
    with as_input_error(), np.errstate(over="ignore", invalid="ignore"):
        given = np.full(n, sample_weight) if isinstance(sample_weight, Real) else as_numpy(sample_weight)
        weights: Array = check_array(given, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    require(weights.shape == (n,), "sample_weight.shape", weights.shape, f"({n},), one weight for each row of X")
    require(bool((weights >= 0).all()), "sample_weight", weights.min(), "weights >= 0")
    require(bool(weights.any()), "sample_weight", "zero in all rows", "at least one weight > 0")
    return weights


def as_numpy(values: Any) -> Any:
    """Tensors as arrays, whatever device they are on; the rest as it is."""
    return plain_array("values", values) if isinstance(values, torch.Tensor) else values
