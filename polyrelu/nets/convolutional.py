"""Convolutional nets: that of the margin paper (Lyu & Li, ICLR 2020), and ResNets (He et al., CVPR 2016)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from polyrelu.checks import choice, floating_dtype, whole_number, whole_numbers
from polyrelu.errors import require
from polyrelu.nets.base import ConvolutionalNet, Net, count_numbers, generator, normal, scale_and_seed

BIASES = {"all": 4, "first": 1, "none": 0}
NORMS = {"batch": "batch normalisation after every convolution", "none": "biases, and branches that start at zero"}


@final
class SmallCNN(ConvolutionalNet):
    """conv32 5x5, pool, conv64 3x3, pool, fc ``hidden``, fc ``outputs``; ReLU, SAME padding, 2x2 max-pools.

    Takes (n, side*side) rows, or (n, 1, side, side) images, in row-major order. He-normal weights times ``scale``,
    zero biases in all four layers or, with ``bias="first"``, only in the first, which makes the net homogeneous of
    degree 4 in the other weights and the pair (first weight, first bias). The paper has 1024 hidden units.
    """

    def __init__(
        self,
        side: int = 28,
        outputs: int = 10,
        *,
        hidden: int = 1024,
        bias: str = "all",
        scale: float = 1.0,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        sizes = whole_numbers(side=side, outputs=outputs, hidden=hidden)
        side, outputs, hidden = sizes.values()  # Python's, which do not wrap around
        super().__init__(
            side * side, outputs, sizes | scale_and_seed(scale, seed) | {"bias": choice("bias", bias, BIASES)}
        )
        self.side, self.shape = side, (1, side, side)
        left = math.ceil(math.ceil(side / 2) / 2)  # SAME pools round up
        shapes = [(32, 1, 5, 5), (64, 32, 3, 3), (hidden, 64 * left * left), (outputs, hidden)]
        source, dtype = generator(seed), floating_dtype(dtype)
        self.weights = nn.ParameterList(
            normal(shape, scale * math.sqrt(2 / math.prod(shape[1:])), source, dtype) for shape in shapes
        )
        self.biases = nn.ParameterList(
            nn.Parameter(torch.zeros(shape[0], dtype=dtype)) for shape in shapes[: BIASES[bias]]
        )

    def forward(self, X: Tensor) -> Tensor:
        """Logits of the images ``X``, flat or not."""
        first, second, third, last = self.weights
        b = [*self.biases, None, None, None, None]
        X = functional.conv2d(self.images(X), first, b[0], padding="same").relu()
        X = functional.conv2d(functional.max_pool2d(X, 2, ceil_mode=True), second, b[1], padding="same").relu()
        X = functional.max_pool2d(X, 2, ceil_mode=True).flatten(1)
        return self.answer(functional.linear(functional.linear(X, third, b[2]).relu(), last, b[3]))


@final
class ResNet(ConvolutionalNet):
    """x -> relu(x' + B(x)), B = conv3x3 relu conv3x3, x' = x or, where the shape changes, conv1x1(x).

    A 3x3 convolution, ``len(blocks)`` stages of ``blocks[s]`` such steps, the mean over pixels and a linear layer.
    Stage s = 0, 1, ... has ``width`` 2^s channels and, from s = 1 on, halves the side. The defaults are ResNet-18 for
    CIFAR-10 (Li et al., ICLR 2025), 11 173 962 parameters; ``ResNet(1, 28, blocks=(1, 1, 1), width=8)`` trains on a CPU
    in minutes.

    Takes (n, channels*side*side) rows, plane after plane, or (n, channels, side, side) images, and gives one logit (n,)
    or several. ``norm="batch"`` needs ``train()`` and ``eval()``, as usual, and is read from a file ready to use (in
    eval mode); ``norm="none"`` has biases instead and multiplies every B by a learned number that starts at 0 (De &
    Smith, NeurIPS 2020), so it is a plain function of its weights. He-normal convolutions, zero biases.
    """

    def __init__(
        self,
        channels: int = 3,
        side: int = 32,
        outputs: int = 10,
        blocks: Sequence[int] = (2, 2, 2, 2),
        width: int = 64,
        *,
        norm: str = "batch",
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        sizes = whole_numbers(channels=channels, side=side, outputs=outputs, width=width)
        channels, side, outputs, width = sizes.values()
        listed = isinstance(blocks, list | tuple) and len(blocks) > 0
        require(listed, "blocks", blocks, "a list: how many blocks each stage has")
        stages = [whole_number("blocks", number) for number in blocks]
        more = {"blocks": stages, "norm": choice("norm", norm, NORMS), "seed": whole_number("seed", seed, least=0)}
        super().__init__(channels * side * side, outputs, sizes | more)
        self.shape = (channels, side, side)
        require(max(channels, width, outputs, side) < 2**20, "sizes", sizes, "sizes below 2^20")
        self.stem = _convolution(channels, width, 3, 1, norm)
        steps, before = [], width
        for stage, number in enumerate(stages):
            for step in range(number):
                after, stride = width * 2**stage, 2 if stage > 0 and step == 0 else 1
                steps.append(ResidualBlock(before, after, stride, norm))
                before = after
        self.steps = nn.Sequential(*steps)
        count_numbers(before, outputs)
        self.last = nn.Linear(before, outputs)
        _start(self, seed)
        self.to(floating_dtype(dtype))

    @classmethod
    def restore(cls, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Net:
        """As every net's, and in eval mode."""
        return super().restore(config, tensors).eval()

    def features(self, X: Tensor) -> Tensor:
        """What the linear layer sees: the mean over pixels of the last stage's channels."""
        features: Tensor = self.steps(self.stem(self.images(X)).relu()).mean(dim=(2, 3))
        return features

    def forward(self, X: Tensor) -> Tensor:
        """Logits of the images ``X``, flat or not."""
        return self.answer(self.last(self.features(X)))


@final
class ResidualBlock(nn.Module):
    """One residual step; ``gate`` is the learned number in front of the branch, without batch normalisation."""

    gate: nn.Parameter | None

    def __init__(self, before: int, after: int, stride: int, norm: str) -> None:
        super().__init__()
        self.first = _convolution(before, after, 3, stride, norm)
        self.second = _convolution(after, after, 3, 1, norm)
        same = before == after and stride == 1
        self.across = nn.Identity() if same else _convolution(before, after, 1, stride, norm)
        self.register_parameter("gate", nn.Parameter(torch.zeros(())) if norm == "none" else None)

    def forward(self, X: Tensor) -> Tensor:
        """relu(x' + B(x))."""
        branch: Tensor = self.second(self.first(X).relu())
        if self.gate is not None:
            branch = self.gate * branch
        total: Tensor = self.across(X) + branch
        return total.relu()


def _convolution(before: int, after: int, side: int, stride: int, norm: str) -> nn.Module:
    count_numbers(before, after, side, side)
    kernel = nn.Conv2d(before, after, side, stride, padding=side // 2, bias=norm == "none")
    return nn.Sequential(kernel, nn.BatchNorm2d(after)) if norm == "batch" else kernel


@torch.no_grad()
def _start(net: nn.Module, seed: int) -> None:
    """Every weight from ``seed``: N(0, 2/fan_in) for convolutions, N(0, 1/fan_in) for the linear layer."""
    source = generator(seed)
    for part in net.modules():
        if isinstance(part, nn.Conv2d | nn.Linear):
            gain = 2 if isinstance(part, nn.Conv2d) else 1
            std = math.sqrt(gain / math.prod(part.weight.shape[1:]))
            part.weight.copy_(std * torch.randn(part.weight.shape, generator=source, dtype=torch.float64))
            if part.bias is not None:
                part.bias.zero_()
