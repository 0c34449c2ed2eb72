"""The small convolutional net of the margin paper (Lyu & Li, ICLR 2020)."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from polyrelu.checks import choice, floating_dtype, whole_numbers
from polyrelu.nets.base import ConvolutionalNet, generator, normal, scale_and_seed

BIASES = {"all": 4, "first": 1, "none": 0}


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
