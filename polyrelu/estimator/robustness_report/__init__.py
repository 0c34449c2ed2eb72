"""Is a classifier fragile, why, and what would a polynomial head do on the same data? In numbers and words."""

from polyrelu.estimator.robustness_report.measurement import MeasuredRadii, measure_radii
from polyrelu.estimator.robustness_report.report import RobustnessReport
from polyrelu.estimator.robustness_report.report_rows import ClassifierReport
from polyrelu.estimator.robustness_report.target_model import TargetModel, as_target

__all__ = ["ClassifierReport", "MeasuredRadii", "RobustnessReport", "TargetModel", "as_target", "measure_radii"]
