"""Heatmaps: how every matrix is drawn, and the correlations of a data set (Fig. 3a of Min & Vidal, ICML 2024)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.axis import Axis, YAxis
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike, NDArray

from polyrelu.checks import checked, value_text
from polyrelu.errors import InputError, require
from polyrelu.report.figures.style import BLACK, LIGHT_GREY, canvas, figure_style

COLOURS = colormaps["RdBu"].with_extremes(bad=LIGHT_GREY)  # red below zero, white at zero, blue above; grey: no number
HEIGHT_INCHES, TOP_INCHES = 6.0, 0.95  # a figure of matrices, and the part above them
MAX_COLUMNS_INCHES, MAX_CELL_INCHES = 6.6, 0.62  # all columns together, and one
LINE_INCHES, LETTER_INCHES = 0.135, 0.085  # what a line and a letter of a label take
MAX_LABEL_LETTERS = 16  # longer names are cut
Array = NDArray[np.float64]


@checked
def correlation_map(
    matrix: ArrayLike, groups: ArrayLike, names: Sequence[str] | None = None, *, title: str = ""
) -> Figure:
    """Cosines (m, m) of samples in the order of their ``groups`` (m,), numbers that index the ``names``. O(m^2)."""
    values = nonempty_matrix("matrix", matrix)
    require(values.shape[0] == values.shape[1], "matrix", f"shape {values.shape}", "as many columns as rows")
    order = float_array("groups", groups).astype(np.intp)
    require(order.shape == (len(values),), "groups", f"shape {order.shape}", f"({len(values)},), one for each row")
    require(bool((np.diff(order) >= 0).all()) and order[0] >= 0, "groups", order, "numbers from 0 in increasing order")
    edges = np.append(np.flatnonzero(np.diff(order, prepend=-1)), len(order))
    called = shortened_names("names", names, [f"{c}" for c in range(order[-1] + 1 if names is None else len(names))])
    require(order[-1] < len(called), "names", f"{len(called)} names", f"{order[-1] + 1}, one for each group")
    labels = [called[group] for group in order[edges[:-1]]]
    with figure_style():
        left = 0.5 + label_inches(labels)
        across, down = left + 6.6, 6.8
        figure = canvas((across, down), title)
        panel = figure.add_axes((left / across, 0.75 / down, 5.4 / across, 5.4 / down))
        image = heatmap(panel, values, 1.0)
        for edge in edges[1:-1]:
            for line in (panel.axhline, panel.axvline):
                line(edge - 0.5, color=BLACK, lw=0.6)
        middles = (edges[1:] + edges[:-1] - 1) / 2
        fits = label_inches(labels) <= 5.4 * np.diff(edges).min() / len(values)
        panel.set_xticks([])
        for axis in (panel.xaxis, panel.yaxis) if fits else (panel.yaxis,):
            place_labels(axis, middles, labels, 5.4)
        panel.set_xlabel("samples, in the same order")
        panel.set_ylabel("samples, by class")
        figure.colorbar(
            image, cax=figure.add_axes(((left + 5.6) / across, 0.75 / down, 0.15 / across, 5.4 / down)), label="cosine"
        )
    return figure


def heatmap_figure(title: str, names: Sequence[Sequence[str]], *, strip: bool) -> tuple[Figure, list[Axes], Axes, Axes]:
    """Heatmaps side by side, a column for each name and equal cells; panels for bars (``strip``) and colours."""
    cell = min(MAX_CELL_INCHES, MAX_COLUMNS_INCHES / sum(len(part) for part in names))
    longest = max(label_inches(part) for part in names)
    left, bottom = 1.0 + longest, 0.45 + (longest if longest > cell else LINE_INCHES)
    boxes = [(cell * len(part), 0.15) for part in names]  # width of a panel, and the gap right of it
    if strip:
        boxes.append((0.9, 0.3))
    boxes.append((0.15, 0.9))  # of the colours
    across = max(left + sum(wide + gap for wide, gap in boxes), 5.0)
    height = 1 - (TOP_INCHES + bottom) / HEIGHT_INCHES
    figure, axes = canvas((across, HEIGHT_INCHES), title), []
    for wide, gap in boxes:
        axes.append(figure.add_axes((left / across, bottom / HEIGHT_INCHES, wide / across, height)))
        left += wide + gap
    return figure, axes[: len(names)], axes[len(names)], axes[-1]


def label_inches(labels: Sequence[str]) -> float:
    """Inches the longest label takes."""
    plain = [label.replace(r"\mu", "m").translate(str.maketrans("", "", "${}_")) for label in labels]
    return LETTER_INCHES * max(len(label) for label in plain)


def heatmap(panel: Axes, values: Array, limit: float) -> AxesImage:
    """The matrix in colours from -limit to limit, with its numbers where they fit."""
    image = panel.imshow(values, cmap=COLOURS, vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest")
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    panel.set_yticks([])
    wide, height = panel_inches(panel)
    if wide / values.shape[1] >= 5 * LETTER_INCHES and height / values.shape[0] >= 1.3 * LINE_INCHES:
        for (row, column), value in np.ndenumerate(values):
            text = "" if np.isnan(value) else f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")
            colour = "white" if abs(value) > 0.6 * limit else BLACK
            panel.text(column, row, text, ha="center", va="center", color=colour, fontsize=8)
    return image


def place_labels(axis: Axis, places: ArrayLike, labels: Sequence[str], length: float) -> None:
    """Labels that do not overlap: upright where they fit, else turned (columns), else some of them."""
    places = np.asarray(places, dtype=np.float64)
    low, high = sorted(axis.get_view_interval())

    def inches(distance: float) -> float:
        return distance / (high - low) * length

    step = inches(float(np.diff(places).min(initial=high - low)))
    wide = label_inches(labels)
    upright = isinstance(axis, YAxis)
    turned = not upright and wide > step
    need = LINE_INCHES if turned or upright else wide
    kept, last = [], -np.inf
    for number, place in enumerate(places):
        if inches(place - last) >= need - 1e-9:
            kept.append(number)
            last = place
    axis.set_ticks([places[k] for k in kept], labels=[labels[k] for k in kept], rotation=90 if turned else 0)


def panel_inches(panel: Axes) -> tuple[float, float]:
    """Width and height of a panel."""
    wide, height = panel.figure.get_size_inches()  # type: ignore[union-attr]
    box = panel.get_position()
    return float(box.width * wide), float(box.height * height)


def float_array(name: str, given: ArrayLike) -> Array:
    """As float64."""
    try:
        numbers = np.asarray(given)
        require(numbers.dtype.kind in "biuf", name, f"{numbers.dtype} numbers", "real numbers")
        return np.asarray(numbers, dtype=np.float64)
    except (TypeError, RuntimeError):
        raise InputError(f"{name}={value_text(given)}: expected numbers.") from None


def nonempty_array(name: str, given: ArrayLike, ndim: int) -> Array:
    """A float64 array with so many dimensions, not empty."""
    array = float_array(name, given)
    require(array.ndim == ndim and array.size > 0, name, f"shape {array.shape}", f"{ndim} dimension(s), not empty")
    return array


def nonempty_matrix(name: str, given: ArrayLike, count: int | None = None) -> Array:
    """A matrix that is not empty, with a row for each of ``count`` neurons."""
    array = nonempty_array(name, given, 2)
    require(count in (None, len(array)), name, f"{len(array)} rows", f"{count}, one for each neuron")
    return array


def shortened_names(argument: str, given: Sequence[str] | None, default: list[str]) -> list[str]:
    """The given names, long ones shortened, or those by default."""
    names = default if given is None else [str(name) for name in given]
    require(len(names) == len(default), argument, f"{len(names)} names", f"{len(default)}")
    return [
        name if len(name) <= MAX_LABEL_LETTERS or "$" in name else name[: MAX_LABEL_LETTERS - 1] + "…" for name in names
    ]
