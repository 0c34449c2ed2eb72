"""The time axis of a run: linear while that shows everything, then decades, then decades of decades."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from polyrelu.bias import loss_fall_index
from polyrelu.train import History

VISIBLE = 0.05  # share of a linear axis that everything before the loss falls must fill
MANY = 12  # decades after the loss began to fall, beyond which they are counted in decades themselves
EARLIEST = 0.3  # log10 of the time at which an axis of decades of decades begins
LN10 = math.log(10)
NAMES = {"linear": "flow time", "log": "flow time, in decades", "loglog": "flow time, in decades of decades"}


@dataclass(frozen=True)
class Timeline:
    """Where each recorded moment stands, ``x``: flow time t, log10 t or log10 log10 t."""

    x: NDArray[np.float64]
    scale: Literal["linear", "log", "loglog"]

    @classmethod
    def of(cls, history: History) -> Timeline:
        """The plainest scale on which the phases before the loss falls can still be seen."""
        times, falls = history.time, loss_fall_index(history)
        if math.isfinite(times[-1]) and (falls is None or times[falls] >= VISIBLE * times[-1]):
            return cls(times, "linear")
        log10 = history.log_time / LN10
        began = log10[np.isfinite(log10)].min(initial=log10[-1])
        log10 = np.where(np.isfinite(log10), log10, began)
        if log10[-1] - (log10[0] if falls is None else log10[falls]) <= MANY:
            return cls(log10, "log")
        return cls(np.log10(log10.clip(min=EARLIEST)), "loglog")

    def dress(self, axes: Axes) -> None:
        """Limits, ticks and the name of the axis."""
        low, high = float(self.x.min()), float(self.x.max())
        axes.set_xlim(low, high if high > low else low + max(1.0, abs(low) / 8))
        axes.set_xlabel(f"{NAMES[self.scale]} (one step of gradient descent at the published rate is 0.2)")
        if self.scale == "log":
            decade_ticks(axes.xaxis, low, high)
        elif self.scale == "loglog":
            powers = [m * 10**k for k in range(12) for m in (1, 2, 3, 5) if low <= math.log10(m * 10**k) <= high]
            axes.xaxis.set_ticks([math.log10(k) for k in powers], labels=[f"$10^{{{k}}}$" for k in powers])


def decade_ticks(axis: Axis, low: float, high: float) -> None:
    """Ticks for an axis of decimal logs: powers of ten, or plain numbers when the axis spans few of them."""
    plain = high - low < 2 and low > -5 and high < 5
    if plain:
        numbers = [n for n in MaxNLocator(nbins=4).tick_values(10**low, 10**high) if n > 0]
        axis.set_ticks([math.log10(n) for n in numbers], labels=[f"{n:g}" for n in numbers])
    else:
        axis.set_major_locator(MaxNLocator(nbins=6, integer=high - low >= 2))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"$10^{{{value:g}}}$"))
