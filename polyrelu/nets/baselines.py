"""The nets the papers compare with. A two-layer ReLU net is ``PolyReLUNet`` with p = 1 and is not repeated here.

Every parameter is drawn in float64 from ``seed`` and multiplied by ``scale``, so small starts are one argument.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import pairwise
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from polyrelu.checks import checked, choice, finite_number, flag, floating_dtype, whole_number, whole_numbers
from polyrelu.errors import require
from polyrelu.nets.base import Net, generator, normal, relu_power, scale_and_seed

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "leaky_relu": functional.leaky_relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "gelu": functional.gelu,
    "softplus": functional.softplus,
}
READOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda logits: logits.sum(dim=1),
    "max": lambda logits: logits.amax(dim=1),
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


@final
class FixedOutputNet(Net):
    """f(x) = (1/m) sum_r relu(<w_+r, x> + b_+r) - (1/m) sum_r relu(<w_-r, x> + b_-r), m = ``width`` (Li et al. 2025).

    Rows 0..m-1 of ``weight`` are w_+r, the others w_-r. ``scale`` is the deviation of every weight and bias (1e-5 in
    the experiments); None is the theory's start, w ~ N(0, I/dim) and b ~ N(0, 1/dim^2).
    """

    signs: Tensor

    def __init__(
        self,
        dim: int,
        width: int,
        *,
        scale: float | None = None,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        sizes = whole_numbers(dim=dim, width=width)
        super().__init__(dim, 1, sizes | _start(scale, seed))
        dim, width = sizes.values()  # Python's, which do not wrap around
        source = generator(seed)
        w_std, b_std = (1 / math.sqrt(dim), 1 / dim) if scale is None else (scale, scale)
        self.weight = normal((2 * width, dim), w_std, source, floating_dtype(dtype))
        self.bias = normal((2 * width,), b_std, source, dtype)
        signs = torch.ones(2 * width, dtype=dtype)
        signs[width:] = -1
        self.register_buffer("signs", signs, persistent=False)

    def forward(self, X: Tensor) -> Tensor:
        """One logit for each row of ``X`` [n, dim]."""
        hidden = functional.linear(self.inputs(X), self.weight, self.bias).relu()
        return hidden @ (2 * self.signs / len(self.signs))


@final
class GroupedNet(Net):
    """f_i(x) = (1/h) sum_r relu(<w_ir, x>), i = 1..k: one group of h = ``width`` neurons a cluster (Li et al. 2025).

    ``weight`` is [groups, width, dim]. ``scale`` as in `FixedOutputNet`; no biases.
    """

    def __init__(
        self,
        dim: int,
        groups: int,
        width: int = 1,
        *,
        scale: float | None = None,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        require(whole_number("groups", groups) >= 2, "groups", groups, "a whole number >= 2")
        super().__init__(dim, groups, whole_numbers(dim=dim, groups=groups, width=width) | _start(scale, seed))
        std = 1 / math.sqrt(dim) if scale is None else scale
        self.weight: nn.Parameter = normal((groups, width, dim), std, generator(seed), floating_dtype(dtype))

    def forward(self, X: Tensor) -> Tensor:
        """Logits [n, groups] of the rows of ``X`` [n, dim]."""
        hidden = functional.linear(self.inputs(X), self.weight.flatten(0, 1)).relu()
        return hidden.reshape(len(X), *self.weight.shape[:2]).mean(dim=2)

    @checked
    def binary(self, X: Tensor, labels: Tensor, rule: str = "sum") -> Tensor:
        """sum_{J+} f_i - sum_{J-} f_i (the paper's read-out), or max_{J+} f_i - max_{J-} f_i; ``labels`` +-1 a group.

        The summed rule is F^(1), with radius of order sqrt(d/k); the maximum holds to sqrt(d/2) (Li et al. 2025).
        """
        both = tuple(labels.shape) == (self.outputs,) and set(labels.tolist()) == {1, -1}
        require(both, "labels", labels.tolist(), f"{self.outputs} labels of +1 and -1, both present")
        readout, logits = READOUTS[choice("rule", rule, READOUTS)], self(X)
        return readout(logits[:, labels > 0]) - readout(logits[:, labels < 0])


def _start(scale: float | None, seed: int) -> dict[str, Any]:
    return scale_and_seed(0 if scale is None else scale, seed) | {"scale": scale}
