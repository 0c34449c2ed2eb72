"""Fig. 1 of Min & Vidal (ICML 2024): neurons in space turn first and grow then, to averages (p=1) or centres (p=3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polyrelu.report.figures.sphere import NeuronSnapshot, sphere_figure
from polyrelu.report.paper_figures.figure import PaperFigure, Results
from polyrelu.report.paper_figures.panels import first_runs_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOMENTS = ("start", "directions have turned", "norms have grown")


def directions(results: Results) -> Figure:
    """Three moments in a row, one row for each p; the first seed."""
    pictures = sorted(first_runs_of(results, "mv24.fig1.picture"), key=lambda data: data["p"])
    stages = [
        NeuronSnapshot(f"p = {data['p']}: {name}", stage["directions"], stage["log contributions"], stage["signs"])
        for data in pictures
        for name, stage in zip(MOMENTS, data["stages"], strict=True)
    ]
    first = pictures[0]
    return sphere_figure(
        stages,
        first["points"],
        first["labels"],
        first["centres"],
        first["averages"],
        title="Directions first, norms later: averages (p = 1), centres (p = 3)",
    )


FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        id="fig1",
        title="Figure 1: what neurons learn",
        paper="MV24",
        caption="Two positive sub-classes and a negative class in space. Each dot is the direction of a neuron, its "
        "area the log of |v||w|. For p = 1 the neurons that grow point at the class averages, for p = 3 at single "
        "centres; those that no data point activates stay where and as small as they were.",
        claims=("B22", "B23"),
        draw=directions,
    ),
)
