"""Real data drawn again: digits (Table 1, Fig. 3, curves of the poster) and heads on embeddings (Fig. 4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from polyrelu.claims import Quantity
from polyrelu.claims.mv24 import FIRST_RANKS, LAST_RANKS, POSTER, POSTER_RADII, TABLE1
from polyrelu.report.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILION, canvas
from polyrelu.report.paper_figures import panels
from polyrelu.report.paper_figures.panels import Results, Run, paper_figure

COLOURS = {1: VERMILION, 2: ORANGE, 3: GREEN, 4: BLUE}  # of the nets of each p
COLUMNS = ("paper", "APGD-CE", "APGD-CE", "strongest", "proven")
WHERE = ("all", "all", "first", "first", "first")  # of the images; at quick size the second column is empty
N = len(COLUMNS)
SIDES = ("APGD-CE", "strongest attack", "certified")
WIDTHS = {"APGD-CE": (0.18, 0.35), "strongest attack": (0.18, 1.0), "certified": (0.09, 1.0)}  # of bars, and how dark


@paper_figure(
    id="table1",
    title="Table 1: robust accuracy for p = 1…4",
    paper="MV24",
    caption="Published (MNIST; p = 2, 3 read off the poster), then on our nets the published attack (APGD on the "
    "cross-entropy) on all images (at the published size) and on the first ones, the strongest of our attacks, and "
    "what is certified without use of the box: the truth lies between the last two. Below: the l∞ curves of the "
    "first images; diamonds are the poster's, of all.",
    claims=("D1", "D2", "D8"),
)
def table_one(results: Results) -> Figure:
    """The table from four sides, and the l-infinity curves."""
    runs = panels.runs_of(results, "mv24.digits.ten_digits")
    images = runs[0]["images"] if runs else "MNIST"
    figure = canvas((10, 9.6), f"Robust accuracy on {images}, ten digits")
    _table(figure.add_axes((0.012, 0.63, 0.976, 0.3)), runs, results)
    panel = figure.add_axes((0.07, 0.06, 0.91, 0.49))
    _linf_curves(panel, runs)
    for p, shares in POSTER.items():
        panels.published_marks(panel, dict(zip(POSTER_RADII, shares, strict=True)), COLOURS[p], ms=5.5)
    panels.published_key(panel, "published, MNIST", 5.5)
    panel.set_title("l∞: what APGD-CE leaves, what the strongest attack leaves, what is certified")
    panel.legend(fontsize=9.5, loc="upper right")
    return figure


def _table(panel: Axes, runs: Sequence[Run], results: Results) -> None:
    """A row for each norm and radius, five columns for each p."""
    sizes = [(norm, r) for norm, side in runs[0]["sides"].items() for r in side["radii"]] if runs else [*TABLE1]
    lines = [["", *(f"p = {p}" if k == 0 else "" for p in COLOURS for k in range(N))]]
    lines += [["", *(words * len(COLOURS))] for words in (COLUMNS, WHERE)]
    for norm, radius in sizes:
        shares = [share for p in COLOURS for share in _shares(runs, results, norm, radius, p)]
        lines.append([f"{norm} {radius:g}", *map(_share_text, shares)])
    widths = [0.06, *([0.235 / N] * N * len(COLOURS))]
    table = panels.ruled_table(panel, lines, 8.5, colWidths=widths)
    powers = [*COLOURS]
    for (line, column), cell in table.get_celld().items():
        cell.PAD = 0.04
        place, kind = divmod(max(column - 1, 0), N)
        text = cell.get_text()
        if line == 0:
            text.set(color=COLOURS[powers[place]], fontweight="bold")
        elif line in (1, 2):
            text.set(color=GREY, fontweight="normal", fontsize=6.5)
        else:
            published = column > 0 and COLUMNS[kind] == "paper"  # column 0 names norm and radius
            text.set_color(GREY if published else BLACK)
            text.set_fontweight("bold" if COLUMNS[kind] == "strongest" else "normal")


def _shares(runs: Sequence[Run], results: Results, norm: str, radius: float, p: int) -> list[float | None]:
    """The five columns of one p: published, on all images, and three on the first ones."""
    published = TABLE1.get((norm, radius), (None,) * 4)[[*COLOURS].index(p)]
    all_images = Quantity("robust accuracy", side="APGD-CE on all images", norm=norm, radius=radius, p=p)
    every = panels.values_of(panels.measured(results, "mv24.digits.ten_digits"), all_images)
    mine = panels.select(runs, p=p)
    ours = [_mean(mine, norm, radius, side) for side in SIDES]
    return [published, float(np.mean(every)) if every else None, *ours]


def _mean(runs: Sequence[Run], norm: str, radius: float, side: str) -> float | None:
    found = [run["sides"][norm][side][list(run["sides"][norm]["radii"]).index(radius)] for run in runs]
    return float(np.mean(found)) if found else None


def _share_text(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".removeprefix("0") if value < 1 else "1"


@paper_figure(
    id="fig3",
    title="Figure 3: correlation, accuracy, stable rank and robust accuracy on digits",
    paper="MV24",
    caption="a: cosines of images with the mean taken off. b, c, d: the task even or odd, whose published numbers "
    "are not known to us; lines in d are APGD-CE, dots the strongest attack, dotted lines the certificate. e, f: "
    "ten digits; diamonds are the poster's. Bands: smallest to largest over seeds.",
    claims=("D3", "D4", "D5", "D6", "D9", "D10"),
)
def figure_three(results: Results) -> Figure:
    """Fig. 3 a-d on parity, and the same of ten digits beside the poster's numbers."""
    ten, parity, maps = (
        panels.runs_of(results, f"mv24.{name}") for name in ("digits.ten_digits", "digits.parity", "digits.cosines")
    )
    figure = canvas((10, 10.6), "Digits: correlation, accuracy, stable rank, robust accuracy")
    (cosines, robust), *below = panels.grid_of_panels(
        figure, 3, 2, left=0.07, right=0.98, top=0.92, bottom=0.055, hspace=0.38, wspace=0.2
    )
    _map(cosines, maps[0]["matrix"] if maps else None, "a  Cosines of centred images, by digit")
    if maps:
        _name_groups(cosines, maps[0]["group"])
    _linf_curves(robust, parity)
    robust.set_title("d  Even or odd: robust accuracy in l∞")
    for (accuracy, rank), runs, task, letters in zip(
        below, (parity, ten), ("Even or odd", "Ten digits"), ("bc", "ef"), strict=True
    ):
        _epoch_lines(accuracy, runs, "accuracy")
        panels.percent_axis(accuracy, 0.94, 1.002)
        _epoch_axes(accuracy, f"{letters[0]}  {task}: accuracy (dashed: training images)")
        _epoch_lines(rank, runs, "rank")
        if runs is ten:
            _published_ranks(rank)
        rank.set_ylim(bottom=0)
        _epoch_axes(rank, f"{letters[1]}  {task}: stable rank of the features")
    return figure


