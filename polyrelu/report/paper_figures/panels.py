"""What the figures of the papers share: their record, results looked up, lines with their range, marks, axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.table import Table
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter
from matplotlib.transforms import Bbox
from numpy.typing import ArrayLike, NDArray

from polyrelu.claims import Measured, Outcome, Quantity
from polyrelu.report.figures.heatmap import heatmap
from polyrelu.report.figures.style import BLACK, DOTTED, GREY, figure_style
from polyrelu.robust.theory import HALF_GAP

Array = NDArray[np.float64]
Results = Mapping[str, Sequence[Outcome]]  # by the name of the experiment, "module.function"
Run = Mapping[str, Any]  # the data of one run of an experiment, by name


@final
@dataclass(frozen=True)
class PaperFigure:
    """``draw(results)`` makes it from the experiments of ``claims``; ``id`` is what --only takes."""

    id: str
    title: str
    paper: str
    caption: str
    claims: tuple[str, ...]
    draw: Callable[[Results], Figure]


def paper_figure(
    *, id: str, title: str, paper: str, caption: str, claims: tuple[str, ...]
) -> Callable[[Callable[[Results], Figure]], PaperFigure]:
    """The published figure that a function draws, in the style of all figures."""

    def decorate(draw: Callable[[Results], Figure]) -> PaperFigure:
        return PaperFigure(id, title, paper, caption, claims, figure_style()(draw))

    return decorate


def measured(results: Results, experiment: str) -> list[Measured]:
    """What the runs of an experiment gave; those that failed are left out."""
    return [outcome.measured for outcome in results.get(experiment, ()) if outcome.measured is not None]


def runs_of(results: Results, experiment: str) -> list[Run]:
    """The data that the runs of an experiment kept for figures."""
    return [one.data for one in measured(results, experiment)]


def values_of(runs: Iterable[Measured], quantity: str | Quantity) -> list[float]:
    """One judged number of every run that has it."""
    return [run.values[quantity] for run in runs if quantity in run.values]


def select(runs: Iterable[Run], **wanted: object) -> list[Run]:
    """The runs with these data."""
    return [run for run in runs if all(run[name] == value for name, value in wanted.items())]


def rows(runs: Iterable[Run], name: str) -> Array:
    """One row for each run."""
    return np.array([run[name] for run in runs], dtype=np.float64)


def share_beyond(radii: ArrayLike, grid: Array, points: int | None = None) -> Array:
    """Share of the ``points`` (by default as many as there are radii) whose radius is larger than each of the grid."""
    ordered = np.sort(np.asarray(radii, dtype=np.float64))
    return np.asarray(1 - np.searchsorted(ordered, grid, side="right") / (points or len(ordered)))


def shares_beyond(runs: Iterable[Run], side: str, grid: Array) -> Array:
    """The same of each run's radii on one side of the bracket, one row for each run."""
    return np.array([share_beyond(run[side], grid, run.get("points")) for run in runs])


def grid_of_panels(figure: Figure, rows: int, columns: int, **grid: Any) -> Any:
    """An array of panels; ``grid``: its edges and gaps."""
    return figure.add_gridspec(rows, columns, **grid).subplots()


def band(
    panel: Axes, x: ArrayLike, lines: ArrayLike, colour: str, *,
    alpha: float = 0.18, line_alpha: float = 1.0, middle: Callable[..., Any] = np.mean, **look: Any,
) -> None:  # fmt: skip
    """The mean of the lines (runs, points), and the range from the smallest to the largest in a paler colour."""
    values = np.asarray(lines)
    panel.fill_between(x, values.min(axis=0), values.max(axis=0), color=colour, alpha=alpha, lw=0)
    panel.plot(x, middle(values, axis=0), color=colour, alpha=line_alpha, **{"lw": 1.8, **look})


def published_marks(panel: Axes, numbers: Mapping[Any, float], colour: str, **look: Any) -> None:
    """Published numbers as open diamonds."""
    panel.plot([*numbers], [*numbers.values()], "D", mfc="none", mec=colour, **{"ms": 6, "zorder": 4, **look})


def published_key(panel: Axes, words: str = "published, read off", size: float = 6) -> None:
    """The entry of the legend for published numbers."""
    published_marks(panel, {}, GREY, ms=size, label=words)


def mark_radius(panel: Axes, radius: float, words: str, gap: float, height: float, **look: Any) -> None:
    """A dotted vertical line with its name beside it."""
    panel.axvline(radius, color=BLACK, lw=1, ls=DOTTED, **look)
    panel.text(radius + gap, height, words, fontsize=9, color=BLACK)


def mark_ideal_radii(panel: Axes, clusters: int) -> None:
    """Where class averages break, and where single centres do."""
    for radius, name in ((1 / math.sqrt(clusters), f"1/√{clusters}"), (HALF_GAP, "√2/2")):
        mark_radius(panel, radius, name, 0.006, 1.06, zorder=1)


def percent_axis(panel: Axes, low: float = -0.02, high: float = 1.02) -> None:
    """Shares between 0 and 1, written in percent."""
    panel.set_ylim(low, high)
    panel.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))


def robustness_axes(panel: Axes, title: str, xlabel: str = "radius of the perturbation") -> None:
    """Robust accuracy against the radius, with room for the names of radii."""
    percent_axis(panel, -0.03, 1.14)
    panel.set(title=title, xlabel=xlabel, yticks=[0, 0.25, 0.5, 0.75, 1])


def labelled(runs: Iterable[Run], words: str) -> list[tuple[Run, str]]:
    """Every run with its label; all but the first begin with an underscore, which keeps them out of the legend."""
    return [(run, words if number == 0 else f"_{words}") for number, run in enumerate(runs)]


def legend_if_any(panel: Axes, place: str, **look: Any) -> None:
    """A legend, where something has a label."""
    if panel.get_legend_handles_labels()[0]:
        panel.legend(**{"loc": place, **look})


def ticks_at(axis: Axis, places: Iterable[float], text: Callable[[float], str] = "{:g}".format) -> None:
    """These ticks and no others, on a logarithmic axis too."""
    axis.set_major_locator(FixedLocator([*places]))
    axis.set_major_formatter(FuncFormatter(lambda place, _: text(place)))
    axis.set_minor_locator(NullLocator())


def logarithmic(panel: Axes, x: Iterable[float], y: Iterable[float]) -> None:
    """Both axes, with these ticks."""
    panel.set(xscale="log", yscale="log")
    ticks_at(panel.xaxis, x)
    ticks_at(panel.yaxis, y)


def cosine_panel(panel: Axes, matrix: ArrayLike, bar: tuple[float, float] | None = None) -> None:
    """A matrix of cosines in colours; ``bar``: left edge and width of the colour bar, in widths of the panel."""
    image = heatmap(panel, np.asarray(matrix), 1.0)
    if bar is not None:
        place = panel.inset_axes((bar[0], 0, bar[1], 1))
        panel.figure.colorbar(image, cax=place, ticks=(-1, -0.5, 0, 0.5, 1))


def ruled_table(panel: Axes, lines: Sequence[Sequence[str]], size: float, **look: Any) -> Table:
    """A table that fills the panel, with pale rules between its lines."""
    panel.set_axis_off()
    table = panel.table(lines, cellLoc="right", edges="horizontal", bbox=Bbox([[0, 0], [1, 1]]), **look)
    table.auto_set_font_size(False)
    table.set_fontsize(size)
    for cell in table.get_celld().values():
        cell.set_edgecolor("#D5D5D5")
    return table
