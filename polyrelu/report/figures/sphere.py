"""Neurons on the circle or the sphere, moment by moment (Fig. 1 of Min & Vidal, ICML 2024)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle
from numpy.typing import ArrayLike, NDArray

from polyrelu.checks import checked
from polyrelu.errors import require
from polyrelu.report.figures.style import BLACK, BLUE, GREY, LIGHT_GREY, VERMILION, canvas, figure_style

POSITIVE, NEGATIVE = "#009E73", "#882E72"  # green of Okabe & Ito and a deep purple; shapes differ too
SIGNS = ((1, POSITIVE, "o", "neuron, v > 0"), (-1, NEGATIVE, "v", "neuron, v < 0"), (0, BLACK, "s", "neuron"))
SMALLEST_AREA, LARGEST_AREA = 13.0, 120.0  # area of a dot, for the smallest and the largest contribution of all stages
FAR_SIDE_OPACITY = 0.3  # opacity of what lies on the far side, relative to the near one
BELOW_INCHES, ABOVE_INCHES = 0.8, 0.25  # inches under the panels, and for the name of each
Array = NDArray[np.float64]
ReferenceDirections = tuple[Array, str, str, str]  # where, colour, shape, name


@final
@dataclass(frozen=True)
class NeuronSnapshot:
    """The neurons at one moment: w_j/|w_j| as rows (h, D), natural log of |v_j| |w_j| and sign of v_j (0: none)."""

    name: str
    directions: ArrayLike
    log_contributions: ArrayLike
    signs: ArrayLike


@checked
def sphere_figure(
    stages: Sequence[NeuronSnapshot],
    points: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    centres: ArrayLike | None = None,
    averages: ArrayLike | None = None,
    *,
    axes: ArrayLike | None = None,
    view: ArrayLike | None = None,
    title: str = "",
) -> Figure:
    """One panel a stage: a dot is the direction of a neuron, its area the log of |v||w| on one scale for all stages.

    In the plane or in space as it is; from more dimensions projected on the span of ``axes`` (2 or 3 rows; by default
    the centres, or the averages, if they are 2 or 3), where a neuron off the span lies inside the circle or sphere.
    A sphere is seen from far away along ``view`` (default: from above the middle of the centres), its far side faint.
    Data, centres and averages are drawn by their directions; neurons without one are left out and counted. O(h + n).
    """
    require(len(stages) > 0, "stages", "none", "at least one NeuronSnapshot")
    projection = Projection(stages, centres, averages, axes, view)
    area_of = DotArea(stages)
    references: list[ReferenceDirections] = [
        (projection.seen("centres", centres), BLUE, "o", "sub-class centre"),
        (projection.seen("averages", averages), VERMILION, "D", "class average"),
    ]
    data = _points_by_label(projection.seen("points", points), labels)
    columns = len(stages) if len(stages) <= 4 else math.ceil(len(stages) / 2)
    rows, side = math.ceil(len(stages) / columns), min(10 / columns, 4.6)
    height = BELOW_INCHES + rows * (side + ABOVE_INCHES) + 0.45
    with figure_style():
        figure = canvas((10, height), title)
        for number, stage in enumerate(stages):
            row, column = divmod(number, columns)
            left, bottom = 5 + (column - columns / 2) * side, BELOW_INCHES + (rows - 1 - row) * (side + ABOVE_INCHES)
            panel = figure.add_axes((left / 10, bottom / height, side / 10, side / height))
            panel.set_title(stage.name, loc="center", pad=2)
            _sphere_outline(panel, projection)
            for sign, colour, _, _ in SIGNS:
                _dots(panel, data[sign], 5, color=colour, alpha=0.35, lw=0, zorder=2)
            _neurons(panel, projection, stage, area_of)
            for seen, colour, marker, _ in references:
                area = 130 if marker == "o" else 210
                _dots(panel, seen, area, marker=marker, facecolors="none", edgecolors=colour, lw=1.8, alpha=1, zorder=5)
        if projection.note:
            figure.text(0.5, 0.06 / height, projection.note, ha="center", va="bottom", color=GREY, fontsize=8.5)
        _legend(figure, stages, data, references, area_of)
    return figure


def _points_by_label(data: Array, labels: Any) -> dict[int, Array]:
    """The points of each sign of the label; all in one where the labels are not +1/-1."""
    given = np.zeros(len(data)) if labels is None else np.asarray(labels)
    require(given.shape == (len(data),), "labels", f"shape {given.shape}", f"({len(data)},), one for each point")
    signs = np.sign(given) if (given < 0).any() else np.zeros(len(data))
    return {sign: data[signs == sign] for sign, _, _, _ in SIGNS}


@final
class Projection:
    """How R^D is seen, as the plane or space that it is or the span of the axes.

    ``basis`` (D, 2 or 3) has orthonormal columns, and in space ``turned`` makes the direction of the eye the last.
    """

    def __init__(self, stages: Sequence[NeuronSnapshot], centres: Any, averages: Any, axes: Any, view: Any) -> None:
        dim = np.asarray(stages[0].directions).shape[-1]
        require(dim >= 2, "stages", f"directions in {dim} dimension", "at least 2")
        if axes is None and dim <= 3:
            axes = np.eye(dim)
        elif axes is None:
            axes = next((given for given in (centres, averages) if given is not None and 2 <= len(given) <= 3), None)
            allowed = f"2 or 3 directions to project the {dim} dimensions on (there are not 2 or 3 centres or averages)"
            require(axes is not None, "axes", None, allowed)
        rows = np.asarray(axes, dtype=np.float64)
        good = rows.ndim == 2 and 2 <= len(rows) <= 3 and rows.shape[1] == dim and bool(np.isfinite(rows).all())
        require(good, "axes", f"shape {rows.shape}", f"2 or 3 finite rows of {dim} numbers")
        require(np.linalg.matrix_rank(rows, tol=1e-6) == len(rows), "axes", "dependent rows", "independent directions")
        basis, triangle = np.linalg.qr(rows.T)
        self.basis, self.turned = basis * np.sign(np.diag(triangle)), np.eye(len(rows))
        if self.solid:
            self.turned = _turned(self, centres, averages, view)
        span = "plane of two" if len(rows) == 2 else "space of three"
        note = f"{dim} dimensions seen in the {span} directions: the farther inside, the more a neuron points elsewhere"
        self.note = note if dim > len(rows) else ""

    @property
    def solid(self) -> bool:
        """Whether it is a sphere."""
        return len(self.turned) == 3

    def seen(self, name: str, rows: Any) -> Array:
        """Right, up (and towards the eye) of the directions of ``rows``; NaN where a row has none."""
        dim = len(self.basis)
        given = np.zeros((0, dim)) if rows is None else np.asarray(rows, dtype=np.float64)
        require(given.ndim == 2 and given.shape[1] == dim, name, f"shape {given.shape}", f"rows of {dim} numbers")
        length = np.linalg.norm(given, axis=1, keepdims=True)
        there = np.isfinite(length) & (length > 0)
        unit = np.where(there, given, 0) / np.where(there, length, 1)
        return np.where(there, unit @ self.basis @ self.turned.T, np.nan)


def _turned(projection: Projection, centres: Any, averages: Any, view: Any) -> Array:
    """Rows right, up, eye; up is the last axis as far as it can be."""
    given = [projection.seen(*pair) for pair in (("centres", centres), ("averages", averages)) if pair[1] is not None]
    references = next((found for found in given if len(found)), np.zeros((1, 3)))
    middle = np.nan_to_num(references).mean(axis=0)
    if view is None:
        view = middle if np.linalg.norm(middle) > 0.1 else np.ones(3)
    eye = np.asarray(view, dtype=float)
    good = eye.shape == (3,) and bool(np.isfinite(eye).all()) and bool(eye.any())
    require(good, "view", view, "three numbers, not all zero")
    eye = eye / np.linalg.norm(eye)
    up = np.eye(3)[1 if abs(eye[2]) > 0.999 else 2]
    up = up - (up @ eye) * eye
    up = up / np.linalg.norm(up)
    return np.stack([np.cross(up, eye), up, eye])


@final
class DotArea:
    """Area of a dot from the log of its contribution, between the smallest and the largest of all stages.

    Zero contributions (log -inf) count as the smallest.
    """

    def __init__(self, stages: Sequence[NeuronSnapshot]) -> None:
        logs = np.concatenate([np.asarray(stage.log_contributions, dtype=np.float64).ravel() for stage in stages])
        finite = logs[np.isfinite(logs)]
        self.low, self.high = float(finite.min(initial=np.inf)), float(finite.max(initial=-np.inf))

    def __call__(self, logs: Array) -> Array:
        """Areas in square points."""
        if not self.high > self.low:
            return np.full(len(logs), LARGEST_AREA / 3)
        share = np.nan_to_num((logs - self.low) / (self.high - self.low)).clip(0, 1)
        return np.asarray(SMALLEST_AREA + (LARGEST_AREA - SMALLEST_AREA) * share**2)


def _dots(panel: Axes, seen: Array, area: Any, **look: Any) -> None:
    """Dots of one look; on a sphere those on the far side are faint and beneath."""
    area = np.broadcast_to(area, len(seen))
    behind = seen[:, 2] < -1e-9 if seen.shape[1] == 3 else np.zeros(len(seen), dtype=bool)
    for far in (True, False):
        part = seen[behind == far]
        faint = {"alpha": look["alpha"] * FAR_SIDE_OPACITY, "zorder": look["zorder"] - 0.4} if far else {}
        if len(part):
            panel.scatter(part[:, 0], part[:, 1], s=area[behind == far], **{**look, **faint})


def _sphere_outline(panel: Axes, projection: Projection) -> None:
    panel.set_axis_off()
    panel.set(aspect="equal", xlim=(-1.16, 1.16), ylim=(-1.16, 1.16))
    inside = "#F6F8FA" if projection.solid else "none"
    panel.add_patch(Circle((0, 0), 1, facecolor=inside, edgecolor=LIGHT_GREY, lw=1, zorder=0))
    angle = np.linspace(0, 2 * np.pi, 241)
    for axis in range(3 if projection.solid else 0):  # the great circles between the axes
        circle = np.insert(np.stack([np.cos(angle), np.sin(angle)]), axis, 0, axis=0).T @ projection.turned.T
        for behind, style in ((True, (0, (1, 3))), (False, "-")):
            part = np.where((circle[:, 2:] < 0) == behind, circle, np.nan)
            panel.plot(part[:, 0], part[:, 1], color=LIGHT_GREY, lw=0.7, ls=style, zorder=0.5)


def _neurons(panel: Axes, projection: Projection, stage: NeuronSnapshot, area_of: DotArea) -> None:
    seen = projection.seen(f"stage {stage.name!r}", stage.directions)
    logs, signs = (np.asarray(values, dtype=np.float64) for values in (stage.log_contributions, stage.signs))
    wanted = f"{len(seen)} log contributions and {len(seen)} signs, one for each direction"
    require(logs.shape == signs.shape == (len(seen),), f"stage {stage.name!r}", f"{logs.shape}, {signs.shape}", wanted)
    for sign, colour, marker, _ in SIGNS:
        chosen = np.sign(signs) == sign
        if not projection.solid and chosen.any():  # spokes, so that a circle does not look empty
            spokes = np.zeros((3 * int(chosen.sum()), 2))
            spokes[1::3], spokes[2::3] = seen[chosen], np.nan
            panel.plot(*spokes.T, color=colour, lw=0.6, alpha=0.35, zorder=1.5)
        look = {"color": colour, "marker": marker, "edgecolors": "white", "lw": 0.4, "alpha": 0.85, "zorder": 4}
        _dots(panel, seen[chosen], area_of(logs[chosen]), **look)
    missing = int(np.isnan(seen).any(1).sum())
    if missing:
        panel.text(0, -1.15, f"{missing} without a direction", ha="center", va="top", color=GREY, fontsize=8.5)


def _legend(
    figure: Figure,
    stages: Sequence[NeuronSnapshot],
    data: dict[int, Array],
    references: list[ReferenceDirections],
    area_of: DotArea,
) -> None:
    """What dots, colours and sizes mean, in one line under the panels."""

    def key(label: str, **look: Any) -> Line2D:
        return Line2D([], [], ls="none", label=label, **look)

    present = {int(sign) for stage in stages for sign in np.unique(np.sign(np.asarray(stage.signs)))}
    keys = [key(name, color=colour, marker=marker, ms=7) for sign, colour, marker, name in SIGNS if sign in present]
    for sign, colour, _, _ in SIGNS:
        if len(data[sign]):
            name = {1: "data, y = +1", -1: "data, y = −1", 0: "data"}[sign]
            keys.append(key(name, color=colour, marker=".", ms=6, alpha=0.45))
    for seen, colour, marker, name in references:
        if len(seen):
            keys.append(key(name, color=colour, marker=marker, mfc="none", mew=1.8, ms=9))
    for log in (area_of.low, area_of.high) if area_of.high > area_of.low else ():
        area, power = float(area_of(np.array([log]))[0]), math.floor(log / math.log(10))
        name = rf"|v||w| = ${math.exp(log - power * math.log(10)):.1f}" + (rf" \cdot 10^{{{power}}}$" if power else "$")
        keys.append(key(name, color=GREY, marker="o", mew=0, ms=math.sqrt(area)))
    columns = len(keys) if len(keys) < 5 else math.ceil(len(keys) / 2)
    place = (0.5, 0.22 / figure.get_figheight())
    figure.legend(handles=keys, ncols=columns, loc="lower center", bbox_to_anchor=place, columnspacing=2.4)
