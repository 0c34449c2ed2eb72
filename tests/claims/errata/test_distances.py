"""The ascent without a guard finds the supremum where it is known."""

import pytest
import torch

from polyrelu.claims.errata.distances import climb
from polyrelu.nets import CentreClassifier
from polyrelu.robust.core import unit


def test_ascent_reaches_the_supremum_and_stays_where_nothing_slopes():
    eye, labels = torch.eye(4, dtype=torch.float64), torch.tensor([1.0, 1.0, -1.0, -1.0])
    F = CentreClassifier(eye, labels, 3.0)
    X = unit(torch.tensor([[0.9, 0.1, 0.2, 0.1], [-1.0, -0.1, -0.2, -0.3]], dtype=torch.float64))
    assert climb(lambda Z: 0 * Z.sum(1), F, X, 300) == pytest.approx(1, abs=1e-3)
    assert climb(lambda Z: 0 * Z.sum(1), F, X[1:], 300) == 0
