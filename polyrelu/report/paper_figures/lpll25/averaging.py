"""Averages or single clusters, drawn again: Fig. 2a, 2b and 3 (left) of Li et al., ICLR 2025, and radii against k."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from polyrelu.claims import Measured, Quantity, Values
from polyrelu.claims.lpll25 import AVERAGED, CLUSTERS, DECOUPLED, FIG3, NETS, OWN, PUBLISHED_DIM, READ_OUT, SUMMED
from polyrelu.report.figures.style import BLACK, BLUE, DASHED, DOTTED, GREEN, GREY, VERMILION, canvas, figure_style
from polyrelu.report.paper_figures import panels
from polyrelu.report.paper_figures.figure import PaperFigure, Results, Run

COLOURS = dict(zip(NETS, (VERMILION, GREEN, BLUE), strict=True))
SIDES = {"attacked": ("upper", 5.0, 0.35), "certified": ("lower", 1.6, 1.0)}
PGD = {READ_OUT: (0, (1, 1.5)), OWN: DASHED}


@figure_style()
def averaging(results: Results) -> Figure:
    """Cosine matrices, radii against the number of clusters, robust accuracy."""
    trained = panels.runs_of(results, "lpll25.mixture.learned")
    figure = canvas((10, 9.6), "Class labels teach averages, cluster labels single clusters")
    grid = figure.add_gridspec(
        2, 3, left=0.075, right=0.98, top=0.9, bottom=0.125, hspace=0.3, wspace=0.34, height_ratios=(1, 1.35)
    )
    for place, (name, words) in enumerate(((AVERAGED, "a  Class labels"), (DECOUPLED, "b  Cluster labels"))):
        _cosines(figure.add_subplot(grid[0, place]), trained, name, words)
    _radii(figure.add_subplot(grid[0, 2]), panels.measured(results, "lpll25.scaling.clusters"))
    _accuracy(figure.add_subplot(grid[1, :]), panels.measured(results, "lpll25.mixture.curves"))
    return figure


def _cosines(panel: Axes, runs: Sequence[Run], name: str, title: str) -> None:
    """Of the first seed."""
    for run in runs[:1]:
        values = np.array(run[name])
        panels.cosine_panel(panel, values, (1.02, 0.025))
        k = values.shape[1]
        panel.set_xticks(range(k), labels=[str(j + 1) for j in range(k)])
        panel.set_yticks(range(len(values)), labels=[str(j + 1) for j in range(len(values))])
        panel.axvline(k / 2 - 0.5, color=BLACK, lw=0.8)
        panel.axhline(len(values) / 2 - 0.5, color=BLACK, lw=0.8)
    panel.set_xlabel("centres μ")
    panel.set_ylabel("neurons w")
    panel.set_title(f"{title}: cos(w, μ)", loc="left")


def _radii(panel: Axes, runs: Sequence[Measured]) -> None:
    for name, colour in COLOURS.items():
        if runs:
            quantities = [Quantity("median radius over √d", k=k, net=name, way="broken") for k in CLUSTERS]
            medians = [panels.values_of(runs, one) for one in quantities]
            panels.band(panel, CLUSTERS, np.transpose(medians), colour, marker="o", ms=5, label=name)
    for line in ([k**-0.5 for k in CLUSTERS], [(1 + k / 2) ** -0.5 for k in CLUSTERS], [0.5**0.5] * len(CLUSTERS)):
        panel.plot(CLUSTERS, line, color=BLACK, lw=1, ls=DOTTED, zorder=1)
    panel.text(11, 0.25, "1/√k", ha="right", fontsize=9, color=BLACK)
    panel.text(32, 0.73, "√2/2", ha="right", fontsize=9, color=BLACK)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panels.ticks_at(panel.xaxis, CLUSTERS)
    panels.ticks_at(panel.yaxis, (0.2, 0.3, 0.4, 0.5, 0.7), lambda radius: f"{radius:g}".lstrip("0"))
    panel.set_xlabel("clusters k")
    panel.set_title("c  Median radius over √d", loc="left")


def _accuracy(panel: Axes, found: Sequence[Measured]) -> None:
    radii, runs = np.linspace(0, 0.9, 1801), [one.data for one in found]
    for name, colour in COLOURS.items():
        for side, width, alpha in SIDES.values():
            if runs:
                broken = [np.array(run[name][side]) / math.sqrt(run["dim"]) for run in runs]
                shares = [panels.share_beyond(one, radii, run["points"]) for one, run in zip(broken, runs, strict=True)]
                panel.fill_between(
                    radii, np.min(shares, axis=0), np.max(shares, axis=0), color=colour, alpha=0.15, lw=0
                )
                panel.plot(radii, np.mean(shares, axis=0), color=colour, lw=width, alpha=alpha)
        x = [radius / math.sqrt(PUBLISHED_DIM) for radius in FIG3[name]]
        for how, style in PGD.items():
            if found and (name, how) != (AVERAGED, OWN):
                lines = [[*Values(one.values).along("radius", "accuracy", net=name, way=how).values()] for one in found]
                panel.plot(x, np.mean(lines, axis=0), color=colour, lw=1.2, ls=style)
    for name, colour in ((AVERAGED, VERMILION), (SUMMED, BLACK)):
        panels.published_marks(panel, [r / math.sqrt(PUBLISHED_DIM) for r in FIG3[name]], FIG3[name].values(), colour)
    for run in runs[:1]:
        k = run["clusters"]
        for square, words in ((1 / k, "√(d/k)"), (2 / (2 + k), "√(d/(1 + k/2))"), (0.5, "√(d/2)")):
            panels.mark_radius(panel, math.sqrt(square), words, 0.004, 1.07, zorder=1)
    panel.set_xlim(0, 0.9)
    panels.percent_axis(panel, -0.03, 1.14)
    panel.set_yticks([0, 0.25, 0.5, 0.75, 1])
    panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.1f}√d" if x else "0"))
    panel.set_xlabel("l2 radius of the perturbation")
    panel.set_title("d  Robust accuracy", loc="left")
    keys = [Line2D([], [], color=colour, lw=3, label=name) for name, colour in COLOURS.items()]
    keys += [Line2D([], [], color=GREY, lw=width, alpha=alpha, label=side) for side, (_, width, alpha) in SIDES.items()]
    keys += [Line2D([], [], color=GREY, lw=1.2, ls=style, label=how) for how, style in PGD.items()]
    keys += [Line2D([], [], color=GREY, marker="D", mfc="none", ls="", label="published, read off")]
    panel.legend(handles=keys, ncols=4, loc="upper left", bbox_to_anchor=(-0.02, -0.13))


FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        id="lpll25-averaging",
        title="Figures 2a, 2b and 3 (left): averages or single clusters",
        paper="LPLL25",
        caption="a, b: cosines of the neurons and the centres, trained on the class and on the cluster of each point. "
        "c: where half of the points break; dashed: the ideal nets at a centre, √2/2, 1/√(1 + k/2) and 1/√k. d: proven "
        "and attacked accuracy coincide. Read out by the largest logit of each class, the net trained on clusters "
        "holds to √(d/2); read out as a sum, as the paper defines it, it breaks at a third less, and the published "
        "curve does not show it. PGD from x, on the own loss or on the read-out, misses that. Diamonds: d = 3072.",
        claims=("C1", "C2", "C3", "C4", "C5", "C8", "C9", "C14", "C15"),
        draw=averaging,
    ),
)
