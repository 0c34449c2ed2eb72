"""Li et al. (ICLR 2025) drawn again: averages or single clusters (Figs 2a, 2b, 3 left), ten labels against two."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from polyrelu.claims import Measured, Quantity, Values
from polyrelu.claims.lpll25 import (
    AVERAGED,
    CLUSTERS,
    DECOUPLED,
    FIG3,
    FIG3_IMAGES,
    LOGIT_READ_OUT,
    NETS,
    ODDS_READ_OUT,
    OWN_LOSS_PGD,
    PUBLISHED_DIM,
    READ_OUT_PGD,
    STRONGEST,
    SUM_READ_OUT,
    SUMMED,
    TEN_LABELS,
    TWO_LABELS,
)
from polyrelu.report.figures.heatmap import heatmap
from polyrelu.report.figures.style import BLACK, BLUE, DASHED, DOTTED, GREEN, GREY, VERMILION, canvas
from polyrelu.report.paper_figures import panels
from polyrelu.report.paper_figures.panels import Results, Run, paper_figure

COLOURS = dict(zip(NETS, (VERMILION, GREEN, BLUE), strict=True))
SIDES = {"attacked": ("upper", 5.0, 0.35), "certified": ("lower", 1.6, 1.0)}
PGD = {READ_OUT_PGD: (0, (1, 1.5)), OWN_LOSS_PGD: DASHED}
TITLES = {"parity": "Odd or even (C10)", "halves": "First or last five classes (C11, C12)"}
IMAGES = {"digits": "8 × 8 digits", "mnist-full": "MNIST", "cifar10": "CIFAR-10"}
LINES = (  # trained with which labels, read out how, in words, under which attack, colour, dashes
    (TWO_LABELS, LOGIT_READ_OUT, "two labels", OWN_LOSS_PGD, VERMILION, "-"),
    (TEN_LABELS, ODDS_READ_OUT, "ten labels (odds)", OWN_LOSS_PGD, BLUE, "-"),
    (TEN_LABELS, ODDS_READ_OUT, "ten labels (odds)", READ_OUT_PGD, BLUE, "--"),
    (TEN_LABELS, SUM_READ_OUT, "ten labels (sum)", OWN_LOSS_PGD, GREEN, "-"),
    (TEN_LABELS, SUM_READ_OUT, "ten labels (sum)", READ_OUT_PGD, GREEN, "--"),
)


@paper_figure(
    id="lpll25-averaging",
    title="Figures 2a, 2b and 3 (left): averages or single clusters",
    paper="LPLL25",
    caption="a, b: cosines of the neurons and the centres, trained on the class and on the cluster of each point. "
    "c: where half of the points break; dashed: the ideal nets at a centre, √2/2, 1/√(1 + k/2) and 1/√k. d: proven "
    "and attacked accuracy coincide. Read out by the largest logit of each class, the net trained on clusters "
    "holds to √(d/2); read out as a sum, as the paper defines it, it breaks at a third less, and the published "
    "curve does not show it. PGD from x, on the own loss or on the read-out, misses that. Diamonds: d = 3072.",
    claims=("C1", "C2", "C3", "C4", "C5", "C8", "C9", "C14", "C15"),
)
def averaging(results: Results) -> Figure:
    """Cosine matrices, radii against the number of clusters, robust accuracy."""
    trained = panels.runs_of(results, "lpll25.mixture.learned")
    figure = canvas((10, 9.6), "Class labels teach averages, cluster labels single clusters")
    grid = figure.add_gridspec(
        2, 3, left=0.075, right=0.98, top=0.9, bottom=0.125, hspace=0.3, wspace=0.34, height_ratios=(1, 1.35)
    )
    for place, (name, words) in enumerate(((AVERAGED, "a  Class labels"), (DECOUPLED, "b  Cluster labels"))):
        _neurons(figure.add_subplot(grid[0, place]), trained, name, words)
    _radii(figure.add_subplot(grid[0, 2]), panels.measured(results, "lpll25.scaling.clusters"))
    _accuracy(figure.add_subplot(grid[1, :]), panels.measured(results, "lpll25.mixture.curves"))
    return figure


def _neurons(panel: Axes, runs: Sequence[Run], name: str, title: str) -> None:
    """Of the first seed."""
    for run in runs[:1]:
        values = np.array(run[name])
        panels.cosine_panel(panel, values, (1.02, 0.025))
        neurons, k = values.shape
        panel.set_xticks(range(k), labels=[str(j + 1) for j in range(k)])
        panel.set_yticks(range(neurons), labels=[str(j + 1) for j in range(neurons)])
        panel.axvline(k / 2 - 0.5, color=BLACK, lw=0.8)
        panel.axhline(neurons / 2 - 0.5, color=BLACK, lw=0.8)
    panel.set(title=f"{title}: cos(w, μ)", xlabel="centres μ", ylabel="neurons w")


def _radii(panel: Axes, runs: Sequence[Measured]) -> None:
    for name, colour in COLOURS.items() if runs else ():
        quantities = [Quantity("median radius over √d", k=k, net=name, way="broken") for k in CLUSTERS]
        medians = [panels.values_of(runs, one) for one in quantities]
        panels.band(panel, CLUSTERS, np.transpose(medians), colour, marker="o", ms=5, label=name)
    for line in ([k**-0.5 for k in CLUSTERS], [(1 + k / 2) ** -0.5 for k in CLUSTERS], [0.5**0.5] * len(CLUSTERS)):
        panel.plot(CLUSTERS, line, color=BLACK, lw=1, ls=DOTTED, zorder=1)
    panel.text(11, 0.25, "1/√k", ha="right", fontsize=9, color=BLACK)
    panel.text(32, 0.73, "√2/2", ha="right", fontsize=9, color=BLACK)
    panel.set(title="c  Median radius over √d", xlabel="clusters k")
    panels.logarithmic(panel, CLUSTERS, (0.2, 0.3, 0.4, 0.5, 0.7))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda radius, _: f"{radius:g}".lstrip("0")))


def _accuracy(panel: Axes, found: Sequence[Measured]) -> None:
    radii, runs = np.linspace(0, 0.9, 1801), [one.data for one in found]
    for name, colour in COLOURS.items() if runs else ():
        for side, width, alpha in SIDES.values():
            shares = [
                panels.share_beyond(np.array(run[name][side]) / math.sqrt(run["dim"]), radii, run["points"])
                for run in runs
            ]
            panels.band(panel, radii, shares, colour, alpha=0.15, lw=width, line_alpha=alpha)
        x = [radius / math.sqrt(PUBLISHED_DIM) for radius in FIG3[name]]
        for how, style in PGD.items():
            if (name, how) != (AVERAGED, OWN_LOSS_PGD):
                lines = [[*Values(one.values).along("radius", "accuracy", net=name, way=how).values()] for one in found]
                panel.plot(x, np.mean(lines, axis=0), color=colour, lw=1.2, ls=style)
    for name, colour in ((AVERAGED, VERMILION), (SUMMED, BLACK)):
        panels.published_marks(panel, {r / math.sqrt(PUBLISHED_DIM): share for r, share in FIG3[name].items()}, colour)
    for run in runs[:1]:
        k = run["clusters"]
        for square, words in ((1 / k, "√(d/k)"), (2 / (2 + k), "√(d/(1 + k/2))"), (0.5, "√(d/2)")):
            panels.mark_radius(panel, math.sqrt(square), words, 0.004, 1.07, zorder=1)
    panel.set_xlim(0, 0.9)
    panels.robustness_axes(panel, "d  Robust accuracy", "l2 radius of the perturbation")
    panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.1f}√d" if x else "0"))
    keys = [Line2D([], [], color=colour, lw=3, label=name) for name, colour in COLOURS.items()]
    keys += [Line2D([], [], color=GREY, lw=width, alpha=alpha, label=side) for side, (_, width, alpha) in SIDES.items()]
    keys += [Line2D([], [], color=GREY, lw=1.2, ls=style, label=how) for how, style in PGD.items()]
    keys += [Line2D([], [], color=GREY, marker="D", mfc="none", ls="", label="published, read off")]
    panel.legend(handles=keys, ncols=4, loc="upper left", bbox_to_anchor=(-0.02, -0.13))


@paper_figure(
    id="lpll25-images",
    title="Ten labels against two on images",
    paper="LPLL25",
    caption="Above: accuracy of the answer to the two-fold question, from a net trained on it and from one trained "
    "on all ten classes, read out by the odds of the two halves or by sums of logits. Solid: PGD on the loss the "
    "net was trained with, as published; dashed: PGD on the read-out; crosses: our strongest attack. Diamonds: "
    "published (ResNet-18; blue ten labels, red two). Bands: smallest to largest over seeds. Below: heads of 30 "
    "neurons on the features of the net with ten labels, seed 0.",
    claims=("C10", "C11", "C12", "C13"),
)
def images(results: Results) -> Figure:
    """Above: accuracy against radius for both tasks. Below: cosines of the heads, of the first seed."""
    figure = canvas((10.4, 9.2), "Ten labels or two: what is gained depends on what is attacked")
    (parity, halves), heads = panels.grid_of_panels(
        figure, 2, 2, left=0.075, right=0.95, top=0.91, bottom=0.06, hspace=0.46, wspace=0.2, height_ratios=(1.12, 1)
    )
    for panel, task in ((parity, "parity"), (halves, "halves")):
        _image_curves(panel, task, panels.measured(results, f"lpll25.images.{task}"))
    panels.legend_if_any(parity, "upper left", ncols=3, bbox_to_anchor=(-0.08, -0.14))
    cosines = [run["cosines"] for run in panels.runs_of(results, "lpll25.images.halves") if "cosines" in run]
    for panel, labels in zip(heads, (TWO_LABELS, TEN_LABELS), strict=True):
        _head(panel, labels, cosines)
    return figure


def _image_curves(panel: Axes, task: str, runs: Sequence[Measured]) -> None:
    for net, readout, words, attack, colour, dashes in LINES:
        clean = Quantity("accuracy", attack="clean", net=net, readout=readout)
        mine = [(Values(run.values), run.data) for run in runs if clean in run.values]
        if not mine:
            continue
        lines = [values.along("radius", "accuracy", attack=attack, net=net, readout=readout) for values, _ in mine]
        heights = [[values[clean], *line.values()] for (values, _), line in zip(mine, lines, strict=True)]
        panels.band(panel, [0.0, *lines[0]], heights, colour, alpha=0.1, ls=dashes, lw=1.7, label=f"{words}, {attack}")
        if attack == OWN_LOSS_PGD:
            radius = mine[0][1]["radius"]
            strong = Quantity("accuracy", attack=STRONGEST, net=net, radius=radius, readout=readout)
            mean = np.mean([values[strong] for values, _ in mine])
            panel.plot(radius, mean, "X", color=colour, mec="white", ms=9, zorder=3)
    shown = runs[0].data["images"] if runs else ""
    if shown not in ("", "digits"):
        for net, colour in ((TEN_LABELS, BLUE), (TWO_LABELS, VERMILION)):
            panels.published_marks(panel, FIG3_IMAGES[task][net], colour, zorder=2)
    panel.set_title((f"{IMAGES[shown]}: " if runs else "") + TITLES[task])
    panels.percent_axis(panel, -0.02, 1.03)
    panel.set_xlabel("l2 radius; cross: strongest attack on the same read-out")


def _head(panel: Axes, labels: str, found: Sequence[Run]) -> None:
    panel.set_title(f"Head with {labels}: cosines to mean features (C13)")
    if not found:
        panel.set_axis_off()
        return
    matrix = np.array(found[0][labels])
    image = heatmap(panel, matrix, float(np.abs(matrix).max()))
    middle = len(matrix) / 2 - 0.5
    panel.axhline(middle, color=BLACK, lw=0.8)
    panel.axvline(middle, color=BLACK, lw=0.8)
    panel.set(xticks=range(len(matrix)), yticks=range(len(matrix)))
    panel.set_xlabel("group of three neurons", color=GREY)
    panel.set_ylabel("class", color=GREY)
    panel.figure.colorbar(image, ax=panel, fraction=0.046, pad=0.03)
