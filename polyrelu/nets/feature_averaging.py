"""The two nets of the feature-averaging paper, whose output layer is fixed (Li et al., ICLR 2025)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from polyrelu.checks import checked, choice, floating_dtype, whole_number, whole_numbers
from polyrelu.errors import require
from polyrelu.nets.base import Net, generator, normal, scale_and_seed

READOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda logits: logits.sum(dim=1),
    "max": lambda logits: logits.amax(dim=1),
}


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
