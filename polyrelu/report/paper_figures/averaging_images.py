"""Ten labels against two on images, drawn again: robust accuracy (LPLL25 Fig. 3) and heads on features (Fig. 2c,d)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from polyrelu.claims.averaging_images import OWN, PUBLISHED, READ_OUT, STRONGEST
from polyrelu.report.figures.heatmap import heat
from polyrelu.report.figures.training import AVERAGE, CENTRE, INK, QUIET, STYLE, canvas
from polyrelu.report.paper_figures.figure import PaperFigure, Results

TITLES = {"parity": "Odd or even (C10)", "halves": "First or last five classes (C11, C12)"}
IMAGES = {"digits": "8 × 8 digits", "mnist-full": "MNIST", "cifar10": "CIFAR-10"}
GREEN = "#009E73"
LINES = (  # whose accuracy, under which attack, colour, dashes
    ("two labels", OWN, AVERAGE, "-"),
    ("ten labels (odds)", OWN, CENTRE, "-"),
    ("ten labels (odds)", READ_OUT, CENTRE, "--"),
    ("ten labels (sum)", OWN, GREEN, "-"),
    ("ten labels (sum)", READ_OUT, GREEN, "--"),
)


def images(results: Results) -> Figure:
    """Above: accuracy against radius for both tasks. Below: cosines of the heads, of the first seed."""
    with rc_context(STYLE):
        figure = canvas((10.4, 9.2), "Ten labels or two: what is gained depends on what is attacked")
        grid = figure.add_gridspec(
            2, 2, left=0.075, right=0.95, top=0.91, bottom=0.06, hspace=0.46, wspace=0.2, height_ratios=(1.12, 1)
        )
        for column, task in enumerate(TITLES):
            _curves(figure.add_subplot(grid[0, column]), task, _runs(results, task), legend=column == 0)
        cosines = [run["cosines"] for run in _runs(results, "halves") if "cosines" in run]
        for column, labels in enumerate(("two", "ten")):
            _cosines(figure, figure.add_subplot(grid[1, column]), labels, cosines)
    return figure


def _curves(panel: Axes, task: str, runs: list[Mapping[str, Any]], legend: bool) -> None:
    for who, how, colour, dashes in LINES:
        mine = [run for run in runs if f"{who}, clean" in run["accuracy"]]
        if not mine:
            continue
        radii = mine[0]["radii"]
        names = [f"{who}, clean", *(f"{who}, {how} at {r:g}" for r in radii)]
        heights = np.array([[run["accuracy"][name] for name in names] for run in mine])
        x, label = [0.0, *radii], f"{who}, {how}"
        panel.fill_between(x, heights.min(axis=0), heights.max(axis=0), color=colour, alpha=0.1, lw=0)
        panel.plot(x, heights.mean(axis=0), color=colour, ls=dashes, lw=1.7, label=label)
        strong = [run["accuracy"][f"{who}, {STRONGEST} at {run['radius']:g}"] for run in mine]
        if how == OWN:
            panel.plot(mine[0]["radius"], np.mean(strong), "X", color=colour, mec="white", ms=9, zorder=3)
    if runs and runs[0]["images"] != "digits":
        for side, colour in ((0, CENTRE), (1, AVERAGE)):
            known = [pair[side] for pair in PUBLISHED[task].values()]
            panel.plot([*PUBLISHED[task]], known, "D", mfc="none", mec=colour, ms=6)
    name = f"{IMAGES[runs[0]['images']]}: " if runs else ""
    panel.set_title(name + TITLES[task], loc="left")
    panel.set_ylim(-0.02, 1.03)
    panel.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    panel.set_xlabel("l2 radius; cross: strongest attack on the same read-out")
    if legend and runs:
        panel.legend(frameon=False, fontsize=9, ncols=3, loc="upper left", bbox_to_anchor=(-0.08, -0.14))


def _cosines(figure: Figure, panel: Axes, labels: str, found: list[Mapping[str, Any]]) -> None:
    panel.set_title(f"Head with {labels} labels: cosines to mean features (C13)", loc="left")
    if not found:
        panel.set_axis_off()
        return
    matrix = np.array(found[0][labels])
    image = heat(panel, matrix, float(np.abs(matrix).max()))
    middle = len(matrix) / 2 - 0.5
    for line in (panel.axhline, panel.axvline):
        line(middle, color=INK, lw=0.8)
    panel.set_xticks(range(len(matrix)))
    panel.set_yticks(range(len(matrix)))
    panel.set_xlabel("group of three neurons", color=QUIET)
    panel.set_ylabel("class", color=QUIET)
    figure.colorbar(image, ax=panel, fraction=0.046, pad=0.03)


def _runs(results: Results, task: str) -> list[Mapping[str, Any]]:
    found = results.get(f"averaging_images.{task}", ())
    return [outcome.measured.data for outcome in found if outcome.measured is not None]


FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        id="lpll25-images",
        title="Ten labels against two on images",
        paper="LPLL25",
        caption="Above: accuracy of the answer to the two-fold question, from a net trained on it and from one trained "
        "on all ten classes, read out by the odds of the two halves or by sums of logits. Solid: PGD on the loss the "
        "net was trained with, as published; dashed: PGD on the read-out; crosses: our strongest attack. Diamonds: "
        "published (ResNet-18; blue ten labels, red two). Bands: smallest to largest over seeds. Below: heads of 30 "
        "neurons on the features of the net with ten labels, seed 0.",
        claims=("C10", "C11", "C12", "C13"),
        draw=images,
    ),
)
