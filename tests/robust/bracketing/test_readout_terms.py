"""Brackets of read-outs where nets have no scale: radii of points half as long are half as long."""

from __future__ import annotations

import pytest
import torch

from polyrelu.nets import PolyReLUNet, ReadOut
from polyrelu.robust import Budget, bracket
from polyrelu.robust.attacks.convex_concave import Perturbations
from polyrelu.robust.bracketing.readout import raise_by_next_subclasses
from polyrelu.robust.certify.contract import Job


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("widest", [0, 200])
def test_bounds_are_as_near_for_short_points_as_for_long_ones(p: float, widest: int) -> None:
    draw = torch.Generator().manual_seed(int(p))
    net = PolyReLUNet(4, 12, p, 5, dtype=torch.float64).requires_grad_(False)
    net.weight.copy_(torch.randn(12, 4, generator=draw, dtype=torch.float64))
    net.output.copy_(torch.randn(5, 12, generator=draw, dtype=torch.float64))
    head = ReadOut(net, [0, 0, 0, 1, 1])
    X = torch.randn(12, 4, generator=draw, dtype=torch.float64)
    y = head(X).argmax(dim=1)
    given = {"budget": Budget(nodes=20), "widest": widest}
    plain = bracket(head, X, y, **given)
    for scale in (2.0**-20, 2.0**10):
        found = bracket(head, scale * X, y, **given)
        torch.testing.assert_close(found.lower / scale, plain.lower, rtol=0.02, atol=0.0)
        torch.testing.assert_close(found.upper / scale, plain.upper, rtol=0.02, atol=0.0)


def test_another_sub_class_proves_against_the_rivals_of_its_own_point() -> None:
    # f_s = x_s near these points: the second best sub-class loses to another class (4.5 - 1)/sqrt(2) away
    net = PolyReLUNet(4, 4, 2.0, 4, dtype=torch.float64).requires_grad_(False)
    net.weight.copy_(torch.eye(4))
    net.output.copy_(torch.eye(4))
    X = torch.tensor([[5.0, 4.5, 1.0, 1.0], [1.0, 1.0, 5.0, 4.5]], dtype=torch.float64)
    lower, far = torch.tensor([1.0, 0.0], dtype=torch.float64), torch.tensor([1.0, 9.0], dtype=torch.float64)
    job = Job(ReadOut(net, [0, 0, 1, 1]), X, torch.tensor([0, 1]))
    raise_by_next_subclasses(job, lower, Perturbations(torch.zeros_like(X), far))
    assert lower[0] == 1 and 0.5 * 3.5 < lower[1] * 2**0.5 <= 3.5
