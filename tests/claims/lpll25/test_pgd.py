"""PGD up a linear loss ends where the ball and the box let it."""

import torch

from polyrelu.claims.lpll25.images import climb
from polyrelu.claims.lpll25.pgd import pgd


def test_pgd_goes_as_far_as_it_may():
    way = torch.tensor([3.0, 4.0])
    X = torch.tensor([[1.0, 1.0], [0.0, 5.0]])
    torch.testing.assert_close(pgd(lambda Z: Z @ way, X, 2.0), X + torch.tensor([1.2, 1.6]))
    assert torch.equal(pgd(lambda Z: 0 * Z.sum(dim=1), X, 2.0), X)


def test_pgd_climbs_a_linear_loss_inside_ball_and_box():
    g = torch.linspace(-1, 1, 8)
    X = torch.full((5, 8), 0.5)
    d = climb(lambda Z: Z @ g, X, 0.3, seed=0) - X
    assert d.norm(dim=1).max() <= 0.3 + 1e-6
    assert (d @ g / g.norm()).min() > 0.97 * 0.3  # best: r; on the sphere a step shrinks what is across by 16/17
    wide = climb(lambda Z: Z @ g, X, 9.0, seed=0)
    assert wide.min() >= 0 and wide.max() <= 1
    assert torch.equal(wide[:, 4:], torch.ones(5, 4)) and torch.equal(wide[:, :4], torch.zeros(5, 4))
