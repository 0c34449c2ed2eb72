r"""What is in the data, and what a classifier made of it: sub-classes, averaging, one direction for all.

The shortest perturbation d of a point is normal to the decision boundary. Where a classifier learned class averages it
leads from one average to the other, d ~ mean_b - mean_a, for every point alike; where it learned single sub-classes,
from one centre to another, d ~ mu_t - mu_s (Min & Vidal, ICML 2024). With the angles of d to the nearest of each,

    averaging = angle to a difference of centres / (that + angle to a difference of class averages),

1 for class averages, 0 for single sub-classes; the median over points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyrelu.bias import estimate_subclasses, flip_radii, known_subclasses
from polyrelu.data import Dataset
from polyrelu.errors import require
from polyrelu.estimator.robustness_report.measurement import MeasuredRadii
from polyrelu.estimator.robustness_report.target_model import TargetModel
from polyrelu.robust.core import unit

Array = NDArray[Any]
STEPS_ALONG = 48  # places looked at along the one direction


@final
@dataclass(frozen=True, eq=False)
class Structure:
    """The sub-classes of every class, class after class.

    classes (C,), counts (C,) : the classes and the number of sub-classes of each
    labels (K,) : the class of each sub-class; sizes (K,) : its rows; centres (K, D) : their means
    given : were they given, not discovered?
    """

    classes: Array
    counts: tuple[int, ...]
    labels: Array
    sizes: Tensor
    centres: Tensor
    given: bool

    @property
    def total(self) -> int:
        """How many there are in all."""
        return sum(self.counts)

    @property
    def hidden(self) -> bool:
        """Has a class more than one?"""
        return max(self.counts) > 1


@final
@dataclass(frozen=True, eq=False)
class Direction:
    """One direction for each class, the same for all of its points.

    radius (n,) : how far along it each point breaks; 0 where wrong as it is, inf where it holds for the typical norm
    """

    radius: Tensor

    def broken(self, radius: float) -> float:
        """The share of the rightly classified points that it breaks within ``radius``."""
        right = self.radius > 0
        return float((self.radius[right] <= radius).double().mean()) if bool(right.any()) else math.nan


def structure_of(X: Tensor, y: Array, fine: Array | None, seed: int) -> Structure:
    """Sub-classes as given in ``fine`` (n,), else found around the mean of X (`polyrelu.bias.subclasses`)."""
    classes, numbers = np.unique(y, return_inverse=True)
    cluster = None
    if fine is not None:
        require(fine.shape == y.shape, "fine", f"{fine.size} labels", f"{len(y)}, one for each row")
        require(fine.dtype.kind in "biufUS", "fine", f"{fine.dtype} labels", "numbers or text")
        pairs = np.unique(np.stack([numbers, np.unique(fine, return_inverse=True)[1]]), axis=1, return_inverse=True)[1]
        cluster = torch.from_numpy(pairs.reshape(-1))
    data = Dataset(X, torch.from_numpy(numbers), cluster=cluster)
    found = known_subclasses(data) or estimate_subclasses(data, seed=seed, origin=X.mean(dim=0))
    names = classes[found.labels.numpy()]
    return Structure(classes, found.counts, names, found.sizes, found.centres.double(), cluster is not None)


@final
@dataclass(frozen=True)
class Averaging:
    """Medians over the points that broke; nan where every class has one sub-class, or no point broke.

    score : 0 (single sub-classes) to 1 (class averages)
    to_averages, to_centres : cosine of the shortest perturbation with the nearest difference of each
    """

    score: float
    to_averages: float
    to_centres: float


def averaging_of(measured: MeasuredRadii, y: Array, structure: Structure) -> Averaging:
    """Whether the perturbations of points with labels ``y`` lead between class averages or between sub-classes."""
    step, names = measured.bracket.perturbation, structure.classes
    known = step.any(dim=1) & torch.from_numpy(np.isin(y, names))
    if not structure.hidden or not bool(known.any()):
        return Averaging(math.nan, math.nan, math.nan)
    own, d = torch.from_numpy(np.searchsorted(names, y[known.numpy()])), unit(step[known])
    of = torch.from_numpy(np.searchsorted(names, structure.labels))
    middles = torch.stack([_middle(structure, name) for name in names])
    averages = _nearest(d, own, middles, torch.arange(len(names)))
    centres = _nearest(d, own, structure.centres, of)
    angles = [cosines.clamp(-1, 1).acos() for cosines in (centres, averages)]
    score = angles[0] / (angles[0] + angles[1]).clamp(min=1e-300)
    return Averaging(*(float(values.median()) for values in (score, averages, centres)))


def _nearest(d: Tensor, own: Tensor, centres: Tensor, of: Tensor) -> Tensor:
    """max cos(d, mu_t - mu_s) over s in the point's own class and t in another, (n,)."""
    along, apart = d @ centres.T, torch.cdist(centres, centres)
    mine = own[:, None] == of  # (n, K)
    cosines = (along[:, None, :] - along[:, :, None]) / torch.where(apart > 0, apart, torch.inf)  # [i, s, t]
    return cosines.masked_fill(~(mine[:, :, None] & ~mine[:, None, :]), -torch.inf).flatten(1).amax(dim=1)


def direction_of(
    target: TargetModel, measured: MeasuredRadii, X: Tensor, y: Array, structure: Structure, reach: float
) -> Direction:
    """For each class the better of: the mean of its perturbations, the way from its average to another class's."""
    radius, steps = torch.full((len(X),), torch.inf, dtype=torch.float64), unit(measured.bracket.perturbation)
    middles = {name: _middle(structure, name) for name in structure.classes.tolist()}
    for name in np.unique(y).tolist():
        own = torch.from_numpy(y == name)
        others = [middle - middles[name] for other, middle in middles.items() if name in middles and other != name]
        ends, labels = torch.full((int(own.sum()),), reach), target.labels(y[y == name])
        for way in (steps[own].mean(dim=0), *others):
            if bool(way.any()):
                along = unit(way[None]).expand(len(ends), -1)
                found = flip_radii(target.score, X[own], labels, along, ends, STEPS_ALONG)
                if found.clamp(max=2 * reach).mean() < radius[own].clamp(max=2 * reach).mean():
                    radius[own] = found
    return Direction(torch.where(measured.bracket.upper > 0, radius, 0.0))


def _middle(structure: Structure, name: Any) -> Tensor:
    """The plain average of a class's centres."""
    return structure.centres[torch.from_numpy(structure.labels == name)].mean(dim=0)
