r"""How far a net is from a linear map: simplicity bias in one number (claims E15, E16, E25).

    residual = min_A |f - A x| / |f|,   |g|^2 = sum of |g(x_i)|^2 over the rows
    evenness = |f(c + z) + f(c - z) - 2 f(c)| / |f(c + z) - f(c - z)|,   z = x - c

c is the net's centre, 0 if it has none. An affine map has residual 0 (with ``offset``) and evenness 0 wherever rows
lie. For a two-layer net with phi(t) = max(t, a t) (0 <= a <= 1: ReLU, leaky ReLU) and no hidden biases phi(t) - phi(-t)
= (1 + a) t, so that the odd part is a linear map that can be written down, and the even part is all that is not linear:

    f(c + z) - f(c) = (1 + a)/2 <sum_j v_j w_j, z>  +  (1 - a)/2 sum_j v_j |<w_j, z>|

On mirrored rows the best linear map is exactly that odd part, and residual = evenness / sqrt(1 + evenness^2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from polyrelu.checks import checked, checked_output, seed_number, whole_number
from polyrelu.data import Dataset
from polyrelu.errors import InputError, require
from polyrelu.nets import LeakyReLUNet, PolyReLUNet

Blocks = Callable[[], Iterator[Tensor]]
Logits = Callable[[Tensor], Tensor]


@final
@dataclass(frozen=True, eq=False)
class Simplicity:
    """The best linear map of a net on the rows of a data set, and what it misses.

    map : (C, D) float64, C = 1 for one logit; offset : (C,), zero if none was asked for
    residual : |f - A x - b| / |f| on the rows; NaN where it is not determined (no more rows than free directions)
    agreement : share of rows on which f and the map give the same class (sign, or largest logit)
    evenness : |even part| / |odd part| about the net's centre, on the rows; inf for an even net
    probe_residual : the residual of the best linear map on Gaussian probes; None if there were none
    """

    map: Tensor
    offset: Tensor
    residual: float
    agreement: float
    evenness: float
    probe_residual: float | None


@checked
def simplicity(net: nn.Module, data: Dataset, *, offset: bool = False, probes: int = 0, seed: int = 0) -> Simplicity:
    """Distance of ``net`` to its best linear map (formulas above), least squares over the rows of ``data``.

    Logits of several classes are first made to add up to zero: what they share decides nothing. Two forward passes and
    O(n D^2 + D^3) time, O(D^2 + n C) memory; normal equations in float64, corrected once.

    Parameters
    ----------
    offset : whether the map may have a constant, A x + b
    probes : number of points drawn from N(m, S), m and S the mean and covariance of the rows, on which a second map is
        fitted: needed when there are hardly more rows than columns, for then every function looks linear on them
    """
    whole_number("probes", probes, 0)
    seed_number("seed", seed)
    f = _centred_logits(net)

    def rows() -> Iterator[Tensor]:
        return (block.double() for _, block in data.blocks())

    solution, values, residual, agreement = _fit_linear(f, rows, offset)
    known = getattr(net, "centre", None)
    centre = torch.zeros(data.dim, dtype=torch.float64) if known is None else known.double()
    even = odd = 0.0
    at_centre = f(centre[None])
    for X, ahead in zip(rows(), values, strict=True):
        back = f(2 * centre - X)
        even += float((ahead + back - 2 * at_centre).square().sum())
        odd += float((ahead - back).square().sum())
    return Simplicity(
        map=solution[: data.dim].T,
        offset=solution[data.dim] if offset else torch.zeros_like(solution[0]),
        residual=residual,
        agreement=agreement,
        evenness=math.sqrt(even / odd) if odd > 0 else math.inf if even > 0 else 0.0,
        probe_residual=_probe_residual(f, data, offset, probes, seed) if probes else None,
    )


def odd_map(net: nn.Module) -> Tensor:
    """(1 + a)/2 V W, (C, D) float64: the odd part of a two-layer (leaky) ReLU net, exactly (see the module); O(C h D).

    For a LeakyReLUNet, or a PolyReLUNet with p = 1.
    """
    if isinstance(net, LeakyReLUNet):
        return (1 + net.slope) / 2 * net.output.detach().double() @ net.weight.detach().double()
    if isinstance(net, PolyReLUNet) and net.p == 1:
        output = net.output.detach().double() * (2 * net.log_scale).exp()
        return output @ net.weight.detach().double() / 2
    raise InputError(f"net={type(net).__name__}: expected a LeakyReLUNet, or a PolyReLUNet with p = 1.")


def _centred_logits(net: nn.Module) -> Logits:
    """f as (n, C) in float64, C = 1 for one logit; several logits add up to zero."""
    tensors = net.state_dict().values()
    dtype = next((t.dtype for t in tensors if t.is_floating_point()), torch.float64)

    def logits(X: Tensor) -> Tensor:
        with torch.no_grad():
            found = checked_output(net, X.to(dtype), "net").double()
        return found[:, None] if found.ndim == 1 else found - found.mean(dim=1, keepdim=True)

    return logits


def _fit_linear(f: Logits, blocks: Blocks, offset: bool) -> tuple[Tensor, list[Tensor], float, float]:
    """B^T = argmin sum_i |f(x_i) - B x_i|^2, x_i with a 1 appended for an offset; f(x_i), residual and agreement."""

    def rows() -> Iterator[Tensor]:
        return (torch.cat([X, X.new_ones(len(X), 1)], dim=1) if offset else X for X in blocks())

    values = [f(X) for X in blocks()]
    gram = sum(X.T @ X for X in rows())
    assert isinstance(gram, Tensor)
    eigenvalues, vectors = torch.linalg.eigh(gram)
    kept = eigenvalues > eigenvalues[-1] * len(gram) * 2.0**-52
    V = vectors[:, kept] / eigenvalues[kept].sqrt()
    B = gram.new_zeros(len(gram), values[0].shape[1])
    for _ in range(2):  # the second time corrects the first
        slope = torch.zeros_like(B)
        for X, target in zip(rows(), values, strict=True):
            slope += X.T @ (target - X @ B)
        B = B + V @ (V.T @ slope)
    fitted = torch.cat([X @ B for X in rows()])
    target = torch.cat(values)
    require(bool(target.any()), "net", "0 on every row", "a net that is not zero on the data")
    residual = float((target - fitted).norm() / target.norm()) if len(target) > int(kept.sum()) else math.nan
    return B, values, residual, float((_predicted(target) == _predicted(fitted)).double().mean())


def _predicted(logits: Tensor) -> Tensor:
    return logits[:, 0] > 0 if logits.shape[1] == 1 else logits.argmax(dim=1)


def _probe_residual(f: Logits, data: Dataset, offset: bool, probes: int, seed: int) -> float:
    """The residual on N(m, S) probes, drawn block by block, the same each time."""
    n, dim = len(data), data.dim
    m = sum((X.double().sum(dim=0) for _, X in data.blocks()), torch.zeros(dim, dtype=torch.float64)) / n
    S = torch.zeros(dim, dim, dtype=torch.float64)
    for _, X in data.blocks():
        Z = X.double() - m
        S += Z.T @ Z / n
    values, vectors = torch.linalg.eigh(S)
    root = vectors * torch.where(values > values[-1] * dim * 2.0**-52, values, 0.0).sqrt()

    def blocks() -> Iterator[Tensor]:
        source = torch.Generator().manual_seed(seed)
        for start in range(0, probes, 1024):
            size = min(1024, probes - start)
            yield m + torch.randn(size, dim, generator=source, dtype=torch.float64) @ root.T

    return _fit_linear(f, blocks, offset)[2]
