"""Is a classifier fragile, why, and what would a polynomial head do on the same data? In numbers and words."""

from polyrelu.estimator.robustness_report.measurement import measure_radii
from polyrelu.estimator.robustness_report.report import RobustnessReport
from polyrelu.estimator.robustness_report.target_model import as_target

__all__ = ["RobustnessReport", "as_target", "measure_radii"]
