r"""One direction for all points, and how far along it a net should break.

    d0 = S/|S|,  S = sum_k y_k mu_k;   F(x) = relu<x, S_+> - relu<x, S_->, S_+- the sums of the class's centres,

breaks at x = mu_k, moved to x - y r d0, when <x, S_own> meets <x, S_other> or 0 (Min & Vidal 2024, exact replacements):

    r_k = min( y_k <mu_k, S>/|S|,  <mu_k, S_own>/<d0, y_k S_own> )

for any norms and angles: with the Gram matrix G of the centres the first is y_k (G y)_k/sqrt(y'G y). Orthonormal
centres give 1/sqrt(K). Of several classes, from a to b: S = S_a - S_b, and the nearest b counts (f_c = relu<x, S_c>).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from polyrelu.bias.margins import checked_margins
from polyrelu.checks import checked, checked_output
from polyrelu.data import BLOCK
from polyrelu.errors import require
from polyrelu.nets import unit_rows

Score = Callable[[Tensor], Tensor]


@final
@dataclass(frozen=True, eq=False)
class UniversalRadii:
    """The universal direction of K centres and what it should do, float64.

    classes (C,), sums (C, D) : labels ([+1, -1] if binary) and the sum of the centres of each
    predicted (K,) : radius at which F breaks at each centre; 0 where F is already wrong
    measured (K,) : radius at which the net breaks there, inf where it does not; None without a net
    """

    classes: Tensor
    sums: Tensor
    predicted: Tensor
    measured: Tensor | None

    @property
    def direction(self) -> Tensor:
        """d0 (D,), for two classes: x - y r d0 (y = +1 for the first class) is the attack."""
        count = len(self.classes)
        require(count == 2, "classes", count, "two; of several, each pair has its own direction")
        return unit_rows(self.sums[:1] - self.sums[1:])[0][0]

    @property
    def radius(self) -> float:
        """Where half of the points should break: the median of ``measured``, else of ``predicted``."""
        return float((self.predicted if self.measured is None else self.measured).median())


def class_sums(centres: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Labels of the classes (C,), [+1, -1] if binary, and the sum of the centres of each (C, D); O(K D)."""
    require(centres.ndim == 2 and len(centres) > 1, "centres.shape", tuple(centres.shape), "(K, D), K >= 2")
    require(labels.shape == centres.shape[:1], "labels.shape", tuple(labels.shape), f"({len(centres)},)")
    names = sorted(set(labels.tolist()), reverse=labels.is_floating_point())
    classes = torch.tensor(names).to(labels)
    return classes, (classes[:, None] == labels).to(centres) @ centres


def steps_to_classes(classes: Tensor, sums: Tensor, y: Tensor) -> list[tuple[Tensor, Tensor]]:
    """For every class b: (b, S_b - S_own) for points labelled ``y`` (n,), as (n, D); 0 for points of class b itself."""
    own = (y[:, None] == classes).to(sums) @ sums
    pairs = zip(classes, sums, strict=True)
    return [(label, torch.where((y == label)[:, None], 0.0, row - own)) for label, row in pairs]


