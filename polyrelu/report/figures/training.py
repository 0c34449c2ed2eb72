"""Pictures of a training run, for people who would rather look than read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from polyrelu.bias import alignment_index, dominant_neurons, loss_fall_index, median_alignment, weighted_quantiles
from polyrelu.checks import checked
from polyrelu.errors import require
from polyrelu.report.figures.style import BLACK, BLUE, GREY, LIGHT_GREY, VERMILION, canvas, figure_style
from polyrelu.report.figures.timeline import LN10, Timeline, decade_ticks
from polyrelu.train import History, Trajectory

TINTS = ("#E9F1F7", "#FFFFFF", "#F7EFE7")  # of the phases
LINES = 24  # neurons of each kind drawn one by one
BARS = 300  # as in Fig. 2b of Min & Vidal 2024


@checked
def trajectory_figure(trajectory: Trajectory, title: str = "") -> Figure:
    """Alignment, loss and contributions on one time axis, and the final contributions beside them.

    The neurons that carry 99 % of the final net are drawn dark and counted by their final contribution |v_j| |w_j|;
    the others are faint and count alike. A network without such neurons shows its loss only.
    """
    history = trajectory.history
    require(len(history.clock) > 0, "trajectory", "no recorded moments", "a run with at least one")
    with figure_style():
        if not history.log_contribution.size:
            return _loss_only(history, title)
        figure = canvas((10, 8.8), title)
        grid = figure.add_gridspec(
            3, 2, width_ratios=(3.1, 1), height_ratios=(1.25, 0.8, 1.15),
            left=0.075, right=0.955, top=0.905, bottom=0.065, hspace=0.24, wspace=0.07,
        )  # fmt: skip
        top = figure.add_subplot(grid[0, 0])
        panels = [top, *(figure.add_subplot(grid[row, 0], sharex=top) for row in (1, 2))]
        beside, bars = figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1:, 1])
        line, crowd = Timeline.of(history), Crowd.of(history)
        _alignment(panels[0], beside, line, crowd)
        _loss(panels[1], line, history)
        _growth(panels[2], line, crowd)
        _bars(bars, crowd)
        line.dress(panels[2])
        for panel in panels[:2]:
            panel.tick_params(labelbottom=False)
        _phases(panels, line, crowd)
    return figure


@dataclass(frozen=True)
class Crowd:
    """The neurons of a run in two parts: those that carry the final net, largest first, and the others."""

    history: History
    main: NDArray[np.intp]
    rest: NDArray[np.intp]

    @classmethod
    def of(cls, history: History) -> Crowd:
        """Told apart by their final contributions."""
        final = history.log_contribution[-1]
        main = dominant_neurons(final)
        order = np.argsort(-final, kind="stable")
        return cls(history, main, order[~np.isin(order, main)])

    def weights(self, neurons: NDArray[np.intp]) -> NDArray[np.float64]:
        """Final contribution for those that carry the net, one for each of the others."""
        logs = self.history.log_contribution[-1, neurons].astype(np.float64)
        return np.exp(logs - logs.max()) if neurons is self.main else np.ones(len(neurons))

    def spread(self, cosines: NDArray[np.float32], neurons: NDArray[np.intp]) -> NDArray[np.float64]:
        """10 %, 50 % and 90 % of the cosines at every moment, (T, 3)."""
        return weighted_quantiles(cosines[:, neurons], self.weights(neurons), (0.1, 0.5, 0.9))

    def kinds(self) -> list[tuple[str, str, NDArray[np.float32]]]:
        """Name, colour and cosines of what a neuron may point at, where it was recorded."""
        centre, average = self.history.cos_centre, self.history.cos_average
        found = [("sub-class centre", BLUE, centre), ("class average", VERMILION, average)]
        return [kind for kind in found if kind[2].size]


def _loss_only(history: History, title: str) -> Figure:
    figure = canvas((10, 4), title)
    panel = figure.add_axes((0.075, 0.13, 0.9, 0.7))
    line = Timeline.of(history)
    _loss(panel, line, history)
    line.dress(panel)
    return figure


def _alignment(panel: Axes, beside: Axes, line: Timeline, crowd: Crowd) -> None:
    panel.set_title("Alignment: cosine of the neurons to their nearest …", loc="left")
    panel.set_ylim(-0.05, 1.22)
    panel.set_yticks([0, 0.25, 0.5, 0.75, 1])
    beside.set_axis_off()
    beside.set_ylim(panel.get_ylim())
    ends = []
    for _, colour, cosines in crowd.kinds():
        if crowd.rest.size:
            others = crowd.spread(cosines, crowd.rest)[:, 1]
            panel.plot(line.x, others, color=colour, lw=1.2, alpha=0.4, ls=(0, (4, 2)))
        low, middle, high = crowd.spread(cosines, crowd.main).T
        panel.fill_between(line.x, low, high, color=colour, alpha=0.18, lw=0)
        panel.plot(line.x, middle, color=colour, lw=2.2, marker=_marker(line.x), clip_on=False)
        ends.append(float(middle[-1]))
    for (name, colour, _), end, height in zip(crowd.kinds(), ends, _apart(ends, 0.1), strict=True):
        beside.text(0.0, height, f"{name}  {end:.3f}", color=colour, va="center", fontweight="bold", fontsize=10.5)
    note = "line: median, band: 10–90 %\nof the neurons that carry the net"
    rest = f"\ndashed: median of the other {len(crowd.rest)}" if crowd.rest.size else ""
    room = 0.02 if min(ends) > 0.35 else 0.62
    beside.text(0.0, room, note + rest, color=GREY, va="bottom", fontsize=9, linespacing=1.4)


def _loss(panel: Axes, line: Timeline, history: History) -> None:
    loss = np.where(np.isfinite(history.log_loss), history.log_loss, np.nan) / LN10
    panel.set_title("Training loss", loc="left")
    panel.plot(line.x, loss, color=BLACK, lw=2, marker=_marker(line.x))
    decade_ticks(panel.yaxis, float(np.nanmin(loss)), float(np.nanmax(loss)))


def _growth(panel: Axes, line: Timeline, crowd: Crowd) -> None:
    panel.set_title("Contributions |v||w|", loc="left")
    logs = crowd.history.log_contribution.astype(np.float64) / LN10
    logs = np.where(np.isfinite(logs), logs, np.nan)
    for neurons, colour, alpha in ((crowd.rest, LIGHT_GREY, 0.8), (crowd.main, BLACK, 0.75)):
        ranks = np.unique(np.linspace(0, len(neurons) - 1, LINES).round().astype(int))[: len(neurons)]
        panel.plot(line.x, logs[:, neurons[ranks]], color=colour, alpha=alpha, lw=1, marker=_marker(line.x))
    decade_ticks(panel.yaxis, float(np.nanmin(logs)), float(np.nanmax(logs)))
    others = ", grey: some others" if crowd.rest.size else ""
    some = "the" if len(crowd.main) <= LINES else "some of the"
    note = f"dark: {some} {len(crowd.main)} that carry the net{others}"
    panel.set_title(note, loc="right", color=GREY, fontsize=9)


def _bars(panel: Axes, crowd: Crowd) -> None:
    order = np.concatenate([crowd.main, crowd.rest])
    order = order[: min(BARS, max(20, len(crowd.main) * 4 // 3))]
    logs = crowd.history.log_contribution[-1, order].astype(np.float64)
    tiny = not abs(logs[0]) < 600
    heights = np.exp(logs - logs[0]) if tiny else np.exp(logs)
    colours = [BLACK if rank < len(crowd.main) else LIGHT_GREY for rank in range(len(order))]
    panel.bar(np.arange(1, len(order) + 1), heights, width=0.9 if len(order) < 60 else 1.0, color=colours)
    panel.set_ylim(0, 1.2 * heights[0])  # room for the note
    panel.set_title("Final contributions" + (", relative" if tiny else ""), loc="left")
    shown = "the" if len(order) == len(crowd.main) + len(crowd.rest) else f"the {len(order)} largest"
    panel.set_xlabel(f"{shown} neurons, in order")
    panel.yaxis.tick_right()
    panel.spines[["left", "right"]].set_visible(False)
    note = f"{len(crowd.main)} of {len(crowd.main) + len(crowd.rest)} neurons\ncarry 99 %"
    panel.text(0.97, 0.97, note, transform=panel.transAxes, ha="right", va="top", fontsize=10, linespacing=1.3)


def _phases(panels: Sequence[Axes], line: Timeline, crowd: Crowd) -> None:
    """Directions first, norms later: three tinted spans, where the run shows them in that order."""
    turned, falls = alignment_index(median_alignment(crowd.history)), loss_fall_index(crowd.history)
    if turned is None or falls is None or not 0 < turned < falls:
        return
    edges = [line.x[0], line.x[turned], line.x[falls], line.x[-1]]
    names = ("directions turn", "norms grow", "loss falls")
    for start, end, tint, name in zip(edges, edges[1:], TINTS, names, strict=False):
        for panel in panels:
            panel.axvspan(start, end, color=tint, lw=0, zorder=0)
        width = (end - start) / (edges[-1] - edges[0])
        if width > 0.075:
            name, size = (name, 9) if width > 0.15 else (name.replace(" ", "\n"), 8)
            panels[0].text((start + end) / 2, 1.12, name, ha="center", va="center", color=GREY, fontsize=size)
    for moment in (turned, falls):
        for panel in panels:
            panel.axvline(line.x[moment], color=GREY, lw=0.8, ls=(0, (2, 2)), zorder=1)


def _apart(heights: Sequence[float], gap: float) -> list[float]:
    """The same heights (two at most), moved just enough not to overlap."""
    if len(heights) < 2 or abs(heights[0] - heights[1]) >= gap:
        return list(heights)
    middle, upper = sum(heights) / 2, heights[0] >= heights[1]
    return [middle + gap / 2, middle - gap / 2] if upper else [middle - gap / 2, middle + gap / 2]


def _marker(x: NDArray[np.float64]) -> str:
    """A single moment is a dot; a line needs none."""
    return "o" if len(x) == 1 else ""
