"""How far the ideal classifiers hold, by K and by p, and what attacks report instead."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter
from numpy.typing import NDArray

from polyrelu.claims.claim import Measured
from polyrelu.report.figures.training import AVERAGE, CENTRE, INK, QUIET, STYLE, canvas
from polyrelu.report.paper_figures.figure import PaperFigure, Results
from polyrelu.robust.theory.bounds import centre_critical_radius

Array = NDArray[np.float64]
HALF_GAP = math.sqrt(2) / 2
GREEN, PURPLE = "#009E73", "#CC79A7"  # of Okabe & Ito
READ_OFF = {0.85: 1.0, 0.88: 0.98, 0.9: 0.8, 0.93: 0.4, 0.98: 0.035}  # Fig. 2e of Min & Vidal 2024, p = 3
HOW = (
    ("published", AVERAGE, "o", "published attack (starts at x)"),
    ("random starts", PURPLE, "s", "three random starts"),
    ("data starts", GREEN, "^", "starts towards the other class"),
)


def scaling(results: Results) -> Figure:
    """Radius against K for F, F^(3), F^(4); radius at a centre against p. Marks: proven to attacked, all seeds."""
    with rc_context(STYLE):
        figure = canvas((10, 4.7), "Averages break at 1/√K, centres at √2/2 from p = 2 on")
        left, right = figure.subplots(
            1, 2, gridspec_kw={"left": 0.075, "right": 0.985, "top": 0.83, "bottom": 0.23, "wspace": 0.19}
        )
        _by_clusters(left, results)
        _by_power(right, _data(results, "ideal.threshold"))
    return figure


def _by_clusters(panel: Axes, results: Results) -> None:
    fragile, resistant = _data(results, "ideal.fragility"), _data(results, "ideal.resistance")
    K, others = np.array(fragile[0]["K"]), np.array(resistant[0]["K"])
    ends = np.array([min(K[0], others[0]), max(K[-1], others[-1])])
    panel.plot(ends, 1 / np.sqrt(ends), color=AVERAGE, lw=1.2, label="1/√K")
    panel.axhline(HALF_GAP, color=CENTRE, lw=1.2, label="√2/2")
    _bars(panel, K, _all(fragile, "lower"), _all(fragile, "upper"), AVERAGE, "o", f"F, slope {_slope(results):.3f}")
    for p, marker in ((3, "o"), (4, "s")):
        low, high = _all(resistant, f"lower, p = {p}"), _all(resistant, f"upper, p = {p}")
        _bars(panel, others, low, high, CENTRE, marker, f"F^({p})", hollow=p == 4)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_xlim(ends[0] / 1.25, ends[1] * 1.25)
    panel.set_ylim(top=1.0)
    panel.xaxis.set_major_locator(FixedLocator(sorted({*K.tolist(), *others.tolist()} - {10, 20, 40, 128})))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda k, _: f"{k:g}"))
    panel.yaxis.set_major_locator(FixedLocator([0.07, 0.1, 0.2, 0.3, 0.5, 0.7]))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda r, _: f"{r:g}"))
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_minor_locator(NullLocator())
    panel.set_title("Radius at which half of the points break", loc="left")
    panel.set_xlabel("number K of sub-classes")
    panel.legend(frameon=False, fontsize=9, ncols=3, loc="upper left", bbox_to_anchor=(-0.06, -0.16))


def _slope(results: Results) -> float:
    """The median over seeds, of attacked radii."""
    name = "slope of log r50 against log K, attacked"
    return float(np.median([run.values[name] for run in _runs(results, "ideal.fragility")]))


def _by_power(panel: Axes, runs: list[Mapping[str, Any]]) -> None:
    rows = [row for run in runs for row in run["centres"]]
    fine = np.linspace(1, 4.1, 400)
    for opposite, style in zip(sorted({row["opposite"] for row in rows}), ("-", "--", "-.", ":"), strict=False):
        line = [centre_critical_radius(p, opposite) for p in fine]
        panel.plot(fine, line, color=QUIET, lw=1.2, ls=style, label=f"{opposite} opposite centres")
        mine = [row for row in rows if row["opposite"] == opposite]
        p = np.array([row["p"] for row in mine])
        low, high = (np.array([[row[side] for row in mine]]) for side in ("lower", "upper"))
        _bars(panel, p, low, high, CENTRE, "o")
    panel.plot([], [], "o", color=CENTRE, ms=6, label="proven to attacked")
    panel.axvline(2, color=INK, lw=1, ls=(0, (2, 2)))
    panel.text(2.04, 0.36, "p = 2", fontsize=9, color=INK)
    panel.set_title("Radius of F^(p) at a centre (lines: formula)", loc="left")
    panel.set_xlabel("p")
    panel.set_ylim(0.2, 0.76)
    panel.legend(frameon=False, fontsize=9, ncols=2, loc="upper left", bbox_to_anchor=(-0.06, -0.16))


def blind(results: Results) -> Figure:
    """What attacks report: accuracy of F^(3) by radius, radii by p, and one classifier written with four p."""
    with rc_context(STYLE):
        figure = canvas((10, 8.3), "What ordinary attacks report for larger p, beside the truth")
        grid = figure.add_gridspec(2, 2, left=0.075, right=0.985, top=0.91, bottom=0.115, hspace=0.36, wspace=0.19)
        _accuracy(figure.add_subplot(grid[0, :]), results)
        _starts(figure.add_subplot(grid[1, 0]), results)
        _same(figure.add_subplot(grid[1, 1]), results)
    return figure


def _accuracy(panel: Axes, results: Results) -> None:
    runs = [run for run in _data(results, "ideal_attacks.starts") if run["p"] == 3]
    radii = np.array(runs[0]["radii"])
    for name, colour, marker, label in HOW:
        lines = _all(runs, name)
        panel.fill_between(radii, lines.min(axis=0), lines.max(axis=0), color=colour, alpha=0.18, lw=0)
        panel.plot(radii, lines.mean(axis=0), color=colour, marker=marker, ms=5, lw=1.8, label=label)
    low, high = _all(runs, "certified").min(axis=0), _all(runs, "attacked").max(axis=0)
    panel.fill_between(radii, low, high, color=CENTRE, alpha=0.25, lw=0)
    panel.plot(radii, (low + high) / 2, color=CENTRE, lw=5, alpha=0.45, zorder=1, label="truth: proven and attacked")
    panel.plot(
        list(READ_OFF), list(READ_OFF.values()), "D", mfc="none", mec=INK, ms=7, ls="", label="published, read off"
    )
    panel.axvline(HALF_GAP, color=INK, lw=1, ls=(0, (2, 2)))
    panel.text(HALF_GAP + 0.003, 1.06, "√2/2", fontsize=9, color=INK)
    panel.set_ylim(-0.03, 1.12)
    panel.set_xlim(0.695, 1.005)
    panel.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    panel.set_title("Accuracy of F^(3)", loc="left")
    panel.set_xlabel("radius of the perturbation")
    panel.legend(frameon=False, fontsize=9, loc="center right", bbox_to_anchor=(1.0, 0.72))


def _starts(panel: Axes, results: Results) -> None:
    runs = _runs(results, "ideal_attacks.starts")
    powers = sorted({run.data["p"] for run in runs})

    def half(how: str) -> dict[int, list[float]]:
        return {p: [run.values[name] for run in runs if (name := f"r50, p = {p}, {how}") in run.values] for p in powers}

    for name, colour, marker, label in HOW:
        _line(panel, half(name), colour, marker, label)
    _truth(panel, half("proven"), half("attacked"))
    _dress(panel, "Median radius: F (p = 1) and F^(p)")


def _same(panel: Axes, results: Results) -> None:
    rows = [row for run in _data(results, "ideal_attacks.same_classifier") for row in run["reported"]]
    powers = sorted({row["p"] for row in rows})

    def radius(how: str) -> dict[int, list[float]]:
        return {p: [row[how] for row in rows if row["p"] == p] for p in powers}

    for name, colour, marker in (("PGD on cross-entropy", AVERAGE, "o"), ("DeepFool", PURPLE, "s")):
        _line(panel, radius(name), colour, marker, name)
    _truth(panel, radius("lower"), radius("upper"))
    _dress(panel, "Median radius: ten logits relu(x)^p, one classifier")


def _line(panel: Axes, by_power: Mapping[int, list[float]], colour: str, marker: str, label: str) -> None:
    p = list(by_power)
    mean = [sum(radii) / len(radii) for radii in by_power.values()]
    low, high = ([side(radii) for radii in by_power.values()] for side in (min, max))
    panel.fill_between(p, low, high, color=colour, alpha=0.18, lw=0)
    panel.plot(p, mean, color=colour, marker=marker, ms=5, lw=1.8, label=label)


def _truth(panel: Axes, lower: Mapping[int, list[float]], upper: Mapping[int, list[float]]) -> None:
    p, low, high = list(lower), [min(radii) for radii in lower.values()], [max(radii) for radii in upper.values()]
    panel.fill_between(p, low, high, color=CENTRE, alpha=0.3, lw=0)
    middle = [(least + most) / 2 for least, most in zip(low, high, strict=True)]
    panel.plot(p, middle, color=CENTRE, lw=5, alpha=0.45, zorder=1, label="truth: proven and attacked")


def _dress(panel: Axes, title: str) -> None:
    panel.set_xticks([1, 2, 3, 4])
    panel.set_ylim(0.25, 1.05)
    panel.set_xlabel("p")
    panel.set_title(title, loc="left")
    panel.legend(frameon=False, fontsize=9, ncols=2, loc="upper left", bbox_to_anchor=(-0.06, -0.14))


def _bars(
    panel: Axes, x: Array, lower: Array, upper: Array, colour: str, marker: str, label: str = "", hollow: bool = False
) -> None:
    """A mark from the smallest proven to the largest attacked radius of all seeds, (seeds, n) each."""
    low, high = lower.min(axis=0), upper.max(axis=0)
    fill, size = ("none", 9) if hollow else (colour, 6)
    middle = (low + high) / 2
    panel.errorbar(
        x, middle, yerr=[middle - low, high - middle], fmt=marker, color=colour, mfc=fill, ms=size, label=label or None
    )


def _runs(results: Results, experiment: str) -> list[Measured]:
    return [outcome.measured for outcome in results[experiment] if outcome.measured is not None]


def _data(results: Results, experiment: str) -> list[Mapping[str, Any]]:
    return [run.data for run in _runs(results, experiment)]


def _all(runs: list[Mapping[str, Any]], name: str) -> Array:
    """One row a seed."""
    return np.array([run[name] for run in runs], dtype=np.float64)


FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        id="scaling",
        title="The scaling laws of the ideal classifiers",
        paper="MV24",
        caption="Left: F, the classifier of class averages, breaks at 1/√K; F^(p), p > 2, at √2/2 whatever K (Thm 1). "
        "Marks reach from the smallest proven to the largest attacked median radius over all seeds. "
        "Right: p = 2 is the threshold; below it the radius at a centre falls with the number of opposite centres.",
        claims=("A4", "A5", "A6"),
        draw=scaling,
    ),
    PaperFigure(
        id="blind",
        title="What attacks report, beside the truth",
        paper="MV24",
        caption="Top: the published attack keeps nearly all points of F^(3) to radius .85, as in Fig. 2e of the paper "
        "(diamonds), where none holds beyond √2/2. Left: the error begins above p = 2. Right: ten logits relu(x)^p "
        "decide alike for every p, yet what attacks report grows with p. Bands: smallest to largest over seeds.",
        claims=("A10", "A13"),
        draw=blind,
    ),
)
