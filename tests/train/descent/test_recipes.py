"""The published recipe against plain PyTorch, and what it promises to those who watch."""

import math
from itertools import pairwise

import pytest
import torch
from torch import nn

from polyrelu import Dataset, InputError, PolyReLUNet, Status, descend
from polyrelu.nets import LogisticRegression
from polyrelu.progress import Progress
from polyrelu.train.descent.mean_gradient import ByAutograd, ByHand
from polyrelu.train.descent.recipes import published_head

F64 = torch.float64
POWERS = [1.0, 2.0, 2.5, 3.0, 4.0, 5.0]


def points(classes, n=60, dim=7, dtype=F64, noise=0.5):
    """Noisy classes away from the origin; labels +-1 for ``classes`` = 1."""
    generator = torch.Generator().manual_seed(classes)
    y = torch.arange(n) % max(classes, 2)
    X = noise * torch.randn(n, dim, generator=generator, dtype=F64) + 0.3
    X[torch.arange(n), y % dim] += 1
    return Dataset(X.to(dtype), (2.0 * y - 1) if classes == 1 else y)


def plain_adam(net, X, y, order, steps, batch, rate):
    """The recipe as PyTorch would be written by anyone: raw weights, the formula of the paper, autograd, Adam."""
    W, v, b = (t.detach().clone().requires_grad_() for t in (net.weight, net.output, net.bias))
    optimiser = torch.optim.Adam([W, v, b], lr=rate)
    for step in range(steps):
        index = order[step * batch : (step + 1) * batch]
        x = X[index] - (0 if net.centre is None else net.centre)
        hidden = (x @ W.T).relu() ** net.p / W.norm(dim=1) ** (net.p - 1)
        if net.normalise_input:
            hidden = hidden / x.norm(dim=1, keepdim=True) ** (net.p - 1)
        f = hidden @ v.T + b
        if net.outputs == 1:
            loss = nn.functional.binary_cross_entropy_with_logits(f[:, 0], (y[index] + 1) / 2)
        else:
            loss = nn.functional.cross_entropy(f, y[index])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return W, v, b


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("classes", [1, 10])
@pytest.mark.parametrize("normalise", [True, False])
def test_adam_is_the_plain_loop(p, classes, normalise):
    data = points(classes)
    net = PolyReLUNet(7, 12, p, classes, init="kaiming", seed=3, bias=True, normalise_input=normalise,
                      centre=data.rows().mean(0), dtype=F64)  # fmt: skip
    order = torch.randperm(60, generator=torch.Generator().manual_seed(5))
    W, v, b = plain_adam(net, data.rows(), data.y, order, steps=3, batch=20, rate=0.01)
    out = descend(net, data, method="adam", rate=0.01, loss="cross_entropy", batch=20, steps=3, until=1e-30, seed=5)
    for ours, theirs, start in zip(out.net.parameters(), (W, v, b), net.parameters(), strict=True):
        assert (theirs - start).detach().abs().max() > 1e-3
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("classes", [1, 4])
@pytest.mark.parametrize("loss", ["exp", "logistic", "squared"])
def test_the_gradient_by_hand_is_autograds(p, classes, loss):
    data = points(classes)
    net = PolyReLUNet(7, 9, p, classes, init="balanced", seed=1, bias=True, normalise_input=True, dtype=F64)
    with torch.no_grad():
        net.weight[2] = 0  # a neuron without a direction
    by_autograd = [(data.rows()[:40], data.y[:40]), (data.rows()[40:], data.y[40:])]
    hand, auto = ByHand(net, loss), ByAutograd(net, loss)
    log_loss = auto(by_autograd, 60, 0.3)
    expected = [parameter.grad.clone() for parameter in net.parameters()]
    found = hand([(hand.rows(x), y) for x, y in by_autograd], 60, 0.3)
    assert found == pytest.approx(log_loss, rel=1e-12)
    for parameter, gradient in zip(net.parameters(), expected, strict=True):
        assert gradient.abs().max() > 1e-3
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-9, atol=1e-12)


