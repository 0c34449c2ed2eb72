"""Critical radii against the classifiers they belong to."""

from __future__ import annotations

import math

import pytest
import torch

from polyrelu.nets import RobustClassifier
from polyrelu.robust import centre_radius, theory


def test_critical_radii():
    assert theory.average_critical_radius(10) == pytest.approx(0.31623, abs=1e-5)
    for p in (1, 1.5, 2, 2.5, 4):
        centres, labels = torch.eye(9, dtype=torch.float64), torch.tensor([1.0] * 4 + [-1.0] * 5)
        radius = centre_radius(centres[:1], labels[:1], centres, labels, p).item()
        assert theory.centre_critical_radius(p, 5) == pytest.approx(radius, rel=1e-12)
    assert theory.flip_radius(1, 4) == pytest.approx(1 / math.sqrt(5)) and theory.flip_radius(2, 7) == pytest.approx(
        math.sqrt(0.5)
    )
    assert theory.flip_radius(4, 3) > theory.flip_radius(4, 1) == pytest.approx(math.sqrt(0.5))
    assert theory.trained_radius(1e-9, 3, C=1) == pytest.approx(math.sqrt(0.5), abs=1e-5)
    assert theory.trained_radius(1, 3, C=1) == 0


def test_feature_and_hand_built_radii():
    # d = 3072, k = 10, five opposite centres
    assert theory.feature_averaging_radius(3072, 10) == pytest.approx(17.5, abs=0.05)
    assert theory.feature_decoupling_radius(3072, 5) == pytest.approx(39.2, abs=0.05)
    assert theory.feature_decoupling_radius(3072, 5, "sum") == pytest.approx(22.6, abs=0.05)
    zero, flip = theory.hand_built_radii(16)
    centres = 4 * torch.eye(4, 16, dtype=torch.float64)
    net = RobustClassifier(centres, torch.tensor([1.0, 1.0, -1.0, -1.0]))
    inward, across = -centres[0] / 4, (centres[2] - centres[0]) / (4 * math.sqrt(2))
    values = net(torch.stack([centres[0] + r * inward for r in (zero - 1e-6, zero)]))
    assert values[0] > 0 and values[1] == 0
    values = net(torch.stack([centres[0] + r * across for r in (flip - 1e-6, flip + 1e-6)]))
    assert values[0] >= 0 > values[1]
    # |z| for F itself, balanced: sqrt(d/k)
    assert theory.universal_perturbation_bound(3072, 10, 0.5, C=0.5) == pytest.approx(17.5, abs=0.05)
    low, high = theory.universal_perturbation_samples(3072, 10, 0.1, 0.1)
    assert low == pytest.approx(10 * math.log(3072) ** 2)
    # the three limits in turn are e^94, 1e6 and 2.4e12; the second is sqrt(.1)/3 3072^(ln(3072)/4)
    assert high == pytest.approx(math.sqrt(0.1) / 3 * 3072 ** (math.log(3072) / 4))
    assert theory.universal_perturbation_samples(20, 4, 0.9, 0.5)[1] < 4 * math.log(20) ** 2  # says nothing
