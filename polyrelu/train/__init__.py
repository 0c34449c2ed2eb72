"""Training: the polar gradient flow, and descent as the papers ran it."""

from polyrelu.train.descent import descend
from polyrelu.train.flow import flow
from polyrelu.train.landing import Status, Until
from polyrelu.train.losses import LOSSES
from polyrelu.train.trajectory import History, Progress, Trajectory

__all__ = ["LOSSES", "History", "Progress", "Status", "Trajectory", "Until", "descend", "flow"]
