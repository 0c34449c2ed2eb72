"""The margin that grows for ever, drawn again: the toy of the theorems and the five models (Lyu & Li, ICLR 2020)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from polyrelu.claims.images import PUBLISHED
from polyrelu.report.figures.training import AVERAGE, CENTRE, INK, QUIET, STYLE, canvas
from polyrelu.report.paper_figures.figure import PaperFigure, Results

Runs = Sequence[Mapping[str, Any]]
Place = Literal["lower left", "lower right", "center left"]
GREEN, DASHED = "#009E73", (0, (3, 2))
MODELS = [f"model-{k}" for k in range(1, len(PUBLISHED) + 1)]
NAMES = [f"{name}\n1e{math.trunc(loss)}" for name, loss in zip(MODELS, PUBLISHED, strict=True)]


def margin(results: Results) -> Figure:
    """Margins, rates of loss and norm, and the way to a KKT point, all against the decades of loss won."""
    runs, starts = _data(results, "margins.growth"), _data(results, "margins.from_starts")
    with rc_context(STYLE):
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


def _margins(panel: Axes, runs: Runs) -> None:
    for run, name in _named(runs, ""):
        x, thin = np.array(run["decades"]), 1 if len(runs) == 1 else 0.5
        lower, smoothed, normalised = (np.array(run[line]) for line in ("lower", "smoothed", "normalised"))
        panel.fill_between(x, np.maximum(lower, 0), normalised, color=CENTRE, alpha=0.13 / len(runs), lw=0)
        panel.plot(x, normalised, color=CENTRE, lw=1.5 * thin, label=f"{name}normalised margin: upper bound")
        panel.plot(x, smoothed, color=AVERAGE, lw=2.2 * thin, label=f"{name}smoothed margin: never falls")
        panel.plot(x, lower, color=CENTRE, lw=1.5 * thin, ls=DASHED, label=f"{name}lower bound")
    panel.set_title("Margins (E1, E2)", loc="left")
    panel.set_ylim(bottom=0)
    _legend(panel, "lower right")


def _rates(panel: Axes, runs: Runs) -> None:
    for line, colour, words in (
        ("loss constant", INK, "4 margin · L t log t"),
        ("norm constant", GREEN, "|θ| · sqrt(margin / log t)"),
    ):
        for run, name in _named(runs, words):
            panel.plot(run["late decades"], run[line], color=colour, lw=1.4, label=name)
    panel.axhline(1, color=QUIET, lw=1, ls=(0, (2, 2)), zorder=1)
    panel.set_title("Loss and norm over their predicted rates (E3)", loc="left")
    panel.set_ylim(0, 1.3)
    _legend(panel, "lower right")


def _residuals(panel: Axes, runs: Runs, starts: Runs) -> None:
    for std, colour in zip(sorted({run["std"] for run in starts}), (CENTRE, GREEN, AVERAGE), strict=False):
        for run, name in _named([one for one in starts if one["std"] == std], f"start {std:g}"):
            panel.plot(run["levels"], run["residuals"], color=colour, lw=1.4, marker="o", ms=3.5, label=name)
    for run, name in _named(runs, "start 0.0001, on to the end"):
        panel.plot(run["levels"], run["residuals"], color=CENTRE, lw=1.4, ls=DASHED, label=name, zorder=1)
    panel.axhline(0.1, color=QUIET, lw=1, ls=(0, (2, 2)), zorder=1)
    panel.set_yscale("log")
    panel.set_title("Distance to a KKT point (E4, E21)", loc="left")
    _legend(panel, "lower left")


def _decades(panel: Axes) -> None:
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(LogLocator(10))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"1e-{x:.0f}"))
    panel.set_xlabel("loss")


def models(results: Results) -> Figure:
    """Margins and radii at the five published losses, the two rates, and the table."""
    runs, rates = _data(results, "images.models"), _data(results, "images.rates")
    with rc_context(STYLE):
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


def _by_model(panel: Axes, runs: Runs) -> None:
    x = np.arange(len(MODELS))
    if runs:
        small = runs[0]["profile"] == "quick"
        _band(panel, _all(runs, "margin"), CENTRE, "ours, " + ("small CNN on 8 × 8 digits" if small else "the same"))
    published = [one for _, one in PUBLISHED.values()]
    panel.plot(x, published, "D", mfc="none", mec=INK, ms=7, label="published, CNN on MNIST")
    panel.set_yscale("log")
    panel.set_xticks(x, NAMES)
    panel.set_title("Margin over the product of layer norms (E7)", loc="left")
    _legend(panel, "center left")


def _radius(panel: Axes, runs: Runs) -> None:
    x = np.arange(len(MODELS))
    if runs:
        mean = _all(runs, "radii").mean(axis=2)
        _band(panel, mean / mean[:, :1], AVERAGE, "")
    panel.axhline(1, color=QUIET, lw=1, ls=(0, (2, 2)), zorder=1)
    panel.set_xticks(x, NAMES)
    panel.set_title("Mean l2 radius of training images, over model-1's (E8)", loc="left")


def _epochs(panel: Axes, runs: Runs, name: str) -> None:
    for rate, colour in (("constant", INK), ("loss-based", CENTRE)):
        for run, label in _named([one for one in runs if one["rate"] == rate], f"{rate} rate"):
            values = np.array(run[name], dtype=np.float64)
            values = np.where(values > 0, values, np.nan) if name == "normalised" else values
            panel.plot(run["epochs"], values, color=colour, lw=1.8, label=label)
    if name == "normalised":
        panel.set_yscale("log")
        panel.set_title("Margin over |θ|^4 (E5, E23)", loc="left")
    else:
        panel.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"1e{y:.0f}"))
        panel.set_title("Training loss (E6)", loc="left")
    panel.set_xlabel("epochs")
    _legend(panel, "lower right" if name == "normalised" else "lower left")


def _table(panel: Axes, runs: Runs) -> None:
    panel.set_axis_off()
    head = ["", "loss", "published epochs", "published margin", "our margin", "our mean radius", "our test accuracy"]
    rows = [
        [name, f"1e{loss:.2f}", f"{epochs:,}", f"{known:.2e}"]
        for name, (loss, (epochs, known)) in zip(MODELS, PUBLISHED.items(), strict=True)
    ]
    if runs:
        margin, right = (_all(runs, name).mean(axis=0) for name in ("margin", "test accuracy"))
        ours = zip(margin, _all(runs, "radii").mean(axis=(0, 2)), right, strict=True)
        cells = [[f"{q:.2e}", f"{r:.3f}", f"{a:.3f}"] for q, r, a in ours]
        rows = [row + found for row, found in zip_longest(rows, cells, fillvalue=["not run"] * 3)]
    table = panel.table([head[: len(rows[0])], *rows], cellLoc="right", edges="horizontal", bbox=Bbox([[0, 0], [1, 1]]))
    table.auto_set_font_size(False)
    table.set_fontsize(9.5)
    for (row, _), cell in table.get_celld().items():
        cell.set_edgecolor("#D5D5D5")
        cell.get_text().set_color(QUIET if row == 0 else INK)


def _named(runs: Runs, words: str) -> list[tuple[Mapping[str, Any], str]]:
    """Every run with its label; all but the first begin with an underscore, which keeps them out of the legend."""
    return [(run, words if number == 0 else f"_{words}") for number, run in enumerate(runs)]


def _legend(panel: Axes, place: Place) -> None:
    if panel.get_legend_handles_labels()[0]:
        panel.legend(frameon=False, fontsize=9, loc=place)


def _band(panel: Axes, lines: NDArray[np.float64], colour: str, label: str) -> None:
    x = np.arange(lines.shape[1])
    panel.fill_between(x, lines.min(axis=0), lines.max(axis=0), color=colour, alpha=0.18, lw=0)
    panel.plot(x, lines.mean(axis=0), color=colour, marker="o", ms=6, lw=1.8, label=label or None)


def _data(results: Results, experiment: str) -> list[Mapping[str, Any]]:
    return [outcome.measured.data for outcome in results.get(experiment, ()) if outcome.measured is not None]


def _all(runs: Runs, name: str) -> NDArray[np.float64]:
    """One row a seed."""
    return np.array([run[name] for run in runs], dtype=np.float64)


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
    PaperFigure(
        id="ll20-models",
        title="Model-1 to model-5",
        paper="LL20",
        caption="One run stopped at five losses, as in the published table: the margin grows at every one, the l2 "
        "radius (what a minimal-norm attack found) grows slightly, the test accuracy stays. Below: a constant rate and "
        "the loss-based rate for as many epochs. Bands: smallest to largest over seeds. Margins of other nets and data "
        "are not comparable in size, only in growth.",
        claims=("E5", "E6", "E7", "E8", "E9", "E23"),
        draw=models,
    ),
)
