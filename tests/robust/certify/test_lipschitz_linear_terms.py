"""The cheap and the linear certificate between the truth and a floor, in every norm, where each term counts."""

from __future__ import annotations

import math

import pytest
import torch

from polyrelu.nets import PolyReLUNet
from polyrelu.robust import certified_radius, linear_radius, root_lipschitz_radius

POWERS = [1.0, 1.5, 2.0, 3.0, 4.0, 7.5]
KINDS = ["plain", "bias", "normalised", "classes", "one side"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_cheap_radii_are_between_the_truth_and_a_floor(sandwiched, kind: str) -> None:
    sandwiched("cheap", root_lipschitz_radius, kind, POWERS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_linear_radii_are_between_the_truth_and_a_floor(sandwiched, kind: str) -> None:
    sandwiched("linear", linear_radius, kind, POWERS)


@pytest.mark.parametrize("certificate", [root_lipschitz_radius, linear_radius, certified_radius])
def test_the_length_counts_sqrt_of_the_dimension_in_l_infinity(certificate) -> None:
    # f = relu(x_1)^2/|x| - 1/2 at e_1, D = 100: within rho the worst is x_1 = 1 - rho and every other coordinate rho,
    # (1 - rho)^2 = sqrt((1 - rho)^2 + 99 rho^2)/2 at the radius; without the sqrt(D) three times as much was proven
    net = PolyReLUNet(100, 1, 2, 1, init="zeros", bias=True, normalise_input=True, dtype=torch.float64)
    with torch.no_grad():
        net.weight[0, 0] = net.output[0, 0] = 1
        net.bias[0] = -0.5
    x, one = torch.eye(100, dtype=torch.float64)[:1], torch.ones(1, dtype=torch.float64)
    low, high = 0.0, 1.0
    for _ in range(60):
        rho = (low + high) / 2
        holds = (1 - rho) ** 2 > 0.5 * math.sqrt((1 - rho) ** 2 + 99 * rho * rho)
        low, high = (rho, high) if holds else (low, rho)
    assert 0.05 < float(certificate(net, x, one, math.inf)) <= high
