"""What trained nets learn and where they break: Fig. 2 and 5 of Min & Vidal 2024, Fig. 2 of Min & Vidal 2025."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from polyrelu.claims.breaking import READ_OFF
from polyrelu.claims.compared import GAUSSIAN, HALF, MODELS
from polyrelu.claims.compared import READ_OFF as MODELS_READ_OFF
from polyrelu.claims.distances import CENTRES, RELU
from polyrelu.report.figures.heatmap import heat
from polyrelu.report.figures.training import AVERAGE, CENTRE, INK, QUIET, REST, STYLE, canvas
from polyrelu.report.paper_figures.figure import PaperFigure, Results

Array = NDArray[np.float64]
Run = Mapping[str, Any]
COLOURS = {1: AVERAGE, 3: CENTRE}
GREEN, PURPLE, GOLD = "#009E73", "#CC79A7", "#E69F00"  # of Okabe & Ito
MODEL_COLOURS = dict(zip(MODELS, (CENTRE, CENTRE, AVERAGE, INK, GREEN, GREEN, PURPLE, GOLD), strict=True))
ROWS = {1: 300, 3: 20}  # of the published colormaps
BARS = {1: 300, 3: 50}


def six_four(results: Results) -> Figure:
    """Fig. 2 a-e: distances, contributions, colormaps, robust accuracy."""
    learned, broken = _data(results, "neurons.learned"), _data(results, "breaking.breaking")
    with rc_context(STYLE):
        figure, grid = _sheet("K = 10 sub-classes (6 + 4): averages for p = 1, centres for p = 3")
        _distances(figure.add_subplot(grid[0, :4]), results)
        _neurons(figure, grid, learned)
        panel = figure.add_subplot(grid[2, :])
        for p, colour in COLOURS.items():
            _published_attack(panel, [run for run in broken if run["p"] == p], colour, f"p = {p}, published attack")
            _open(panel, READ_OFF[p], colour)
        panel.plot([], [], "D", mfc="none", mec=QUIET, ms=6, label="published, read off")
        _accuracy(panel, broken, "e  Robust accuracy, α = .1")
        _marks(panel, 10)
        panel.set_xlim(0, 1.05)
        panel.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(0.01, 0.45))
    return figure


def eight_twelve(results: Results) -> Figure:
    """Fig. 5: the same for 20 sub-classes, one alpha."""
    runs = _data(results, "neurons.twenty")
    with rc_context(STYLE):
        figure, grid = _sheet("K = 20 sub-classes (8 + 12): averages for p = 1, centres for p = 3")
        panel = figure.add_subplot(grid[0, :4])
        for place, p in enumerate(COLOURS):
            found = [run["distance"] for run in runs if run["p"] == p]
            panel.plot([place] * len(found), found, "o", color=COLOURS[p], ms=8)
            panel.text(place + 0.09, found[0], f"{found[0]:.3f}", va="center", color=COLOURS[p], fontweight="bold")
        panel.set_yscale("log")
        panel.set_ylim(1e-3, 1)
        panel.set_xlim(-0.5, 1.6)
        panel.set_xticks([0, 1], labels=["p = 1, to F", "p = 3, to F^(3)"])
        panel.set_title("a  Distance to the ideal classifier, α = .1", loc="left")
        _neurons(figure, grid, runs)
        panel = figure.add_subplot(grid[2, :])
        _accuracy(panel, runs, "e  Robust accuracy, α = .1")
        _marks(panel, 20)
        panel.set_xlim(0, 1.05)
        panel.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(0.01, 0.45))
    return figure


def compared(results: Results) -> Figure:
    """Robust accuracy of six classifiers."""
    runs = _data(results, "compared.models")
    with rc_context(STYLE):
        figure = canvas((10, 5.2), "Of these only pReLU with p = 3 can hold as far as Bayes (12 + 8 sub-classes)")
        panel = figure.add_axes((0.075, 0.25, 0.9, 0.6))
        radii = np.linspace(0, 1, 2001)
        for model, colour in MODEL_COLOURS.items():
            lines = np.array([_line(run, "upper", radii) for run in runs if run["model"] == model])
            style = ":" if model in (GAUSSIAN, HALF) else (0, (4, 2)) if model in ("Bayes", "LogReg") else "-"
            panel.fill_between(radii, lines.min(axis=0), lines.max(axis=0), color=colour, alpha=0.2, lw=0)
            proven = np.array([_line(run, "lower", radii) for run in runs if run["model"] == model])
            if proven[:, 1:].any():
                panel.fill_between(radii, proven.min(axis=0), lines.max(axis=0), color=colour, alpha=0.35, lw=0)
            width, name = (4, "pReLU, p = 3") if model == "pReLU" else (1.9, model)
            panel.plot(radii, lines.mean(axis=0), color=colour, lw=width, ls=style, label=name)
            _open(panel, MODELS_READ_OFF.get(model, {}), colour)
        panel.plot([], [], "D", mfc="none", mec=QUIET, ms=6, label="published, read off")
        _marks(panel, 20)
        panel.set_xlim(0, 1)
        _dress(panel, "Robust accuracy: what the strongest attack leaves")
        panel.legend(frameon=False, fontsize=9, ncols=4, loc="upper left", bbox_to_anchor=(-0.02, -0.18))
    return figure


def _sheet(title: str) -> tuple[Figure, GridSpec]:
    figure = canvas((10, 12.4), title)
    grid = figure.add_gridspec(
        3, 8, left=0.075, right=0.925, top=0.935, bottom=0.045, hspace=0.3, wspace=1.4, height_ratios=(1, 1.15, 1)
    )
    return figure, grid


def _distances(panel: Axes, results: Results) -> None:
    for p, name, numbers in ((1, "distances.relu_distance", RELU), (3, "distances.centre_distance", CENTRES)):
        runs, colour = _data(results, name), COLOURS[p]
        what = "c as published" if p == 1 else "published estimator"
        for key, style, label in (("distance", "-", "true"), ("estimate", (0, (4, 2)), what)):
            alphas = sorted({run["alpha"] for run in runs})
            found = [[run[key] for run in runs if run["alpha"] == alpha] for alpha in alphas]
            panel.fill_between(alphas, list(map(min, found)), list(map(max, found)), color=colour, alpha=0.18, lw=0)
            middle = [float(np.mean(values)) for values in found]
            panel.plot(alphas, middle, color=colour, ls=style, lw=1.8, marker="o", ms=3, label=f"p = {p}, {label}")
        _open(panel, numbers, colour)
    panel.plot([], [], "D", mfc="none", mec=QUIET, ms=6, label="published, read off")
    panel.set_yscale("log")
    panel.set_ylim(1e-6, 30)
    panel.set_yticks([10.0**k for k in range(-6, 1)])
    panel.set_xlim(0, 0.31)
    panel.set_xlabel("noise α")
    panel.set_title("a  Distance to the ideal classifier", loc="left")
    panel.legend(frameon=False, fontsize=8.5, ncols=2, loc="upper left", borderaxespad=0)


def _neurons(figure: Figure, grid: GridSpec, runs: Sequence[Run]) -> None:
    """Panels b, c and d, from the first seed."""
    for place, p in enumerate(COLOURS):
        run = next(run for run in runs if run["p"] == p)
        panel = figure.add_subplot(grid[0, 4 + 2 * place : 6 + 2 * place])
        bars = run["contributions"][: BARS[p]]
        dark = [COLOURS[p] if rank < run["carriers"] else REST for rank in range(len(bars))]
        panel.bar(np.arange(1, len(bars) + 1), bars, width=1.0 if len(bars) > 60 else 0.8, color=dark)
        panel.set_title(f"b  |v||w|, p = {p}", loc="left")
        panel.set_xlabel(f"neurons; {run['carriers']} have 99 %")
        _colormap(figure.add_subplot(grid[1, 4 * place : 4 * place + 4]), run, p, "cd"[place])


def _colormap(panel: Axes, run: Run, p: int, letter: str) -> None:
    shown = min(ROWS[p] * (2 if sum(run["clusters"]) > 10 else 1), run["carriers"])
    rows = np.array(run["cosines"][:shown])
    rows = rows[np.argsort(rows.argmax(axis=1), kind="stable")]
    image = heat(panel, rows, 1.0)
    K = sum(run["clusters"])
    panel.axvline(1.5, color=INK, lw=0.8)
    every = 1 if K <= 10 else 3
    labels = ["+", "−", *(str(k) for k in range(1, K + 1, every))]
    panel.set_xticks([0, 1, *range(2, K + 2, every)], labels=labels)
    panel.set_title(f"{letter}  Cosines of {len(rows)} neurons, p = {p}", loc="left")
    panel.set_xlabel("averages of the classes + and −, then centres")
    if letter == "d":
        panel.figure.colorbar(image, cax=panel.inset_axes((1.02, 0, 0.025, 1)), ticks=[-1, -0.5, 0, 0.5, 1])


def _accuracy(panel: Axes, runs: Sequence[Run], title: str) -> None:
    radii = np.linspace(0, 1.05, 2101)
    for p, colour in COLOURS.items():
        mine = [run for run in runs if run["p"] == p]
        for side, width, alpha, label in (("upper", 5.0, 0.4, "attacked"), ("lower", 1.6, 1.0, "certified")):
            lines = np.array([_line(run, side, radii) for run in mine])
            panel.fill_between(radii, lines.min(axis=0), lines.max(axis=0), color=colour, alpha=0.15, lw=0)
            panel.plot(
                radii, lines.mean(axis=0), color=colour, lw=width, alpha=alpha, label=f"p = {p}, {label}", zorder=2
            )
    _dress(panel, title)


def _published_attack(panel: Axes, runs: Sequence[Run], colour: str, label: str) -> None:
    left = np.mean([run["published attack"] for run in runs], axis=0)
    panel.plot(runs[0]["published radii"], left, color=colour, lw=1, ls=(0, (4, 2)), label=label)


def _open(panel: Axes, numbers: Mapping[float, float], colour: str) -> None:
    panel.plot(list(numbers), list(numbers.values()), "D", mfc="none", mec=colour, ms=6, zorder=4)


def _marks(panel: Axes, clusters: int) -> None:
    for radius, name in ((1 / math.sqrt(clusters), f"1/√{clusters}"), (math.sqrt(2) / 2, "√2/2")):
        panel.axvline(radius, color=INK, lw=1, ls=(0, (2, 2)), zorder=1)
        panel.text(radius + 0.006, 1.06, name, fontsize=9, color=INK)


def _dress(panel: Axes, title: str) -> None:
    panel.set_ylim(-0.03, 1.14)
    panel.set_yticks([0, 0.25, 0.5, 0.75, 1])
    panel.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    panel.set_xlabel("radius of the perturbation")
    panel.set_title(title, loc="left")


def _line(run: Run, side: str, radii: Array) -> Array:
    """Share of points whose radius is larger."""
    line: Array = 1 - np.searchsorted(np.array(run[side]), radii, side="right") / run["points"]
    return line


def _data(results: Results, experiment: str) -> list[Run]:
    return [outcome.measured.data for outcome in results[experiment] if outcome.measured is not None]


FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        id="fig2",
        title="Figure 2: trained nets on 6 + 4 sub-classes",
        paper="MV24",
        caption="a: inf over c of sup |c f - ideal| (solid) and what the published estimator reports (dashed); "
        "diamonds: published, at D = 1000 and n = 20 000. For p = 3 its 1e-5 comes from a guard in the step, not from "
        "the nets. b: contributions, in colour those that make 99 %. c, d: cosines of the largest neurons to class "
        "averages and centres. e: proven and attacked robust accuracy coincide; the published attack (thin, dashed) "
        "overstates it. Bands: smallest to largest over seeds.",
        claims=("B1", "B2", "B4", "B5", "B6", "B7", "B24", "B25"),
        draw=six_four,
    ),
    PaperFigure(
        id="fig5",
        title="Figure 5: trained nets on 8 + 12 sub-classes",
        paper="MV24",
        caption="As Figure 2, for one noise level α = .1. The numbers of the published figure are not known to us.",
        claims=("B3", "B26"),
        draw=eight_twelve,
    ),
    PaperFigure(
        id="mv25-fig2",
        title="Figure 2: six classifiers on 12 + 8 sub-classes",
        paper="MV25",
        caption="Robust accuracy left by the strongest attack, bands over seeds; diamonds: published. The paper gives "
        "neither α nor the starts nor when training stopped; dotted: two nets again, from another start.",
        claims=("B8", "B9"),
        draw=compared,
    ),
)
