"""The margin that grows beyond zero loss, drawn again: the toy of the theorems (Lyu & Li, ICLR 2020)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from polyrelu.report.figures.style import BLACK, BLUE, DOTTED, GREEN, GREY, VERMILION, canvas, figure_style
from polyrelu.report.paper_figures.figure import PaperFigure, Results, Run
from polyrelu.report.paper_figures.panels import labelled, legend_if_any, runs_of, select

SHORT_DASHES = (0, (3, 2))


@figure_style()
def margin(results: Results) -> Figure:
    """Margins, rates of loss and norm, and the way to a KKT point, all against the decades of loss won."""
    runs, starts = runs_of(results, "ll20.margins.growth"), runs_of(results, "ll20.margins.from_starts")
    figure = canvas((10, 7.6), "Beyond zero loss: a two-layer ReLU net on twenty points")
    grid = figure.add_gridspec(2, 2, left=0.075, right=0.98, top=0.89, bottom=0.08, hspace=0.38, wspace=0.22)
    top = figure.add_subplot(grid[0, :])
    below = [figure.add_subplot(grid[1, side]) for side in (0, 1)]
    _margins(top, runs)
    _rates(below[0], runs)
    _residuals(below[1], runs, starts)
    for panel in (top, *below):
        _decades(panel)
    return figure


def _margins(panel: Axes, runs: Sequence[Run]) -> None:
    for run, name in labelled(runs, ""):
        x, thin = np.array(run["decades"]), 1 if len(runs) == 1 else 0.5
        lower, smoothed, normalised = (np.array(run[line]) for line in ("lower", "smoothed", "normalised"))
        panel.fill_between(x, np.maximum(lower, 0), normalised, color=BLUE, alpha=0.13 / len(runs), lw=0)
        panel.plot(x, normalised, color=BLUE, lw=1.5 * thin, label=f"{name}normalised margin: upper bound")
        panel.plot(x, smoothed, color=VERMILION, lw=2.2 * thin, label=f"{name}smoothed margin: never falls")
        panel.plot(x, lower, color=BLUE, lw=1.5 * thin, ls=SHORT_DASHES, label=f"{name}lower bound")
    panel.set_title("Margins (E1, E2)", loc="left")
    panel.set_ylim(bottom=0)
    legend_if_any(panel, "lower right")


def _rates(panel: Axes, runs: Sequence[Run]) -> None:
    for line, colour, words in (
        ("loss constant", BLACK, "4 margin · L t log t"),
        ("norm constant", GREEN, "|θ| · sqrt(margin / log t)"),
    ):
        for run, name in labelled(runs, words):
            panel.plot(run["late decades"], run[line], color=colour, lw=1.4, label=name)
    panel.axhline(1, color=GREY, lw=1, ls=DOTTED, zorder=1)
    panel.set_title("Loss and norm over their predicted rates (E3)", loc="left")
    panel.set_ylim(0, 1.3)
    legend_if_any(panel, "lower right")


def _residuals(panel: Axes, runs: Sequence[Run], starts: Sequence[Run]) -> None:
    for start, colour in zip(sorted({run["start"] for run in starts}), (BLUE, GREEN, VERMILION), strict=False):
        for run, name in labelled(select(starts, start=start), f"start {start:g}"):
            panel.plot(run["levels"], run["residuals"], color=colour, lw=1.4, marker="o", ms=3.5, label=name)
    for run, name in labelled(runs, "start 0.0001, on to the end"):
        panel.plot(run["levels"], run["residuals"], color=BLUE, lw=1.4, ls=SHORT_DASHES, label=name, zorder=1)
    panel.axhline(0.1, color=GREY, lw=1, ls=DOTTED, zorder=1)
    panel.set_yscale("log")
    panel.set_title("Distance to a KKT point (E4, E21)", loc="left")
    legend_if_any(panel, "lower left")


def _decades(panel: Axes) -> None:
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(LogLocator(10))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"1e-{x:.0f}"))
    panel.set_xlabel("loss")


FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        id="ll20-margin",
        title="Margins far beyond zero loss",
        paper="LL20",
        caption="Top: the smoothed margin never falls and lies between its bounds (Thm 4.1). Left: loss and norm over "
        "the rates of Thm 4.3, with the constants of a KKT point; both tend to 1. Right: the KKT residual (Thm 4.4) "
        "falls, from a large start so slowly that it is above .1 long after the loss is 1e-100. One line a seed.",
        claims=("E1", "E2", "E3", "E4", "E21"),
        draw=margin,
    ),
)
