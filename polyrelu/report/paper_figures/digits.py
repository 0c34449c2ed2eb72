"""Handwritten digits, drawn again: Table 1 and Fig. 3 of Min & Vidal 2024 with the curves of its poster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from polyrelu.claims.digits import CURVE, END, POSTER, POWERS, START, TABLE
from polyrelu.claims.nets_of_digits import NAMES
from polyrelu.report.figures.heatmap import heat
from polyrelu.report.figures.training import AVERAGE, CENTRE, INK, QUIET, STYLE, canvas
from polyrelu.report.paper_figures.figure import PaperFigure, Results

Run = Mapping[str, Any]
COLOURS = dict(zip(POWERS, (AVERAGE, "#E69F00", "#009E73", CENTRE), strict=True))  # of Okabe & Ito
COLUMNS = ("paper", "APGD-CE", "APGD-CE", "strongest", "proven")
WHERE = ("all", "all", "first", "first", "first")  # of the images; at quick size the second column is empty
N = len(COLUMNS)
KNOWN = {(NAMES[norm], radius): row for (norm, radius), row in TABLE.items()}


def table_one(results: Results) -> Figure:
    """The table from four sides, and the l-infinity curves."""
    runs = _data(results, "digits.table")
    with rc_context(STYLE):
        images = runs[0]["images"] if runs else "MNIST"
        figure = canvas((10, 9.6), f"Robust accuracy on {images}, ten digits")
        _table(figure.add_axes((0.012, 0.63, 0.976, 0.3)), runs, _everyone(results))
        panel = figure.add_axes((0.07, 0.06, 0.91, 0.49))
        _curves(panel, runs)
        for p, shares in POSTER.items():
            panel.plot(CURVE["paper"], shares, "D", mfc="none", mec=COLOURS[p], ms=5.5, zorder=4)
        panel.plot([], [], "D", mfc="none", mec=QUIET, ms=5.5, label="published, MNIST")
        panel.set_title("l∞: what APGD-CE leaves, what the strongest attack leaves, what is certified", loc="left")
        panel.legend(frameon=False, fontsize=9.5, loc="upper right")
    return figure


def _everyone(results: Results) -> dict[str, float]:
    """What the published attack leaves of all images, by the name of the number."""
    found: dict[str, list[float]] = {}
    for outcome in results.get("digits.table", ()):
        for name, value in {} if outcome.measured is None else outcome.measured.values.items():
            if name.startswith("APGD-CE on all images"):
                found.setdefault(name, []).append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}


def _table(panel: Axes, runs: Sequence[Run], everyone: Mapping[str, float]) -> None:
    """A row for each norm and radius, five columns for each p."""
    panel.set_axis_off()
    sizes = [(side["norm"], radius) for side in runs[0]["sides"] for radius in side["radii"]] if runs else [*KNOWN]
    rows = [["", *(f"p = {p}" if k == 0 else "" for p in POWERS for k in range(N))]]
    rows += [["", *(words * len(POWERS))] for words in (COLUMNS, WHERE)]
    for name, radius in sizes:
        row = [f"{name} {radius:g}"]
        for place, p in enumerate(POWERS):
            mine = [run for run in runs if run["p"] == p]
            known = KNOWN.get((name, radius), (None,) * 4)[place]
            ours = [_mean(mine, name, radius, what) for what in ("published", "strongest", "certified")]
            every = everyone.get(f"APGD-CE on all images at {name} {radius:g}, p = {p}")
            row += [_share(value) for value in (known, every, *ours)]
        rows.append(row)
    widths = [0.06, *([0.235 / N] * N * len(POWERS))]
    table = panel.table(rows, cellLoc="right", edges="horizontal", colWidths=widths, bbox=Bbox([[0, 0], [1, 1]]))
    table.auto_set_font_size(False)
    table.set_fontsize(8.5)
    for (line, column), cell in table.get_celld().items():
        cell.set_edgecolor("#D5D5D5")
        cell.PAD = 0.04
        p = POWERS[max(column - 1, 0) // N]
        text = cell.get_text()
        text.set_color(COLOURS[p] if line == 0 else QUIET if line in (1, 2) or column % N == 1 else INK)
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


def figure_three(results: Results) -> Figure:
    """Fig. 3 a-d on parity, and the same of ten digits beside the poster's numbers."""
    ten, parity, maps = (
        _data(results, name) for name in ("digits.table", "digits_parity.parity", "digits_inputs.cosines")
    )
    with rc_context(STYLE):
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
    image = heat(panel, np.array(runs[0]["matrix"]), 1.0)
    panel.set_aspect("equal")
    group = np.array(runs[0]["group"])
    edges = np.append(np.flatnonzero(np.diff(group, prepend=-1)), len(group))
    places = (edges[1:] + edges[:-1] - 1) / 2
    labels = [str(digit) for digit in group[edges[:-1]]]
    panel.set_xticks(places, labels=labels)
    panel.set_yticks(places, labels=labels)
    panel.figure.colorbar(image, cax=panel.inset_axes((1.04, 0, 0.04, 1)), ticks=[-1, -0.5, 0, 0.5, 1])


