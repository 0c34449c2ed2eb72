"""Fig. 7 of Min & Vidal (ICML 2025): polynomial and pReLU nets from small and large starts, proven and attacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from numpy.typing import NDArray

from polyrelu.report.figures.training import AVERAGE, CENTRE, INK, QUIET, STYLE, canvas
from polyrelu.report.paper_figures.figure import PaperFigure, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
LOOKS: Mapping[str, tuple[str, str, str]] = {
    "pReLU": (CENTRE, "o", "pReLU"),
    "polynomial": (AVERAGE, "s", "regular polynomial"),
}
READ_OFF: Mapping[str, tuple[Sequence[float], Sequence[float]]] = {
    "pReLU, small": ((0.2, 0.667, 0.718), (1.0, 1.0, 0.0)),
    "pReLU, large": ((0.34, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7), (1.0, 0.97, 0.87, 0.75, 0.66, 0.58, 0.36, 0.03)),
    "polynomial, small": ((0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.72), (0.96, 0.88, 0.59, 0.31, 0.16, 0.1, 0.05, 0.0)),
    "polynomial, large": ((0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6), (1.0, 0.91, 0.48, 0.27, 0.17, 0.14, 0.11, 0.06)),
}  # radii, robust accuracies
GRID = np.linspace(0, 0.8, 401)
LATER = "polynomial, small, trained on"


def draw(results: Results) -> Figure:
    """Robust accuracy against radius: what is proven, what is attacked, the unproven between them."""
    runs = [one.measured.data for one in results["starts.starts"] if one.measured is not None]
    with rc_context(STYLE):
        figure = canvas((10, 5.4), "The start decides: only small pReLU nets reach √2/2")
        for column, size in enumerate(("small", "large")):
            panel = figure.add_axes((0.065 + 0.48 * column, 0.3, 0.44, 0.53))
            for kind in LOOKS:
                _curve(panel, runs, kind, size)
            later = [run for run in runs if run["net"] == LATER] if size == "small" else []
            if later:
                panel.plot(
                    GRID, _share(later, "upper").mean(0), color=AVERAGE, lw=1.6, ls=":", label="polynomial, trained on"
                )
            _dress(panel, size)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, ncols=3, loc="lower center", frameon=False, fontsize=9.5)
    return figure


def _share(runs: Sequence[Mapping[str, Any]], side: str) -> Array:
    """Points whose radius exceeds each radius of the grid, for every run."""
    return np.stack([(np.array(run[side])[:, None] > GRID).mean(0) for run in runs])


def _curve(panel: Axes, runs: Sequence[Mapping[str, Any]], kind: str, size: str) -> None:
    colour, marker, name = LOOKS[kind]
    net = f"{kind}, {size}"
    lower, upper = (_share([run for run in runs if run["net"] == net], side) for side in ("lower", "upper"))
    if len(upper) > 1:
        panel.fill_between(GRID, upper.min(0), upper.max(0), color=colour, alpha=0.08, lw=0)
    panel.plot(GRID, upper.mean(0), color=colour, lw=2.2, label=f"{name}: not broken by any attack")
    panel.fill_between(GRID, lower.mean(0), upper.mean(0), color=colour, alpha=0.25, lw=0, label=f"{name}: unproven")
    dots: dict[str, Any] = {"ls": "none", "marker": marker, "mfc": "white", "mec": colour, "ms": 5, "zorder": 6}
    panel.plot(*READ_OFF[net], label=f"{name}: published (D = 2000)", clip_on=False, **dots)


def _dress(panel: Axes, size: str) -> None:
    panel.axvline(np.sqrt(0.5), color=INK, lw=1, ls=(0, (2, 2)))
    panel.text(np.sqrt(0.5), 1.035, "√2/2", ha="center", va="bottom", fontsize=9, color=INK)
    std = {"small": ".01", "large": ".5"}[size]
    panel.set_title(f"{size} start: entries of size {std}", loc="left", pad=16)
    panel.set_xlim(0, GRID[-1])
    panel.set_ylim(-0.02, 1.03)
    panel.set_xlabel("radius of the perturbation (ℓ2)")
    panel.grid(axis="y", color="#E6E6E6", lw=0.8)
    panel.set_axisbelow(True)
    panel.tick_params(labelcolor=INK, color=QUIET)
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
        draw=draw,
    ),
)
