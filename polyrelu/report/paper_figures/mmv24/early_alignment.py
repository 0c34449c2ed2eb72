"""Early alignment drawn again: digits 0 and 1, the toys in the plane, and what follows (Min, Mallada, Vidal 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from polyrelu.claims.mmv24 import ALIGNED, FALLEN
from polyrelu.report.figures.style import BLACK, BLUE, DOTTED, GREY, VERMILION, canvas, figure_style
from polyrelu.report.paper_figures.figure import PaperFigure, Results, Run
from polyrelu.report.paper_figures.panels import band, runs_of, ticks_at

Runs = Sequence[Run]


@figure_style()
def early(results: Results) -> Figure:
    """Nine panels; lines are means over the seeds, bands go from the smallest to the largest."""
    figure = canvas((10, 9.6), "Small starts: neurons turn first and grow later")
    grid = figure.add_gridspec(3, 3, left=0.06, right=0.975, top=0.915, bottom=0.06, hspace=0.45, wspace=0.27)
    panels = [figure.add_subplot(grid[row, column]) for row in range(3) for column in range(3)]
    digits = runs_of(results, "mmv24.early_alignment.alignment")
    batches = runs_of(results, "mmv24.early_alignment.batches")
    for panel, draw, runs in (
        (panels[0], _cosines, digits),
        (panels[1], _loss, digits),
        (panels[2], _rank, digits),
        (panels[3], _batches, batches),
        (panels[4], _cones, runs_of(results, "mmv24.early_alignment.cones")),
        (panels[5], _layers, runs_of(results, "mmv24.early_alignment.first_layer")),
        (panels[6], _inverse, runs_of(results, "mmv24.early_alignment.after_alignment")),
        (panels[7], _two_directions, runs_of(results, "mmv24.early_alignment.after_alignment")),
        (panels[8], _carried, runs_of(results, "mmv24.early_alignment.orthogonal_points")),
    ):
        if runs:
            draw(panel, runs)
        else:
            panel.set_axis_off()
            panel.text(0.5, 0.5, "not run", ha="center", color=GREY, transform=panel.transAxes)
    return figure


def _line(panel: Axes, runs: Runs, x: str, y: str, colour: str, label: str = "", ls: str = "-") -> None:
    """The mean and the range of a line over all runs, on the places of the first that all reach."""
    places = np.array([at for at in runs[0][x] if at <= min(run[x][-1] for run in runs)])
    lines = np.array([np.interp(places, run[x], run[y]) for run in runs])
    band(panel, places, lines, colour, alpha=0.2, ls=ls, label=label)


def _thousands(panel: Axes, last: int, step: int) -> None:
    panel.set_xlim(0, last)
    ticks_at(panel.xaxis, range(0, last + 1, step), lambda k: f"{k / 1000:g}k" if k else "0")
    panel.set_xlabel("iterations at rate 2e-3", labelpad=2)


def _mark(panel: Axes, at: float, text: str, height: float, ha: str = "left") -> None:
    panel.axvline(at, color=BLACK, lw=1, ls=DOTTED, zorder=1)
    shift = 5 if ha == "left" else -5
    panel.annotate(
        text, (at, height), xytext=(shift, 0), xycoords=("data", "axes fraction"), textcoords="offset points",
        ha=ha, va="center", fontsize=8.5, color=BLACK,
    )  # fmt: skip


def _legend(panel: Axes, place: str) -> None:
    settings: dict[str, Any] = {"loc": place, "handlelength": 1.6, "borderaxespad": 0.2, "labelspacing": 0.3}
    panel.legend(fontsize=8.5, **settings)


def _cosines(panel: Axes, runs: Runs) -> None:
    _line(panel, runs, "iterations", "plus", BLUE, "positive neurons, x+")
    _line(panel, runs, "iterations", "minus", VERMILION, "negative neurons, x−")
    panel.set_title("0 and 1: cosine of the mean neurons", loc="left")
    panel.set_ylim(0, 1.05)
    _thousands(panel, 15_000, 5000)
    _mark(panel, ALIGNED, "published:\n≈ 1 (MNIST)", 0.6)
    _legend(panel, "lower right")


def _loss(panel: Axes, runs: Runs) -> None:
    _line(panel, runs, "iterations", "loss", BLACK)
    panel.set_title("0 and 1: training loss", loc="left")
    panel.set_ylim(0, 1.05)
    _thousands(panel, 15_000, 5000)
    _mark(panel, FALLEN, "published:\nfalls (MNIST)", 0.78)


def _rank(panel: Axes, runs: Runs) -> None:
    _line(panel, runs, "iterations", "rank", BLACK)
    panel.axhline(2, color=GREY, lw=1, ls="--")
    panel.text(14_800, 2.1, "bound 2", ha="right", va="bottom", fontsize=8.5, color=GREY)
    panel.set_title("0 and 1: stable rank of W", loc="left")
    panel.set_yscale("log")
    ticks_at(panel.yaxis, (1, 2, 5, 10, 20, 40))
    _thousands(panel, 15_000, 5000)


def _batches(panel: Axes, runs: Runs) -> None:
    _line(panel, runs, "steps", "alignment", BLUE, "median cosine")
    _line(panel, runs, "steps", "loss", BLACK, "loss")
    panel.set_title("0 and 1: batches (SGD)", loc="left")
    panel.set_ylim(0, 1.05)
    panel.set_xlim(left=0)
    panel.set_xlabel("steps", labelpad=2)
    _legend(panel, "lower center")


def _cones(panel: Axes, runs: Runs) -> None:
    _line(panel, runs, "iterations", "μ = sin .1", BLUE, "μ = sin .1")
    _line(panel, runs, "iterations", "μ = sin .001", VERMILION, "μ = sin .001")
    panel.set_title("Two points: live neurons outside S+", loc="left")
    panel.set_ylim(bottom=0)
    _thousands(panel, 21_000, 7000)
    _mark(panel, 7000, "published: 0\nfor sin .1", 0.62)
    _legend(panel, "upper right")


def _layers(panel: Axes, runs: Runs) -> None:
    for name, colour in (("both layers", BLUE), ("first layer only", VERMILION)):
        parts = [run[name] for run in runs]
        _line(panel, parts, "iterations", "loss", colour, name)
        _line(panel, parts, "iterations", "cosine", colour, ls=":")
    panel.plot([], [], color=GREY, ls=":", label="cosine to x+")
    panel.set_title("Two points: loss, by layers trained", loc="left")
    panel.set_xscale("symlog", linthresh=1)
    ticks_at(panel.xaxis, (0, 1, 10, 100, 1000, 10_000), lambda k: f"{k / 1000:g}k" if k >= 1000 else f"{k:g}")
    panel.set_xlim(0, 12_000)
    panel.set_ylim(0, 1.05)
    panel.set_xlabel("iterations at rate 2e-3", labelpad=2)
    _legend(panel, "lower left")


def _inverse(panel: Axes, runs: Runs) -> None:
    for run in runs:
        panel.plot(np.array(run["time"]) / 1e4, np.array(run["inverse"]) / 1e5, color=BLUE, lw=1.8)
    time, height = (np.concatenate([run[name] for run in runs]) for name in ("time", "inverse"))
    slope, start = np.polyfit(time, height, 1)
    ends = np.array([0.0, time.max()])
    panel.plot(ends / 1e4, (start + slope * ends) / 1e5, color=BLACK, lw=1, ls="--", label="straight line")
    panel.set_title("Separable data: 1/loss, in 1e5", loc="left")
    panel.set_xlim(left=0)
    panel.set_ylim(bottom=0)
    panel.set_xlabel("flow time, in 1e4", labelpad=2)
    _legend(panel, "lower right")


def _two_directions(panel: Axes, runs: Runs) -> None:
    for run in runs:
        panel.plot(run["log10 loss"], run["rank"], color=BLUE, lw=1.5, marker="o", ms=4)
    panel.axhline(2, color=GREY, lw=1, ls="--")
    panel.text(-6, 2.02, "bound 2", ha="right", va="bottom", fontsize=8.5, color=GREY)
    panel.set_title("Separable data: ‖W‖_F² / ‖W‖₂²", loc="left")
    panel.set_ylim(1, 2.2)
    panel.set_xlim(0, -6.2)
    ticks_at(panel.xaxis, (0, -2, -4, -6), lambda power: f"$10^{{{power:g}}}$")
    panel.set_xlabel("training loss", labelpad=2)


def _carried(panel: Axes, runs: Runs) -> None:
    for name, colour, label in (("x+", BLUE, "neurons along x+"), ("x1 or x2", VERMILION, "along x1 or x2")):
        _line(panel, [run for run in runs if name in run], "iterations", name, colour, label)
    panel.set_title("Orthogonal points: mean of |v||w|", loc="left")
    panel.set_yscale("log")
    panel.set_yticks([1e-12, 1e-9, 1e-6, 1e-3, 1])
    panel.yaxis.set_minor_locator(NullLocator())
    _thousands(panel, 15_000, 5000)
    _legend(panel, "lower right")


FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        id="mmv24",
        title="Early alignment of neurons",
        paper="MMV24",
        caption="Top: images of 0 and 1 (Fig. 5; marks are read off for MNIST). Middle: the same with batches; two "
        "positive points in the plane with μ = sin .1 and sin .001; only the first layer trained. Bottom: 1/loss and "
        "stable rank on orthogonally separable data; two orthogonal points, where only neurons along x+ grow. Lines: "
        "means over seeds, bands: smallest to largest.",
        claims=("E17", "E18", "E19", "E20", "E22", "E27", "E28"),
        draw=early,
    ),
)
