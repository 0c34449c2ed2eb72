"""One direction for all points drawn: who is flipped by it, and how its length goes with k and with d."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter
from numpy.typing import NDArray

from polyrelu.report.figures.training import AVERAGE, CENTRE, INK, QUIET, STYLE, canvas
from polyrelu.report.paper_figures.figure import PaperFigure, Results

Array = NDArray[np.float64]
COLOURS = (CENTRE, AVERAGE, "#009E73", "#CC79A7", "#E69F00")  # of Okabe & Ito


def universal(results: Results) -> Figure:
    """Points flipped against |z|, |z| against k, and c against d, one mark for each seed."""
    with rc_context(STYLE):
        figure = canvas((10, 4.6), "One direction flips all points, and it is short")
        left, middle, right = figure.subplots(
            1, 3, gridspec_kw={"left": 0.07, "right": 0.985, "top": 0.82, "bottom": 0.24, "wspace": 0.3}
        )
        _flips(left, results)
        _by_clusters(middle, results)
        _by_dimension(right, results)
    return figure


def _norms(results: Results) -> dict[int, list[Array]]:
    """By k: for each seed the quantiles of |z|/sqrt(d/k) at which points flip."""
    found: dict[int, list[Array]] = defaultdict(list)
    for outcome in results.get("universal.clusters", ()):
        if outcome.measured is not None:
            found[outcome.measured.data["k"]].append(np.array(outcome.measured.data["norms"]))
    return dict(sorted(found.items()))


def _flips(panel: Axes, results: Results) -> None:
    places = np.linspace(0, 3, 301)
    for (k, seeds), colour in zip(_norms(results).items(), COLOURS, strict=False):
        share = np.array([np.interp(places, norms, np.linspace(0, 1, len(norms)), left=0.0) for norms in seeds])
        panel.fill_between(places, share.min(axis=0), share.max(axis=0), color=colour, alpha=0.2, lw=0)
        panel.plot(places, share.mean(axis=0), color=colour, lw=1.8, label=f"k = {k}")
    panel.axvline(1, color=INK, lw=1, ls=(0, (2, 2)), zorder=1)
    panel.axhline(0.95, color=QUIET, lw=1, ls="--", zorder=1)
    panel.set_title("k clusters: fresh points flipped", loc="left")
    panel.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    panel.set_xlim(0, 3)
    panel.set_ylim(-0.02, 1.03)
    panel.set_xlabel("|z| / √(d/k)")
    _legend(panel, columns=4 if len(_norms(results)) == 4 else 3)


def _by_clusters(panel: Axes, results: Results) -> None:
    found = _norms(results)
    k = np.array(list(found))
    for share, marker, colour, label in ((50, "o", CENTRE, "flips half"), (95, "s", AVERAGE, "flips 95 %")):
        for at, seeds in found.items():
            heights = [norms[share] / math.sqrt(at) for norms in seeds]
            panel.plot([at] * len(heights), heights, marker, color=colour, ms=5, label=label if at == k[0] else None)
    panel.plot(k, 1 / np.sqrt(k), color=INK, lw=1.2, label="1/√k")
    panel.set_title("k clusters: length of z", loc="left")
    panel.set_xlabel("number k of clusters")
    panel.set_ylabel("|z| / √d")
    _logarithmic(panel, k.tolist(), [0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1])
    _legend(panel, columns=3)


def _by_dimension(panel: Axes, results: Results) -> None:
    rows = [one.measured.data for one in results.get("universal.sphere", ()) if one.measured is not None]
    dims = sorted({row["dim"] for row in rows})
    for exponent, colour in zip(sorted({row["exponent"] for row in rows}), COLOURS, strict=False):
        mine = [row for row in rows if row["exponent"] == exponent]
        x, y = [row["dim"] for row in mine], [row["c"] / math.sqrt(row["dim"]) for row in mine]
        name = "m = d" if exponent == 1 else f"m = $d^{{{exponent:g}}}$"
        panel.plot(x, y, "o", color=colour, ms=5, label=name)
        middle = {d: float(np.median([c for at, c in zip(x, y, strict=True) if at == d])) for d in sorted(set(x))}
        panel.plot(list(middle), list(middle.values()), color=colour, lw=1, alpha=0.6)
    panel.plot(dims, 2 / np.sqrt(dims), color=INK, lw=1.2, ls="--", label="2/√d")
    panel.axhline(1, color=QUIET, lw=1)
    panel.text(dims[-1], 0.97, "a net exists that holds to order √d", ha="right", va="top", fontsize=8.5, color=QUIET)
    panel.set_title("Sphere: smallest c that flips I", loc="left")
    panel.set_xlabel("dimension d")
    panel.set_ylabel("c / √d")
    _logarithmic(panel, dims, [0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 1])
    panel.set_ylim(top=1.3)
    _legend(panel, columns=3)


def _logarithmic(panel: Axes, x: Iterable[float], y: Iterable[float]) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    for axis, ticks in ((panel.xaxis, x), (panel.yaxis, y)):
        axis.set_major_locator(FixedLocator(list(ticks)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())


def _legend(panel: Axes, columns: int) -> None:
    panel.legend(
        frameon=False, fontsize=8.5, ncols=columns, loc="upper left", bbox_to_anchor=(-0.12, -0.17),
        handlelength=1.4, columnspacing=0.8,
    )  # fmt: skip


FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        id="universal",
        title="The universal direction and its scaling laws",
        paper="FVBS23",
        caption="Left and middle: ReLU nets with biases trained on k clusters of norm √d; x is moved to x − y z with "
        "z = η Σ_j y_j μ_j. Averages of features break at |z| = √(d/k) (dashed). Right: m random points on the "
        "√d-sphere with random labels (Vardi, Yehudai, Shamir 2022); c is the length of z ∝ Σ_I y_i x_i that flips "
        "every point at the margin. Bands and marks: all seeds.",
        claims=("E13", "E14"),
        draw=universal,
    ),
)
