"""Gradient descent: GD, SGD and Adam, the published recipes, and the gradients they use."""

from polyrelu.train.descent.descend import adam, descend, input_degree
from polyrelu.train.descent.mean_gradient import gradient_of, logit_columns, mean_one_weights, relu_powers
from polyrelu.train.descent.recipes import adam_epochs, mean_row, published_head

__all__ = [
    "adam",
    "adam_epochs",
    "descend",
    "gradient_of",
    "input_degree",
    "logit_columns",
    "mean_one_weights",
    "mean_row",
    "published_head",
    "relu_powers",
]
