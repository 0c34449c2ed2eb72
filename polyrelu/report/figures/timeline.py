"""The time axis of a run: linear while that shows everything, then decades, then decades of decades."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from polyrelu.bias import loss_fall_index
from polyrelu.report.figures.style import GREY
from polyrelu.train import History

VISIBLE = 0.05  # share of a linear axis that everything before the loss falls must fill
MOST_DECADES = 12  # decades after the loss began to fall, beyond which they are counted in decades themselves
EARLIEST = 0.3  # log10 of the time at which an axis of decades of decades begins
PHASES = (("directions turn", "#E9F1F7"), ("norms grow", "#FFFFFF"), ("loss falls", "#F7EFE7"))
AXIS_NAMES = {"linear": "flow time", "log": "flow time, in decades", "loglog": "flow time, in decades of decades"}


@dataclass(frozen=True)
class Timeline:
    """Where each recorded moment stands on the axis, ``x``: flow time t, log10 t or log10 log10 t."""

    x: NDArray[np.float64]
    scale: Literal["linear", "log", "loglog"]

    @classmethod
    def from_history(cls, history: History) -> Timeline:
        """The plainest scale on which the phases before the loss falls can still be seen."""
        times, falls = history.time, loss_fall_index(history)
        if math.isfinite(times[-1]) and (falls is None or times[falls] >= VISIBLE * times[-1]):
            return cls(times, "linear")
        return cls.in_decades(history.log_time, falls or 0)

    @classmethod
    def in_decades(cls, log_time: NDArray[np.float64], start: int = 0, most: float = MOST_DECADES) -> Timeline:
        """Decades of time; decades of decades where there are more than ``most`` from the moment ``start`` on."""
        log10 = log_time / math.log(10)
        log10 = np.where(np.isfinite(log10), log10, log10[np.isfinite(log10)].min(initial=log10[-1]))
        if log10[-1] - log10[start] <= most:
            return cls(log10, "log")
        return cls(np.log10(log10.clip(min=EARLIEST)), "loglog")

    def place(self, log_time: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where moments stand, from the natural log of their time; those before the axis begins, at its beginning."""
        if self.scale == "linear":
            return np.exp(log_time)
        log10 = log_time / math.log(10)
        return np.asarray(np.maximum(log10, self.x[0]) if self.scale == "log" else np.log10(log10.clip(EARLIEST)))

    def set_axis(self, panel: Axes) -> None:
        """Limits, ticks and the name of the horizontal axis."""
        low, high = float(self.x.min()), float(self.x.max())
        panel.set_xlim(low, high if high > low else low + max(1.0, abs(low) / 8))
        panel.set_xlabel(f"{AXIS_NAMES[self.scale]} (one step of gradient descent at the published rate is 0.2)")
        if self.scale == "log":
            decade_ticks(panel.xaxis, low, high)
        elif self.scale == "loglog":
            powers = [m * 10**k for k in range(12) for m in (1, 2, 3, 5) if low <= math.log10(m * 10**k) <= high]
            panel.xaxis.set_ticks([math.log10(k) for k in powers], labels=[f"$10^{{{k}}}$" for k in powers])


def tint_phases(
    panels: Sequence[Axes],
    edges: Sequence[float],
    height: float,
    fits: tuple[float, float] = (0.075, 0.15),
    **look: Any,
) -> None:
    """Each phase between two of the four ``edges`` as a tinted span, with its name on the first panel.

    ``fits``: shares of the axis from which on the name fits on two lines and on one; ``height`` and ``look`` of it.
    """
    for start, end, (name, tint) in zip(edges, edges[1:], PHASES, strict=False):
        for panel in panels:
            panel.axvspan(start, end, color=tint, lw=0, zorder=0)
        share = (end - start) / (edges[-1] - edges[0])
        if share > fits[0]:
            words = name if share > fits[1] else name.replace(" ", "\n")
            size = look.get("fontsize", 9 if share > fits[1] else 8)
            panels[0].text((start + end) / 2, height, words, ha="center", color=GREY, **{**look, "fontsize": size})


def decade_ticks(axis: Axis, low: float, high: float) -> None:
    """Ticks for an axis of decimal logs: powers of ten, or plain numbers when the axis spans few of them."""
    if high - low < 2 and low > -5 and high < 5:
        numbers = [n for n in MaxNLocator(nbins=4).tick_values(10**low, 10**high) if n > 0]
        axis.set_ticks([math.log10(n) for n in numbers], labels=[f"{n:g}" for n in numbers])
    else:
        axis.set_major_locator(MaxNLocator(nbins=6, integer=high - low >= 2))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"$10^{{{value:g}}}$"))
