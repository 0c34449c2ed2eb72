"""Margins and radii at five losses, drawn again: model-1 to model-5 of Lyu & Li (ICLR 2020)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from matplotlib.transforms import Bbox

from polyrelu.claims.ll20 import MODELS
from polyrelu.report.figures.style import BLACK, BLUE, DOTTED, GREY, VERMILION, canvas, figure_style
from polyrelu.report.paper_figures import panels
from polyrelu.report.paper_figures.figure import PaperFigure, Results, Run

NAMES = [f"{name}\n1e{math.trunc(model.log10_loss)}" for name, model in MODELS.items()]


@figure_style()
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
    published = [model.margin for model in MODELS.values()]
    panels.published_marks(panel, x, published, BLACK, ms=7, zorder=2, label="published, CNN on MNIST")
    panel.set_yscale("log")
    panel.set_xticks(x, NAMES)
    panel.set_title("Margin over the product of layer norms (E7)", loc="left")
    panels.legend_if_any(panel, "center left")


def _radius(panel: Axes, runs: Sequence[Run]) -> None:
    x = np.arange(len(MODELS))
    if runs:
        mean = panels.rows(runs, "radii").mean(axis=2)
        panels.band(panel, x[: mean.shape[1]], mean / mean[:, :1], VERMILION, marker="o", ms=6)
    panel.axhline(1, color=GREY, lw=1, ls=DOTTED, zorder=1)
    panel.set_xticks(x, NAMES)
    panel.set_title("Mean l2 radius of training images, over model-1's (E8)", loc="left")


def _epochs(panel: Axes, runs: Sequence[Run], name: str) -> None:
    for rate, colour in (("constant rate", BLACK), ("loss-based rate", BLUE)):
        for run, label in panels.labelled(panels.select(runs, rate=rate), rate):
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
    panels.legend_if_any(panel, "lower right" if name == "normalised" else "lower left")


def _table(panel: Axes, runs: Sequence[Run]) -> None:
    panel.set_axis_off()
    head = ["", "loss", "published epochs", "published margin", "our margin", "our mean radius", "our test accuracy"]
    lines = [
        [name, f"1e{model.log10_loss:.2f}", f"{model.epochs:,}", f"{model.margin:.2e}"]
        for name, model in MODELS.items()
    ]
    if runs:
        margin, right = (panels.rows(runs, name).mean(axis=0) for name in ("margin", "test accuracy"))
        ours = zip(margin, panels.rows(runs, "radii").mean(axis=(0, 2)), right, strict=True)
        cells = [[f"{q:.2e}", f"{r:.3f}", f"{a:.3f}"] for q, r, a in ours]
        lines = [line + found for line, found in zip_longest(lines, cells, fillvalue=["not run"] * 3)]
    table = panel.table(
        [head[: len(lines[0])], *lines], cellLoc="right", edges="horizontal", bbox=Bbox([[0, 0], [1, 1]])
    )
    table.auto_set_font_size(False)
    table.set_fontsize(9.5)
    for (line, _), cell in table.get_celld().items():
        cell.set_edgecolor("#D5D5D5")
        cell.get_text().set_color(GREY if line == 0 else BLACK)


FIGURES: tuple[PaperFigure, ...] = (
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
