"""The degree of a function is measured exactly where it is known."""

import pytest
import torch

from polyrelu.claims.errata.formulas import degree
from polyrelu.nets import AverageClassifier, CentreClassifier


def test_degree():
    eye, labels = torch.eye(4, dtype=torch.float64), torch.tensor([1.0, 1.0, -1.0, -1.0])
    X = torch.rand(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert degree(AverageClassifier(eye, labels), X) == pytest.approx(1)
    assert degree(CentreClassifier(eye, labels, 2.5), X) == pytest.approx(2.5)
    assert degree(lambda Z: (Z - 1).sum(1) ** 2, X, origin=torch.ones(4)) == pytest.approx(2)
