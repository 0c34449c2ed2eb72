"""Handwritten digits, drawn again: Table 1 and Fig. 3 of Min & Vidal 2024 with the curves of its poster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from polyrelu.claims import Quantity
from polyrelu.claims.mv24 import FIRST_RANKS, LAST_RANKS, POSTER, POSTER_RADII, TABLE1
from polyrelu.report.figures.style import BLACK, GREY, canvas, figure_style
from polyrelu.report.paper_figures import panels
from polyrelu.report.paper_figures.figure import PaperFigure, Results, Run
from polyrelu.report.paper_figures.mv24.heads import COLOURS, epoch_axes, epoch_lines

COLUMNS = ("paper", "APGD-CE", "APGD-CE", "strongest", "proven")
WHERE = ("all", "all", "first", "first", "first")  # of the images; at quick size the second column is empty
N = len(COLUMNS)
SIDES = ("APGD-CE", "strongest attack", "certified")


@figure_style()
def table_one(results: Results) -> Figure:
    """The table from four sides, and the l-infinity curves."""
    runs = panels.runs_of(results, "mv24.digits.ten_digits")
    images = runs[0]["images"] if runs else "MNIST"
    figure = canvas((10, 9.6), f"Robust accuracy on {images}, ten digits")
    _table(figure.add_axes((0.012, 0.63, 0.976, 0.3)), runs, results)
    panel = figure.add_axes((0.07, 0.06, 0.91, 0.49))
    _curves(panel, runs)
    for p, shares in POSTER.items():
        panels.published_marks(panel, POSTER_RADII, shares, COLOURS[p], ms=5.5)
    panels.published_key(panel, "published, MNIST", 5.5)
    panel.set_title("l∞: what APGD-CE leaves, what the strongest attack leaves, what is certified", loc="left")
    panel.legend(fontsize=9.5, loc="upper right")
    return figure


def _table(panel: Axes, runs: Sequence[Run], results: Results) -> None:
    """A row for each norm and radius, five columns for each p."""
    panel.set_axis_off()
    sizes = [(norm, r) for norm, side in runs[0]["sides"].items() for r in side["radii"]] if runs else [*TABLE1]
    lines = [["", *(f"p = {p}" if k == 0 else "" for p in COLOURS for k in range(N))]]
    lines += [["", *(words * len(COLOURS))] for words in (COLUMNS, WHERE)]
    for norm, radius in sizes:
        row = [f"{norm} {radius:g}"]
        for place, p in enumerate(COLOURS):
            mine = panels.select(runs, p=p)
            published = TABLE1.get((norm, radius), (None,) * 4)[place]
            all_images = Quantity("robust accuracy", side="APGD-CE on all images", norm=norm, radius=radius, p=p)
            every = panels.values_of(panels.measured(results, "mv24.digits.ten_digits"), all_images)
            ours = [_mean(mine, norm, radius, side) for side in SIDES]
            row += [_share(value) for value in (published, float(np.mean(every)) if every else None, *ours)]
        lines.append(row)
    widths = [0.06, *([0.235 / N] * N * len(COLOURS))]
    table = panel.table(lines, cellLoc="right", edges="horizontal", colWidths=widths, bbox=Bbox([[0, 0], [1, 1]]))
    table.auto_set_font_size(False)
    table.set_fontsize(8.5)
    powers = [*COLOURS]
    for (line, column), cell in table.get_celld().items():
        cell.set_edgecolor("#D5D5D5")
        cell.PAD = 0.04
        p = powers[max(column - 1, 0) // N]
        text = cell.get_text()
        text.set_color(COLOURS[p] if line == 0 else GREY if line in (1, 2) or column % N == 1 else BLACK)
        text.set_fontweight("bold" if line == 0 or (line > 2 and column % N == 4) else "normal")
        if line in (1, 2):
            text.set_fontsize(6.5)


def _mean(runs: Sequence[Run], norm: str, radius: float, side: str) -> float | None:
    found = [
        sides[side][list(sides["radii"]).index(radius)]
        for run in runs
        for sides in (run["sides"].get(norm, {"radii": ()}),)
        if radius in sides["radii"]
    ]
    return float(np.mean(found)) if found else None


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".removeprefix("0") if value < 1 else "1"


@figure_style()
def figure_three(results: Results) -> Figure:
    """Fig. 3 a-d on parity, and the same of ten digits beside the poster's numbers."""
    ten, parity, maps = (
        panels.runs_of(results, f"mv24.{name}") for name in ("digits.ten_digits", "digits.parity", "digits.cosines")
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
    for p, mine in panels.by_power(runs, COLOURS):
        at_table, radii = list(mine[0]["sides"]["l∞"]["radii"]), mine[0]["radii"]
        published, strongest = (np.array([run["sides"]["l∞"][side] for run in mine]) for side in SIDES[:2])
        clean = [[np.mean(np.array(run["proven"]) > 0)] for run in mine]
        x, lines = np.array([0.0, *at_table, *radii]), np.hstack([clean, published, [run["curve"] for run in mine]])
        order = x.argsort()
        panels.band(panel, x[order], lines[:, order], COLOURS[p], label=f"p = {p}, APGD-CE")
        proven = [panels.share_beyond(run["proven"], fine) for run in mine]
        panel.plot(fine, np.mean(proven, axis=0), color=COLOURS[p], lw=1.2, ls=":")
        panel.plot(at_table, strongest.mean(axis=0), "o", color=COLOURS[p], ms=6)
    panel.plot([], [], "o", color=GREY, ms=6, label="strongest attack")
    panel.plot([], [], color=GREY, lw=1.2, ls=":", label="certified")
    panel.set_xlim(0, 0.205)
    panels.percent_axis(panel)
    panel.set_xlabel("radius")


def _accuracy(panel: Axes, runs: Sequence[Run], title: str) -> None:
    epoch_lines(panel, runs, "accuracy")
    panels.percent_axis(panel, 0.94, 1.002)
    epoch_axes(panel, title)


def _rank(panel: Axes, runs: Sequence[Run], title: str, published: bool) -> None:
    epoch_lines(panel, runs, "rank")
    if published:
        for numbers, epoch in ((FIRST_RANKS, 0), (LAST_RANKS, 50)):
            for colour, rank in zip(COLOURS.values(), numbers, strict=True):
                panels.published_marks(panel, [epoch], [rank], colour, clip_on=False)
        panels.published_key(panel, "published, MNIST")
    panel.set_ylim(bottom=0)
    epoch_axes(panel, title)


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
