"""Classifiers fitted elsewhere, read as modules: their layers, their weights, what can be proven of them."""

from polyrelu.robust.external.external_model import (
    as_module,
    certified,
    decisions,
    error_summary,
    is_linear,
    label_codes,
    predicted_labels,
    provable,
)
from polyrelu.robust.external.readers import call_with_feature_names

__all__ = [
    "as_module",
    "call_with_feature_names",
    "certified",
    "decisions",
    "error_summary",
    "is_linear",
    "label_codes",
    "predicted_labels",
    "provable",
]
