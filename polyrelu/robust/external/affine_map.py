"""Leading affine layers of a classifier as one map x -> A x + a, with a bound on what rounding made of it.

    values    z_k = fl(W_k z_{k-1} + b_k),  e_k = |W_k| e_{k-1} + g (|W_k| |z_{k-1}| + |b_k|):  |z_k - true| <= e_k
    slopes    A = fl(W_k ... W_1),  B = |W_k| ... |W_1| and TINY for every term:  |A - true| <= g B, entry by entry

g = 2 (number of terms + 16) 2^-53 bounds the rounding of sums of that many products (Higham, Accuracy and Stability of
Numerical Algorithms, 3.1), the sums of absolute values beside them included; what underflows is at most TINY a term.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from polyrelu.robust.core.external_layers import Diagonal
from polyrelu.robust.core.norms import lengths
from polyrelu.robust.core.scaled_net import UNIT

TINY = 2.0**-1022


class AffineMap(NamedTuple):
    """x -> A x + a.

    layers : `nn.Linear` and `Diagonal`, first to last
    A, B : (k, D), or (D,) for a diagonal, see above
    rounding : g; 0 where A is the stored matrix itself
    """

    layers: tuple[nn.Module, ...]
    A: Tensor
    B: Tensor
    rounding: float

    def values(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """A x + a of the rows of X (n, D), and a bound on the error of each number."""
        Z, E = X, torch.zeros_like(X)
        for layer in self.layers:
            if isinstance(layer, Diagonal):
                moved = Z - layer.centre
                Z, size = moved * layer.factor + layer.offset, moved.abs() * layer.factor.abs() + layer.offset.abs()
                E, terms = E * layer.factor.abs(), 2
            else:
                weight, bias = stored(layer)
                Z, size = Z @ weight.T + bias, Z.abs() @ weight.abs().T + bias.abs()
                E, terms = E @ weight.abs().T, weight.shape[1] + 1
            E = (E + growth(terms) * size + terms * TINY) * (1 + growth(terms))
        return Z, E

    def slopes(self, rows: Tensor, wrong: Tensor, norm: float) -> Tensor:
        """At least |row| for each row of sums of rows of A, ``wrong`` the same sums of rows of B."""
        slope = size_above(rows, norm)
        if not self.rounding:
            return slope
        return slope + self.rounding * size_above(wrong, norm) + rows.shape[-1] * TINY

    def stretch(self, norm: float) -> float:
        """At least sup |A d|/|d|: the largest factor, column sum (l1), row sum (l-infinity) or singular value."""
        if self.A.ndim == 1:
            return float(self.A.abs().amax() + self.rounding * self.B.amax()) * (1 + 8 * UNIT) + TINY
        parts = _matrix_norm(self.A, norm), self.rounding * _matrix_norm(self.B, "fro" if norm == 2 else norm)
        return float(sum(parts)) * (1 + growth(sum(self.A.shape))) + sum(self.A.shape) * TINY


def folded(layers: list[nn.Module]) -> tuple[AffineMap | None, list[nn.Module]]:
    """The leading affine layers as one (None where there is none), and the layers after them."""
    A = B = None
    terms, number = 0, 0
    for layer in layers:
        if type(layer) not in (nn.Linear, Diagonal):
            break
        number += 1
        if isinstance(layer, Diagonal):
            new = layer.factor
            A, B = (new, new.abs()) if A is None or B is None else (_across(new, A), _across(new.abs(), B) + TINY)
            terms += 2
        else:
            new = stored(layer)[0]
            these = 2 if A is None or A.ndim == 1 else len(A)
            terms += these
            A, B = (new, new.abs()) if A is None or B is None else (_times(new, A), _times(new.abs(), B) + these * TINY)
    if A is None or B is None:
        return None, layers
    exact = number == 1 and type(layers[0]) is nn.Linear
    return AffineMap(tuple(layers[:number]), A, B, 0.0 if exact else growth(terms)), layers[number:]


def stored(layer: nn.Module) -> tuple[Tensor, Tensor]:
    """Weight and bias in float64, which holds those of every smaller type exactly."""
    assert isinstance(layer, nn.Linear)
    weight = layer.weight.detach().double()
    bias = weight.new_zeros(1) if layer.bias is None else layer.bias.detach().double()
    return weight, bias.expand(len(weight))


def growth(terms: int) -> float:
    """g of a sum of so many products."""
    return 2 * (terms + 16) * UNIT


def size_above(rows: Tensor, norm: float) -> Tensor:
    """At least |row|_norm, over the last dimension; 0 for a row of zeros only, subnormal lengths rounded up."""
    largest = rows.abs().amax(dim=-1, keepdim=True)
    length = lengths(rows / torch.where(largest > 0, largest, 1.0), norm)
    size = length * largest[..., 0] * (1 + growth(rows.shape[-1]))
    return torch.where(largest[..., 0] > 0, torch.nextafter(size, size.new_tensor(torch.inf)), 0.0)


def _matrix_norm(matrix: Tensor, kind: float | str) -> Tensor:
    """|matrix|, where squares under- or overflow too."""
    largest = matrix.abs().amax()
    size: Tensor = torch.linalg.matrix_norm(matrix / torch.where(largest > 0, largest, 1.0), ord=kind)
    return size * largest


def _across(factor: Tensor, A: Tensor) -> Tensor:
    return factor * A if A.ndim == 1 else factor[:, None] * A


def _times(weight: Tensor, A: Tensor) -> Tensor:
    return weight * A if A.ndim == 1 else weight @ A
