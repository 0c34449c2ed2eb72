"""What the figures of digits and of embeddings share: nets of p = 1, 2, 3, 4, epoch by epoch."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from polyrelu.report.figures.style import BLUE, GREEN, ORANGE, VERMILION
from polyrelu.report.paper_figures import panels
from polyrelu.report.paper_figures.figure import Run

COLOURS = {1: VERMILION, 2: ORANGE, 3: GREEN, 4: BLUE}


def epoch_lines(panel: Axes, runs: Sequence[Run], name: str) -> None:
    """A line for each p; beside the accuracy, dashed, that on the training rows."""
    for p, mine in panels.by_power(runs, COLOURS):
        lines = panels.rows(mine, name)
        panels.band(panel, range(lines.shape[1]), lines, COLOURS[p], label=f"p = {p}")
        if name == "accuracy":
            panel.plot(panels.rows(mine, "train accuracy").mean(axis=0), color=COLOURS[p], lw=1, ls=(0, (3, 2)))


def epoch_axes(panel: Axes, title: str) -> None:
    """The title, the axis of epochs and the legend."""
    panel.set_title(title, loc="left")
    panel.set_xlabel("epochs")
    panel.set_xlim(left=0)
    panels.legend_if_any(panel, "best", ncols=2)
