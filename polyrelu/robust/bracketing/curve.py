"""Accuracy at every radius from one minimal-norm run: two step functions, and what is unproven between them.

    certified(r) = #{i : lower_i > r} / n   <=   true robust accuracy   <=   attacked(r) = #{i : upper_i > r} / n

A point counts at radius r if it holds *at* distance r too: a margin of 0 is broken, so an attack of length exactly r
takes the point away at r. Both lines fall and never rise, because they are counts over fixed radii; attacking anew at
every radius, as is common, gives no such promise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyrelu.checks import checked, plain_tensor, value_text
from polyrelu.errors import InputError, require
from polyrelu.robust.bracketing.bracket import BoundsInconsistentError, Bracket
from polyrelu.robust.core.norms import check_norm

Array = NDArray[np.float64]


@final
@dataclass(frozen=True)
class RadiusRange:
    """A radius known to lie between two numbers."""

    lower: float
    upper: float


@final
@dataclass(frozen=True, eq=False)
class Band:
    """One line over several seeds: its smallest, mean and largest value at each radius asked for."""

    low: Array
    mean: Array
    high: Array


@final
@dataclass(frozen=True, eq=False)
class RobustCurve:
    """Made by `curve`; every number is a mean over seeds (brackets), each of which counts alike.

    lower, upper : the radii of each seed, sorted; infinite where no attack succeeded
    norm : 1, 2 or inf
    """

    lower: tuple[Array, ...]
    upper: tuple[Array, ...]
    norm: float

    @property
    def seeds(self) -> int:
        """Number of brackets."""
        return len(self.lower)

    @property
    def points(self) -> int:
        """Number of points in all."""
        return sum(len(radii) for radii in self.lower)

    @property
    def clean(self) -> float:
        """Accuracy without any perturbation."""
        return self.attacked(0.0)

    @cached_property
    def breakpoints(self) -> Array:
        """Where one of the lines steps down: all finite radii, sorted, each once."""
        radii = np.unique(np.concatenate([*self.lower, *self.upper]))
        finite: Array = radii[np.isfinite(radii)]
        return finite

    @cached_property
    def median_radius(self) -> RadiusRange:
        """The smallest radius at which at most half of the points hold, between its proof and its attack.

        For one bracket this is the (lower) median of the radii; infinite if more than half of the points held.
        """
        return RadiusRange(self._half(self.lower), self._half(self.upper))

    @overload
    def certified(self, radius: float) -> float: ...
    @overload
    def certified(self, radius: ArrayLike) -> Array: ...
    def certified(self, radius: ArrayLike) -> float | Array:
        """Share of points proven to hold at this radius; a lower bound on the robust accuracy."""
        return _like(radius, lambda r: _lines(self.lower, r).mean(axis=0))

    @overload
    def attacked(self, radius: float) -> float: ...
    @overload
    def attacked(self, radius: ArrayLike) -> Array: ...
    def attacked(self, radius: ArrayLike) -> float | Array:
        """Share of points that no attack broke within this radius; an upper bound on the robust accuracy."""
        return _like(radius, lambda r: _lines(self.upper, r).mean(axis=0))

    @overload
    def unproven(self, radius: float) -> float: ...
    @overload
    def unproven(self, radius: ArrayLike) -> Array: ...
    def unproven(self, radius: ArrayLike) -> float | Array:
        """Share of points neither proven nor broken at this radius."""
        return _like(radius, lambda r: (_lines(self.upper, r) - _lines(self.lower, r)).mean(axis=0))

    def certified_band(self, radius: ArrayLike) -> Band:
        """Smallest, mean and largest certified accuracy over seeds."""
        return _band(_lines(self.lower, _radii(radius)))

    def attacked_band(self, radius: ArrayLike) -> Band:
        """Smallest, mean and largest attacked accuracy over seeds."""
        return _band(_lines(self.upper, _radii(radius)))

    def _half(self, seeds: tuple[Array, ...]) -> float:
        radii = np.unique(np.concatenate(seeds))
        reached = np.flatnonzero(_lines(seeds, radii).mean(axis=0) <= 0.5)
        return float(radii[reached[0]])  # at the largest radius nothing holds


@checked
def curve(brackets: Bracket | Sequence[Bracket], *, first_row: int = 0) -> RobustCurve:
    """The curve of one bracket, or of one for each seed (on the same points or others, as many as there are).

    Raises `BoundsInconsistentError` where a proof exceeds an attack: that is never clipped away. ``first_row`` is what
    the first point of a part of a larger set is called in it.
    """
    several = [brackets] if isinstance(brackets, Bracket) else list(brackets)
    require(len(several) > 0, "brackets", "none", "at least one bracket")
    norms = {check_norm(bracket.norm) for bracket in several}
    require(len(norms) == 1, "brackets", f"norms {sorted(norms)}", "brackets of one norm")
    lower, upper = [], []
    for seed, bracket in enumerate(several):
        require(len(bracket) > 0, "brackets", "no points", "at least one point")
        low, high = (radii.detach().cpu().double().numpy() for radii in (bracket.lower, bracket.upper))
        broken = np.flatnonzero(~((low >= 0) & (low <= high)))  # NaN is broken too
        if broken.size:
            first, which = int(broken[0]), f" of bracket {seed}" if len(several) > 1 else ""
            proven, found = float(low[first]), float(high[first])
            raise BoundsInconsistentError(
                f"Point {first_row + first}{which}: certified to {proven!r}, yet broken at {found!r}."
            )
        lower.append(np.sort(low))
        upper.append(np.sort(high))
    return RobustCurve(tuple(lower), tuple(upper), norms.pop())


@checked
def relative_gaps(bracket: Bracket) -> Array:
    """(upper - lower) / upper of every point: 0 where both agree, 1 where nothing is proven or nothing was found."""
    low, high = (radii.detach().cpu().double().numpy() for radii in (bracket.lower, bracket.upper))
    with np.errstate(invalid="ignore", divide="ignore"):
        gaps = np.where(high > 0, (high - low) / high, 0.0)
    return np.where(np.isinf(high), np.where(np.isinf(low), 0.0, 1.0), gaps)


def _lines(seeds: tuple[Array, ...], radii: Array) -> Array:
    """#{radius > r} / n for each seed and each r, (seeds, ...)."""
    return np.stack([1 - np.searchsorted(sorted_, radii, side="right") / len(sorted_) for sorted_ in seeds])


def _band(lines: Array) -> Band:
    return Band(lines.min(axis=0), lines.mean(axis=0), lines.max(axis=0))


def _radii(radius: ArrayLike) -> Array:
    try:
        radii = np.asarray(plain_tensor("radius", radius).double())
    except InputError:
        raise InputError(f"radius={value_text(radius)}: expected a number or several.") from None
    wrong = radii[~(radii >= 0)]
    require(not wrong.size, "radius", wrong.flat[0] if wrong.size else 0, "a number >= 0")
    return radii


def _like(radius: ArrayLike, accuracy: Callable[[Array], Array]) -> float | Array:
    """A number for a number, an array for an array."""
    radii = _radii(radius)
    value = accuracy(radii)
    return float(value) if radii.ndim == 0 else value
