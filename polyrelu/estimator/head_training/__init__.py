"""Training of a head: settings, labels as numbers, the start, Adam with held-out rows, and single passes."""

from polyrelu.estimator.head_training.head_init import HeadStart, location
from polyrelu.estimator.head_training.head_settings import TrainingStopped

__all__ = ["HeadStart", "TrainingStopped", "location"]
