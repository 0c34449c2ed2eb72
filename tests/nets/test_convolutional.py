"""ResNets: the count of ResNet-18, the formula of a small one, starts, shapes, modes and files."""

import math

import pytest
import torch
from torch.nn import functional

from polyrelu.errors import InputError
from polyrelu.nets import ResNet, load, save

DOUBLE = {"dtype": torch.float64, "seed": 2}


@pytest.mark.slow
@pytest.mark.parametrize(("channels", "outputs"), [(3, 10), (1, 1)])
def test_the_default_is_resnet_18(channels, outputs):
    # stem 9 c 64; stages 2 blocks of two 3x3 convolutions; 1x1 across where channels change; (weight, bias) per norm
    convolutions = 9 * channels * 64 + 4 * 9 * 64**2
    norms = 64 + 4 * 64
    for wide in (128, 256, 512):
        convolutions += 9 * (wide // 2) * wide + 3 * 9 * wide**2 + (wide // 2) * wide
        norms += 5 * wide
    net = ResNet(channels, 32, outputs)
    found = sum(parameter.numel() for parameter in net.parameters())
    assert found == convolutions + 2 * norms + 512 * outputs + outputs
    assert (channels, outputs) != (3, 10) or found == 11_173_962


def test_a_small_net_is_its_formula():
    net = ResNet(2, 5, 3, blocks=(1, 1), width=4, norm="none", **DOUBLE)
    with torch.no_grad():
        for step in net.steps:
            step.gate.fill_(0.7)
    images = torch.rand(6, 2, 5, 5, dtype=torch.float64)

    def convolved(part, X, stride=1):
        return functional.conv2d(X, part.weight, part.bias, stride, part.weight.shape[-1] // 2)

    X = convolved(net.stem, images).relu()
    first, second = net.steps
    X = (X + 0.7 * convolved(first.second, convolved(first.first, X).relu())).relu()
    branch = convolved(second.second, convolved(second.first, X, 2).relu())
    X = (convolved(second.across, X, 2) + 0.7 * branch).relu()
    assert X.shape == (6, 8, 3, 3)  # 5 -> 3
    torch.testing.assert_close(net.features(images), X.mean(dim=(2, 3)))
    torch.testing.assert_close(net(images), X.mean(dim=(2, 3)) @ net.last.weight.T + net.last.bias)
    torch.testing.assert_close(net(images.reshape(6, 50)), net(images))


def test_batch_normalisation_follows_every_convolution():
    net = ResNet(1, 6, 1, blocks=(1,), width=3, **DOUBLE)
    images = torch.rand(7, 1, 6, 6, dtype=torch.float64)
    seen = net.stem(images)  # in training mode: mean 0 and variance 1 over the batch
    torch.testing.assert_close(seen.mean(dim=(0, 2, 3)), torch.zeros(3, dtype=torch.float64), atol=1e-12, rtol=0)
    torch.testing.assert_close(
        seen.var(dim=(0, 2, 3), correction=0), torch.ones(3, dtype=torch.float64), atol=1e-3, rtol=0
    )
    net.eval()
    torch.testing.assert_close(torch.cat([net(one[None]) for one in images]), net(images))  # a function of the image


def test_without_normalisation_a_branch_starts_silent():
    net = ResNet(1, 8, 2, blocks=(1, 1), width=4, norm="none")
    images = torch.rand(3, 64)
    before = net(images)
    with torch.no_grad():
        for step in net.steps:
            step.second.weight.mul_(10)
    assert torch.equal(net(images), before)
    net(images).square().sum().backward()
    assert all(step.gate.grad.abs() > 0 for step in net.steps)


def test_start():
    net = ResNet(3, 8, 10, blocks=(1, 1), width=32)
    for part, gain in ((net.steps[1].first[0], 2), (net.steps[1].across[0], 2), (net.last, 1)):
        assert part.weight.std().item() == pytest.approx(math.sqrt(gain / part.weight[0].numel()), rel=0.1)
    same, other = ResNet(3, 8, 10, blocks=(1, 1), width=32), ResNet(3, 8, 10, blocks=(1, 1), width=32, seed=1)
    assert torch.equal(same.last.weight, net.last.weight) and not torch.equal(other.last.weight, net.last.weight)
    wide = ResNet(3, 8, 10, blocks=(1, 1), width=32, dtype=torch.float64)
    assert wide.dtype == torch.float64 and torch.equal(wide.stem[0].weight.float(), net.stem[0].weight)


def test_one_logit_is_a_vector():
    assert ResNet(1, 8, 1, blocks=(1,), width=2)(torch.rand(5, 64)).shape == (5,)
    assert ResNet(1, 8, 4, blocks=(1,), width=2)(torch.rand(5, 64)).shape == (5, 4)


def test_a_file_keeps_the_running_statistics_and_is_ready_to_use(tmp_path):
    net = ResNet(1, 8, 2, blocks=(1, 1), width=4)
    for _ in range(3):
        net(torch.rand(16, 64))  # moves the running means
    images = torch.rand(5, 64)
    again = load(save(net, tmp_path / "net.safetensors"))
    assert not again.training and again.config() == net.config()
    assert torch.equal(again(images), net.eval()(images))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ResNet(1, 0), "side=0: expected a whole number >= 1"),
        (lambda: ResNet(blocks=(2, 0)), "blocks=0: expected a whole number >= 1"),
        (lambda: ResNet(norm="layer"), "norm='layer': expected 'batch' or 'none'"),
        (lambda: ResNet(3, 8, blocks=(1,), width=2)(torch.rand(2, 64)), r"expected \(n, 192\) or \(n, 3, 8, 8\)"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()
