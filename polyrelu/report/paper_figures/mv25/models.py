"""Fig. 2 of Min & Vidal (ICML 2025): six classifiers on 12 + 8 sub-classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from polyrelu.claims.mv25 import FIG2, GAUSSIAN, HALF, MODELS
from polyrelu.report.figures.style import (
    BLACK,
    BLUE,
    DASHED,
    GREEN,
    ORANGE,
    PURPLE,
    VERMILION,
    canvas,
    figure_style,
)
from polyrelu.report.paper_figures import panels
from polyrelu.report.paper_figures.figure import PaperFigure, Results

COLOURS = dict(zip(MODELS, (BLUE, BLUE, VERMILION, BLACK, GREEN, GREEN, PURPLE, ORANGE), strict=True))


@figure_style()
def compared(results: Results) -> Figure:
    """Robust accuracy of six classifiers."""
    runs = panels.runs_of(results, "mv25.robust_accuracy.models")
    figure = canvas((10, 5.2), "Of these only pReLU with p = 3 can hold as far as Bayes (12 + 8 sub-classes)")
    panel = figure.add_axes((0.075, 0.25, 0.9, 0.6))
    radii = np.linspace(0, 1, 2001)
    for model, colour in COLOURS.items():
        mine = panels.select(runs, model=model)
        lines, proven = (panels.shares_beyond(mine, side, radii) for side in ("upper", "lower"))
        style: Any = ":" if model in (GAUSSIAN, HALF) else DASHED if model in ("Bayes", "LogReg") else "-"
        width, name = (4, "pReLU, p = 3") if model == "pReLU" else (1.9, model)
        panels.band(panel, radii, lines, colour, alpha=0.2, lw=width, ls=style, label=name)
        if proven[:, 1:].any():
            panel.fill_between(radii, proven.min(axis=0), lines.max(axis=0), color=colour, alpha=0.35, lw=0)
        published = FIG2.get(model, {})
        panels.published_marks(panel, published, published.values(), colour)
    panels.published_key(panel)
    panels.mark_ideal_radii(panel, 20)
    panel.set_xlim(0, 1)
    panels.robustness_axes(panel, "Robust accuracy: what the strongest attack leaves")
    panel.legend(ncols=4, loc="upper left", bbox_to_anchor=(-0.02, -0.18))
    return figure


FIGURES: tuple[PaperFigure, ...] = (
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
