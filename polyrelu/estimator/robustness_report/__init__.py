"""Is a classifier fragile, why, and what would a polynomial head do on the same data? Measured, in parts."""

from polyrelu.estimator.robustness_report.measurement import Measured, Subject, measure, subject_of
from polyrelu.estimator.robustness_report.report import Part, RobustnessReport, Tell

__all__ = ["Measured", "Part", "RobustnessReport", "Subject", "Tell", "measure", "subject_of"]
