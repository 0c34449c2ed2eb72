"""The picture of robustness: what is proven, what is attacked, and what nobody knows between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from polyrelu.checks import checked
from polyrelu.errors import require
from polyrelu.report.figures.style import BLACK, BLUE, GREY, VERMILION, YELLOW, canvas, figure_style, pale_rules
from polyrelu.robust import RobustCurve

NORM_NAMES = {1.0: "sum of the changes, ℓ1", 2.0: "Euclidean length, ℓ2", math.inf: "largest single change, ℓ∞"}
COINCIDENCE = 0.004  # share of the picture's area between the lines below which the eye sees one
MAX_STEPS = 3000  # more steps than this are finer than a printed picture
LETTER_WIDTH = 0.0115  # width of a letter of a mark's label, as a share of the axis
Array = NDArray[np.float64]


@checked
def robust_figure(
    curve: RobustCurve,
    *,
    marks: Mapping[str, float] | None = None,
    title: str = "",
    theory: Mapping[str, Callable[[Array], Array]] | None = None,
) -> Figure:
    """Accuracy against the radius: both lines, the unproven share shaded, and bands over seeds.

    marks : label -> radius, drawn as vertical lines (what theory says about the median, the best possible radius, ...)
    theory : label -> function from radii to accuracies, drawn as thin dotted lines
    """
    marks, theory = dict(marks or {}), dict(theory or {})
    for label, radius in marks.items():
        require(math.isfinite(radius) and radius >= 0, f"marks[{label!r}]", radius, "a finite radius >= 0")
    farthest = max([0.0, *curve.breakpoints[-1:].tolist(), *marks.values()])
    end = 1.06 * farthest if farthest > 0 else 1.0
    with figure_style():
        figure = canvas((8, 5.6), title)
        panel = figure.add_axes((0.1, 0.23, 0.87, 0.6))
        _draw(panel, curve, end)
        grid = np.linspace(0, end, 1001)
        for label, accuracy in theory.items():
            panel.plot(grid, accuracy(grid), color=BLACK, lw=1.2, ls="-.", label=label, zorder=5)
        _marks(panel, marks, end)
        panel.set(xlim=(0, end), ylim=(-0.02, 1.03), ylabel="points classified rightly")
        panel.set_xlabel(f"radius of the perturbation ({NORM_NAMES[curve.norm]})")
        panel.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
        pale_rules(panel)
        figure.legend(loc="lower left", bbox_to_anchor=(0.09, 0.005), ncols=2, fontsize=9.5)
    return figure


def _draw(panel: Axes, curve: RobustCurve, end: float) -> None:
    """Both lines; on top of each other with one word about it, where the eye could not tell them apart."""
    steps = curve.breakpoints
    inside = steps if len(steps) <= MAX_STEPS else np.linspace(0, steps[-1], MAX_STEPS)
    radii = np.unique(np.concatenate([[0.0], inside, [end]]))
    certified, attacked = curve.certified(radii), curve.attacked(radii)
    if curve.clean == 0:
        panel.plot(radii, attacked, color=VERMILION, lw=3, label="every point is misclassified as it is: radius 0")
        return
    one = float((np.diff(radii) * (attacked - certified)[:-1]).sum()) < COINCIDENCE * end
    line: dict[str, Any] = {"drawstyle": "steps-post", "solid_joinstyle": "miter"}
    wide, thin, dashes = (5.0, 1.8, "-") if one else (2.2, 2.2, (0, (4, 1.2)))
    panel.plot(radii, attacked, color=VERMILION, lw=wide, ls=dashes, label="attacked: not broken by any attack", **line)
    panel.plot(radii, certified, color=BLUE, lw=thin, label="certified: proven to hold", **line)
    if one:
        where = "everywhere" if bool((certified == attacked).all()) else "at this scale"
        panel.plot([], [], " ", label=f"(both lines coincide {where})")
    else:
        panel.fill_between(
            radii, certified, attacked, step="post", color=YELLOW, alpha=0.4, lw=0, label="neither proven nor broken"
        )
    if curve.seeds > 1:
        for band, colour in ((curve.certified_band(radii), BLUE), (curve.attacked_band(radii), VERMILION)):
            panel.fill_between(radii, band.low, band.high, step="post", color=colour, alpha=0.2, lw=0)
        panel.plot([], [], color=GREY, alpha=0.35, lw=7, label=f"bands: smallest to largest of {curve.seeds} seeds")
    left = float(attacked[-1])
    if left > 0:
        panel.plot([], [], " ", label=f"({100 * left:.3g} % were never broken, at any radius)")


def _marks(panel: Axes, marks: Mapping[str, float], end: float) -> None:
    """Vertical lines with their labels above the panel, in as many rows as they need."""
    rows: list[float] = []  # how far to the right each row is taken
    for label, radius in sorted(marks.items(), key=lambda mark: mark[1]):
        text = f"{label} = {radius:.3g}"
        half = LETTER_WIDTH * len(text) / 2
        at = min(max(radius / end, half), 1 - half)
        row = next((number for number, taken in enumerate(rows) if at - half > taken), len(rows))
        rows[row : row + 1] = [at + half + 0.01]
        panel.axvline(radius, color=BLACK, lw=1, ls=(0, (2, 2)), zorder=2)
        panel.text(
            at, 1.025 + 0.052 * row, text, transform=panel.transAxes, ha="center", va="bottom", fontsize=9, color=BLACK
        )
