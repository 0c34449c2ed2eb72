"""Directions first, norms later: when each phase of a run ended (Min & Vidal 2024, 2025; Min et al. 2024)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from polyrelu.bias.alignment import dominant_neurons, weighted_quantiles
from polyrelu.checks import checked
from polyrelu.errors import InputError, require
from polyrelu.train import History, Trajectory


@checked
def loss_fall_index(history: History, fall: float = 0.1) -> int | None:
    """First recorded moment at which the loss has lost the share ``fall`` of its initial value."""
    require(0 <= fall < 1, "fall", fall, "a share of the loss, from 0 to below 1")
    below = np.flatnonzero(history.log_loss <= history.log_loss[0] + math.log1p(-fall))
    return int(below[0]) if below.size else None


@checked
def alignment_index(median: NDArray[np.float64], level: float = 0.9) -> int | None:
    """First recorded moment from which on the median alignment stays above ``level``."""
    short = np.flatnonzero(~(median >= level))
    first = int(short[-1]) + 1 if short.size else 0
    return first if first < len(median) else None


@checked
def median_alignment(history: History) -> NDArray[np.float64]:
    """At every moment, the median of the largest cosine to a centre or class average, (T,).

    Over the neurons that carry 99 % of the final net, each counting as its final |v_j| |w_j|; O(T h log h).
    """
    last = history.log_contribution[-1].astype(np.float64)
    main = dominant_neurons(last)
    if not main.size:
        raise InputError("trajectory: no neuron carries its final net, expected one that is not zero.")
    best = np.maximum.reduce([kind for kind in (history.cos_centre, history.cos_average) if kind.size])[:, main]
    weights = np.exp(last[main] - last[main].max())
    return weighted_quantiles(best, weights, (0.5,))[:, 0]


@final
@dataclass(frozen=True)
class PhaseTime:
    """A point of a run: its clock (loss time of a flow, steps of a descent) and the log of its flow time."""

    clock: float
    log_time: float

    @property
    def time(self) -> float:
        """Flow time; infinite beyond the range of a float."""
        return math.exp(self.log_time) if self.log_time < 709 else math.inf


@final
@dataclass(frozen=True)
class Phases:
    """End of the alignment phase, and of the norm phase (the loss falls); None where it never came.

    ``grown``: log of sum_j |v_j| |w_j| when the neurons had aligned, less that when the loss had fallen: far below 0
    where directions come first, near or above 0 where both change together (E19).
    """

    aligned: PhaseTime | None
    fallen: PhaseTime | None
    grown: float | None

    @property
    def alignment_first(self) -> bool | None:
        """Did alignment end before the loss fell? None if neither happened."""
        if self.aligned is None or self.fallen is None:
            return None if self.aligned is self.fallen else self.fallen is None
        return self.aligned.clock < self.fallen.clock

    @property
    def ratio(self) -> float | None:
        """Flow time of the fall over flow time of the alignment: above 1 where directions come first."""
        if self.aligned is None or self.fallen is None:
            return None
        if self.aligned.log_time == self.fallen.log_time:
            return 1.0
        apart = self.fallen.log_time - self.aligned.log_time
        return math.exp(apart) if apart < 709 else math.inf


@checked
def phases(trajectory: Trajectory, cosine: float = 0.9, fall: float = 0.1) -> Phases:
    """When the median alignment passed ``cosine`` to stay, and when the loss had lost the share ``fall`` of its start.

    The median is over the neurons that carry 99 % of the final net, weighted by their final contribution, of the
    largest cosine to a centre or class average. To stay is until the loss has fallen (what turns away afterwards had
    aligned, E17), or to the end for what aligns only then. Between two recorded moments alignment, log loss, log
    contributions and flow time go straight in the clock. O(T h log h).
    """
    require(0 < cosine < 1, "cosine", cosine, "a number between 0 and 1")
    require(0 < fall < 1, "fall", fall, "a number between 0 and 1")
    history = trajectory.history
    if not len(history.clock):
        raise InputError("trajectory: no recorded moments, expected a run of at least one.")
    if not history.log_contribution.size:
        raise InputError("trajectory: no neurons were recorded, expected a run of a PolyReLUNet.")
    median = median_alignment(history)
    loss = history.log_loss
    fell = loss_fall_index(history, fall)
    stays = None if fell is None else alignment_index(median[: fell + 1], cosine)
    turned = _crossing(median, alignment_index(median, cosine) if stays is None else stays, cosine)
    falls = _crossing(loss, fell, loss[0] + math.log1p(-fall))
    grown = None
    if turned is not None and falls is not None:
        size = np.logaddexp.reduce(history.log_contribution.astype(np.float64), axis=1)
        grown = _interpolated(size, turned) - _interpolated(size, falls)
    return Phases(_moment(history, turned), _moment(history, falls), grown)


def _crossing(values: NDArray[np.float64], first: int | None, level: float) -> float | None:
    """Where ``values`` reach ``level`` on the way to moment ``first``, in (fractional) moments."""
    if first is None or first == 0:
        return None if first is None else 0.0
    before, after = float(values[first - 1]), float(values[first])
    passed = (level - before) / (after - before)
    return first - 1 + passed if 0 <= passed <= 1 else float(first)  # a record that is not finite crosses at once


def _interpolated(values: NDArray[np.float64], place: float) -> float:
    return float(np.interp(place, np.arange(len(values)), values))


def _moment(history: History, place: float | None) -> PhaseTime | None:
    if place is None:
        return None
    before, share = int(place), place - int(place)
    log_time = float(history.log_time[before])
    if share > 0:
        later = float(history.log_time[before + 1])
        log_time = float(np.logaddexp(math.log1p(-share) + log_time, math.log(share) + later))
    return PhaseTime(_interpolated(history.clock, place), log_time)