def _name_groups(panel: Axes, group: Sequence[int]) -> None:
    """The digit beside each block of equal numbers."""
    edges = np.append(np.flatnonzero(np.diff(group, prepend=-1)), len(group))
    places = (edges[1:] + edges[:-1] - 1) / 2
    labels = [str(group[edge]) for edge in edges[:-1]]
    panel.set(xticks=places, yticks=places, xticklabels=labels, yticklabels=labels)


def _linf_curves(panel: Axes, runs: Sequence[Run]) -> None:
    """APGD-CE (line), the strongest attack (dots) and the certificate (dotted) against the radius."""
    fine = np.linspace(0, 0.21, 1000)
    for p, mine in _by_power(runs):
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
    panel.set(xlim=(0, 0.205), xlabel="radius")
    panels.percent_axis(panel)


def _published_ranks(panel: Axes) -> None:
    for numbers, epoch in ((FIRST_RANKS, 0), (LAST_RANKS, 50)):
        for colour, rank in zip(COLOURS.values(), numbers, strict=True):
            panels.published_marks(panel, {epoch: rank}, colour, clip_on=False)
    panels.published_key(panel, "published, MNIST")


@paper_figure(
    id="fig4",
    title="Figure 4: heads on embeddings",
    paper="MV24",
    caption="As published for Caltech-256 and ResNet-152, whose features are not to be had: what stands for them "
    "is named above the picture. a: kinds with the same label are no nearer to each other than to the rest. b, c: "
    "by epoch. d: in l∞ radii of the published range, in l2 a share of the median distance to the mean; what the "
    "published attack and the strongest one leave, and what is certified. Published numbers are not known to us.",
    claims=("D7",),
)
def figure_four(results: Results) -> Figure:
    """Cosines of the kinds, accuracy and stable rank in time, robust accuracy."""
    runs = panels.runs_of(results, "mv24.embeddings.heads")
    about = runs[0]["about"] if runs else "not run"
    figure = canvas((10, 7.8), f"Heads on embeddings ({about})")
    (cosines, accuracy), (rank, robust) = panels.grid_of_panels(
        figure, 2, 2, left=0.07, right=0.97, top=0.9, bottom=0.08, hspace=0.36, wspace=0.22
    )
    kinds = next((run["cosines"] for run in runs if run["cosines"]), None)
    _map(cosines, kinds, "a  Cosines of kinds, sorted by label")
    _epoch_lines(accuracy, runs, "accuracy")
    panels.percent_axis(accuracy, min((run["accuracy"][-1] for run in runs), default=0.8) - 0.2, 1.01)
    _epoch_axes(accuracy, "b  Accuracy (dashed: training rows)")
    _epoch_lines(rank, runs, "rank")
    _epoch_axes(rank, "c  Stable rank of the features")
    _robust(robust, runs)
    return figure


