"""What trained nets learn and where they break: Figs 1, 2 and 5 of Min & Vidal (ICML 2024)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec

from polyrelu.claims.mv24 import CENTRE_DISTANCE, RELU_DISTANCE, ROBUST_ACCURACY
from polyrelu.report.figures.sphere import NeuronSnapshot, sphere_figure
from polyrelu.report.figures.style import BLACK, BLUE, DASHED, LIGHT_GREY, VERMILION, canvas
from polyrelu.report.paper_figures import panels
from polyrelu.report.paper_figures.panels import Results, Run, paper_figure

COLOURS = {1: VERMILION, 3: BLUE}
ROWS = {1: 300, 3: 20}  # of the published colormaps
BARS = {1: 300, 3: 50}
MOMENTS = ("start", "directions have turned", "norms have grown")


@paper_figure(
    id="fig1",
    title="Figure 1: what neurons learn",
    paper="MV24",
    caption="Two positive sub-classes and a negative class in space. Each dot is the direction of a neuron, its "
    "area the log of |v||w|. For p = 1 the neurons that grow point at the class averages, for p = 3 at single "
    "centres; those that no data point activates stay where and as small as they were.",
    claims=("B22", "B23"),
)
def directions(results: Results) -> Figure:
    """Three moments in a row, one row for each p; the first seed."""
    outcomes = results["mv24.fig1.picture"]
    first_seed = [one for one in outcomes if one.seed == min(outcome.seed for outcome in outcomes)]
    pictures = sorted(panels.runs_of({"first": first_seed}, "first"), key=lambda data: data["p"])
    stages = [
        NeuronSnapshot(f"p = {data['p']}: {name}", stage["directions"], stage["log contributions"], stage["signs"])
        for data in pictures
        for name, stage in zip(MOMENTS, data["stages"], strict=True)
    ]
    title = "Directions first, norms later: averages (p = 1), centres (p = 3)"
    return sphere_figure(
        stages, *(pictures[0][name] for name in ("points", "labels", "centres", "averages")), title=title
    )


@paper_figure(
    id="fig2",
    title="Figure 2: trained nets on 6 + 4 sub-classes",
    paper="MV24",
    caption="a: inf over c of sup |c f - ideal| (solid) and what the published estimator reports (dashed); "
    "diamonds: published, at D = 1000 and n = 20 000. For p = 3 its 1e-5 comes from a guard in the step, not from "
    "the nets. b: contributions, in colour those that make 99 %. c, d: cosines of the largest neurons to class "
    "averages and centres. e: proven and attacked robust accuracy coincide; the published attack (thin, dashed) "
    "overstates it. Bands: smallest to largest over seeds.",
    claims=("B1", "B2", "B4", "B5", "B6", "B7", "B24", "B25"),
)
def six_four(results: Results) -> Figure:
    """Fig. 2 a-e: distances, contributions, colormaps, robust accuracy."""
    broken = panels.runs_of(results, "mv24.robust_accuracy.breaking")
    figure, grid = _sheet("K = 10 sub-classes (6 + 4): averages for p = 1, centres for p = 3")
    _distances(figure.add_subplot(grid[0, :4]), results)
    _neurons(figure, grid, panels.runs_of(results, "mv24.neurons.learned"))
    panel = figure.add_subplot(grid[2, :])
    for p, colour in COLOURS.items():
        runs = panels.select(broken, p=p)
        left = panels.rows(runs, "published attack").mean(axis=0)
        label = f"p = {p}, published attack"
        panel.plot(runs[0]["published radii"], left, color=colour, lw=1, ls=DASHED, label=label)
        panels.published_marks(panel, ROBUST_ACCURACY[p], colour)
    panels.published_key(panel)
    _accuracy(panel, broken, 10)
    return figure


@paper_figure(
    id="fig5",
    title="Figure 5: trained nets on 8 + 12 sub-classes",
    paper="MV24",
    caption="As Figure 2, for one noise level α = .1. The numbers of the published figure are not known to us.",
    claims=("B3", "B26"),
)
def eight_twelve(results: Results) -> Figure:
    """Fig. 5: the same for 20 sub-classes, one alpha."""
    runs = panels.runs_of(results, "mv24.neurons.twenty")
    figure, grid = _sheet("K = 20 sub-classes (8 + 12): averages for p = 1, centres for p = 3")
    panel = figure.add_subplot(grid[0, :4])
    for place, p in enumerate(COLOURS):
        found = [run["distance"] for run in panels.select(runs, p=p)]
        panel.plot([place] * len(found), found, "o", color=COLOURS[p], ms=8)
        panel.text(place + 0.09, found[0], f"{found[0]:.3f}", va="center", color=COLOURS[p], fontweight="bold")
    panel.set(title="a  Distance to the ideal classifier, α = .1", yscale="log", ylim=(1e-3, 1), xlim=(-0.5, 1.6))
    panel.set_xticks([0, 1], labels=["p = 1, to F", "p = 3, to F^(3)"])
    _neurons(figure, grid, runs)
    _accuracy(figure.add_subplot(grid[2, :]), runs, 20)
    return figure


def _sheet(title: str) -> tuple[Figure, GridSpec]:
    figure = canvas((10, 12.4), title)
    grid = figure.add_gridspec(
        3, 8, left=0.075, right=0.925, top=0.935, bottom=0.045, hspace=0.3, wspace=1.4, height_ratios=(1, 1.15, 1)
    )
    return figure, grid


def _distances(panel: Axes, results: Results) -> None:
    for p, name, numbers in (
        (1, "mv24.distances.relu_distance", RELU_DISTANCE),
        (3, "mv24.distances.centre_distance", CENTRE_DISTANCE),
    ):
        runs, colour = panels.runs_of(results, name), COLOURS[p]
        what = "c as published" if p == 1 else "published estimator"
        alphas = sorted({run["alpha"] for run in runs})
        for key, style, label in (("distance", "-", "true"), ("estimate", DASHED, what)):
            found = np.transpose([[run[key] for run in panels.select(runs, alpha=alpha)] for alpha in alphas])
            panels.band(panel, alphas, found, colour, ls=style, marker="o", ms=3, label=f"p = {p}, {label}")
        panels.published_marks(panel, numbers, colour)
    panels.published_key(panel)
    panel.set(title="a  Distance to the ideal classifier", xlabel="noise α", xlim=(0, 0.31))
    panel.set(yscale="log", ylim=(1e-6, 30), yticks=[10.0**k for k in range(-6, 1)])
    panel.legend(fontsize=8.5, ncols=2, loc="upper left", borderaxespad=0)


def _neurons(figure: Figure, grid: GridSpec, runs: Sequence[Run]) -> None:
    """Panels b, c and d, from the first seed."""
    for place, p in enumerate(COLOURS):
        run = panels.select(runs, p=p)[0]
        panel = figure.add_subplot(grid[0, 4 + 2 * place : 6 + 2 * place])
        bars = run["contributions"][: BARS[p]]
        dark = [COLOURS[p] if rank < run["carriers"] else LIGHT_GREY for rank in range(len(bars))]
        panel.bar(np.arange(1, len(bars) + 1), bars, width=1.0 if len(bars) > 60 else 0.8, color=dark)
        panel.set(title=f"b  |v||w|, p = {p}", xlabel=f"neurons; {run['carriers']} have 99 %")
        _colormap(figure.add_subplot(grid[1, 4 * place : 4 * place + 4]), run, p, "cd"[place])


def _colormap(panel: Axes, run: Run, p: int, letter: str) -> None:
    shown = min(ROWS[p] * (2 if sum(run["clusters"]) > 10 else 1), run["carriers"])
    rows = np.array(run["cosines"][:shown])
    rows = rows[np.argsort(rows.argmax(axis=1), kind="stable")]
    panels.cosine_panel(panel, rows, (1.02, 0.025) if letter == "d" else None)
    K = sum(run["clusters"])
    panel.axvline(1.5, color=BLACK, lw=0.8)
    every = 1 if K <= 10 else 3
    labels = ["+", "−", *(str(k) for k in range(1, K + 1, every))]
    panel.set_xticks([0, 1, *range(2, K + 2, every)], labels=labels)
    panel.set_title(f"{letter}  Cosines of {len(rows)} neurons, p = {p}")
    panel.set_xlabel("averages of the classes + and −, then centres")


def _accuracy(panel: Axes, runs: Sequence[Run], clusters: int) -> None:
    radii = np.linspace(0, 1.05, 2101)
    for p, colour in COLOURS.items():
        for side, width, alpha, side_name in (("upper", 5.0, 0.4, "attacked"), ("lower", 1.6, 1.0, "certified")):
            lines = panels.shares_beyond(panels.select(runs, p=p), side, radii)
            label = f"p = {p}, {side_name}"
            panels.band(panel, radii, lines, colour, alpha=0.15, line_alpha=alpha, lw=width, label=label)
    panels.robustness_axes(panel, "e  Robust accuracy, α = .1")
    panels.mark_ideal_radii(panel, clusters)
    panel.set_xlim(0, 1.05)
    panel.legend(loc="center left", bbox_to_anchor=(0.01, 0.45))
