"""Fewer neurons in the products, the same function: merge neurons of one direction, leave inactive ones out.

Merging: neurons with nearly the same direction grow alike, so a group moves as one neuron whose contribution
is the sum. With the contribution-weighted mean direction u,

    |f_merged(x) - f(x)| <= sum_j r_j s_j (p angle(u_j, u) + angle(q_j, q)) |x|^p    for every x,

since |relu(a)^p - relu(b)^p| <= p max(|a|,|b|)^(p-1) |a - b|. A group is formed only while the bracket stays below
``bound``; being a mean, its error is of second order in the angles where relu^p is smooth. Dropping: a neuron that
no sample activates has slope exactly zero and never moves again under the flow: leaving it out is exact.
Every neuron keeps its own norms and balance, so the whole network can be written out at any time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from polyrelu.train.gradient_flow.polar_field import ConservedBalance, PolarState, Slope, unit
from polyrelu.train.losses import log_add

GRAM_ROWS = 256  # rows of the Gram matrix at a time


@dataclass(frozen=True)
class MergeState:
    """How all neurons follow from the moving rows: neuron j is row ``row[j]`` (-1: inactive, as in ``reference``).

    ``ahead``: kappa of a neuron less that of its row, which stays as it is while they grow alike.
    """

    reference: PolarState
    row: Tensor
    ahead: Tensor

    @classmethod
    def unmerged(cls, state: PolarState) -> MergeState:
        """Every neuron is a row of its own."""
        return cls(state, torch.arange(len(state.kappa), device=state.kappa.device), torch.zeros_like(state.kappa))

    def whole(self, moving: PolarState) -> PolarState:
        """The state of all neurons."""
        active = self.row >= 0
        row = self.row[active]
        u, q = self.reference.u.clone(), self.reference.q.clone()
        u[active], q[active] = moving.u[row], moving.q[row]
        return replace(self.reference, u=u, q=q, kappa=self.kappa(moving), bias=moving.bias)

    def kappa(self, moving: PolarState) -> Tensor:
        """``log(r_j + s_j)`` of all neurons."""
        active = self.row >= 0
        kappa = self.reference.kappa.clone()
        kappa[active] = moving.kappa[self.row[active]] + self.ahead[active]
        return kappa

    def log_contribution(self, moving: PolarState) -> Tensor:
        """``log(r_j s_j)`` of all neurons."""
        return self.reference.balance.log_contribution(self.kappa(moving))

    def log_rho(self, moving: PolarState) -> float:
        """``log |theta|``, the norm of all weights and biases."""
        squares = self.reference.balance.log_square(self.kappa(moving)).logsumexp(0)
        return 0.5 * log_add(float(squares), float(moving.bias.double().square().sum().log()))

    def spread(self, values: Tensor, inactive: Tensor) -> Tensor:
        """Values per row of the moving state for all neurons, ``inactive`` for those left out."""
        active = self.row >= 0
        out = values.new_empty(len(self.row))
        out[active], out[~active] = values[self.row[active]], inactive
        return out

    def without(self, moving: PolarState, idle: Tensor) -> tuple[PolarState, MergeState]:
        """Leave out the rows marked ``idle``, as they are now."""
        number = torch.cumsum(~idle, 0) - 1
        number[idle] = -1
        active = self.row >= 0
        row = self.row.clone()
        row[active] = number[self.row[active]]
        return moving[~idle], MergeState(self.whole(moving), row, self.ahead)

    def merged(self, moving: PolarState, p: float, bound: float) -> tuple[PolarState, MergeState, Merge]:
        """Merge the rows whose directions agree within ``bound``; the Merge does the same to slopes."""
        leader = leaders(moving, p, bound)
        kept, group = torch.unique(leader, return_inverse=True)
        merge = Merge(group, len(kept), moving.log_contribution())
        kappa = 0.5 * merge.log_sum(2 * moving.kappa)
        alone = merge.count == 1
        kappa[alone] = moving.kappa[kept[alone]]
        balanced, own = ConservedBalance.balanced(kappa), moving.balance[kept]
        parts = zip(vars(own).values(), vars(balanced).values(), strict=True)
        balance = ConservedBalance(*(torch.where(alone, old, new) for old, new in parts))
        share = torch.zeros_like(kappa).index_add_(0, group, moving.share)
        state = PolarState(unit(merge.mean(moving.u)), unit(merge.mean(moving.q)), kappa, moving.bias, balance, share)
        active = self.row >= 0
        row, ahead = self.row.clone(), self.ahead.clone()
        ahead[active] += (moving.kappa - kappa[group])[self.row[active]]
        row[active] = group[self.row[active]]
        return state, MergeState(self.reference, row, ahead), merge


@dataclass(frozen=True)
class Merge:
    """Contribution-weighted means over groups of rows."""

    group: Tensor
    size: int
    log_weight: Tensor

    @property
    def count(self) -> Tensor:
        """Members of each group."""
        return torch.bincount(self.group, minlength=self.size)

    def log_sum(self, x: Tensor) -> Tensor:
        """``log sum e^x`` over each group, float64."""
        top = x.new_full((self.size,), -torch.inf).scatter_reduce(0, self.group, x, "amax")
        total = x.new_zeros(self.size).index_add_(0, self.group, (x - top[self.group]).exp())
        return top + total.log()

    def mean(self, x: Tensor) -> Tensor:
        """Weighted mean of rows of x (h, k) over each group."""
        share = (self.log_weight - self.log_sum(self.log_weight)[self.group]).exp().to(x.dtype)
        return x.new_zeros(self.size, x.shape[1]).index_add_(0, self.group, x * share[:, None])

    def mean_slope(self, slope: Slope) -> Slope:
        """The slope of the merged state, to second order in the angles."""
        kappa = self.mean(slope.kappa[:, None])[:, 0]
        return replace(slope, u=self.mean(slope.u), q=self.mean(slope.q), kappa=kappa)


def leaders(state: PolarState, p: float, bound: float) -> Tensor:
    """For each row the row it follows: the largest contribution within half the bound (so 1 bound to the mean).

    Angles come from a float64 Gram matrix, computed GRAM_ROWS rows at a time: O(h D max(GRAM_ROWS, groups)).
    Rows that are not balanced within the bound are not merged: their norms do not grow alike.
    """
    u, q = unit(state.u.double()), unit(state.q.double())
    leader = torch.full((len(u),), -1, device=u.device)
    even = state.balance.offset(state.kappa) <= bound / 2
    leader[~even] = torch.nonzero(~even)[:, 0]
    order = torch.argsort(state.log_contribution(), descending=True, stable=True)
    while True:
        waiting = order[leader[order] < 0][:GRAM_ROWS]
        if not len(waiting):
            return leader
        turn = p * angle(u[waiting] @ u.T) + angle(q[waiting] @ q.T)
        close = turn <= bound / 2
        for k, row in enumerate(waiting.tolist()):
            if leader[row] < 0:
                leader[close[k] & (leader < 0)] = row
                leader[row] = row


def angle(cosine: Tensor) -> Tensor:
    """Angle from a cosine, accurate near 0: 2 asin(sqrt((1 - c)/2))."""
    return 2 * torch.asin(((1 - cosine).clamp(min=0) / 2).sqrt().clamp(max=1))
