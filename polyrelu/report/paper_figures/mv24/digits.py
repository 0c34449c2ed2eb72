"""Handwritten digits, drawn again: Table 1 and Fig. 3 of Min & Vidal 2024 with the curves of its poster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from polyrelu.claims.digits import CURVE, END, POSTER, POWERS, START, TABLE
from polyrelu.claims.setups.digit_nets import NAMES
from polyrelu.report.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILION, canvas, figure_style
from polyrelu.report.paper_figures import panels
from polyrelu.report.paper_figures.figure import PaperFigure, Results, Run

COLOURS = dict(zip(POWERS, (VERMILION, ORANGE, GREEN, BLUE), strict=True))
COLUMNS = ("paper", "APGD-CE", "APGD-CE", "strongest", "proven")
WHERE = ("all", "all", "first", "first", "first")  # of the images; at quick size the second column is empty
N = len(COLUMNS)
KNOWN = {(NAMES[norm], radius): row for (norm, radius), row in TABLE.items()}


@figure_style()
def table_one(results: Results) -> Figure:
    """The table from four sides, and the l-infinity curves."""
    runs = panels.runs_of(results, "digits.table")
    images = runs[0]["images"] if runs else "MNIST"
    figure = canvas((10, 9.6), f"Robust accuracy on {images}, ten digits")
    _table(figure.add_axes((0.012, 0.63, 0.976, 0.3)), runs, results)
    panel = figure.add_axes((0.07, 0.06, 0.91, 0.49))
    _curves(panel, runs)
    for p, shares in POSTER.items():
        panels.published_marks(panel, CURVE["paper"], shares, COLOURS[p], ms=5.5)
    panels.published_key(panel, "published, MNIST", 5.5)
    panel.set_title("l∞: what APGD-CE leaves, what the strongest attack leaves, what is certified", loc="left")
    panel.legend(fontsize=9.5, loc="upper right")
    return figure


def _table(panel: Axes, runs: Sequence[Run], results: Results) -> None:
    """A row for each norm and radius, five columns for each p."""
    panel.set_axis_off()
    sizes = [(side["norm"], radius) for side in runs[0]["sides"] for radius in side["radii"]] if runs else [*KNOWN]
    lines = [["", *(f"p = {p}" if k == 0 else "" for p in POWERS for k in range(N))]]
    lines += [["", *(words * len(POWERS))] for words in (COLUMNS, WHERE)]
    for name, radius in sizes:
        row = [f"{name} {radius:g}"]
        for place, p in enumerate(POWERS):
            mine = panels.select(runs, p=p)
            known = KNOWN.get((name, radius), (None,) * 4)[place]
            ours = [_mean(mine, name, radius, what) for what in ("published", "strongest", "certified")]
            every = panels.values_of(
                panels.measured(results, "digits.table"), f"APGD-CE on all images at {name} {radius:g}, p = {p}"
            )
            row += [_share(value) for value in (known, float(np.mean(every)) if every else None, *ours)]
        lines.append(row)
    widths = [0.06, *([0.235 / N] * N * len(POWERS))]
    table = panel.table(lines, cellLoc="right", edges="horizontal", colWidths=widths, bbox=Bbox([[0, 0], [1, 1]]))
    table.auto_set_font_size(False)
    table.set_fontsize(8.5)
    for (line, column), cell in table.get_celld().items():
        cell.set_edgecolor("#D5D5D5")
        cell.PAD = 0.04
        p = POWERS[max(column - 1, 0) // N]
        text = cell.get_text()
        text.set_color(COLOURS[p] if line == 0 else GREY if line in (1, 2) or column % N == 1 else BLACK)
        text.set_fontweight("bold" if line == 0 or (line > 2 and column % N == 4) else "normal")
        if line in (1, 2):
            text.set_fontsize(6.5)


def _mean(runs: Sequence[Run], name: str, radius: float, what: str) -> float | None:
    found = [
        side[what][list(side["radii"]).index(radius)]
        for run in runs
        for side in run["sides"]
        if side["norm"] == name and radius in side["radii"]
    ]
    return float(np.mean(found)) if found else None


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".removeprefix("0") if value < 1 else "1"


@figure_style()
def figure_three(results: Results) -> Figure:
    """Fig. 3 a-d on parity, and the same of ten digits beside the poster's numbers."""
    ten, parity, maps = (
        panels.runs_of(results, name) for name in ("digits.table", "digits_parity.parity", "digits_inputs.cosines")
    )
    figure = canvas((10, 10.6), "Digits: correlation, accuracy, stable rank, robust accuracy")
    grid = figure.add_gridspec(3, 2, left=0.07, right=0.98, top=0.92, bottom=0.055, hspace=0.38, wspace=0.2)
    _map(figure.add_subplot(grid[0, 0]), maps)
    panel = figure.add_subplot(grid[0, 1])
    _curves(panel, parity)
    panel.set_title("d  Even or odd: robust accuracy in l∞", loc="left")
    for row, (runs, task, letters) in enumerate(((parity, "Even or odd", "bc"), (ten, "Ten digits", "ef")), 1):
        left, right = (figure.add_subplot(grid[row, side]) for side in (0, 1))
        _accuracy(left, runs, f"{letters[0]}  {task}: accuracy (dashed: training images)")
        _rank(right, runs, f"{letters[1]}  {task}: stable rank of the features", row == 2)
    return figure