def _curves(panel: Axes, runs: Sequence[Run]) -> None:
    """APGD-CE (line), the strongest attack (dots) and the certificate (dotted) against the radius."""
    fine = np.linspace(0, 0.21, 1000)
    for p, colour in COLOURS.items():
        mine = [run for run in runs if run["p"] == p]
        if not mine:
            continue
        radii, shares = _at_table(mine, "published")
        clean = [[np.mean(np.array(run["proven"]) > 0)] for run in mine]
        x, lines = (
            np.array([0.0, *radii, *mine[0]["radii"]]),
            np.hstack([clean, shares, [run["curve"] for run in mine]]),
        )
        order = x.argsort()
        _band(panel, x[order], lines[:, order], colour, f"p = {p}, APGD-CE")
        held = [np.mean(np.array(run["proven"])[:, None] > fine, axis=0) for run in mine]
        panel.plot(fine, np.mean(held, axis=0), color=colour, lw=1.2, ls=":")
        radii, shares = _at_table(mine, "strongest")
        panel.plot(radii, shares.mean(axis=0), "o", color=colour, ms=6)
    panel.plot([], [], "o", color=QUIET, ms=6, label="strongest attack")
    panel.plot([], [], color=QUIET, lw=1.2, ls=":", label="certified")
    panel.set_xlim(0, 0.205)
    panel.set_ylim(-0.02, 1.02)
    panel.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    panel.set_xlabel("radius")


def _at_table(runs: Sequence[Run], attack: str) -> tuple[list[float], NDArray[np.float64]]:
    """The l-infinity radii of the table, and what an attack left at each, one row a seed."""
    sides = [run["sides"][0] if "sides" in run else {**run, "radii": run["table radii"]} for run in runs]
    return list(sides[0]["radii"]), np.array([side[attack] for side in sides], dtype=np.float64)


def _accuracy(panel: Axes, runs: Sequence[Run], title: str) -> None:
    for p, mine in _by_power(runs):
        train, held = (np.array([run[name] for run in mine]) for name in ("train accuracy", "accuracy"))
        epochs = np.arange(held.shape[1])
        panel.plot(epochs, train.mean(axis=0), color=COLOURS[p], lw=1, ls=(0, (3, 2)))
        _band(panel, epochs, held, COLOURS[p], f"p = {p}")
    panel.set_ylim(0.94, 1.002)
    panel.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    _dress(panel, title)


def _rank(panel: Axes, runs: Sequence[Run], title: str, published: bool) -> None:
    for p, mine in _by_power(runs):
        ranks = np.array([run["rank"] for run in mine])
        _band(panel, np.arange(ranks.shape[1]), ranks, COLOURS[p], f"p = {p}")
    if published:
        for numbers, epoch in ((START, 0), (END, 50)):
            for p, rank in zip(POWERS, numbers, strict=True):
                panel.plot(epoch, rank, "D", mfc="none", mec=COLOURS[p], ms=6, zorder=4, clip_on=False)
        panel.plot([], [], "D", mfc="none", mec=QUIET, ms=6, label="published, MNIST")
    panel.set_ylim(bottom=0)
    _dress(panel, title)


def _dress(panel: Axes, title: str) -> None:
    panel.set_title(title, loc="left")
    panel.set_xlabel("epochs")
    panel.set_xlim(left=0)
    if panel.get_legend_handles_labels()[0]:
        panel.legend(frameon=False, fontsize=9, ncols=2)


def _by_power(runs: Sequence[Run]) -> list[tuple[int, list[Run]]]:
    found = [(p, [run for run in runs if run["p"] == p]) for p in POWERS]
    return [(p, mine) for p, mine in found if mine]


def _band(panel: Axes, x: Any, lines: NDArray[np.float64], colour: str, label: str) -> None:
    if len(lines) > 1:
        panel.fill_between(x, lines.min(axis=0), lines.max(axis=0), color=colour, alpha=0.18, lw=0)
    panel.plot(x, lines.mean(axis=0), color=colour, lw=1.8, label=label)


def _data(results: Results, experiment: str) -> list[Run]:
    return [outcome.measured.data for outcome in results.get(experiment, ()) if outcome.measured is not None]


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