def _robust(panel: Axes, runs: Sequence[Run]) -> None:
    """Three bars for each p at each radius, one over the other: the certified one is the shortest."""
    places = [(name, k) for name, side in runs[0]["sides"].items() for k in range(len(side["radii"]))] if runs else []
    for place, (name, k) in enumerate(places):
        for number, (p, mine) in enumerate(_by_power(runs)):
            x = place + 0.2 * (number - 1.5)
            for side, (width, alpha) in WIDTHS.items():
                share = float(np.mean([run["sides"][name][side][k] for run in mine]))
                edge = "white" if side == "certified" else "none"
                panel.bar(x, share, width, color=COLOURS[p], alpha=alpha, ec=edge, lw=0.8)
    names = [f"{name} {runs[0]['sides'][name]['radii'][k]:g}" + (" |x|" if name == "l2" else "") for name, k in places]
    panel.set_xticks(range(len(places)), names)
    panels.percent_axis(panel, 0)
    panel.set_title("d  Robust accuracy")
    words = "pale: APGD-CE, full: strongest attack, narrow: certified"
    panel.text(0.99, 0.98, words, transform=panel.transAxes, ha="right", va="top", fontsize=9, color=GREY)


def _by_power(runs: Sequence[Run]) -> list[tuple[int, list[Run]]]:
    """(p, runs with that p) for every p that was run."""
    found = [(p, panels.select(runs, p=p)) for p in COLOURS]
    return [(p, chosen) for p, chosen in found if chosen]


def _epoch_lines(panel: Axes, runs: Sequence[Run], name: str) -> None:
    """A line for each p; beside the accuracy, dashed, that on the training rows."""
    for p, mine in _by_power(runs):
        lines = panels.rows(mine, name)
        panels.band(panel, range(lines.shape[1]), lines, COLOURS[p], label=f"p = {p}")
        if name == "accuracy":
            panel.plot(panels.rows(mine, "train accuracy").mean(axis=0), color=COLOURS[p], lw=1, ls=(0, (3, 2)))


def _epoch_axes(panel: Axes, title: str) -> None:
    """The title, the axis of epochs and the legend."""
    panel.set(title=title, xlabel="epochs", xlim=(0, None))
    panels.legend_if_any(panel, "best", ncols=2)


def _map(panel: Axes, matrix: Sequence[Sequence[float]] | None, title: str) -> None:
    """Cosines in colours, if there are any."""
    panel.set_title(title)
    if matrix is None:
        panel.set_axis_off()
        return
    panels.cosine_panel(panel, matrix, (1.04, 0.04))
    panel.set(aspect="equal", xticks=[], yticks=[])
