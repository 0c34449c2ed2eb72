"""Lyu & Li (ICLR 2020) drawn again: margins beyond zero loss, of the toy of the theorems and of model-1 to model-5."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from polyrelu.claims.ll20 import MODELS
from polyrelu.report.figures.style import BLACK, BLUE, DOTTED, GREEN, GREY, VERMILION, canvas
from polyrelu.report.paper_figures import panels
from polyrelu.report.paper_figures.panels import Results, Run, paper_figure

SHORT_DASHES = (0, (3, 2))
NAMES = [f"{name}\n1e{math.trunc(model.log10_loss)}" for name, model in MODELS.items()]
HEAD = ["", "loss", "published epochs", "published margin", "our margin", "our mean radius", "our test accuracy"]


@paper_figure(
    id="ll20-margin",
    title="Margins far beyond zero loss",
    paper="LL20",
    caption="Top: the smoothed margin never falls and lies between its bounds (Thm 4.1). Left: loss and norm over "
    "the rates of Thm 4.3, with the constants of a KKT point; both tend to 1. Right: the KKT residual (Thm 4.4) "
    "falls, from a large start so slowly that it is above .1 long after the loss is 1e-100. One line a seed.",
    claims=("E1", "E2", "E3", "E4", "E21"),
)
def margin(results: Results) -> Figure:
    """Margins, rates of loss and norm, and the way to a KKT point, all against the decades of loss won."""
    runs, starts = panels.runs_of(results, "ll20.margins.growth"), panels.runs_of(results, "ll20.margins.from_starts")
    figure = canvas((10, 7.6), "Beyond zero loss: a two-layer ReLU net on twenty points")
    grid = figure.add_gridspec(2, 2, left=0.075, right=0.98, top=0.89, bottom=0.08, hspace=0.38, wspace=0.22)
    top, left, right = (figure.add_subplot(place) for place in (grid[0, :], grid[1, 0], grid[1, 1]))
    _margins(top, runs)
    _rates(left, runs)
    _residuals(right, runs, starts)
    for panel in (top, left, right):
        panel.set(xscale="log", xlabel="loss")
        panel.xaxis.set_major_locator(LogLocator(10))
        panel.xaxis.set_minor_locator(NullLocator())
        panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"1e-{x:.0f}"))
    return figure


def _margins(panel: Axes, runs: Sequence[Run]) -> None:
    for run, name in panels.labelled(runs, ""):
        x, thin = np.array(run["decades"]), 1 if len(runs) == 1 else 0.5
        lower, smoothed, normalised = (np.array(run[line]) for line in ("lower", "smoothed", "normalised"))
        panel.fill_between(x, np.maximum(lower, 0), normalised, color=BLUE, alpha=0.13 / len(runs), lw=0)
        panel.plot(x, normalised, color=BLUE, lw=1.5 * thin, label=f"{name}normalised margin: upper bound")
        panel.plot(x, smoothed, color=VERMILION, lw=2.2 * thin, label=f"{name}smoothed margin: never falls")
        panel.plot(x, lower, color=BLUE, lw=1.5 * thin, ls=SHORT_DASHES, label=f"{name}lower bound")
    panel.set(title="Margins (E1, E2)", ylim=(0, None))
    panels.legend_if_any(panel, "lower right")


def _rates(panel: Axes, runs: Sequence[Run]) -> None:
    for line, colour, words in (
        ("loss constant", BLACK, "4 margin · L t log t"),
        ("norm constant", GREEN, "|θ| · sqrt(margin / log t)"),
    ):
        for run, name in panels.labelled(runs, words):
            panel.plot(run["late decades"], run[line], color=colour, lw=1.4, label=name)
    panel.axhline(1, color=GREY, lw=1, ls=DOTTED, zorder=1)
    panel.set(title="Loss and norm over their predicted rates (E3)", ylim=(0, 1.3))
    panels.legend_if_any(panel, "lower right")


def _residuals(panel: Axes, runs: Sequence[Run], starts: Sequence[Run]) -> None:
    for start, colour in zip(sorted({run["start"] for run in starts}), (BLUE, GREEN, VERMILION), strict=False):
        for run, name in panels.labelled(panels.select(starts, start=start), f"start {start:g}"):
            panel.plot(run["levels"], run["residuals"], color=colour, lw=1.4, marker="o", ms=3.5, label=name)
    for run, name in panels.labelled(runs, "start 0.0001, on to the end"):
        panel.plot(run["levels"], run["residuals"], color=BLUE, lw=1.4, ls=SHORT_DASHES, label=name, zorder=1)
    panel.axhline(0.1, color=GREY, lw=1, ls=DOTTED, zorder=1)
    panel.set(title="Distance to a KKT point (E4, E21)", yscale="log")
    panels.legend_if_any(panel, "lower left")


@paper_figure(
    id="ll20-models",
    title="Model-1 to model-5",
    paper="LL20",
    caption="One run stopped at five losses, as in the published table: the margin grows at every one, the l2 "
    "radius (what a minimal-norm attack found) grows slightly, the test accuracy stays. Below: a constant rate and "
    "the loss-based rate for as many epochs. Bands: smallest to largest over seeds. Margins of other nets and data "
    "are not comparable in size, only in growth.",
    claims=("E5", "E6", "E7", "E8", "E9", "E23"),
)
def models(results: Results) -> Figure:
    """Margins and radii at the five published losses, the two rates, and the table."""
    runs, rates = panels.runs_of(results, "ll20.images.models"), panels.runs_of(results, "ll20.images.rates")
    figure = canvas((10, 8.8), "Model-1 to model-5: margins and radii grow on when the loss is zero")
    grid = figure.add_gridspec(
        3, 2, left=0.08, right=0.98, top=0.9, bottom=0.02, hspace=0.5, wspace=0.22, height_ratios=(1, 1, 0.72)
    )
    _by_model(figure.add_subplot(grid[0, 0]), runs)
    _radius(figure.add_subplot(grid[0, 1]), runs)
    _epochs(figure.add_subplot(grid[1, 0]), rates, "log10 loss")
    _epochs(figure.add_subplot(grid[1, 1]), rates, "normalised")
    _table(figure.add_subplot(grid[2, :]), runs)
    return figure


def _by_model(panel: Axes, runs: Sequence[Run]) -> None:
    x = np.arange(len(MODELS))
    if runs:
        small = runs[0]["profile"] == "quick"
        ours = "ours, " + ("small CNN on 8 × 8 digits" if small else "the same")
        found = panels.rows(runs, "margin")  # of the models that training came to
        panels.band(panel, x[: found.shape[1]], found, BLUE, marker="o", ms=6, label=ours)
    published = {place: model.margin for place, model in enumerate(MODELS.values())}
    panels.published_marks(panel, published, BLACK, ms=7, zorder=2, label="published, CNN on MNIST")
    panel.set(title="Margin over the product of layer norms (E7)", yscale="log")
    panel.set_xticks(x, NAMES)
    panels.legend_if_any(panel, "center left")


def _radius(panel: Axes, runs: Sequence[Run]) -> None:
    x = np.arange(len(MODELS))
    if runs:
        mean = panels.rows(runs, "radii").mean(axis=2)
        panels.band(panel, x[: mean.shape[1]], mean / mean[:, :1], VERMILION, marker="o", ms=6)
    panel.axhline(1, color=GREY, lw=1, ls=DOTTED, zorder=1)
    panel.set_xticks(x, NAMES)
    panel.set_title("Mean l2 radius of training images, over model-1's (E8)")


def _epochs(panel: Axes, runs: Sequence[Run], name: str) -> None:
    for rate, colour in (("constant rate", BLACK), ("loss-based rate", BLUE)):
        for run, label in panels.labelled(panels.select(runs, rate=rate), rate):
            values = np.array(run[name], dtype=np.float64)
            values = np.where(values > 0, values, np.nan) if name == "normalised" else values
            panel.plot(run["epochs"], values, color=colour, lw=1.8, label=label)
    if name == "normalised":
        panel.set(title="Margin over |θ|^4 (E5, E23)", yscale="log")
    else:
        panel.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"1e{y:.0f}"))
        panel.set_title("Training loss (E6)")
    panel.set_xlabel("epochs")
    panels.legend_if_any(panel, "lower right" if name == "normalised" else "lower left")


def _table(panel: Axes, runs: Sequence[Run]) -> None:
    lines = [
        [name, f"1e{model.log10_loss:.2f}", f"{model.epochs:,}", f"{model.margin:.2e}"]
        for name, model in MODELS.items()
    ]
    if runs:
        margin, right = (panels.rows(runs, name).mean(axis=0) for name in ("margin", "test accuracy"))
        ours = zip(margin, panels.rows(runs, "radii").mean(axis=(0, 2)), right, strict=True)
        cells = [[f"{q:.2e}", f"{r:.3f}", f"{a:.3f}"] for q, r, a in ours]
        lines = [line + found for line, found in zip_longest(lines, cells, fillvalue=["not run"] * 3)]
    table = panels.ruled_table(panel, [HEAD[: len(lines[0])], *lines], 9.5)
    for (line, _), cell in table.get_celld().items():
        cell.get_text().set_color(GREY if line == 0 else BLACK)
