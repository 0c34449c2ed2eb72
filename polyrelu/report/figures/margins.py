"""Training over time: directions first and norms later, and margins that grow while the loss leaves every float."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from polyrelu.checks import checked
from polyrelu.errors import require
from polyrelu.report.figures.heatmap import float_array
from polyrelu.report.figures.style import BLACK, BLUE, DOTTED, GREEN, GREY, VERMILION, canvas, figure_style
from polyrelu.report.figures.timeline import PHASES, VISIBLE, Timeline, decade_ticks, tint_phases

TIME_AFTER_FALL = 2.5  # how far the picture of the phases goes beyond the fall of the loss, in units of its time
MOST_DECADES = 30  # of time; beyond, decades are counted in decades
Array = NDArray[np.float64]


@checked
def phase_timeline(
    log_time: ArrayLike,
    alignment: ArrayLike,
    log_loss: ArrayLike,
    log_contributions: ArrayLike | None = None,
    *,
    aligned: float | None = None,
    fallen: float | None = None,
    title: str = "",
) -> Figure:
    """Direction first, norm later (B13): what has turned, what has grown and what is left of the loss, all from 0 to 1.

    Natural logs of flow time and loss (T,), median cosine of the neurons to what they end at (T,), and natural logs of
    |v_j| |w_j| (T, h), of which the sum is drawn, relative to its largest. ``aligned``, ``fallen``: flow times at which
    the directions have settled and the loss begins to fall, None if they never do. The axis ends at 2.5 ``fallen``.
    """
    log_time, alignment, log_loss = _series(log_time=log_time, alignment=alignment, log_loss=log_loss)
    sizes = None if log_contributions is None else np.asarray(log_contributions, dtype=np.float64)
    good = sizes is None or (sizes.ndim == 2 and len(sizes) == len(log_time))
    require(good, "log_contributions", "another shape", f"{len(log_time)} rows, one for each moment")
    for name, moment in (("aligned", aligned), ("fallen", fallen)):
        require(moment is None or 0 <= moment < math.inf, name, moment, "a flow time or None")
    last = len(log_time) if not fallen else int(np.searchsorted(log_time, math.log(TIME_AFTER_FALL * fallen))) + 1
    log_time, alignment, log_loss = log_time[:last], alignment[:last], log_loss[:last]
    curves = [("directions turned:\nmedian cosine", BLUE, alignment)]
    if sizes is not None and np.isfinite(sizes[:last]).any():
        total = np.logaddexp.reduce(sizes[:last], axis=1)
        curves.append(("norms grown:\nsum of |v||w|", VERMILION, np.exp(total - np.nanmax(total))))
    curves.append(("loss left", BLACK, np.exp(log_loss - log_loss[0])))
    end = float(log_time[-1])
    plain = end < 700 and (not aligned or aligned >= VISIBLE * math.exp(end))  # else the turning would be too narrow
    line = Timeline(np.exp(log_time), "linear") if plain else Timeline.in_decades(log_time, most=MOST_DECADES)
    with figure_style():
        figure = canvas((10, 4.8), title)
        panel = figure.add_axes((0.065, 0.13, 0.73, 0.7))
        line.set_axis(panel)
        x = line.place(log_time)
        for _, colour, values in curves:
            panel.plot(x, values, color=colour, lw=2.2, marker="o" if len(x) == 1 else "", clip_on=len(x) > 1)
        ends = [float(values[np.isfinite(values)][-1]) if np.isfinite(values).any() else 0.0 for _, _, values in curves]
        for (name, colour, _), end, height in zip(curves, ends, _below(ends, 0.17), strict=True):
            panel.annotate(
                f"{name} {end:.2f}", (1.015, height), xycoords=("axes fraction", "data"), color=colour, va="center",
                fontweight="bold", fontsize=9.5, annotation_clip=False,
            )  # fmt: skip
        panel.set_ylim(min(-0.03, float(np.nanmin(alignment, initial=0)) - 0.03), 1.06)
        panel.set_yticks([0, 0.25, 0.5, 0.75, 1])
        _phases(panel, line, aligned, fallen)
    return figure


def margin_figure(
    log10_loss: ArrayLike,
    normalised: ArrayLike,
    smoothed: ArrayLike | None = None,
    product: ArrayLike | None = None,
    *,
    log_time: ArrayLike | None = None,
    clock: ArrayLike | None = None,
    samples: int = 1,
    threshold: float = 1.0,
    title: str = "",
) -> Figure:
    """Loss and margins over time (Lyu & Li, ICLR 2020), at every moment (T,).

    ``log10_loss``: of the mean loss over ``samples``; ``normalised`` q_min/|theta|^L, ``smoothed`` and ``product`` norm
    margins on a log axis, where they are positive. Against ``log_time`` (natural log of flow time) or a ``clock``.
    From where the summed loss falls below ``threshold`` (1; log 2 for logistic losses) the smoothed margin cannot fall.
    """
    require((log_time is None) != (clock is None), "log_time, clock", "both or none", "exactly one of them")
    kinds: dict[str, tuple[Any, str, str, str, float]] = {
        "normalised": (normalised, "normalised by all parameters", BLUE, "-", 4.0),
        "smoothed": (smoothed, "smoothed", VERMILION, "-", 1.8),
        "product": (product, "normalised layer by layer", GREEN, "--", 1.8),
    }
    given = {name: kind[0] for name, kind in kinds.items() if kind[0] is not None}
    time: dict[str, Any] = {"log_time": log_time} if log_time is not None else {"clock": clock}
    loss, *margins, moments = _series(log10_loss=log10_loss, **given, **time)
    line = Timeline.in_decades(moments, most=MOST_DECADES) if clock is None else Timeline(moments, "linear")
    kept = np.append(np.diff(line.x) > 0, True)  # of moments before the axis begins, the last
    line = Timeline(line.x[kept], line.scale)
    loss, margins = np.where(np.isfinite(loss), loss, np.nan)[kept], [margin[kept] for margin in margins]
    with figure_style():
        figure = canvas((10, 6.4), title)
        edges = {"left": 0.085, "right": 0.97, "top": 0.86, "bottom": 0.09, "hspace": 0.3}
        top, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1, 1.3), gridspec_kw=edges)
        marker = "o" if len(loss) == 1 else ""
        top.set_title("Training loss, mean over the samples")
        top.plot(line.x, loss, color=BLACK, lw=2, marker=marker, clip_on=not marker)
        _decades(top, loss)
        lower.set_title("Margins")
        logs = [np.log10(np.where(margin > 0, margin, np.nan)) for margin in margins]
        for values, name in zip(logs, given, strict=True):
            _, label, colour, style, width = kinds[name]
            lower.plot(line.x, values, color=colour, ls=style, lw=width, marker=marker, clip_on=not marker, label=label)
        if np.isfinite(logs).any():
            _decades(lower, np.concatenate(logs))
            lower.legend(loc="lower right", bbox_to_anchor=(1.005, 0.985), ncols=3, fontsize=10, borderaxespad=0.2)
        else:
            lower.set_yticks([])
            words = "no margin is positive: the data are not separated"
            lower.text(0.5, 0.5, words, transform=lower.transAxes, ha="center", color=GREY)
        _mark_passing(top, lower, line, loss + math.log10(samples) < math.log10(threshold), margins[0] > 0, threshold)
        line.set_axis(lower)
        if clock is not None:
            lower.set_xlabel("steps")
    return figure


def _mark_passing(
    top: Axes, lower: Axes, line: Timeline, below: NDArray[np.bool_], right: NDArray[np.bool_], threshold: float
) -> None:
    """A line where the summed loss passes the threshold, a tint until the data are separated."""
    if below.any() and not below[0]:
        moment = float(line.x[below.argmax()])
        for panel in (top, lower):
            panel.axvline(moment, color=GREY, lw=1, ls=DOTTED, zorder=1)
        share = (moment - line.x.min()) / (np.ptp(line.x) or 1)
        side = ("left", 5) if share < 0.6 else ("right", -5)
        words = f"summed loss below {threshold:.3g}"
        top.annotate(
            words, (moment, 0.05), xycoords=("data", "axes fraction"), xytext=(side[1], 0), textcoords="offset points",
            ha=side[0], va="bottom", color=GREY, fontsize=9,
        )  # fmt: skip
    if right.any() and not right[0]:
        end = float(line.x[right.argmax()])
        for panel in (top, lower):
            panel.axvspan(float(line.x[0]), end, color=PHASES[2][1], lw=0, zorder=0)
        top.annotate(
            "not separated yet", (float(line.x[0]), 0.2), xycoords=("data", "axes fraction"), xytext=(5, 0),
            textcoords="offset points", color=GREY, fontsize=9,
        )  # fmt: skip


def _phases(panel: Axes, line: Timeline, aligned: float | None, fallen: float | None) -> None:
    """Spans of the phases with their names, or words on why there are none."""
    low, high = panel.get_xlim()
    times = [max(moment, 1e-300) for moment in (aligned, fallen) if moment is not None]
    moments = line.place(np.log(times)).tolist()
    for moment in moments:
        panel.axvline(moment, color=GREY, lw=0.9, ls=DOTTED, zorder=1)
    if aligned is None or fallen is None or aligned >= fallen:
        never = "the directions never settle" if aligned is None else "the loss never falls"
        words = never if aligned is None or fallen is None else "the loss falls before the directions settle"
        panel.set_title(words, color=GREY)
        return
    tint_phases([panel], [low, *moments, high], 1.015, (0.06, 0.14), fontsize=10, transform=panel.get_xaxis_transform())
    panel.set_xlim(low, high)


def _decades(panel: Axes, values: Array) -> None:
    """Limits and ticks of an axis of decimal logs."""
    finite = values[np.isfinite(values)]
    if finite.size:
        low, high = float(finite.min()), float(finite.max())
        room = 0.06 * (high - low) or 0.1
        decade_ticks(panel.yaxis, low, high)
        if high - low < 3 and low > -12:
            digits = (1, 2, 5) if high - low > 0.7 else (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
            ticks = [(m, k) for k in range(math.floor(low) - 1, math.ceil(high) + 1) for m in digits]
            ticks = [(m, k) for m, k in ticks if low - room <= math.log10(m) + k <= high + room]
            names = [f"{m * 10.0**k:.6g}" if -4 <= k < 5 else rf"${m:g}\cdot10^{{{k}}}$" for m, k in ticks]
            panel.yaxis.set_ticks([math.log10(m) + k for m, k in ticks], labels=names)
        panel.set_ylim(low - room, high + room)


def _below(heights: list[float], gap: float) -> list[float]:
    """The same heights, moved down just enough to be ``gap`` apart."""
    found, last = list(heights), math.inf
    for number in sorted(range(len(heights)), key=lambda number: -heights[number]):
        found[number] = last = min(heights[number], last - gap)
    return found


def _series(**given: ArrayLike) -> list[Array]:
    """All as float64 (T,), of one length, not empty."""
    arrays = {name: float_array(name, values) for name, values in given.items()}
    count = max(array.size for array in arrays.values())
    require(count > 0, next(iter(arrays)), "empty", "at least one moment of training")
    for name, array in arrays.items():
        require(array.shape == (count,), name, f"shape {array.shape}", f"({count},), one number for each moment")
    return list(arrays.values())
