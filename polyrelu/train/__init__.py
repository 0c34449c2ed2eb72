"""Training: gradient flow, and descent as the papers ran it; losses, stop conditions and what a run records."""

from polyrelu.train import margin_gradients
from polyrelu.train.descent import descend, published_head
from polyrelu.train.gradient_flow import flow
from polyrelu.train.losses import LOSSES, check_loss, class_margins, log_add, log_softplus, loss_slopes
from polyrelu.train.stopping import Status, Until
from polyrelu.train.training_run import ReferenceDirections
from polyrelu.train.trajectory import History, Trajectory

__all__ = [
    "LOSSES",
    "History",
    "ReferenceDirections",
    "Status",
    "Trajectory",
    "Until",
    "check_loss",
    "class_margins",
    "descend",
    "flow",
    "log_add",
    "log_softplus",
    "loss_slopes",
    "margin_gradients",
    "published_head",
]
