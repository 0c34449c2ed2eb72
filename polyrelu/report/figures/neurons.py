"""What neurons hold, as bars and maps (Fig. 2b-d of Min & Vidal, ICML 2024; Fig. 2 of Li et al., ICLR 2025)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from polyrelu.checks import checked
from polyrelu.errors import require
from polyrelu.report.figures.heatmap import (
    LINE_INCHES,
    Array,
    float_array,
    heatmap,
    heatmap_figure,
    nonempty_array,
    nonempty_matrix,
    panel_inches,
    place_labels,
    shortened_names,
)
from polyrelu.report.figures.style import BLACK, BLUE, GREY, LIGHT_GREY, VERMILION, canvas, figure_style
from polyrelu.report.figures.training import MOST_BARS, sizes_of


@checked
def contribution_bars(
    log_contributions: ArrayLike, carriers: ArrayLike = (), *, most: int = MOST_BARS, title: str = ""
) -> Figure:
    """|v_j| |w_j| in order, the ``most`` largest (Fig. 2b); those of ``carriers`` (indices) dark, the others grey.

    From natural logs, so that a net of size 1e-300 is drawn too: relative to its largest. O(h log h).
    """
    logs = nonempty_array("log_contributions", log_contributions, 1)
    require(not (np.isnan(logs) | (logs == np.inf)).any(), "log_contributions", logs, "logs below inf")
    require(most >= 1, "most", most, "at least one bar")
    order = np.argsort(-logs, kind="stable")[:most]
    dark = np.isin(order, float_array("carriers", carriers))
    with figure_style():
        figure = canvas((10, 4.6), title)
        panel = figure.add_axes((0.075, 0.13, 0.9, 0.72))
        heights, tiny = sizes_of(logs[order])
        places = np.arange(1, len(order) + 1)
        panel.bar(places, heights, width=0.86 if len(order) < 80 else 1.0, color=np.where(dark, BLACK, LIGHT_GREY))
        panel.set_xlim(0.4, max(len(order), 8) + 0.6)
        ticks = MaxNLocator(integer=True, nbins=12).tick_values(1, len(order))
        panel.set_xticks([1, *(tick for tick in ticks if 1 < tick <= len(order))])
        panel.set_ylim(0, 1.12 * heights[0] if heights[0] > 0 else 1)
        panel.set_ylabel("contribution |v||w|" + (" relative to the largest" if tiny else ""))
        panel.set_xlabel(f"{_of(len(order), len(logs))}, in order")
        verb = "carries" if np.size(carriers) == 1 else "carry"
        note = f"{np.size(carriers)} of {len(logs)} neurons {verb} the net" if np.size(carriers) else ""
        note = note + " (dark)" if note and not dark.all() else note
        note = note if heights[0] > 0 else "every contribution is zero"
        panel.text(0.99, 0.98, note, transform=panel.transAxes, ha="right", va="top", fontsize=10.5)
    return figure


@checked
def cosine_map(
    averages: ArrayLike,
    centres: ArrayLike | None,
    log_contributions: ArrayLike,
    *,
    average_names: Sequence[str] | None = None,
    centre_names: Sequence[str] | None = None,
    rows: int = MOST_BARS,
    title: str = "",
) -> Figure:
    """Cosines (h, C) to class averages and (h, K) to sub-class centres (Fig. 2c, d): a row a neuron, a column a probe.

    The ``rows`` neurons with the largest contributions, sorted by the column they point at most, then by contribution
    (shown beside them). Those with no positive cosine are last; NaN is grey. O(h log h + rows (C + K)).
    """
    logs = nonempty_array("log_contributions", log_contributions, 1)
    parts = [nonempty_matrix("averages", averages, len(logs))]
    parts += [] if centres is None else [nonempty_matrix("centres", centres, len(logs))]
    require(rows >= 1, "rows", rows, "at least one neuron")
    classes = [r"$\mu_+$", r"$\mu_-$"] if parts[0].shape[1] == 2 else [f"class {c}" for c in range(parts[0].shape[1])]
    names = [shortened_names("average_names", average_names, classes)]
    if centres is not None:
        names.append(shortened_names("centre_names", centre_names, _counted(parts[1].shape[1])))
    chosen = np.argsort(-np.nan_to_num(logs, nan=-np.inf), kind="stable")[:rows]
    best = _best(np.hstack(parts)[chosen])
    within = np.lexsort((-logs[chosen], best))
    chosen, best = chosen[within], best[within]
    with figure_style():
        figure, panels, strip, bar = heatmap_figure(title, names, strip=True)
        heads = (("class averages", VERMILION), ("sub-class centres", BLUE))
        for panel, part, labels, (head, colour) in zip(panels, parts, names, heads, strict=False):
            image = heatmap(panel, part[chosen], 1.0)
            place_labels(panel.xaxis, np.arange(len(labels)), labels, panel_inches(panel)[0])
            panel.set_title(
                head if len(labels) > 3 else head.replace(" ", "\n"), loc="center", color=colour, fontweight="bold"
            )
        everything = [*(label for labels in names for label in labels), "none"]
        groups, counts = np.unique(best, return_counts=True)
        middles = np.cumsum(counts) - counts / 2 - 0.5
        ticks = [f"{everything[group]}  ×{count}" for group, count in zip(groups, counts, strict=True)]
        place_labels(panels[0].yaxis, middles, ticks, panel_inches(panels[0])[1])
        panels[0].set_ylabel(f"{_of(len(chosen), len(logs))}, by what they point at most")
        heights, tiny = sizes_of(logs[chosen])
        strip.barh(np.arange(len(chosen)), heights, height=0.86 if len(chosen) < 80 else 1.0, color=BLACK)
        strip.set_ylim(panels[0].get_ylim())
        strip.set_yticks([])
        strip.xaxis.set_major_locator(MaxNLocator(nbins=2))
        strip.set_title("|v||w|" + (",\nrelative" if tiny else ""), loc="center")
        figure.colorbar(image, cax=bar, label="cosine")
    return figure


@checked
def lambda_matrix(
    lambdas: ArrayLike,
    own: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    rows: int = MOST_BARS,
    title: str = "",
) -> Figure:
    """Coefficients (h, K) of neurons on sub-class centres; ``own`` (h, K): whether the centre is of the neuron's class.

    Columns stand class by class; rows (with their given numbers, where there is room) by class, then by the largest own
    coefficient; own blocks are framed. Of more than ``rows`` neurons the largest are shown. O(h K + h log h).
    """
    values = nonempty_matrix("lambdas", lambdas)
    mine = np.asarray(own, dtype=bool)
    require(mine.shape == values.shape, "own", f"shape {mine.shape}", f"{values.shape}, as the coefficients")
    require(rows >= 1, "rows", rows, "at least one neuron")
    labels = shortened_names("names", names, _counted(values.shape[1]))
    size = np.nan_to_num(np.abs(values)).max(axis=1)
    chosen = np.sort(np.argsort(-size, kind="stable")[:rows])
    group = np.where(mine.any(1), mine.argmax(1), values.shape[1])[chosen]  # the first centre of the neuron's class
    best = _best(np.where(mine, values, np.nan)[chosen])
    within = np.lexsort((-size[chosen], best, group))
    chosen, group = chosen[within], group[within]
    kinds = [group[mine[chosen, k]].min(initial=values.shape[1]) for k in range(values.shape[1])]
    columns = np.argsort(kinds, kind="stable")
    shown, framed = values[np.ix_(chosen, columns)], mine[np.ix_(chosen, columns)]
    limit = float(size.max()) or 1.0
    with figure_style():
        figure, (panel,), _, bar = heatmap_figure(title, [labels], strip=False)
        image = heatmap(panel, shown, limit)
        place_labels(panel.xaxis, np.arange(len(labels)), [labels[k] for k in columns], panel_inches(panel)[0])
        panel.set_title("sub-class centres", loc="center", color=BLUE, fontweight="bold")
        panel.set_ylabel(f"{_of(len(chosen), len(values))}, by class and largest coefficient")
        numbers_fit = len(chosen) * LINE_INCHES <= panel_inches(panel)[1]
        numbered = [f"{neuron}" for neuron in chosen] if numbers_fit else []
        panel.set_yticks(np.arange(len(numbered)), labels=numbered)
        for kind in np.unique(group):
            inside = np.flatnonzero(group == kind)
            for first, last in _runs(framed[inside].any(axis=0)):
                box = ((first - 0.5, inside[0] - 0.5), last - first, len(inside))
                panel.add_patch(Rectangle(*box, fill=False, edgecolor=BLACK, lw=1.4, clip_on=False, zorder=3))
        figure.colorbar(image, cax=bar, label="coefficient λ")
        note = "framed: centres of the neuron's own class" if size.any() else "every coefficient is zero"
        figure.text(0.99, 0.015, note, ha="right", va="bottom", color=GREY, fontsize=9)
    return figure


def _best(values: Array) -> NDArray[np.intp]:
    """The column of the largest number of each row; one beyond the last where none is positive."""
    empty = ~(values > 0).any(axis=1)
    return np.asarray(np.where(empty, values.shape[1], np.nan_to_num(values, nan=-np.inf).argmax(axis=1)))


def _runs(mask: ArrayLike) -> list[tuple[int, int]]:
    """First and one beyond the last of every unbroken run."""
    steps = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(mask, dtype=int), [0]])))
    return [(int(first), int(last)) for first, last in zip(steps[::2], steps[1::2], strict=True)]


def _counted(count: int) -> list[str]:
    return [rf"$\mu_{{{k + 1}}}$" for k in range(count)]


def _of(shown: int, every: int) -> str:
    if every == 1:
        return "the only neuron"
    return f"the {every} neurons" if shown == every else f"the {shown} largest of {every} neurons"
