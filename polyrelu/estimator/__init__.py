"""The scikit-learn interface: a robust head for any embedding, its training, and the report on any classifier."""

from polyrelu.estimator.classifier import PolyReLUClassifier
from polyrelu.estimator.head_training import TrainingStopped
from polyrelu.estimator.robustness_report import RobustnessReport

__all__ = ["PolyReLUClassifier", "RobustnessReport", "TrainingStopped"]
