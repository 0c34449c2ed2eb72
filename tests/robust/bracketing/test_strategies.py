"""Bounds found later only ever raise the lower one, whatever they are."""

from __future__ import annotations

import math

import pytest
import torch

from polyrelu.nets import PolyReLUNet
from polyrelu.robust import Budget, bracket
from polyrelu.robust.bracketing import strategies
from polyrelu.robust.certify import Tier


def apart() -> tuple[PolyReLUNet, torch.Tensor, torch.Tensor]:
    """A net and points whose bounds do not meet without branching."""
    draw = torch.Generator().manual_seed(0)
    net = PolyReLUNet(6, 16, 3.0, 3, dtype=torch.float64, seed=0).requires_grad_(False)
    net.weight.copy_(torch.randn(16, 6, generator=draw, dtype=torch.float64))
    net.output.copy_(torch.randn(3, 16, generator=draw, dtype=torch.float64))
    X = torch.randn(8, 6, generator=draw, dtype=torch.float64)
    return net, X, net(X).argmax(dim=1)


def nothing(job, tiers=()):
    return torch.zeros(len(job), dtype=torch.float64)


def test_a_certificate_that_proves_nothing_takes_nothing_away(monkeypatch) -> None:
    net, X, y = apart()
    monkeypatch.setattr(strategies, "certificate", nothing)
    found = bracket(net, X, y, budget=Budget(nodes=0))
    assert (found.lower > 0).all() and (found.lower * 1.001 < found.upper).any()


def test_rounds_in_smaller_balls_that_prove_nothing_take_nothing_away(monkeypatch) -> None:
    net, X, y = apart()
    monkeypatch.setattr(strategies, "certificate", nothing)
    first, lower, asked = strategies.certify, [], []

    def certify(*args, **kwargs):
        proof = first(*args, **kwargs)
        if lower:
            asked.append(len(proof.lower))
            return proof._replace(lower=torch.zeros_like(proof.lower))
        lower.append(proof.lower.clone())
        return proof

    monkeypatch.setattr(strategies, "certify", certify)
    found = bracket(net, X, y, budget=Budget(nodes=20))
    assert asked
    assert torch.equal(found.lower, torch.minimum(lower[0], found.upper))


def test_unbroken_points_keep_the_larger_of_both_radii_of_one_ball(monkeypatch) -> None:
    X, y = apart()[1], torch.zeros(8, dtype=torch.int64)
    net = PolyReLUNet(6, 16, 3.0, 3, bias=True, dtype=torch.float64, seed=0).requires_grad_(False)
    net.output.copy_(torch.zeros(3, 16))
    net.output[0] = 1.0
    net.bias.copy_(torch.tensor([1.0, 0.0, 0.0]))  # class 0 everywhere: no perturbation is found
    for one_ball, every_norm in ((0.5, 0.25), (0.25, 0.5)):

        def certificate(job, tiers=None, one_ball=one_ball, every_norm=every_norm):
            return torch.full((len(job),), every_norm if tiers == [Tier.EVERY_NORM] else one_ball).double()

        monkeypatch.setattr(strategies, "certificate", certificate)
        found = bracket(net, X, y, widest=1)
        assert (found.upper == math.inf).all() and (found.lower == 0.5).all()


@pytest.mark.parametrize("widest", [1, 200])
def test_bounds_stand_at_the_rows_of_their_points(widest: int) -> None:
    net, X, y = apart()
    y[::3] = (y[::3] + 1) % 3  # wrong: radius 0
    found = bracket(net, X, y, widest=widest, budget=Budget(nodes=0))
    assert (found.lower[::3] == 0).all() and (found.upper[::3] == 0).all()
    for i in (1, 5):
        alone = bracket(net, X[i : i + 1], y[i : i + 1], widest=widest, budget=Budget(nodes=0))
        torch.testing.assert_close(found.lower[i : i + 1], alone.lower, rtol=0.2, atol=0.0)
        assert found.lower[i] > 0