def _map(panel: Axes, runs: Sequence[Run]) -> None:
    panel.set_title("a  Cosines of centred images, by digit", loc="left")
    if not runs:
        panel.set_axis_off()
        return
    panels.cosine_panel(panel, runs[0]["matrix"], (1.04, 0.04))
    panel.set_aspect("equal")
    group = np.array(runs[0]["group"])
    edges = np.append(np.flatnonzero(np.diff(group, prepend=-1)), len(group))
    places = (edges[1:] + edges[:-1] - 1) / 2
    labels = [str(digit) for digit in group[edges[:-1]]]
    panel.set_xticks(places, labels=labels)
    panel.set_yticks(places, labels=labels)


def _curves(panel: Axes, runs: Sequence[Run]) -> None:
    """APGD-CE (line), the strongest attack (dots) and the certificate (dotted) against the radius."""
    fine = np.linspace(0, 0.21, 1000)
    for p, mine in panels.by_power(runs, POWERS):
        radii, shares = _at_table(mine, "published")
        clean = [[np.mean(np.array(run["proven"]) > 0)] for run in mine]
        x, lines = (
            np.array([0.0, *radii, *mine[0]["radii"]]),
            np.hstack([clean, shares, [run["curve"] for run in mine]]),
        )
        order = x.argsort()
        panels.band(panel, x[order], lines[:, order], COLOURS[p], label=f"p = {p}, APGD-CE")
        held = [np.mean(np.array(run["proven"])[:, None] > fine, axis=0) for run in mine]
        panel.plot(fine, np.mean(held, axis=0), color=COLOURS[p], lw=1.2, ls=":")
        radii, shares = _at_table(mine, "strongest")
        panel.plot(radii, shares.mean(axis=0), "o", color=COLOURS[p], ms=6)
    panel.plot([], [], "o", color=GREY, ms=6, label="strongest attack")
    panel.plot([], [], color=GREY, lw=1.2, ls=":", label="certified")
    panel.set_xlim(0, 0.205)
    panels.percent_axis(panel)
    panel.set_xlabel("radius")


def _at_table(runs: Sequence[Run], attack: str) -> tuple[list[float], NDArray[np.float64]]:
    """The l-infinity radii of the table, and what an attack left at each, one row a seed."""
    sides = [run["sides"][0] if "sides" in run else {**run, "radii": run["table radii"]} for run in runs]
    return list(sides[0]["radii"]), np.array([side[attack] for side in sides], dtype=np.float64)


def _accuracy(panel: Axes, runs: Sequence[Run], title: str) -> None:
    for p, mine in panels.by_power(runs, POWERS):
        train, held = (panels.rows(mine, name) for name in ("train accuracy", "accuracy"))
        epochs = np.arange(held.shape[1])
        panel.plot(epochs, train.mean(axis=0), color=COLOURS[p], lw=1, ls=(0, (3, 2)))
        panels.band(panel, epochs, held, COLOURS[p], label=f"p = {p}")
    panels.percent_axis(panel, 0.94, 1.002)
    _epochs(panel, title)


def _rank(panel: Axes, runs: Sequence[Run], title: str, published: bool) -> None:
    for p, mine in panels.by_power(runs, POWERS):
        ranks = panels.rows(mine, "rank")
        panels.band(panel, np.arange(ranks.shape[1]), ranks, COLOURS[p], label=f"p = {p}")
    if published:
        for numbers, epoch in ((START, 0), (END, 50)):
            for p, rank in zip(POWERS, numbers, strict=True):
                panels.published_marks(panel, [epoch], [rank], COLOURS[p], clip_on=False)
        panels.published_key(panel, "published, MNIST")
    panel.set_ylim(bottom=0)
    _epochs(panel, title)


def _epochs(panel: Axes, title: str) -> None:
    panel.set_title(title, loc="left")
    panel.set_xlabel("epochs")
    panel.set_xlim(left=0)
    panels.legend_if_any(panel, "best", ncols=2)


FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        id="table1",
        title="Table 1: robust accuracy for p = 1…4",
        paper="MV24",
        caption="Published (MNIST; p = 2, 3 read off the poster), then on our nets the published attack (APGD on the "
        "cross-entropy) on all images (at the published size) and on the first ones, the strongest of our attacks, and "
        "what is certified without use of the box: the truth lies between the last two. Below: the l∞ curves of the "
        "first images; diamonds are the poster's, of all.",
        claims=("D1", "D2", "D8"),
        draw=table_one,
    ),
    PaperFigure(
        id="fig3",
        title="Figure 3: correlation, accuracy, stable rank and robust accuracy on digits",
        paper="MV24",
        caption="a: cosines of images with the mean taken off. b, c, d: the task even or odd, whose published numbers "
        "are not known to us; lines in d are APGD-CE, dots the strongest attack, dotted lines the certificate. e, f: "
        "ten digits; diamonds are the poster's. Bands: smallest to largest over seeds.",
        claims=("D3", "D4", "D5", "D6", "D9", "D10"),
        draw=figure_three,
    ),
)
