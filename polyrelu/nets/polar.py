"""Polar form of a layer of neurons, w_j = r_j u_j and v_j = s_j q_j, with the norms as logarithms.

The initial scale is then only a number added to ``log_r`` and ``log_s``: 1e-7 and 1e-300 cost the same and
nothing underflows in float32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from polyrelu.checks import checked
from polyrelu.errors import InputError, require

# Norms in (1/limit, limit) are stored plainly: their squares, and those of single entries, stay well inside the type.
PLAIN_LIMIT = {torch.float32: 1e12, torch.float64: 1e140}


@dataclass(frozen=True, eq=False)
class Polar:
    """w_j = exp(log_r_j) u_j, v_j = exp(log_s_j) q_j.

    Attributes
    ----------
    u : Tensor [width, dim], unit rows, in the net's dtype
    q : Tensor [width, outputs], unit rows, in the net's dtype; +1 or -1 when there is one output
    log_r, log_s : Tensor [width], float64
    """

    u: Tensor
    q: Tensor
    log_r: Tensor
    log_s: Tensor

    def __post_init__(self) -> None:
        for name, sizes in (("u", 2), ("q", 2), ("log_r", 1), ("log_s", 1)):
            tensor = getattr(self, name)
            require(isinstance(tensor, Tensor), name, type(tensor).__name__, "a tensor")
            shape = tuple(tensor.shape)
            require(sizes == 1 or len(shape) == 2, f"{name}.shape", shape, "a matrix with one row per neuron")
            fits = len(shape) == sizes and shape[0] == self.width
            require(fits, f"{name}.shape", shape, f"{self.width} rows, one per row of u")

    @property
    def width(self) -> int:
        """Number of neurons."""
        return self.u.shape[0]

    @property
    def outputs(self) -> int:
        """Number of logits."""
        return self.q.shape[1]

    @property
    def log_contributions(self) -> Tensor:
        """log |v_j| |w_j|, float64."""
        return self.log_r + self.log_s

    @checked
    def shifted(self, log_factor: float) -> Polar:
        """Both layers multiplied by exp(log_factor)."""
        return Polar(self.u, self.q, self.log_r + log_factor, self.log_s + log_factor)

    @checked
    def neurons(self, index: Tensor) -> Polar:
        """The neurons picked by an index or mask."""
        if index.dtype == torch.bool:
            fits = index.shape == (self.width,)
        else:
            fits = index.ndim == 1 and not index.is_floating_point()
            fits = fits and bool(((index < self.width) & (index >= 0)).all())
        require(fits, "index", f"{index.dtype} {tuple(index.shape)}", "places of neurons, or a mask")
        index = index if index.dtype == torch.bool else index.long()
        return Polar(self.u[index], self.q[index], self.log_r[index], self.log_s[index])

    def require_finite(self) -> Polar:
        """Itself, after checking directions (finite, not zero) and log-norms (below inf; -inf is a zero norm)."""
        for name, rows, log in (("u", self.u, self.log_r), ("q", self.q, self.log_s)):
            require(bool(rows.isfinite().all()), name, "NaN or inf", "finite directions")
            require(bool((log < torch.inf).all()), f"log-norms of {name}", "NaN or inf", "numbers below inf")
            lost = ((rows == 0).all(dim=1) & (log > -torch.inf)).nonzero()
            require(not lost.numel(), name, f"0 in row {lost.flatten().tolist()[:1]}", "a direction for every neuron")
        return self

    def require_nonzero(self) -> Polar:
        """Itself, after checking that no w_j and no v_j is zero, which would have no direction."""
        for name, log in (("w", self.log_r), ("v", self.log_s)):
            zero = (log == -torch.inf).nonzero()
            if zero.numel():
                raise InputError(
                    f"neuron {int(zero[0])}: |{name}_j| = 0, expected a non-zero vector (it has no direction)."
                )
        return self


class ScaledWeights(NamedTuple):
    """The tensors of a net: w_j = exp(log_scale_j + log_balance_j) weight_j, and v_j likewise.

    v_j = exp(log_scale_j - log_balance_j) output_j, with ``weight`` [width, dim] and ``output`` [outputs, width].
    """

    weight: Tensor
    output: Tensor
    log_scale: Tensor
    log_balance: Tensor


def unit_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Unit rows and the logs of their norms, in float64; a zero row stays zero and has log-norm -inf."""
    rows = rows.detach().double()
    largest = rows.abs().amax(dim=1, keepdim=True)
    rows = rows / torch.where(largest > 0, largest, 1.0)  # so that squares of 1e-300 do not underflow
    norm = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return rows / norm.clamp_min(1.0), (largest.log() + norm.log())[:, 0]


def orthonormal_basis(rows: Tensor, least: float) -> Tensor:
    """Orthonormal rows that span the given ones: right singular vectors of singular values above ``least`` s_1."""
    _, sizes, directions = torch.linalg.svd(rows, full_matrices=False)
    basis: Tensor = directions[sizes > least * sizes[0]]
    return basis


def polar_form(W: Tensor, V: Tensor) -> Polar:
    """Polar form in float64 of rows w_j of ``W`` [width, dim] and rows v_j of ``V`` [width, outputs]."""
    u, log_r = unit_rows(W)
    q, log_s = unit_rows(V)
    return Polar(u, q, log_r, log_s)


def scaled_weights(polar: Polar, dtype: torch.dtype) -> ScaledWeights:
    """Tensors of ``dtype`` for these neurons: plain where both norms are within `PLAIN_LIMIT`, the rest in the logs.

    ``log_scale`` takes the geometric mean of the two norms; ``log_balance`` their ratio, and only where that
    alone would leave the type (a ratio beyond 1e24 in float32).
    """
    limit = math.log(PLAIN_LIMIT[dtype])
    u, q = unit_rows(polar.u)[0], unit_rows(polar.q)[0]
    zero_r, zero_s = polar.log_r == -torch.inf, polar.log_s == -torch.inf
    u, q = u.masked_fill(zero_r[:, None], 0.0), q.masked_fill(zero_s[:, None], 0.0)
    log_r, log_s = polar.log_r.double().masked_fill(zero_r, 0.0), polar.log_s.double().masked_fill(zero_s, 0.0)
    plain = (log_r.abs() < limit) & (log_s.abs() < limit)
    log_scale = torch.where(plain, 0.0, (log_r + log_s) / 2)
    uneven = log_r - log_scale
    log_balance = torch.where(plain | (uneven.abs() < limit), 0.0, uneven)
    weight = u * (log_r - log_scale - log_balance).exp()[:, None]
    output = q * (log_s - log_scale + log_balance).exp()[:, None]
    return ScaledWeights(weight.to(dtype), output.T.contiguous().to(dtype), log_scale, log_balance)
