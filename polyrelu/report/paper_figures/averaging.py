"""Averages or single clusters, drawn again: Fig. 2a, 2b and 3 (left) of Li et al., ICLR 2025, and radii against k."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator, PercentFormatter

from polyrelu.claims.averaging import AVERAGED, NETS, RULES
from polyrelu.claims.averaging_breaking import PAPER, PUBLISHED
from polyrelu.claims.averaging_scaling import CLUSTERS
from polyrelu.report.figures.heatmap import heat
from polyrelu.report.figures.training import AVERAGE, CENTRE, INK, QUIET, STYLE, canvas
from polyrelu.report.paper_figures.figure import PaperFigure, Results

Run = Mapping[str, Any]
GREEN = "#009E73"  # of Okabe & Ito
COLOURS = dict(zip(NETS, (AVERAGE, GREEN, CENTRE), strict=True))
DASHED, DOTTED = (0, (4, 2)), (0, (1, 1.5))
SIDES = {"attacked": ("upper", 5.0, 0.35), "certified": ("lower", 1.6, 1.0)}
PGD = {"PGD on the read-out": DOTTED, "PGD on the own loss": DASHED}


def averaging(results: Results) -> Figure:
    """Cosine matrices, radii against the number of clusters, robust accuracy."""
    seen, broken = _data(results, "averaging.learned"), _data(results, "averaging_breaking.curves")
    swept = _data(results, "averaging_scaling.clusters")
    with rc_context(STYLE):
        figure = canvas((10, 9.6), "Class labels teach averages, cluster labels single clusters")
        grid = figure.add_gridspec(
            2, 3, left=0.075, right=0.98, top=0.9, bottom=0.125, hspace=0.3, wspace=0.34, height_ratios=(1, 1.35)
        )
        for place, (name, words) in enumerate(((AVERAGED, "a  Class labels"), ("decoupled", "b  Cluster labels"))):
            _cosines(figure.add_subplot(grid[0, place]), [run[name] for run in seen], words)
        _sweep(figure.add_subplot(grid[0, 2]), swept)
        _accuracy(figure.add_subplot(grid[1, :]), broken)
    return figure


def _cosines(panel: Axes, matrices: Sequence[Any], title: str) -> None:
    """Of the first seed."""
    for matrix in matrices[:1]:
        values = np.array(matrix)
        image = heat(panel, values, 1.0)
        panel.figure.colorbar(image, cax=panel.inset_axes((1.02, 0, 0.025, 1)), ticks=[-1, -0.5, 0, 0.5, 1])
        k = values.shape[1]
        panel.set_xticks(range(k), labels=[str(j + 1) for j in range(k)])
        panel.set_yticks(range(len(values)), labels=[str(j + 1) for j in range(len(values))])
        panel.axvline(k / 2 - 0.5, color=INK, lw=0.8)
        panel.axhline(len(values) / 2 - 0.5, color=INK, lw=0.8)
    panel.set_xlabel("centres μ")
    panel.set_ylabel("neurons w")
    panel.set_title(f"{title}: cos(w, μ)", loc="left")


def _sweep(panel: Axes, runs: Sequence[Run]) -> None:
    for name, colour in COLOURS.items():
        found = [[run["medians"][name] for run in runs if run["k"] == k] for k in CLUSTERS if runs]
        if found:
            panel.fill_between(CLUSTERS, [*map(min, found)], [*map(max, found)], color=colour, alpha=0.18, lw=0)
            panel.plot(CLUSTERS, [np.mean(one) for one in found], color=colour, marker="o", ms=5, lw=1.8, label=name)
    for line in ([k**-0.5 for k in CLUSTERS], [(1 + k / 2) ** -0.5 for k in CLUSTERS], [0.5**0.5] * len(CLUSTERS)):
        panel.plot(CLUSTERS, line, color=INK, lw=1, ls=(0, (2, 2)), zorder=1)
    panel.text(11, 0.25, "1/√k", ha="right", fontsize=9, color=INK)
    panel.text(32, 0.73, "√2/2", ha="right", fontsize=9, color=INK)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xticks(CLUSTERS, labels=[str(k) for k in CLUSTERS])
    panel.xaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_minor_locator(NullLocator())
    panel.set_yticks([0.2, 0.3, 0.4, 0.5, 0.7])
    panel.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}".lstrip("0")))
    panel.set_xlabel("clusters k")
    panel.set_title("c  Median radius over √d", loc="left")


def _accuracy(panel: Axes, runs: Sequence[Run]) -> None:
    radii = np.linspace(0, 0.9, 1801)
    for name, colour in COLOURS.items():
        for side, width, alpha in SIDES.values():
            lines = np.array([_held(run, name, side, radii) for run in runs]).reshape(-1, len(radii))
            if len(lines):
                panel.fill_between(radii, lines.min(axis=0), lines.max(axis=0), color=colour, alpha=0.15, lw=0)
                panel.plot(radii, lines.mean(axis=0), color=colour, lw=width, alpha=alpha)
        for how, style in PGD.items():
            lines = np.array([run[name][how] for run in runs if how in run[name]])
            if len(lines):
                x, y = lines.mean(axis=0).T
                panel.plot(x / math.sqrt(runs[0]["dim"]), y, color=colour, lw=1.2, ls=style)
    for name, colour in ((AVERAGED, AVERAGE), (RULES["sum"], INK)):
        points = PUBLISHED[name]
        panel.plot([r / PAPER for r in points], list(points.values()), "D", mfc="none", mec=colour, ms=6, zorder=4)
    for run in runs[:1]:
        k = run["clusters"]
        for square, words in ((1 / k, "√(d/k)"), (2 / (2 + k), "√(d/(1 + k/2))"), (0.5, "√(d/2)")):
            panel.axvline(math.sqrt(square), color=INK, lw=1, ls=(0, (2, 2)), zorder=1)
            panel.text(math.sqrt(square) + 0.004, 1.07, words, fontsize=9, color=INK)
    panel.set_xlim(0, 0.9)
    panel.set_ylim(-0.03, 1.14)
    panel.set_yticks([0, 0.25, 0.5, 0.75, 1])
    panel.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.1f}√d" if x else "0"))
    panel.set_xlabel("l2 radius of the perturbation")
    panel.set_title("d  Robust accuracy", loc="left")
    keys = [Line2D([], [], color=colour, lw=3, label=name) for name, colour in COLOURS.items()]
    keys += [
        Line2D([], [], color=QUIET, lw=width, alpha=alpha, label=side) for side, (_, width, alpha) in SIDES.items()
    ]
    keys += [Line2D([], [], color=QUIET, lw=1.2, ls=style, label=how) for how, style in PGD.items()]
    keys += [Line2D([], [], color=QUIET, marker="D", mfc="none", ls="", label="published, read off")]
    panel.legend(handles=keys, frameon=False, fontsize=9, ncols=4, loc="upper left", bbox_to_anchor=(-0.02, -0.13))


def _held(run: Run, name: str, side: str, radii: Any) -> Any:
    """Share of points whose radius is larger."""
    found = np.array(run[name][side]) / math.sqrt(run["dim"])
    return 1 - np.searchsorted(found, radii, side="right") / run["points"]


def _data(results: Results, experiment: str) -> list[Run]:
    return [outcome.measured.data for outcome in results.get(experiment, ()) if outcome.measured is not None]


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
