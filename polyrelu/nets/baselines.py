"""The nets the papers compare with. A two-layer ReLU net is ``PolyReLUNet`` with p = 1 and is not repeated here.

Every parameter is drawn in float64 from ``seed`` and multiplied by ``scale``, so small starts are one argument.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import pairwise
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from polyrelu.checks import choice, finite_number, flag, floating_dtype, whole_numbers
from polyrelu.errors import require
from polyrelu.nets.base import Net, generator, normal, scale_and_seed
from polyrelu.nets.relu_power import relu_power

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "leaky_relu": functional.leaky_relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "gelu": functional.gelu,
    "softplus": functional.softplus,
}


class TwoLayer(Net, ABC):
    """f(x) = sum_j v_j phi(<x, w_j>), bias-free; every entry of W and v N(0, scale^2)."""

    def __init__(
        self,
        dim: int,
        width: int,
        outputs: int = 1,
        *,
        scale: float = 1.0,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        sizes = whole_numbers(dim=dim, width=width, outputs=outputs)
        super().__init__(dim, outputs, sizes | scale_and_seed(scale, seed))
        source = generator(seed)
        self.weight = normal((width, dim), scale, source, floating_dtype(dtype))
        self.output = normal((outputs, width), scale, source, dtype)

    @abstractmethod
    def phi(self, z: Tensor) -> Tensor:
        """The activation."""

    def forward(self, X: Tensor) -> Tensor:
        """Logits of the rows of ``X`` [n, dim]."""
        return self.answer(self.phi(self.inputs(X) @ self.weight.T) @ self.output.T)


@final
class PlainPolyNet(TwoLayer):
    """f(x) = sum_j v_j relu(<x, w_j>)^p: no weight normalisation (Min & Vidal 2025, B.2).

    Degree p + 1 in (W, v). The published starts are scale .01 and .5.
    """

    def __init__(
        self,
        dim: int,
        width: int,
        p: float = 3.0,
        outputs: int = 1,
        *,
        scale: float = 1.0,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.p = finite_number("p", p, least=1)
        super().__init__(dim, width, outputs, scale=scale, seed=seed, dtype=dtype)
        self.settings["p"] = self.p

    def phi(self, z: Tensor) -> Tensor:
        """relu(z)^p."""
        return relu_power(z, self.p)


@final
class TanhNet(TwoLayer):
    """f(x) = sum_j v_j tanh(<x, w_j>), bias-free (Min & Vidal 2025, Fig. 2)."""

    def phi(self, z: Tensor) -> Tensor:
        """tanh z."""
        return z.tanh()


@final
class LeakyReLUNet(TwoLayer):
    """f(x) = sum_j v_j max(z, slope z), z = <x, w_j>, bias-free; 0 <= slope <= 1."""

    def __init__(
        self,
        dim: int,
        width: int,
        outputs: int = 1,
        *,
        slope: float = 0.01,
        scale: float = 1.0,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.slope = finite_number("slope", slope, least=0)
        require(self.slope <= 1, "slope", slope, "a number between 0 and 1")
        super().__init__(dim, width, outputs, scale=scale, seed=seed, dtype=dtype)
        self.settings["slope"] = self.slope

    def phi(self, z: Tensor) -> Tensor:
        """max(z, slope z)."""
        return functional.leaky_relu(z, self.slope)


@final
class LogisticRegression(Net):
    """f(x) = <w, x> + b, the linear baseline; ``scale = 0`` (the default) starts at zero. ``bias`` is optional."""

    bias: nn.Parameter | None

    def __init__(
        self,
        dim: int,
        outputs: int = 1,
        *,
        bias: bool = True,
        scale: float = 0.0,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        sizes = whole_numbers(dim=dim, outputs=outputs)
        super().__init__(dim, outputs, sizes | scale_and_seed(scale, seed) | {"bias": flag("bias", bias)})
        self.weight = normal((outputs, dim), scale, generator(seed), floating_dtype(dtype))
        self.register_parameter("bias", nn.Parameter(torch.zeros(outputs, dtype=dtype)) if bias else None)

    def forward(self, X: Tensor) -> Tensor:
        """Logits of the rows of ``X`` [n, dim]."""
        return self.answer(functional.linear(self.inputs(X), self.weight, self.bias))


@final
class MLP(Net):
    """f(x) = W_L phi(... phi(W_1 x + b_1) ...) + b_L with ``depth`` = L weight layers (Min & Vidal 2025: depth 4).

    Weights N(0, scale^2 2/fan_in) (He), biases zero and only if ``bias``; homogeneous of degree L in the weights for
    "relu" and "leaky_relu" without bias.
    """

    def __init__(
        self,
        dim: int,
        width: int,
        depth: int = 4,
        outputs: int = 1,
        *,
        activation: str = "relu",
        bias: bool = False,
        scale: float = 1.0,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        sizes = whole_numbers(dim=dim, width=width, depth=depth, outputs=outputs)
        kind = {"activation": choice("activation", activation, ACTIVATIONS), "bias": flag("bias", bias)}
        super().__init__(dim, outputs, sizes | scale_and_seed(scale, seed) | kind)
        self.phi = ACTIVATIONS[activation]
        source, dtype = generator(seed), floating_dtype(dtype)
        units = [dim] + [width] * (depth - 1) + [outputs]
        self.weights = nn.ParameterList(
            normal((b, a), scale * math.sqrt(2 / a), source, dtype) for a, b in pairwise(units)
        )
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(b, dtype=dtype)) for b in units[1:] if bias)

    def forward(self, X: Tensor) -> Tensor:
        """Logits of the rows of ``X`` [n, dim]."""
        X = self.inputs(X)
        biases = list(self.biases) or [None] * len(self.weights)
        *hidden, (last, offset) = zip(self.weights, biases, strict=True)
        for weight, bias in hidden:
            X = self.phi(functional.linear(X, weight, bias))
        return self.answer(functional.linear(X, last, offset))
