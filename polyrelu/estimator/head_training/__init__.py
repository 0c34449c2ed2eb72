"""Training of a head: settings, labels as numbers, the start, Adam with held-out rows, and single passes."""

from polyrelu.estimator.head_training.head_init import HeadStart, location
from polyrelu.estimator.head_training.head_settings import HeadSettings, TrainingStopped
from polyrelu.estimator.head_training.train_head import flow_head, train_head

__all__ = ["HeadSettings", "HeadStart", "TrainingStopped", "flow_head", "location", "train_head"]
