"""Regions of the sphere a neuron can be in: those of the centres, and cones of activation.

R_k = {w: relu cos(mu_k, w) > relu cos(mu_l, w) for l != k},  void = {w: all cos <= 0}    (Min & Vidal 2025)
S_+ = active on every positive row and on no negative one, S_- the reverse, S_dead = active on none  (Min et al. 2024)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from polyrelu.bias.first_layer import neurons_of
from polyrelu.checks import checked
from polyrelu.data import Dataset
from polyrelu.errors import InputError, require
from polyrelu.nets import FixedOutputNet, PolyReLUNet, unit_rows

VOID, BORDER = -1, -2
TIE = 1e-12  # sine of an angle to a border that rounding could have made


@final
@dataclass(frozen=True, eq=False)
class Regions:
    """``region`` (h,): k of R_k, -1 (VOID), or -2 (BORDER) for a tie; ``gaps`` (h,): 1 - cos to the nearest border.

    ``counts`` (K,): neurons in each R_k; ``void``, ``border``: neurons there.
    """

    region: Tensor
    gaps: Tensor
    counts: Tensor
    void: int
    border: int

    @property
    def gap(self) -> float:
        """Delta, the smallest of the gaps; inf without neurons."""
        return float(self.gaps.min()) if len(self.gaps) else torch.inf

    @property
    def non_degenerate(self) -> bool:
        """No neuron on a border and every R_k hit. Says nothing about the size of the gap."""
        return self.border == 0 and bool((self.counts > 0).all())


@checked
def regions(directions: Tensor, centres: Tensor) -> Regions:
    """R_k = {w: relu cos(mu_k, w) > relu cos(mu_l, w) for l != k}, its void, and the gap Delta (Min & Vidal 2025).

    Exact for any centres: what is not R_k is the union of the half-spaces <mu_k, w> <= 0 and <mu_k - mu_l, w> <= 0
    (unit mu), what is not void that of the <mu_k, w> > 0, so the nearest border is at the smallest of the angles
    asin <n, u>/|n| to their faces, and the gap is 1 - cos of it. O(h K (D + K)). A neuron of zero norm is void, gap 0.
    """
    fits = directions.ndim == 2 and centres.ndim == 2 and directions.shape[1] == centres.shape[1] and len(centres) > 0
    given = f"shapes {tuple(directions.shape)}, {tuple(centres.shape)}"
    require(fits, "directions, centres", given, "(h, D) and (K, D)")
    mu, log_norms = unit_rows(centres)
    require(bool((log_norms > -torch.inf).all()), "centres", "a zero row", "directions")
    cosines = unit_rows(directions)[0] @ mu.T
    best, region = cosines.max(1)
    apart = torch.cdist(mu, mu, compute_mode="donot_use_mm_for_euclid_dist")[region]
    ahead = (best[:, None] - cosines) / apart.masked_fill(apart == 0, 1.0)
    ahead.scatter_(1, region[:, None], best[:, None])  # its own face: the border with the void
    void = best <= 0
    sine = torch.where(void, -best, ahead.amin(1)).clamp(0, 1)
    region = torch.where(void, VOID, torch.where(sine > TIE, region, BORDER))
    gaps = sine.square() / (1 + (1 - sine.square()).sqrt())  # 1 - cos, without cancellation
    counts = torch.bincount(region[region >= 0], minlength=len(mu))
    return Regions(region, gaps, counts, int(void.sum()), int((region == BORDER).sum()))


@checked
def class_regions(net: PolyReLUNet, data: Dataset) -> tuple[Regions, ...]:
    """The regions of each class's centres among the neurons that vote for it (Min & Vidal 2025): [+1, -1], or 0..C-1.

    ``region`` numbers the centres within their class; the centres are preprocessed as by the net. O(n + h K (D + K)).
    """
    neurons = neurons_of(net)
    if data.centres is None or data.cluster is None or neurons.owner is None:
        raise InputError("data: no centres or no clusters, expected both (regions belong to known sub-classes).")
    label = torch.full((len(data.centres),), torch.nan, dtype=torch.float64)
    label[data.cluster] = data.y.double()
    centres = neurons.preprocess(data.centres)
    classes = (1, -1) if data.binary else range(data.classes)
    for c in classes:
        require(bool((label == c).any()), "data.cluster", f"no sub-class of class {c}", "one for each class")
    return tuple(regions(neurons.directions[neurons.owner == c], centres[label == c]) for c in classes)


@final
@dataclass(frozen=True, eq=False)
class Cones:
    """Masks (h,) of the neurons in S_+, S_-, S_dead and elsewhere; every neuron is in exactly one."""

    plus: Tensor
    minus: Tensor
    dead: Tensor
    other: Tensor


@checked
def cones(net: nn.Module | Tensor, data: Dataset) -> Cones:
    """S_+ = {w: <x_i, w> > 0 exactly where y_i = +1}, S_- where y_i = -1, S_dead nowhere (Min et al. 2024).

    ``net``: one hidden layer without biases in it, or weights (h, D); rows are not preprocessed. Streamed, O(n h D).
    """
    require(data.binary, "data", f"{data.classes} classes", "labels +1/-1, to which the cones belong")
    require(not isinstance(net, FixedOutputNet), "net", "hidden biases", "none; give net.weight to leave them out")
    neurons = neurons_of(net)
    u = neurons.directions
    require(u.shape[1] == data.dim, "data.dim", data.dim, f"{u.shape[1]}, the inputs of the neurons")
    active = torch.zeros(2, len(u), dtype=torch.float64, device=u.device)  # on positive, on negative rows
    for start, block in data.blocks():
        positive = data.y[start : start + len(block)] > 0
        on = (neurons.preprocess(block) @ u.T > 0).double()
        active += torch.stack([positive, ~positive]).double() @ on
    positives = int((data.y > 0).sum())
    on_all, on_any = active == torch.tensor([[positives], [len(data) - positives]], device=u.device), active > 0
    plus, minus = on_all[0] & ~on_any[1], on_all[1] & ~on_any[0]
    dead = ~on_any.any(0)
    return Cones(plus, minus, dead, ~(plus | minus | dead))
