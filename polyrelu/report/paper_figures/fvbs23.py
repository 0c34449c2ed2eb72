"""One direction for all points drawn: who is flipped by it, and how its length goes with k and with d."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from polyrelu.report.figures.style import BLACK, BLUE, DOTTED, GREEN, GREY, ORANGE, PURPLE, VERMILION, canvas
from polyrelu.report.paper_figures import panels
from polyrelu.report.paper_figures.panels import Array, Results, Run, paper_figure

COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE)


@paper_figure(
    id="universal",
    title="The universal direction and its scaling laws",
    paper="FVBS23",
    caption="Left and middle: ReLU nets with biases trained on k clusters of norm √d; x is moved to x − y z with "
    "z = η Σ_j y_j μ_j. Averages of features break at |z| = √(d/k) (dashed). Right: m random points on the "
    "√d-sphere with random labels (Vardi, Yehudai, Shamir 2022); c is the length of z ∝ Σ_I y_i x_i that flips "
    "every point at the margin. Bands and marks: all seeds.",
    claims=("E13", "E14"),
)
def universal(results: Results) -> Figure:
    """Points flipped against |z|, |z| against k, and c against d, one mark for each seed."""
    figure = canvas((10, 4.6), "One direction flips all points, and it is short")
    left, middle, right = panels.grid_of_panels(figure, 1, 3, left=0.07, right=0.985, top=0.82, bottom=0.24, wspace=0.3)
    runs = panels.runs_of(results, "fvbs23.universal.clusters")
    quantiles = {k: panels.rows(panels.select(runs, k=k), "norms") for k in sorted({run["k"] for run in runs})}
    _flips(left, quantiles)
    _by_clusters(middle, quantiles)
    _by_dimension(right, panels.runs_of(results, "vys22.sphere.margin_points"))
    return figure


def _flips(panel: Axes, quantiles: dict[int, Array]) -> None:
    """By k: for each seed the quantiles of |z|/sqrt(d/k) at which points flip."""
    places = np.linspace(0, 3, 301)
    for (k, seeds), colour in zip(quantiles.items(), COLOURS, strict=False):
        share = [np.interp(places, norms, np.linspace(0, 1, len(norms)), left=0.0) for norms in seeds]
        panels.band(panel, places, share, colour, alpha=0.2, label=f"k = {k}")
    panel.axvline(1, color=BLACK, lw=1, ls=DOTTED, zorder=1)
    panel.axhline(0.95, color=GREY, lw=1, ls="--", zorder=1)
    panel.set(title="k clusters: fresh points flipped", xlim=(0, 3), xlabel="|z| / √(d/k)")
    panels.percent_axis(panel, -0.02, 1.03)
    _legend(panel, columns=4 if len(quantiles) == 4 else 3)


def _by_clusters(panel: Axes, quantiles: dict[int, Array]) -> None:
    k = np.array(list(quantiles))
    for share, marker, colour, label in ((50, "o", BLUE, "flips half"), (95, "s", VERMILION, "flips 95 %")):
        for at, seeds in quantiles.items():
            heights = [norms[share] / math.sqrt(at) for norms in seeds]
            panel.plot([at] * len(heights), heights, marker, color=colour, ms=5, label=label if at == k[0] else None)
    panel.plot(k, 1 / np.sqrt(k), color=BLACK, lw=1.2, label="1/√k")
    panel.set(title="k clusters: length of z", xlabel="number k of clusters", ylabel="|z| / √d")
    panels.logarithmic(panel, k.tolist(), [0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1])
    _legend(panel, columns=3)


def _by_dimension(panel: Axes, runs: Sequence[Run]) -> None:
    dims = sorted({run["dim"] for run in runs})
    for exponent, colour in zip(sorted({run["exponent"] for run in runs}), COLOURS, strict=False):
        mine = panels.select(runs, exponent=exponent)
        x, y = [run["dim"] for run in mine], [run["c"] / math.sqrt(run["dim"]) for run in mine]
        name = "m = d" if exponent == 1 else f"m = $d^{{{exponent:g}}}$"
        panel.plot(x, y, "o", color=colour, ms=5, label=name)
        middle = {d: float(np.median([c for at, c in zip(x, y, strict=True) if at == d])) for d in sorted(set(x))}
        panel.plot(list(middle), list(middle.values()), color=colour, lw=1, alpha=0.6)
    panel.plot(dims, 2 / np.sqrt(dims), color=BLACK, lw=1.2, ls="--", label="2/√d")
    panel.axhline(1, color=GREY, lw=1)
    panel.text(dims[-1], 0.97, "a net exists that holds to order √d", ha="right", va="top", fontsize=8.5, color=GREY)
    panel.set(title="Sphere: smallest c that flips I", xlabel="dimension d", ylabel="c / √d")
    panels.logarithmic(panel, dims, [0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 1])
    panel.set_ylim(top=1.3)
    _legend(panel, columns=3)


def _legend(panel: Axes, columns: int) -> None:
    panel.legend(
        fontsize=8.5, ncols=columns, loc="upper left", bbox_to_anchor=(-0.12, -0.17),
        handlelength=1.4, columnspacing=0.8,
    )  # fmt: skip
