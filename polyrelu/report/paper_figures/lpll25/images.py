"""Ten labels against two on images, drawn again: robust accuracy (LPLL25 Fig. 3) and heads on features (Fig. 2c,d)."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from polyrelu.claims import Measured, Quantity, Values
from polyrelu.claims.lpll25 import FIG3_IMAGES, LOGIT, ODDS, OWN, READ_OUT, STRONGEST, SUM, TEN, TWO
from polyrelu.report.figures.heatmap import heatmap
from polyrelu.report.figures.style import BLACK, BLUE, GREEN, GREY, VERMILION, canvas, figure_style
from polyrelu.report.paper_figures.figure import PaperFigure, Results, Run
from polyrelu.report.paper_figures.panels import band, measured, percent_axis, published_marks, runs_of

TITLES = {"parity": "Odd or even (C10)", "halves": "First or last five classes (C11, C12)"}
IMAGES = {"digits": "8 × 8 digits", "mnist-full": "MNIST", "cifar10": "CIFAR-10"}
LINES = (  # trained with which labels, read out how, in words, under which attack, colour, dashes
    (TWO, LOGIT, "two labels", OWN, VERMILION, "-"),
    (TEN, ODDS, "ten labels (odds)", OWN, BLUE, "-"),
    (TEN, ODDS, "ten labels (odds)", READ_OUT, BLUE, "--"),
    (TEN, SUM, "ten labels (sum)", OWN, GREEN, "-"),
    (TEN, SUM, "ten labels (sum)", READ_OUT, GREEN, "--"),
)


@figure_style()
def images(results: Results) -> Figure:
    """Above: accuracy against radius for both tasks. Below: cosines of the heads, of the first seed."""
    figure = canvas((10.4, 9.2), "Ten labels or two: what is gained depends on what is attacked")
    grid = figure.add_gridspec(
        2, 2, left=0.075, right=0.95, top=0.91, bottom=0.06, hspace=0.46, wspace=0.2, height_ratios=(1.12, 1)
    )
    for column, task in enumerate(TITLES):
        _curves(figure.add_subplot(grid[0, column]), task, measured(results, f"lpll25.images.{task}"), column == 0)
    cosines = [run["cosines"] for run in runs_of(results, "lpll25.images.halves") if "cosines" in run]
    for column, labels in enumerate((TWO, TEN)):
        _cosines(figure, figure.add_subplot(grid[1, column]), labels, cosines)
    return figure


def _curves(panel: Axes, task: str, runs: list[Measured], legend: bool) -> None:
    for net, readout, words, attack, colour, dashes in LINES:
        clean = Quantity("accuracy", attack="clean", net=net, readout=readout)
        mine = [(Values(run.values), run.data) for run in runs if clean in run.values]
        if not mine:
            continue
        lines = [values.along("radius", "accuracy", attack=attack, net=net, readout=readout) for values, _ in mine]
        heights = [[values[clean], *line.values()] for (values, _), line in zip(mine, lines, strict=True)]
        band(panel, [0.0, *lines[0]], heights, colour, alpha=0.1, ls=dashes, lw=1.7, label=f"{words}, {attack}")
        if attack == OWN:
            radius = mine[0][1]["radius"]
            strong = Quantity("accuracy", attack=STRONGEST, net=net, radius=radius, readout=readout)
            panel.plot(
                radius, np.mean([values[strong] for values, _ in mine]), "X", color=colour, mec="white", ms=9, zorder=3
            )
    images = runs[0].data["images"] if runs else ""
    if images not in ("", "digits"):
        for net, colour in ((TEN, BLUE), (TWO, VERMILION)):
            known = FIG3_IMAGES[task][net]
            published_marks(panel, known, known.values(), colour, zorder=2)
    name = f"{IMAGES[images]}: " if runs else ""
    panel.set_title(name + TITLES[task], loc="left")
    percent_axis(panel, -0.02, 1.03)
    panel.set_xlabel("l2 radius; cross: strongest attack on the same read-out")
    if legend and runs:
        panel.legend(ncols=3, loc="upper left", bbox_to_anchor=(-0.08, -0.14))


def _cosines(figure: Figure, panel: Axes, labels: str, found: list[Run]) -> None:
    panel.set_title(f"Head with {labels}: cosines to mean features (C13)", loc="left")
    if not found:
        panel.set_axis_off()
        return
    matrix = np.array(found[0][labels])
    image = heatmap(panel, matrix, float(np.abs(matrix).max()))
    middle = len(matrix) / 2 - 0.5
    for line in (panel.axhline, panel.axvline):
        line(middle, color=BLACK, lw=0.8)
    panel.set_xticks(range(len(matrix)))
    panel.set_yticks(range(len(matrix)))
    panel.set_xlabel("group of three neurons", color=GREY)
    panel.set_ylabel("class", color=GREY)
    figure.colorbar(image, ax=panel, fraction=0.046, pad=0.03)


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