@checked
def universal(centres: Tensor, labels: Tensor, net: Score | None = None, *, samples: int = 256) -> UniversalRadii:
    """d0, the radius at which F breaks along it and, given a net, the one at which the net does; at every centre.

    Centres are in raw coordinates; a net that subtracts a centre c, and F with it, has mu_k - c. The net is asked at
    ``samples`` points of each ray (up to four times |mu_k - c|), and the first crossing is halved to rounding: two
    crossings nearer than a sample may be missed. O(K^2 D), and O(samples K h D) for a net of h neurons.
    """
    shift = getattr(net, "centre", None)
    centred = centres.double() if shift is None else centres.double() - shift
    classes, sums = class_sums(centred, labels)
    require(len(classes) > 1, "labels", classes.tolist(), "centres of at least two classes")
    predicted = torch.full((len(centred),), torch.inf, dtype=torch.float64, device=centred.device)
    measured = None if net is None else predicted.clone()
    own = (labels[:, None] == classes).double() @ sums
    for label, step in steps_to_classes(classes, sums, labels):
        other_class = labels != label
        size = torch.linalg.vector_norm(step, dim=1)
        direction = step / torch.where(size > 0, size, 1.0)[:, None]
        meet = -(centred * direction).sum(dim=1)
        fall = -(own * direction).sum(dim=1)
        vanish = torch.where(fall > 0, (centred * own).sum(dim=1) / fall, torch.inf)
        here = torch.where(other_class, torch.minimum(meet, vanish).clamp(min=0), torch.inf)
        predicted = torch.minimum(predicted, here)
        if net is not None and measured is not None and bool(other_class.any()):
            X, y, away = centres[other_class], labels[other_class], direction[other_class]
            farthest = 4 * torch.linalg.vector_norm(centred[other_class], dim=1)
            flips = flip_radii(net, X, y, away, farthest, samples)
            measured[other_class] = torch.minimum(measured[other_class], flips)
    return UniversalRadii(classes, sums, predicted, measured)


@torch.no_grad()
def flip_radii(net: Score, X: Tensor, y: Tensor, direction: Tensor, farthest: Tensor, samples: int = 256) -> Tensor:
    """First r in [0, farthest] with margin(x + r direction) <= 0, (n,) float64; inf if there is none; 0 if x is wrong.

    Looks at ``samples`` equal steps, then halves the first step that crosses until it is rounding. O(samples n) calls.
    """
    dtype = getattr(net, "dtype", X.dtype)
    farthest = farthest.double()

    def broken(r: Tensor) -> Tensor:
        Z = X.double()[:, None] + r[:, :, None] * direction.double()[:, None]
        Z = Z.reshape(-1, X.shape[1]).to(dtype)
        flat = torch.cat([checked_output(net, part, "net") for part in torch.split(Z, BLOCK)])
        return (checked_margins(flat, y.repeat_interleave(r.shape[1])) <= 0).reshape(r.shape)

    grid = torch.linspace(0, 1, samples + 1, dtype=torch.float64, device=X.device)
    crossed = torch.cat([broken(farthest[:, None] * part) for part in torch.split(grid, 64)], dim=1)
    first = crossed.int().argmax(dim=1)
    low, high = farthest * grid[(first - 1).clamp(min=0)], farthest * grid[first]
    for _ in range(60):
        middle = (low + high) / 2
        at = broken(middle[:, None])[:, 0]
        low, high = torch.where(at, low, middle), torch.where(at, middle, high)
    return torch.where(crossed.any(dim=1), high, torch.inf)


def gradient_to_margin(net: Score, X: Tensor, y: Tensor) -> Tensor:
    """|grad_x q|/q at each row, q the margin (y f, or f_y - max_{c != y} f_c); inf where q <= 0. Float64; O(n h D).

    At equal margin an averaged net has the larger gradient (Li et al. 2025): at a centre of K orthonormal ones
    it is sqrt(K_own) for F and 1 for F^(1), with slope 0 at the kink of relu: exact centres lie on kinks, and rounding
    or noise that switches the other class on makes it sqrt(K) for F. 1/ratio is the first-order guess of the radius.
    """
    require(X.ndim == 2 and len(X) == len(y), "X, y", f"shapes {tuple(X.shape)}, {tuple(y.shape)}", "(n, D) and (n,)")
    parts = []
    for start in range(0, len(X), BLOCK):
        Z = X[start : start + BLOCK].detach().to(getattr(net, "dtype", X.dtype), copy=True).requires_grad_()
        with torch.enable_grad():
            margin = checked_margins(checked_output(net, Z, "net"), y[start : start + BLOCK])
            (slope,) = torch.autograd.grad(margin.sum(), Z)
        ratio = torch.linalg.vector_norm(slope.double(), dim=1) / margin.detach().double()
        parts.append(torch.where(margin.detach() > 0, ratio, torch.inf))
    return torch.cat(parts)
