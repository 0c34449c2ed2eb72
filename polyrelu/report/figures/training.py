"""A training run in one figure: alignment, loss and contributions over time (Fig. 2 of Min & Vidal, ICML 2024)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from polyrelu.bias import alignment_index, dominant_neurons, loss_fall_index, median_alignment, weighted_quantiles
from polyrelu.checks import checked
from polyrelu.errors import require
from polyrelu.report.figures.style import BLACK, BLUE, DASHED, DOTTED, GREY, LIGHT_GREY, VERMILION, canvas, figure_style
from polyrelu.report.figures.timeline import Timeline, decade_ticks, tint_phases
from polyrelu.train import History, Trajectory

MOST_LINES = 24  # neurons of each kind drawn one by one
MOST_BARS = 300  # as in Fig. 2b of Min & Vidal 2024


@checked
def trajectory_figure(trajectory: Trajectory, title: str = "") -> Figure:
    """Alignment, loss and contributions on one time axis, and the final contributions beside them.

    The neurons that carry 99 % of the final net are drawn dark and counted by their final contribution |v_j| |w_j|;
    the others are faint and count alike. A network without such neurons shows its loss only.
    """
    history = trajectory.history
    require(len(history.clock) > 0, "trajectory", "no recorded moments", "a run with at least one")
    with figure_style():
        timeline = Timeline.from_history(history)
        if not history.log_contribution.size:
            figure = canvas((10, 4), title)
            panel = figure.add_axes((0.075, 0.13, 0.9, 0.7))
            _loss(panel, timeline, history)
            timeline.set_axis(panel)
            return figure
        figure = canvas((10, 8.8), title)
        grid = figure.add_gridspec(
            3, 2, width_ratios=(3.1, 1), height_ratios=(1.25, 0.8, 1.15),
            left=0.075, right=0.955, top=0.905, bottom=0.065, hspace=0.24, wspace=0.07,
        )  # fmt: skip
        top = figure.add_subplot(grid[0, 0])
        panels = [top, *(figure.add_subplot(grid[row, 0], sharex=top) for row in (1, 2))]
        beside, bars = figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1:, 1])
        neurons = NeuronGroups(history)
        _alignment(panels[0], beside, timeline, neurons)
        _loss(panels[1], timeline, history)
        _growth(panels[2], timeline, neurons)
        _bars(bars, neurons)
        timeline.set_axis(panels[2])
        for panel in panels[:2]:
            panel.tick_params(labelbottom=False)
        _phases(panels, timeline, history)
    return figure


class NeuronGroups:
    """The neurons of a run in two groups: those that carry 99 % of the final net, largest first, and the others."""

    def __init__(self, history: History) -> None:
        final = history.log_contribution[-1]
        order = np.argsort(-final, kind="stable")
        self.history, self.dominant = history, dominant_neurons(final)
        self.others = order[~np.isin(order, self.dominant)]

    def quantiles(self, cosines: NDArray[np.float32], neurons: NDArray[np.intp]) -> NDArray[np.float64]:
        """10 %, 50 % and 90 % of the cosines at every moment, (T, 3); those that carry the net count by their size."""
        logs = self.history.log_contribution[-1, neurons].astype(np.float64)
        weights = np.exp(logs - logs.max()) if neurons is self.dominant else np.ones(len(neurons))
        return weighted_quantiles(cosines[:, neurons], weights, (0.1, 0.5, 0.9))

    def directions(self) -> list[tuple[str, str, NDArray[np.float32]]]:
        """Name, colour and cosines of what a neuron may point at, where it was recorded."""
        centre = ("sub-class centre", BLUE, self.history.cos_centre)
        average = ("class average", VERMILION, self.history.cos_average)
        return [one for one in (centre, average) if one[2].size]


def _alignment(panel: Axes, beside: Axes, timeline: Timeline, neurons: NeuronGroups) -> None:
    panel.set(title="Alignment: cosine of the neurons to their nearest …", ylim=(-0.05, 1.22))
    panel.set_yticks([0, 0.25, 0.5, 0.75, 1])
    beside.set_axis_off()
    beside.set_ylim(panel.get_ylim())
    ends = []
    for _, colour, cosines in neurons.directions():
        if neurons.others.size:
            others = neurons.quantiles(cosines, neurons.others)[:, 1]
            panel.plot(timeline.x, others, color=colour, lw=1.2, alpha=0.4, ls=DASHED)
        low, middle, high = neurons.quantiles(cosines, neurons.dominant).T
        panel.fill_between(timeline.x, low, high, color=colour, alpha=0.18, lw=0)
        panel.plot(timeline.x, middle, color=colour, lw=2.2, marker=_marker(timeline.x), clip_on=False)
        ends.append(float(middle[-1]))
    for (name, colour, _), end, height in zip(neurons.directions(), ends, _separated(ends, 0.1), strict=True):
        beside.text(0.0, height, f"{name}  {end:.3f}", color=colour, va="center", fontweight="bold", fontsize=10.5)
    note = "line: median, band: 10–90 %\nof the neurons that carry the net"
    if neurons.others.size:
        note += f"\ndashed: median of the other {len(neurons.others)}"
    height = 0.02 if min(ends) > 0.35 else 0.62
    beside.text(0.0, height, note, color=GREY, va="bottom", fontsize=9, linespacing=1.4)


def _loss(panel: Axes, timeline: Timeline, history: History) -> None:
    loss = np.where(np.isfinite(history.log_loss), history.log_loss, np.nan) / math.log(10)
    panel.set_title("Training loss")
    panel.plot(timeline.x, loss, color=BLACK, lw=2, marker=_marker(timeline.x))
    decade_ticks(panel.yaxis, float(np.nanmin(loss)), float(np.nanmax(loss)))


def _growth(panel: Axes, timeline: Timeline, neurons: NeuronGroups) -> None:
    panel.set_title("Contributions |v||w|")
    logs = neurons.history.log_contribution.astype(np.float64) / math.log(10)
    logs = np.where(np.isfinite(logs), logs, np.nan)
    for group, colour, alpha in ((neurons.others, LIGHT_GREY, 0.8), (neurons.dominant, BLACK, 0.75)):
        ranks = np.unique(np.linspace(0, len(group) - 1, MOST_LINES).round().astype(int))[: len(group)]
        panel.plot(timeline.x, logs[:, group[ranks]], color=colour, alpha=alpha, lw=1, marker=_marker(timeline.x))
    decade_ticks(panel.yaxis, float(np.nanmin(logs)), float(np.nanmax(logs)))
    others = ", grey: some others" if neurons.others.size else ""
    some = "the" if len(neurons.dominant) <= MOST_LINES else "some of the"
    note = f"dark: {some} {len(neurons.dominant)} that carry the net{others}"
    panel.set_title(note, loc="right", color=GREY, fontsize=9)


def _bars(panel: Axes, neurons: NeuronGroups) -> None:
    carrying, every = len(neurons.dominant), len(neurons.dominant) + len(neurons.others)
    order = np.concatenate([neurons.dominant, neurons.others])[: min(MOST_BARS, max(20, carrying * 4 // 3))]
    logs = neurons.history.log_contribution[-1, order].astype(np.float64)
    heights, tiny = sizes_of(logs)
    colours = [BLACK if rank < carrying else LIGHT_GREY for rank in range(len(order))]
    panel.bar(np.arange(1, len(order) + 1), heights, width=0.9 if len(order) < 60 else 1.0, color=colours)
    panel.set_ylim(0, 1.2 * heights[0])  # space for the note
    panel.set_title("Final contributions" + (", relative" if tiny else ""))
    panel.set_xlabel(f"{'the' if len(order) == every else f'the {len(order)} largest'} neurons, in order")
    panel.yaxis.tick_right()
    panel.spines[["left", "right"]].set_visible(False)
    note = f"{carrying} of {every} neurons\ncarry 99 %"
    panel.text(0.97, 0.97, note, transform=panel.transAxes, ha="right", va="top", fontsize=10, linespacing=1.3)


def sizes_of(logs: NDArray[np.float64]) -> tuple[NDArray[np.float64], bool]:
    """exp(logs), or relative to the largest (True) where floats could not hold or show them."""
    top = float(logs.max())
    if top == -np.inf:
        return np.zeros(len(logs)), False
    tiny = abs(top) > 600
    return np.exp(logs - top) if tiny else np.exp(logs), tiny


def _phases(panels: Sequence[Axes], timeline: Timeline, history: History) -> None:
    """Directions first, norms later: three tinted spans, where the run shows them in that order."""
    turned, falls = alignment_index(median_alignment(history)), loss_fall_index(history)
    if turned is None or falls is None or not 0 < turned < falls:
        return
    edges = [timeline.x[moment] for moment in (0, turned, falls, -1)]
    tint_phases(panels, edges, 1.12, va="center")
    for panel in panels:
        for edge in edges[1:-1]:
            panel.axvline(edge, color=GREY, lw=0.8, ls=DOTTED, zorder=1)


def _separated(heights: Sequence[float], gap: float) -> list[float]:
    """The same heights (two at most), moved just enough not to overlap."""
    if len(heights) < 2 or abs(heights[0] - heights[1]) >= gap:
        return list(heights)
    middle, half = sum(heights) / 2, gap / 2 if heights[0] >= heights[1] else -gap / 2
    return [middle + half, middle - half]


def _marker(x: NDArray[np.float64]) -> str:
    """A single moment is a dot; a line needs none."""
    return "o" if len(x) == 1 else ""