def test_a_frozen_layer_stays_and_a_loss_that_no_float_holds_still_pulls():
    data = points(1)
    net = PolyReLUNet(7, 9, 3.0, init="balanced", seed=1, dtype=F64)
    net.output.requires_grad_(False)
    out = descend(net, data, rate=0.1, until=1e-30, steps=3)
    assert torch.equal(out.net.output, net.output) and not torch.equal(out.net.weight, net.weight)
    net = PolyReLUNet(2, 1, 1.0, init="zeros", dtype=F64)
    with torch.no_grad():
        net.weight[0], net.output[0] = torch.tensor([3000.0, 0.0], dtype=F64), 1.0
    x, y = torch.tensor([[1.0, 0.0]], dtype=F64), torch.ones(1, dtype=F64)
    log_loss = ByHand(net, "exp")([(x, y)], 1, -3000.0)  # l = e^-3000, relative to e^-3000
    assert log_loss == pytest.approx(-3000)
    assert net.weight.grad.tolist() == [[-1.0, 0.0]] and net.output.grad.tolist() == [[-3000.0]]


@pytest.mark.parametrize("classes", [1, 3])
def test_the_published_head_is_the_published_recipe(classes):
    data = points(classes, dtype=torch.float32)
    seen = []
    out = published_head(data, 2.5, width=40, epochs=4, batch=25, seed=7,
                         each_epoch=lambda epoch, net: seen.append((epoch, net.weight.detach().clone())))  # fmt: skip
    net = out.net
    assert out.status is Status.BUDGET and out.counts["steps"] == 4 * 3 and out.evaluations == pytest.approx(4)
    assert (net.outputs, net.width, net.p, net.dtype) == (classes, 40, 2.5, torch.float32)
    assert net.normalise_input and net.bias is not None
    torch.testing.assert_close(net.centre, data.rows().mean(0))
    assert [epoch for epoch, _ in seen] == [0, 1, 2, 3, 4]
    assert torch.equal(seen[-1][1], net.weight) and not torch.equal(seen[0][1], seen[1][1])
    first = PolyReLUNet(7, 40, 2.5, classes, init="kaiming", seed=7)
    assert torch.equal(seen[0][1], first.weight)
    assert math.sqrt(6 / 40) * 0.9 < first.weight.detach().abs().max() <= math.sqrt(6 / 40)
    again = published_head(data, 2.5, width=40, epochs=4, batch=25, seed=7)
    assert torch.equal(again.net.weight, net.weight)
    assert not torch.equal(published_head(data, 2.5, width=40, epochs=4, batch=25, seed=8).net.weight, net.weight)


def test_it_learns():
    out = published_head(points(3, n=300, noise=0.15), 3, width=50, epochs=60, batch=50)
    assert out.accuracy > 0.99 and out.history.accuracy[0] < 0.7
    assert len(out.history.clock) == 2  # measured at both ends only: nobody asked in between


class Watched(Progress):
    """Keeps what it is told, and interrupts after ``most`` reports."""

    def __init__(self, most=math.inf):
        self.told, self.most = [], most

    def update(self, *, time, log_loss, evaluations, neurons):
        self.told.append((evaluations, log_loss))
        if len(self.told) >= self.most:
            raise KeyboardInterrupt


def test_progress_is_told_after_every_epoch_and_an_interruption_keeps_what_was_reached():
    data, watched = points(3, n=300), Watched()
    out = published_head(data, 3, width=50, epochs=5, batch=50, progress=watched)
    passes, losses = zip(*watched.told, strict=True)
    assert passes[:5] == pytest.approx((1, 2, 3, 4, 5))
    assert all(later < earlier for earlier, later in pairwise(losses))
    assert losses[-1] == out.log_loss
    short = published_head(data, 3, width=50, epochs=5, batch=50, progress=Watched(most=2))
    two = published_head(data, 3, width=50, epochs=2, batch=50)
    assert short.status is Status.INTERRUPTED and short.counts["steps"] == 12
    assert torch.equal(short.net.weight, two.net.weight) and short.log_loss == two.log_loss


def test_other_modules_take_the_same_road_with_autograd():
    data = points(3)
    net = LogisticRegression(7, 3, dtype=F64)
    out = descend(net, data, method="adam", rate=0.01, loss="cross_entropy", batch=20, steps=6, until=1e-30)
    assert out.log_loss < out.history.log_loss[0]


def test_bad_input_is_named():
    with pytest.raises(InputError, match="epochs=0: expected"):
        published_head(points(3), 3, epochs=0)
    with pytest.raises(InputError, match="batch=0: expected"):
        published_head(points(3), 3, batch=0)
    with pytest.raises(InputError, match=r"p=0\.5: expected"):
        published_head(points(3), 0.5)
