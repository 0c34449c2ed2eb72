"""How far the ideal classifiers hold, by K and by p, and what attacks report instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from polyrelu.claims import Quantity
from polyrelu.claims.mv24 import ROBUST_ACCURACY
from polyrelu.report.figures.style import BLACK, BLUE, GREEN, GREY, PURPLE, VERMILION, canvas
from polyrelu.report.paper_figures import panels
from polyrelu.report.paper_figures.panels import Results, Run, paper_figure
from polyrelu.robust.theory import HALF_GAP, centre_critical_radius

READ_OFF = {radius: share for radius, share in ROBUST_ACCURACY[3].items() if radius >= 0.85}
HOW = (
    ("published", VERMILION, "o", "published attack (starts at x)"),
    ("random starts", PURPLE, "s", "three random starts"),
    ("data starts", GREEN, "^", "starts towards the other class"),
)


@paper_figure(
    id="scaling",
    title="The scaling laws of the ideal classifiers",
    paper="MV24",
    caption="Left: F, the classifier of class averages, breaks at 1/√K; F^(p), p > 2, at √2/2 whatever K (Thm 1). "
    "Marks reach from the smallest proven to the largest attacked median radius over all seeds. "
    "Right: p = 2 is the threshold; below it the radius at a centre falls with the number of opposite centres.",
    claims=("A4", "A5", "A6"),
)
def scaling(results: Results) -> Figure:
    """Radius against K for F, F^(3), F^(4); radius at a centre against p. Marks: proven to attacked, all seeds."""
    figure = canvas((10, 4.7), "Averages break at 1/√K, centres at √2/2 from p = 2 on")
    left, right = panels.grid_of_panels(figure, 1, 2, left=0.075, right=0.985, top=0.83, bottom=0.23, wspace=0.19)
    _by_clusters(left, results)
    _by_power(right, panels.runs_of(results, "mv24.ideal.threshold"))
    return figure


def _by_clusters(panel: Axes, results: Results) -> None:
    fragile = panels.runs_of(results, "mv24.ideal.fragility")
    resistant = panels.runs_of(results, "mv24.ideal.resistance")
    K, others = np.array(fragile[0]["K"]), np.array(resistant[0]["K"])
    ends = np.array([min(K[0], others[0]), max(K[-1], others[-1])])
    panel.plot(ends, 1 / np.sqrt(ends), color=VERMILION, lw=1.2, label="1/√K")
    panel.axhline(HALF_GAP, color=BLUE, lw=1.2, label="√2/2")
    attacked = Quantity("slope of log r50 against log K", side="attacked")
    slope = np.median(panels.values_of(panels.measured(results, "mv24.ideal.fragility"), attacked))
    low, high = panels.rows(fragile, "lower"), panels.rows(fragile, "upper")
    _bars(panel, K, low, high, VERMILION, label=f"F, slope {slope:.3f}")
    for p, look in ((3, {}), (4, {"fmt": "s", "mfc": "none", "ms": 9})):
        low, high = panels.rows(resistant, f"lower, p = {p}"), panels.rows(resistant, f"upper, p = {p}")
        _bars(panel, others, low, high, BLUE, label=f"F^({p})", **look)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set(title="Radius at which half of the points break", xlabel="number K of sub-classes")
    panel.set(xlim=(ends[0] / 1.25, ends[1] * 1.25), ylim=(None, 1.0))
    panels.ticks_at(panel.xaxis, sorted({*K.tolist(), *others.tolist()} - {10, 20, 40, 128}))
    panels.ticks_at(panel.yaxis, (0.07, 0.1, 0.2, 0.3, 0.5, 0.7))
    panel.legend(ncols=3, loc="upper left", bbox_to_anchor=(-0.06, -0.16))


def _by_power(panel: Axes, runs: Sequence[Run]) -> None:
    centres = [row for run in runs for row in run["centres"]]
    fine = np.linspace(1, 4.1, 400)
    for opposite, style in zip(sorted({row["opposite"] for row in centres}), ("-", "--", "-.", ":"), strict=False):
        line = [centre_critical_radius(p, opposite) for p in fine]
        panel.plot(fine, line, color=GREY, lw=1.2, ls=style, label=f"{opposite} opposite centres")
        mine = panels.select(centres, opposite=opposite)
        p, low, high = (panels.rows(mine, name) for name in ("p", "lower", "upper"))
        _bars(panel, p, low[None], high[None], BLUE)
    panel.plot([], [], "o", color=BLUE, ms=6, label="proven to attacked")
    panels.mark_radius(panel, 2, "p = 2", 0.04, 0.36)
    panel.set(title="Radius of F^(p) at a centre (lines: formula)", xlabel="p", ylim=(0.2, 0.76))
    panel.legend(ncols=2, loc="upper left", bbox_to_anchor=(-0.06, -0.16))


@paper_figure(
    id="blind",
    title="What attacks report, beside the truth",
    paper="MV24",
    caption="Top: the published attack keeps nearly all points of F^(3) to radius .85, as in Fig. 2e of the paper "
    "(diamonds), where none holds beyond √2/2. Left: the error begins above p = 2. Right: ten logits relu(x)^p "
    "decide alike for every p, yet what attacks report grows with p. Bands: smallest to largest over seeds.",
    claims=("A10", "A13"),
)
def blind(results: Results) -> Figure:
    """What attacks report: accuracy of F^(3) by radius, radii by p, and one classifier written with four p."""
    figure = canvas((10, 8.3), "What ordinary attacks report for larger p, beside the truth")
    grid = figure.add_gridspec(2, 2, left=0.075, right=0.985, top=0.91, bottom=0.115, hspace=0.36, wspace=0.19)
    _accuracy(figure.add_subplot(grid[0, :]), results)
    _starts(figure.add_subplot(grid[1, 0]), results)
    _same(figure.add_subplot(grid[1, 1]), results)
    return figure


def _accuracy(panel: Axes, results: Results) -> None:
    runs = panels.select(panels.runs_of(results, "mv24.attacks.starts"), p=3)
    radii = np.array(runs[0]["radii"])
    for name, colour, marker, label in HOW:
        panels.band(panel, radii, panels.rows(runs, name), colour, marker=marker, ms=5, label=label)
    _truth(panel, radii, panels.rows(runs, "certified"), panels.rows(runs, "attacked"), alpha=0.25)
    panels.published_marks(panel, READ_OFF, BLACK, ms=7, zorder=2, label="published, read off")
    panels.mark_radius(panel, HALF_GAP, "√2/2", 0.003, 1.06)
    panels.percent_axis(panel, -0.03, 1.12)
    panel.set(title="Accuracy of F^(3)", xlabel="radius of the perturbation", xlim=(0.695, 1.005))
    panel.legend(loc="center right", bbox_to_anchor=(1.0, 0.72))


def _starts(panel: Axes, results: Results) -> None:
    runs = panels.measured(results, "mv24.attacks.starts")
    powers = sorted({run.data["p"] for run in runs})

    def medians(**where: str) -> panels.Array:
        return np.transpose([panels.values_of(runs, Quantity("r50", p=p, **where)) for p in powers])

    for name, colour, marker, label in HOW:
        panels.band(panel, powers, medians(attack=name), colour, marker=marker, ms=5, label=label)
    _truth(panel, powers, medians(side="proven"), medians(side="attacked"))
    _median_axes(panel, "Median radius: F (p = 1) and F^(p)")


def _same(panel: Axes, results: Results) -> None:
    reported = [row for run in panels.runs_of(results, "mv24.attacks.same_classifier") for row in run["reported"]]
    powers = sorted({row["p"] for row in reported})

    def medians(attack: str) -> panels.Array:
        return np.transpose([panels.rows(panels.select(reported, p=p), attack) for p in powers])

    for name, colour, marker in (("PGD on cross-entropy", VERMILION, "o"), ("DeepFool", PURPLE, "s")):
        panels.band(panel, powers, medians(name), colour, marker=marker, ms=5, label=name)
    _truth(panel, powers, medians("lower"), medians("upper"))
    _median_axes(panel, "Median radius: ten logits relu(x)^p, one classifier")


def _truth(panel: Axes, x: ArrayLike, lower: panels.Array, upper: panels.Array, alpha: float = 0.3) -> None:
    """From the smallest proven to the largest attacked number of all seeds."""
    low, high = lower.min(axis=0), upper.max(axis=0)
    panel.fill_between(x, low, high, color=BLUE, alpha=alpha, lw=0)
    panel.plot(x, (low + high) / 2, color=BLUE, lw=5, alpha=0.45, zorder=1, label="truth: proven and attacked")


def _median_axes(panel: Axes, title: str) -> None:
    panel.set(title=title, xlabel="p", xticks=[1, 2, 3, 4], ylim=(0.25, 1.05))
    panel.legend(ncols=2, loc="upper left", bbox_to_anchor=(-0.06, -0.14))


def _bars(panel: Axes, x: panels.Array, lower: panels.Array, upper: panels.Array, colour: str, **look: Any) -> None:
    """A mark from the smallest proven to the largest attacked radius of all seeds, (seeds, n) each."""
    low, high = lower.min(axis=0), upper.max(axis=0)
    middle = (low + high) / 2
    look = {"fmt": "o", "mfc": colour, "ms": 6, **look}
    panel.errorbar(x, middle, yerr=[middle - low, high - middle], color=colour, **look)
