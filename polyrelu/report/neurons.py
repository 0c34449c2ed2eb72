"""Which neurons make the network, and what most of them do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SHARE = 0.99  # of sum_j |v_j| |w_j|: the neurons that carry the net


def carrying(log_contribution: NDArray[np.floating], share: float = SHARE) -> NDArray[np.intp]:
    """The fewest neurons whose contributions |v_j| |w_j| add up to ``share`` of all, largest first.

    Computed from the logs relative to the largest, so a net of size 1e-300 has its carriers too.
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
