"""Fig. 4 of Min & Vidal 2024 drawn again: heads on embeddings whose labels put several kinds together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from polyrelu.claims.embeddings import POWERS
from polyrelu.report.figures.heatmap import heat
from polyrelu.report.figures.training import AVERAGE, CENTRE, QUIET, STYLE, canvas
from polyrelu.report.paper_figures.figure import PaperFigure, Results

Run = Mapping[str, Any]
COLOURS = dict(zip(POWERS, (AVERAGE, "#E69F00", "#009E73", CENTRE), strict=True))  # of Okabe & Ito
WIDTHS = {"APGD-CE": (0.18, 0.35), "strongest attack": (0.18, 1.0), "certified": (0.09, 1.0)}  # of bars, and how dark


def figure_four(results: Results) -> Figure:
    """Cosines of the kinds, accuracy and stable rank in time, robust accuracy."""
    runs = [one.measured.data for one in results.get("embeddings.heads", ()) if one.measured is not None]
    with rc_context(STYLE):
        about = runs[0]["about"] if runs else "not run"
        figure = canvas((10, 7.8), f"Heads on embeddings ({about})")
        grid = figure.add_gridspec(2, 2, left=0.07, right=0.97, top=0.9, bottom=0.08, hspace=0.36, wspace=0.22)
        panels = [figure.add_subplot(grid[place // 2, place % 2]) for place in range(4)]
        _map(panels[0], [run for run in runs if run["cosines"]])
        _epochs(panels[1], runs, "accuracy", "b  Accuracy (dashed: training rows)")
        _epochs(panels[2], runs, "rank", "c  Stable rank of the features")
        _robust(panels[3], runs)
    return figure


def _map(panel: Axes, runs: Sequence[Run]) -> None:
    panel.set_title("a  Cosines of kinds, sorted by label", loc="left")
    if not runs:
        panel.set_axis_off()
        return
    image = heat(panel, np.array(runs[0]["cosines"]), 1.0)
    panel.set_aspect("equal")
    panel.set_xticks([])
    panel.set_yticks([])
    panel.figure.colorbar(image, cax=panel.inset_axes((1.04, 0, 0.04, 1)), ticks=[-1, -0.5, 0, 0.5, 1])


def _epochs(panel: Axes, runs: Sequence[Run], name: str, title: str) -> None:
    for p, mine in _by_power(runs):
        lines = np.array([run[name] for run in mine])
        panel.fill_between(
            range(lines.shape[1]), lines.min(axis=0), lines.max(axis=0), color=COLOURS[p], alpha=0.18, lw=0
        )
        panel.plot(lines.mean(axis=0), color=COLOURS[p], lw=1.8, label=f"p = {p}")
        if name == "accuracy":
            train = np.mean([run["train accuracy"] for run in mine], axis=0)
            panel.plot(train, color=COLOURS[p], lw=1, ls=(0, (3, 2)))
    if name == "accuracy":
        ends = [run["accuracy"][-1] for run in runs]
        panel.set_ylim(min(ends, default=0.8) - 0.2, 1.01)
        panel.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    panel.set_title(title, loc="left")
    panel.set_xlabel("epochs")
    panel.set_xlim(left=0)
    if runs:
        panel.legend(frameon=False, fontsize=9, ncols=2)


def _robust(panel: Axes, runs: Sequence[Run]) -> None:
    """Three bars for each p at each radius, one over the other: the certified one is the shortest."""
    places = [(name, k) for name, side in runs[0]["sides"].items() for k in range(len(side["radii"]))] if runs else []
    for place, (name, k) in enumerate(places):
        for number, (p, mine) in enumerate(_by_power(runs)):
            x = place + 0.2 * (number - 1.5)
            for side, (width, alpha) in WIDTHS.items():
                share = float(np.mean([run["sides"][name][side][k] for run in mine]))
                edge = "white" if side == "certified" else "none"
                panel.bar(x, share, width, color=COLOURS[p], alpha=alpha, ec=edge, lw=0.8)
    names = [f"{name} {runs[0]['sides'][name]['radii'][k]:g}" + (" |x|" if name == "l2" else "") for name, k in places]
    panel.set_xticks(range(len(places)), names)
    panel.set_ylim(0, 1.02)
    panel.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    panel.set_title("d  Robust accuracy", loc="left")
    words = "pale: APGD-CE, full: strongest attack, narrow: certified"
    panel.text(0.99, 0.98, words, transform=panel.transAxes, ha="right", va="top", fontsize=9, color=QUIET)


def _by_power(runs: Sequence[Run]) -> list[tuple[int, list[Run]]]:
    found = [(p, [run for run in runs if run["p"] == p]) for p in POWERS]
    return [(p, mine) for p, mine in found if mine]


FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        id="fig4",
        title="Figure 4: heads on embeddings",
        paper="MV24",
        caption="As published for Caltech-256 and ResNet-152, whose features are not to be had: what stands for them "
        "is named above the picture. a: kinds with the same label are no nearer to each other than to the rest. b, c: "
        "by epoch. d: in l∞ radii of the published range, in l2 a share of the median distance to the mean; what the "
        "published attack and the strongest one leave, and what is certified. Published numbers are not known to us.",
        claims=("D7",),
        draw=figure_four,
    ),
)
