"""The head beside the model; cross-fitted, every point is measured with one not trained on it, two halves in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from polyrelu.errors import InputError
from polyrelu.estimator.classifier import PolyReLUClassifier
from polyrelu.estimator.robustness_report.measurement import MeasuredRadii, measure_radii
from polyrelu.estimator.robustness_report.report_rows import ClassifierReport, ReportRows
from polyrelu.estimator.robustness_report.structure import Direction, averaging_of
from polyrelu.estimator.robustness_report.target_model import TargetModel, as_target
from polyrelu.robust import Bracket
from polyrelu.robust.external import error_summary

Array = NDArray[Any]


def with_head(
    rows: ReportRows, target: TargetModel, head: PolyReLUClassifier | None
) -> tuple[ClassifierReport | None, ClassifierReport | None, list[str]]:
    """The model fitted anew, if it can be; the head, trained on the training rows or cross-fitted as well; notes."""
    head = PolyReLUClassifier(p=3, random_state=rows.seed) if head is None else clone(head)
    name = f"polynomial head, p = {head.p}"
    if rows.train is not None:
        rows.progress.update(doing=f"training the {name}")
        fitted = head.fit(rows.train[0].numpy(), rows.train[1])
        return None, rows.report_on(as_target(fitted, rows.X, rows.y, name)), []
    found = cross_fitted(rows, head, name)
    if found is None:
        return None, None, ["No head was trained: a class has a single row, and none could be set aside."]
    again = hasattr(target.model, "get_params") and is_classifier(target.model)
    again = again and not isinstance(target.model, PolyReLUClassifier)
    refit = cross_fitted(rows, target.model, f"{target.name}, fitted anew like the head") if again else None
    note = "Without training rows the head was cross-fitted: trained on one half of X, measured on the other."
    return refit, found, [note]


def halves(y: Array, seed: int) -> tuple[Array, Array] | None:
    """Row numbers of two halves with rows of every class in each; None where a class has one row only."""
    source, first = np.random.default_rng([seed, 9]), []
    for name in np.unique(y):
        rows = source.permutation(np.flatnonzero(y == name))
        if len(rows) < 2:
            return None
        first.append(rows[: len(rows) // 2])
    inside = np.isin(np.arange(len(y)), np.concatenate(first))
    return np.flatnonzero(inside), np.flatnonzero(~inside)


def cross_fitted(rows: ReportRows, model: Any, name: str) -> ClassifierReport | None:
    """A twin of ``model`` fitted on one half of the rows and measured on its points in the other, twice."""
    both = halves(rows.y, rows.seed)
    if both is None:
        return None
    found: list[tuple[Array, ClassifierReport]] = []
    for here, there in (both, both[::-1]):
        rows.progress.update(doing=f"training the {name}{' on the other half' if found else ''}")
        try:
            fitted = clone(model).fit(rows.X[torch.from_numpy(there)].numpy(), rows.y[there])
        except Exception as error:  # a classifier of someone else's may raise anything
            said = f"a classifier that can be fitted to half of X, or compare=False; it raises {error_summary(error)}"
            raise InputError(f"model={name}: expected {said}.") from error
        target = as_target(fitted, rows.X, rows.y, name)
        points = rows.points[np.isin(rows.points, here)]
        if len(points):
            X, pool = rows.X[torch.from_numpy(here)], (rows.X[torch.from_numpy(there)], rows.y[there])
            inside = np.searchsorted(here, points)
            measured = measure_radii(target, X, rows.y[here], inside, pool, radii=rows.radii, seed=rows.seed)
            found.append((points, rows.described(target, measured, points)))
    return _joined(rows, found, name)


def _joined(rows: ReportRows, found: list[tuple[Array, ClassifierReport]], name: str) -> ClassifierReport:
    """Both halves as one, in the order of the points."""
    order = torch.from_numpy(np.argsort(np.concatenate([points for points, _ in found])))
    brackets = [part.measured.bracket for _, part in found]
    lower, upper, step = (
        torch.cat([getattr(one, field) for one in brackets])[order] for field in ("lower", "upper", "perturbation")
    )
    status = [one for bracket in brackets for one in bracket.status]
    nodes = torch.zeros(len(lower), dtype=torch.long)
    bracket = Bracket(lower, upper, step, tuple(status[place] for place in order.tolist()), 2.0, nodes)
    clean = float(np.mean([part.measured.clean for _, part in found]))
    measured = MeasuredRadii(name, clean, bracket, found[0][1].measured.proof, found[0][1].measured.how)
    direction = Direction(torch.cat([part.direction.radius for _, part in found])[order])
    return ClassifierReport(measured, averaging_of(measured, rows.y[rows.points], rows.structure), direction)
