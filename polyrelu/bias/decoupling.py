"""Class averages or single centres, for known and unknown sub-classes: the decoupling score with its uncertainty."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from polyrelu.bias.decomposition import Decomposition, LearnedStructure, decompose
from polyrelu.bias.first_layer import neurons_of
from polyrelu.bias.subclasses import Subclasses, estimate_subclasses, known_subclasses
from polyrelu.checks import checked, whole_number
from polyrelu.data import Dataset
from polyrelu.errors import require


@final
@dataclass(frozen=True, eq=False)
class Decoupling:
    """What was learned, from which centres, and how sure that is.

    learned : its ``low`` and ``high`` are score -+ 2 ``deviation``, widened to ``others``
    decomposition : the coefficients behind it
    subclasses : the sub-classes used; None where centres were given
    centres : "given", "known", "means of known sub-classes" or "estimated"
    deviation : standard deviation of the score over Poisson bootstraps of the rows, sub-class by sub-class (each keeps
        its rows; only the means are drawn anew); 0 for true centres
    others : score with one sub-class more or fewer in one class, by counts; empty unless the number was estimated
    """

    learned: LearnedStructure
    decomposition: Decomposition
    subclasses: Subclasses | None
    centres: str
    deviation: float
    others: dict[tuple[int, ...], float]


@checked
def decoupling(
    net: torch.nn.Module,
    data: Dataset,
    centres: Tensor | None = None,
    labels: Tensor | None = None,
    *,
    estimate: bool = False,
    count: int | tuple[int, ...] | None = None,
    most: int = 16,
    seed: int = 0,
    bootstraps: int = 30,
) -> Decoupling:
    """`decompose` on the centres given, else on those of the data, else on estimated ones; with its uncertainty.

    ``estimate=True`` ignores the clusters and centres of the data; ``count``, ``most`` and ``seed`` as in
    `estimate_subclasses`, which takes the net's centre as origin. O(h D K) for each bootstrap, O(n D bootstraps)
    to draw them, besides the search for sub-classes.
    """
    whole_number("bootstraps", bootstraps, 2)
    neurons = neurons_of(net)
    require((centres is None) == (labels is None), "centres, labels", "only one of them", "both or neither")
    if centres is not None:
        found = decompose(neurons, centres, labels)
        return Decoupling(found.learned(), found, None, "given", 0.0, {})
    subclasses, kind = None if estimate else known_subclasses(data), "known"
    if subclasses is None:
        origin = getattr(net, "centre", None)
        subclasses, kind = estimate_subclasses(data, count, most, seed, origin=origin), "estimated"
    elif not subclasses.exact:
        kind = "means of known sub-classes"
    found = decompose(neurons, subclasses.centres, subclasses.labels)
    learned = found.learned()
    if subclasses.exact or math.isnan(learned.score):
        return Decoupling(learned, found, subclasses, kind, 0.0, {})
    drawn = bootstrap_centres(data, subclasses, bootstraps, seed)
    scores = torch.tensor([decompose(neurons, M, subclasses.labels).learned().score for M in drawn])
    deviation = float(scores[scores.isfinite()].std())
    others = {
        counts: score
        for counts, rows, side in _alternatives(subclasses)
        if math.isfinite(score := decompose(neurons, rows, side).learned().score)
    }
    low = max(0.0, min(learned.score - 2 * deviation, *others.values(), 1.0))
    high = min(1.0, max(learned.score + 2 * deviation, *others.values(), 0.0))
    return Decoupling(dataclasses.replace(learned, low=low, high=high), found, subclasses, kind, deviation, others)


def bootstrap_centres(data: Dataset, subclasses: Subclasses, count: int, seed: int) -> Tensor:
    """Means of the sub-classes with every row counted Poisson(1) times, (count, K, D) float64; O(count n D)."""
    source = torch.Generator().manual_seed(int(seed) % 2**63)
    K = len(subclasses.labels)
    sums = torch.zeros(count, K, data.dim, dtype=torch.float64)
    total = torch.zeros(count, K, dtype=torch.float64)
    for start, block in data.blocks():
        times = torch.poisson(torch.ones(count, len(block), dtype=torch.float64), generator=source)
        cluster = subclasses.cluster[start : start + len(block)].cpu()
        for k in sorted(set(cluster.tolist())):
            own_mask = cluster == k
            sums[:, k] += times[:, own_mask] @ block.cpu()[own_mask].double()
            total[:, k] += times[:, own_mask].sum(dim=1)
    drawn = sums / total.clamp(min=1)[:, :, None]
    return torch.where(total[:, :, None] > 0, drawn, subclasses.centres.cpu())


def _alternatives(subclasses: Subclasses) -> Iterator[tuple[tuple[int, ...], Tensor, Tensor]]:
    """Counts, centres and labels with one sub-class more or fewer in one class; none where the number was given."""
    if not subclasses.stabilities:
        return
    ends = torch.tensor(subclasses.counts).cumsum(0).tolist()
    parts = subclasses.centres.tensor_split(ends[:-1])
    names = [subclasses.labels[end - 1] for end in ends]
    for changed in (subclasses.fewer, subclasses.more):
        for c, rows in enumerate(changed):
            if rows is not None:
                those = [*parts[:c], rows, *parts[c + 1 :]]
                side = torch.cat([name.expand(len(part)) for name, part in zip(names, those, strict=True)])
                yield tuple(map(len, those)), torch.cat(those), side
