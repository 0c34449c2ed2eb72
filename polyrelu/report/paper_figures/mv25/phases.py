"""Figs 5 and 6 of Min & Vidal (ICML 2025): alignment, loss and distance to F^(3) against steps of descent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from polyrelu.claims.mv25 import FIG5, FIG6
from polyrelu.report.figures.style import BLACK, BLUE, DOTTED, GREY, VERMILION, canvas, figure_style
from polyrelu.report.paper_figures.figure import PaperFigure, Results, Run
from polyrelu.report.paper_figures.panels import Array, band, runs_of, select

if TYPE_CHECKING:
    from matplotlib.figure import Figure

END = 600.0  # steps, as plotted
MEDIAN: dict[str, Any] = {"middle": np.median, "alpha": 0.3, "lw": 2.2}
PUBLISHED: dict[str, Any] = {
    "ls": "none", "marker": "o", "mfc": "white", "mec": BLACK, "mew": 1.2, "ms": 6, "zorder": 6, "clip_on": False,
}  # fmt: skip


@figure_style()
def random_start(results: Results) -> Figure:
    """Fig. 5, and beside it what comes later: the distance rises again, and the norms of each cluster."""
    runs = runs_of(results, "mv25.phases.random_start")
    published = FIG5 if runs[0]["profile"] == "paper" else {}
    figure = canvas((10, 7.6), "Random start: directions first, norms later")
    left = figure.add_gridspec(3, 1, left=0.06, right=0.6, top=0.9, bottom=0.075, hspace=0.4)
    right = figure.add_gridspec(2, 1, left=0.68, right=0.985, top=0.9, bottom=0.075, hspace=0.35)
    _curves([figure.add_subplot(left[row]) for row in range(3)], runs, published)
    _later(figure.add_subplot(right[0]), runs)
    _sums(figure.add_subplot(right[1]), runs)
    return figure


@figure_style()
def nudged_start(results: Results) -> Figure:
    """Fig. 6 in the reading that gives its times, and the random start with the same weights beside it."""
    runs = runs_of(results, "mv25.phases.nudged_start")
    *others, plotted = (select(runs, nudge=part) for part in sorted({run["nudge"] for run in runs}))
    figure = canvas((8, 7.6), "Nudged start: neurons that begin nearer to a centre align sooner")
    grid = figure.add_gridspec(3, 1, left=0.095, right=0.97, top=0.9, bottom=0.075, hspace=0.42)
    panels = [figure.add_subplot(grid[row, 0]) for row in range(3)]
    _curves(panels, plotted, FIG6, "nudged by .05 of a unit weight")
    names = ("random start", "nudged by .05 as printed")
    for other, name, style in zip(others, names, (":", "--"), strict=True):
        grid_ = np.linspace(0, min(END, *(one["step"][-1] for one in other)), 400)
        medians = _on(grid_, other, "cosine quartiles", 1)
        panels[0].plot(grid_, np.median(medians, 0), color=GREY, ls=style, lw=1.8, label=name)
    panels[0].legend(loc="center right")
    return figure


def _on(grid: Array, runs: Sequence[Run], name: str, row: int | None = None) -> Array:
    """A line of every run at the same steps, (runs, steps)."""
    lines = [run[name] if row is None else run[name][row] for run in runs]
    return np.stack([np.interp(grid, run["step"], line) for run, line in zip(runs, lines, strict=True)])


def _curves(
    panels: Sequence[Axes], runs: Sequence[Run], published: Mapping[str, Mapping[float, float]], name: str = ""
) -> None:
    grid = np.linspace(0, min(END, *(run["step"][-1] for run in runs)), 500)
    low, middle, high = (_on(grid, runs, "cosine quartiles", row) for row in range(3))
    panels[0].fill_between(grid, low.mean(0), high.mean(0), color=BLUE, alpha=0.15, lw=0)
    band(panels[0], grid, middle, BLUE, **MEDIAN, label=name)
    band(panels[1], grid, _on(grid, runs, "loss"), BLACK, **MEDIAN)
    steps = np.array(runs[0]["distance step"])
    seen = steps <= END
    far = np.stack([run["distance"] for run in runs])[:, seen]
    band(panels[2], np.append(0, steps[seen]), np.hstack([np.ones((len(far), 1)), far]), VERMILION, **MEDIAN)
    titles = (
        "Alignment: largest cosine to a centre, median (light: quartiles)",
        "Loss, mean of (y − f)²",
        "Distance to the ideal net, sup |f − F⁽³⁾| (1 at the start, where f ≈ 0)",
    )
    for panel, title, points in zip(panels, titles, ("cosine", "loss", "distance"), strict=True):
        panel.set_title(title, loc="left")
        panel.set_xlim(0, END)
        panel.set_ylim(-0.04, 1.08)
        if points in published:
            panel.plot(
                list(published[points]), list(published[points].values()), label="published, read off", **PUBLISHED
            )
    panels[2].set_xlabel("steps of gradient descent at rate .2 (flow time / .4)")
    if published:
        panels[1].legend(loc="lower left")


def _later(panel: Axes, runs: Sequence[Run]) -> None:
    steps, far = np.array(runs[0]["distance step"]), np.stack([run["distance"] for run in runs])
    band(panel, steps, far, VERMILION, **MEDIAN)
    panel.set(xscale="log", yscale="log", xlabel="steps")
    ticks = [tick for tick in (300, 500, 1000, 2000, 5000, 10_000) if steps[0] <= tick <= steps[-1]]
    panel.set_xticks(ticks, [f"{tick}" for tick in ticks])
    panel.minorticks_off()
    panel.set_title("Trained on, the distance rises again", loc="left")
    best = float(np.median(far, 0).min())
    panel.axhline(best, color=GREY, lw=1, ls=DOTTED)
    panel.text(steps[0], best * 0.9, f"smallest {best:.2g}", color=GREY, fontsize=9, va="top")
    panel.set_ylim(best / 2, 1.6)


def _sums(panel: Axes, runs: Sequence[Run]) -> None:
    for run in runs:
        panel.plot(range(1, 1 + len(run["cluster sums"])), run["cluster sums"], "o", color=BLUE, ms=5, alpha=0.6)
    panel.axhline(1, color=BLACK, lw=1, ls=DOTTED)
    panel.set_title("Σ |w|² at each centre, when nearest to F⁽³⁾", loc="left")
    panel.set_xlabel("cluster (5 positive, 5 negative)")
    panel.set_xticks(range(1, 1 + len(runs[0]["cluster sums"])))
    widest = max(abs(one - 1) for run in runs for one in run["cluster sums"])
    panel.set_ylim(1 - 2 * widest, 1 + 2 * widest)


FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        id="mv25-fig5",
        title="Figure 5: alignment, loss and distance from a random start",
        paper="MV25",
        caption="Neurons turn to the centres while the loss stands still; then norms grow and the net comes within a "
        "hundredth of F⁽³⁾. Plotted distances begin at .53 where the true value is 1. Lines: median seed, bands: "
        "smallest to largest.",
        claims=("B13", "B14", "B17", "B30"),
        draw=random_start,
    ),
    PaperFigure(
        id="mv25-fig6",
        title="Figure 6: the same from a nudged start",
        paper="MV25",
        caption="Moved by 5 % towards a centre as printed, weights of length √D hardly turn (dashed on dotted); moved "
        "so after they are brought to length 1, they align when the published ones do.",
        claims=("B15",),
        draw=nudged_start,
    ),
)
