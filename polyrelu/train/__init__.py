"""Training: the polar gradient flow, and descent as the papers ran it."""

from polyrelu.train.descent.descend import descend
from polyrelu.train.gradient_flow.flow import flow
from polyrelu.train.losses import LOSSES
from polyrelu.train.stopping import Status, Until
from polyrelu.train.trajectory import History, Progress, Trajectory

__all__ = ["LOSSES", "History", "Progress", "Status", "Trajectory", "Until", "descend", "flow"]
