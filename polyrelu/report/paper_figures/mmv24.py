"""Early alignment drawn again: digits 0 and 1, the toys in the plane, and what follows (Min, Mallada, Vidal 2024)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from polyrelu.claims.mmv24 import ALIGNED, FALLEN
from polyrelu.report.figures.style import BLACK, BLUE, DOTTED, GREY, VERMILION, canvas
from polyrelu.report.paper_figures import panels
from polyrelu.report.paper_figures.panels import Results, Run, paper_figure

Runs = Sequence[Run]


@paper_figure(
    id="mmv24",
    title="Early alignment of neurons",
    paper="MMV24",
    caption="Top: images of 0 and 1 (Fig. 5; marks are read off for MNIST). Middle: the same with batches; two "
    "positive points in the plane with μ = sin .1 and sin .001; only the first layer trained. Bottom: 1/loss and "
    "stable rank on orthogonally separable data; two orthogonal points, where only neurons along x+ grow. Lines: "
    "means over seeds, bands: smallest to largest.",
    claims=("E17", "E18", "E19", "E20", "E22", "E27", "E28"),
)
def early(results: Results) -> Figure:
    """Nine panels; lines are means over the seeds, bands go from the smallest to the largest."""
    figure = canvas((10, 9.6), "Small starts: neurons turn first and grow later")
    nine = panels.grid_of_panels(figure, 3, 3, left=0.06, right=0.975, top=0.915, bottom=0.06, hspace=0.45, wspace=0.27)
    for panel, (draw, experiment) in zip(nine.flat, PANELS, strict=True):
        panel.xaxis.labelpad = 2
        if runs := panels.runs_of(results, f"mmv24.early_alignment.{experiment}"):
            draw(panel, runs)
        else:
            panel.set_axis_off()
            panel.text(0.5, 0.5, "not run", ha="center", color=GREY, transform=panel.transAxes)
    return figure


def _line(panel: Axes, runs: Runs, x: str, y: str, colour: str, label: str = "", ls: str = "-") -> None:
    """The mean and the range of a line over all runs, on the places of the first that all reach."""
    places = np.array([at for at in runs[0][x] if at <= min(run[x][-1] for run in runs)])
    lines = np.array([np.interp(places, run[x], run[y]) for run in runs])
    panels.band(panel, places, lines, colour, alpha=0.2, ls=ls, label=label)


def _thousands(panel: Axes, last: int, step: int) -> None:
    panel.set(xlim=(0, last), xlabel="iterations at rate 2e-3")
    panels.ticks_at(panel.xaxis, range(0, last + 1, step), lambda k: f"{k / 1000:g}k" if k else "0")


def _mark(panel: Axes, at: float, text: str, height: float) -> None:
    panel.axvline(at, color=BLACK, lw=1, ls=DOTTED, zorder=1)
    panel.annotate(
        text, (at, height), xytext=(5, 0), xycoords=("data", "axes fraction"), textcoords="offset points",
        ha="left", va="center", fontsize=8.5, color=BLACK,
    )  # fmt: skip


def _bound(panel: Axes, x: float, height: float) -> None:
    panel.axhline(2, color=GREY, lw=1, ls="--")
    panel.text(x, height, "bound 2", ha="right", va="bottom", fontsize=8.5, color=GREY)


def _legend(panel: Axes, place: str) -> None:
    panels.legend_if_any(panel, place, fontsize=8.5, handlelength=1.6, borderaxespad=0.2, labelspacing=0.3)


def _cosines(panel: Axes, runs: Runs) -> None:
    _line(panel, runs, "iterations", "plus", BLUE, "positive neurons, x+")
    _line(panel, runs, "iterations", "minus", VERMILION, "negative neurons, x−")
    panel.set(title="0 and 1: cosine of the mean neurons", ylim=(0, 1.05))
    _thousands(panel, 15_000, 5000)
    _mark(panel, ALIGNED, "published:\n≈ 1 (MNIST)", 0.6)
    _legend(panel, "lower right")


def _loss(panel: Axes, runs: Runs) -> None:
    _line(panel, runs, "iterations", "loss", BLACK)
    panel.set(title="0 and 1: training loss", ylim=(0, 1.05))
    _thousands(panel, 15_000, 5000)
    _mark(panel, FALLEN, "published:\nfalls (MNIST)", 0.78)


def _rank(panel: Axes, runs: Runs) -> None:
    _line(panel, runs, "iterations", "rank", BLACK)
    _bound(panel, 14_800, 2.1)
    panel.set(title="0 and 1: stable rank of W", yscale="log")
    panels.ticks_at(panel.yaxis, (1, 2, 5, 10, 20, 40))
    _thousands(panel, 15_000, 5000)


def _batches(panel: Axes, runs: Runs) -> None:
    _line(panel, runs, "steps", "alignment", BLUE, "median cosine")
    _line(panel, runs, "steps", "loss", BLACK, "loss")
    panel.set(title="0 and 1: batches (SGD)", ylim=(0, 1.05), xlim=(0, None), xlabel="steps")
    _legend(panel, "lower center")


def _cones(panel: Axes, runs: Runs) -> None:
    _line(panel, runs, "iterations", "μ = sin .1", BLUE, "μ = sin .1")
    _line(panel, runs, "iterations", "μ = sin .001", VERMILION, "μ = sin .001")
    panel.set(title="Two points: live neurons outside S+", ylim=(0, None))
    _thousands(panel, 21_000, 7000)
    _mark(panel, 7000, "published: 0\nfor sin .1", 0.62)
    _legend(panel, "upper right")


def _layers(panel: Axes, runs: Runs) -> None:
    for name, colour in (("both layers", BLUE), ("first layer only", VERMILION)):
        parts = [run[name] for run in runs]
        _line(panel, parts, "iterations", "loss", colour, name)
        _line(panel, parts, "iterations", "cosine", colour, ls=":")
    panel.plot([], [], color=GREY, ls=":", label="cosine to x+")
    panel.set_xscale("symlog", linthresh=1)
    panels.ticks_at(panel.xaxis, (0, 1, 10, 100, 1000, 10_000), lambda k: f"{k / 1000:g}k" if k >= 1000 else f"{k:g}")
    panel.set(title="Two points: loss, by layers trained", xlim=(0, 12_000), ylim=(0, 1.05))
    panel.set_xlabel("iterations at rate 2e-3")
    _legend(panel, "lower left")


def _inverse(panel: Axes, runs: Runs) -> None:
    for run in runs:
        panel.plot(np.array(run["time"]) / 1e4, np.array(run["inverse"]) / 1e5, color=BLUE, lw=1.8)
    time, height = (np.concatenate([run[name] for run in runs]) for name in ("time", "inverse"))
    slope, start = np.polyfit(time, height, 1)
    ends = np.array([0.0, time.max()])
    panel.plot(ends / 1e4, (start + slope * ends) / 1e5, color=BLACK, lw=1, ls="--", label="straight line")
    panel.set(title="Separable data: 1/loss, in 1e5", xlim=(0, None), ylim=(0, None), xlabel="flow time, in 1e4")
    _legend(panel, "lower right")


def _two_directions(panel: Axes, runs: Runs) -> None:
    for run in runs:
        panel.plot(run["log10 loss"], run["rank"], color=BLUE, lw=1.5, marker="o", ms=4)
    _bound(panel, -6, 2.02)
    panel.set(title="Separable data: ‖W‖_F² / ‖W‖₂²", ylim=(1, 2.2), xlim=(0, -6.2), xlabel="training loss")
    panels.ticks_at(panel.xaxis, (0, -2, -4, -6), lambda power: f"$10^{{{power:g}}}$")


def _carried(panel: Axes, runs: Runs) -> None:
    for name, colour, label in (("x+", BLUE, "neurons along x+"), ("x1 or x2", VERMILION, "along x1 or x2")):
        _line(panel, [run for run in runs if name in run], "iterations", name, colour, label)
    panel.set(title="Orthogonal points: mean of |v||w|", yscale="log", yticks=[1e-12, 1e-9, 1e-6, 1e-3, 1])
    panel.yaxis.set_minor_locator(NullLocator())
    _thousands(panel, 15_000, 5000)
    _legend(panel, "lower right")


PANELS = (
    (_cosines, "alignment"),
    (_loss, "alignment"),
    (_rank, "alignment"),
    (_batches, "batches"),
    (_cones, "cones"),
    (_layers, "first_layer"),
    (_inverse, "after_alignment"),
    (_two_directions, "after_alignment"),
    (_carried, "orthogonal_points"),
)
