"""What the neurons of a net point at, and which of them dominate it (Min & Vidal 2024: Fig. 2 b-d).

cos(w_j, mu_k),  cos(w_j, class average),  |v_j| |w_j|
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from polyrelu.checks import checked
from polyrelu.data import Dataset
from polyrelu.errors import require
from polyrelu.nets import PolyReLUNet, unit_rows
from polyrelu.train import ReferenceDirections

DOMINANT_SHARE = 0.99  # of sum_j |v_j| |w_j|, which the dominant neurons have
ALIGNED_COSINE = 0.95  # cosine above which a neuron points at a centre or an average


def dominant_neurons(log_contribution: NDArray[np.floating], share: float = DOMINANT_SHARE) -> NDArray[np.intp]:
    """The fewest neurons whose contributions |v_j| |w_j| add up to ``share`` of all, largest first; O(h log h).

    Computed from the logs relative to the largest, so a net of size 1e-300 has dominant neurons too.
    """
    logs = np.asarray(log_contribution, dtype=np.float64)
    if not logs.size or not np.isfinite(logs.max()):
        return np.empty(0, dtype=np.intp)
    order = np.argsort(-logs, kind="stable")
    total = np.cumsum(np.exp(logs[order] - logs.max()))
    return order[: int(np.searchsorted(total, share * total[-1])) + 1]


def weighted_quantiles(
    values: NDArray[np.floating], weights: NDArray[np.floating], levels: tuple[float, ...]
) -> NDArray[np.float64]:
    """Quantiles over the columns of ``values`` (T, h), neuron j counting as ``weights[j]``; (T, levels).

    The smallest value below which (and at which) a fraction ``level`` of the weight lies.
    """
    order = np.argsort(values, axis=1)
    ordered = np.take_along_axis(values, order, axis=1).astype(np.float64)
    below = np.cumsum(weights[order], axis=1)
    below /= below[:, -1:]
    columns = [(below < level - 1e-12).sum(axis=1).clip(max=values.shape[1] - 1) for level in levels]
    return np.take_along_axis(ordered, np.stack(columns, axis=1), axis=1)


@final
@dataclass(frozen=True, eq=False)
class Alignment:
    """cos(w_j, mu_k) (h, K) and cos(w_j, average of class c) (h, C), [+1, -1] for binary labels; float64.

    ``centres`` is None where the data have no known centres. A zero neuron has cosine 0 to everything and
    log-contribution -inf.
    """

    centres: Tensor | None
    averages: Tensor
    log_contributions: Tensor

    @property
    def contributions(self) -> Tensor:
        """|v_j| |w_j|, 0 or inf beyond the range of a float."""
        return self.log_contributions.exp()

    @cached_property
    def dominant(self) -> Tensor:
        """The fewest neurons with 99 % of sum_j |v_j| |w_j|, largest first; none for a net that is zero."""
        return torch.as_tensor(dominant_neurons(self.log_contributions.cpu().numpy()))

    @cached_property
    def covered(self) -> Tensor | None:
        """Which centres have a dominant neuron within cosine .95, (K,)."""
        return None if self.centres is None else (self.centres[self.dominant] > ALIGNED_COSINE).any(0)

    @cached_property
    def best_centre(self) -> float | None:
        """Median over neurons, each counting as |v_j| |w_j|, of the largest cosine to a centre (B5)."""
        return None if self.centres is None else self._median(self.centres)

    @cached_property
    def best_average(self) -> float | None:
        """The same for the class averages (B4); None for a net that is zero."""
        return self._median(self.averages)

    def _median(self, cosines: Tensor) -> float | None:
        if not len(self.dominant):
            return None
        weights = (self.log_contributions - self.log_contributions.max()).exp()
        return float(weighted_quantiles(cosines.amax(1)[None].cpu().numpy(), weights.cpu().numpy(), (0.5,))[0, 0])


@checked
def alignment(net: PolyReLUNet, data: Dataset) -> Alignment:
    """Cosines of every neuron to sub-class centres and class averages, preprocessed as by the net: O(n D + h D K).

    Its centre c is subtracted from both; ``normalise_input`` changes no direction of a single point, and the class
    average is that of the rows x - c.
    """
    require(net.dim == data.dim, "data.dim", data.dim, f"{net.dim}, the inputs of the net")
    with torch.no_grad():
        u, probes = normalize(net.directions().double()), ReferenceDirections.from_net(net, data)

        def cosines(rows: Tensor) -> Tensor:
            return (u @ normalize(rows.double()).T).clamp(-1, 1)

        centres = None if probes.centres is None else cosines(probes.centres)
        return Alignment(centres, cosines(probes.averages), net.log_contributions())


@final
@dataclass(frozen=True)
class Balance:
    """How far the layers are from |v_j| = |w_j|, at the worst neuron.

    ``log_absolute``: log max_j | |v_j|^2 - |w_j|^2 |, -inf for a balanced net; ``relative``: the largest of
    | |v_j|^2 - |w_j|^2 | / max(|v_j|^2, |w_j|^2), between 0 and 1.
    """

    log_absolute: float
    relative: float

    @property
    def absolute(self) -> float:
        """max_j | |v_j|^2 - |w_j|^2 |; 0 or inf beyond the range of a float."""
        return math.exp(self.log_absolute) if self.log_absolute < 709 else math.inf


@checked
def balance(net: PolyReLUNet) -> Balance:
    """max_j | |v_j|^2 - |w_j|^2 |, which gradient flow conserves for every neuron (Min & Vidal 2025, B20); O(h D).

    From the logs of the norms: exp(2 m) (1 - exp(-2 d)), m the larger log and d their distance.
    """
    with torch.no_grad():
        log_r = unit_rows(net.weight)[1] + net.log_scale + net.log_balance
        log_s = unit_rows(net.output.T)[1] + net.log_scale - net.log_balance
        larger, smaller = torch.maximum(log_r, log_s), torch.minimum(log_r, log_s)
        apart = torch.where(larger > -torch.inf, larger - smaller, 0.0)  # a zero neuron is balanced
        relative = -torch.expm1(-2 * apart)
        return Balance(float((2 * larger + relative.log()).max()), float(relative.max()))
