"""Fig. 4 of Min & Vidal 2024 drawn again: heads on embeddings whose labels put several kinds together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from polyrelu.report.figures.style import GREY, canvas, figure_style
from polyrelu.report.paper_figures import panels
from polyrelu.report.paper_figures.figure import PaperFigure, Results, Run
from polyrelu.report.paper_figures.mv24.heads import COLOURS, epoch_axes, epoch_lines

WIDTHS = {"APGD-CE": (0.18, 0.35), "strongest attack": (0.18, 1.0), "certified": (0.09, 1.0)}  # of bars, and how dark


@figure_style()
def figure_four(results: Results) -> Figure:
    """Cosines of the kinds, accuracy and stable rank in time, robust accuracy."""
    runs = panels.runs_of(results, "mv24.embeddings.heads")
    about = runs[0]["about"] if runs else "not run"
    figure = canvas((10, 7.8), f"Heads on embeddings ({about})")
    grid = figure.add_gridspec(2, 2, left=0.07, right=0.97, top=0.9, bottom=0.08, hspace=0.36, wspace=0.22)
    map_panel, accuracy, rank, robust = (figure.add_subplot(grid[place // 2, place % 2]) for place in range(4))
    _map(map_panel, [run for run in runs if run["cosines"]])
    epoch_lines(accuracy, runs, "accuracy")
    panels.percent_axis(accuracy, min((run["accuracy"][-1] for run in runs), default=0.8) - 0.2, 1.01)
    epoch_axes(accuracy, "b  Accuracy (dashed: training rows)")
    epoch_lines(rank, runs, "rank")
    epoch_axes(rank, "c  Stable rank of the features")
    _robust(robust, runs)
    return figure


def _map(panel: Axes, runs: Sequence[Run]) -> None:
    panel.set_title("a  Cosines of kinds, sorted by label", loc="left")
    if not runs:
        panel.set_axis_off()
        return
    panels.cosine_panel(panel, runs[0]["cosines"], (1.04, 0.04))
    panel.set_aspect("equal")
    panel.set_xticks([])
    panel.set_yticks([])


def _robust(panel: Axes, runs: Sequence[Run]) -> None:
    """Three bars for each p at each radius, one over the other: the certified one is the shortest."""
    places = [(name, k) for name, side in runs[0]["sides"].items() for k in range(len(side["radii"]))] if runs else []
    for place, (name, k) in enumerate(places):
        for number, (p, mine) in enumerate(panels.by_power(runs, COLOURS)):
            x = place + 0.2 * (number - 1.5)
            for side, (width, alpha) in WIDTHS.items():
                share = float(np.mean([run["sides"][name][side][k] for run in mine]))
                edge = "white" if side == "certified" else "none"
                panel.bar(x, share, width, color=COLOURS[p], alpha=alpha, ec=edge, lw=0.8)
    names = [f"{name} {runs[0]['sides'][name]['radii'][k]:g}" + (" |x|" if name == "l2" else "") for name, k in places]
    panel.set_xticks(range(len(places)), names)
    panels.percent_axis(panel, 0)
    panel.set_title("d  Robust accuracy", loc="left")
    words = "pale: APGD-CE, full: strongest attack, narrow: certified"
    panel.text(0.99, 0.98, words, transform=panel.transAxes, ha="right", va="top", fontsize=9, color=GREY)


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
