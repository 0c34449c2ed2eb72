"""Gradient descent: GD, SGD and Adam, the published recipes, and the gradients they use."""

from polyrelu.train.descent.descend import adam, degree, descend
from polyrelu.train.descent.mean_gradient import gradient_of, logits, mean_one, relu_powers
from polyrelu.train.descent.recipes import adam_epochs, mean, published_head

__all__ = [
    "adam",
    "adam_epochs",
    "degree",
    "descend",
    "gradient_of",
    "logits",
    "mean",
    "mean_one",
    "published_head",
    "relu_powers",
]
