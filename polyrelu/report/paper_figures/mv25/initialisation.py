"""Fig. 7 of Min & Vidal (ICML 2025): polynomial and pReLU nets from small and large starts, proven and attacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from polyrelu.claims.mv25 import FIG7
from polyrelu.report.figures.style import BLACK, BLUE, DOTTED, GREY, VERMILION, canvas, figure_style
from polyrelu.report.paper_figures.figure import PaperFigure, Results, Run
from polyrelu.report.paper_figures.panels import runs_of, select, shares_beyond

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS: Mapping[str, tuple[str, str, str]] = {
    "pReLU": (BLUE, "o", "pReLU"),
    "polynomial": (VERMILION, "s", "regular polynomial"),
}
GRID = np.linspace(0, 0.8, 401)
LATER = "polynomial, small, trained on"


@figure_style()
def initialisation(results: Results) -> Figure:
    """Robust accuracy against radius: what is proven, what is attacked, the unproven between them."""
    runs = runs_of(results, "mv25.robust_accuracy.starts")
    figure = canvas((10, 5.4), "The start decides: only small pReLU nets reach √2/2")
    for column, size in enumerate(("small", "large")):
        panel = figure.add_axes((0.065 + 0.48 * column, 0.3, 0.44, 0.53))
        for kind in KINDS:
            _curve(panel, runs, kind, size)
        if size == "small" and (later := select(runs, net=LATER)):
            left = shares_beyond(later, "upper", GRID).mean(0)
            panel.plot(GRID, left, color=VERMILION, lw=1.6, ls=":", label="polynomial, trained on")
        _axes(panel, size)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=3, loc="lower center", fontsize=9.5)
    return figure


def _curve(panel: Axes, runs: Sequence[Run], kind: str, size: str) -> None:
    colour, marker, name = KINDS[kind]
    net = f"{kind}, {size}"
    lower, upper = (shares_beyond(select(runs, net=net), side, GRID) for side in ("lower", "upper"))
    if len(upper) > 1:
        panel.fill_between(GRID, upper.min(0), upper.max(0), color=colour, alpha=0.08, lw=0)
    panel.plot(GRID, upper.mean(0), color=colour, lw=2.2, label=f"{name}: not broken by any attack")
    panel.fill_between(GRID, lower.mean(0), upper.mean(0), color=colour, alpha=0.25, lw=0, label=f"{name}: unproven")
    dots: dict[str, Any] = {"ls": "none", "marker": marker, "mfc": "white", "mec": colour, "ms": 5, "zorder": 6}
    panel.plot(list(FIG7[net]), list(FIG7[net].values()), label=f"{name}: published (D = 2000)", clip_on=False, **dots)


def _axes(panel: Axes, size: str) -> None:
    panel.axvline(np.sqrt(0.5), color=BLACK, lw=1, ls=DOTTED)
    panel.text(np.sqrt(0.5), 1.035, "√2/2", ha="center", va="bottom", fontsize=9, color=BLACK)
    std = {"small": ".01", "large": ".5"}[size]
    panel.set_title(f"{size} start: entries of size {std}", loc="left", pad=16)
    panel.set_xlim(0, GRID[-1])
    panel.set_ylim(-0.02, 1.03)
    panel.set_xlabel("radius of the perturbation (ℓ2)")
    panel.grid(axis="y", color="#E6E6E6", lw=0.8)
    panel.set_axisbelow(True)
    panel.tick_params(labelcolor=BLACK, color=GREY)
    if size == "small":
        panel.set_ylabel("robust accuracy")


FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        id="mv25-fig7",
        title="Figure 7: regular polynomial nets and large starts",
        paper="MV25",
        caption="Normalised neurons and a small start are both needed. Open markers: published curves, read off, for "
        "D = 2000; their loss, rate and length of training are unknown. Lines: mean of the seeds, faint bands: "
        "smallest to largest.",
        claims=("B10", "B11", "B12"),
        draw=initialisation,
    ),
)
