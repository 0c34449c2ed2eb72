"""Figures of Min & Vidal (ICML 2025): six classifiers (2), alignment and distance by steps (5, 6), starts (7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from polyrelu.claims.mv25 import FIG2, FIG5, FIG6, FIG7, GAUSSIAN, HALF, MODELS
from polyrelu.report.figures.style import (
    BLACK,
    BLUE,
    DASHED,
    DOTTED,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILION,
    canvas,
    pale_rules,
)
from polyrelu.report.paper_figures import panels
from polyrelu.report.paper_figures.panels import Array, Results, Run, paper_figure

COLOURS = dict(zip(MODELS, (BLUE, BLUE, VERMILION, BLACK, GREEN, GREEN, PURPLE, ORANGE), strict=True))  # of Fig. 2
END = 600.0  # steps plotted in Figs 5 and 6
MEDIAN: dict[str, Any] = {"middle": np.median, "alpha": 0.3, "lw": 2.2}
RADII = np.linspace(0, 0.8, 401)  # of Fig. 7
KINDS = {"pReLU": (BLUE, "o", "pReLU"), "polynomial": (VERMILION, "s", "regular polynomial")}


@paper_figure(
    id="mv25-fig2",
    title="Figure 2: six classifiers on 12 + 8 sub-classes",
    paper="MV25",
    caption="Robust accuracy left by the strongest attack, bands over seeds; diamonds: published. The paper gives "
    "neither α nor the starts nor when training stopped; dotted: two nets again, from another start.",
    claims=("B8", "B9"),
)
def compared(results: Results) -> Figure:
    """Robust accuracy of six classifiers."""
    runs = panels.runs_of(results, "mv25.robust_accuracy.models")
    figure = canvas((10, 5.2), "Of these only pReLU with p = 3 can hold as far as Bayes (12 + 8 sub-classes)")
    panel = figure.add_axes((0.075, 0.25, 0.9, 0.6))
    radii = np.linspace(0, 1, 2001)
    for model, colour in COLOURS.items():
        mine = panels.select(runs, model=model)
        lines, proven = (panels.shares_beyond(mine, side, radii) for side in ("upper", "lower"))
        style: Any = ":" if model in (GAUSSIAN, HALF) else DASHED if model in ("Bayes", "LogReg") else "-"
        width, name = (4, "pReLU, p = 3") if model == "pReLU" else (1.9, model)
        panels.band(panel, radii, lines, colour, alpha=0.2, lw=width, ls=style, label=name)
        if proven[:, 1:].any():
            panel.fill_between(radii, proven.min(axis=0), lines.max(axis=0), color=colour, alpha=0.35, lw=0)
        panels.published_marks(panel, FIG2.get(model, {}), colour)
    panels.published_key(panel)
    panels.mark_ideal_radii(panel, 20)
    panel.set_xlim(0, 1)
    panels.robustness_axes(panel, "Robust accuracy: what the strongest attack leaves")
    panel.legend(ncols=4, loc="upper left", bbox_to_anchor=(-0.02, -0.18))
    return figure


@paper_figure(
    id="mv25-fig5",
    title="Figure 5: alignment, loss and distance from a random start",
    paper="MV25",
    caption="Neurons turn to the centres while the loss stands still; then norms grow and the net comes within a "
    "hundredth of F⁽³⁾. Plotted distances begin at .53 where the true value is 1. Lines: median seed, bands: "
    "smallest to largest.",
    claims=("B13", "B14", "B17", "B30"),
)
def random_start(results: Results) -> Figure:
    """Fig. 5, and beside it what comes later: the distance rises again, and the norms of each cluster."""
    runs = panels.runs_of(results, "mv25.phases.random_start")
    figure = canvas((10, 7.6), "Random start: directions first, norms later")
    three = panels.grid_of_panels(figure, 3, 1, left=0.06, right=0.6, top=0.9, bottom=0.075, hspace=0.4)
    later, sums = panels.grid_of_panels(figure, 2, 1, left=0.68, right=0.985, top=0.9, bottom=0.075, hspace=0.35)
    _curves(three, runs, FIG5 if runs[0]["profile"] == "paper" else {})
    _later(later, runs)
    _sums(sums, runs)
    return figure


@paper_figure(
    id="mv25-fig6",
    title="Figure 6: the same from a nudged start",
    paper="MV25",
    caption="Moved by 5 % towards a centre as printed, weights of length √D hardly turn (dashed on dotted); moved "
    "so after they are brought to length 1, they align when the published ones do.",
    claims=("B15",),
)
def nudged_start(results: Results) -> Figure:
    """Fig. 6 in the reading that gives its times, and the random start with the same weights beside it."""
    runs = panels.runs_of(results, "mv25.phases.nudged_start")
    *others, plotted = (panels.select(runs, nudge=part) for part in sorted({run["nudge"] for run in runs}))
    figure = canvas((8, 7.6), "Nudged start: neurons that begin nearer to a centre align sooner")
    three = panels.grid_of_panels(figure, 3, 1, left=0.095, right=0.97, top=0.9, bottom=0.075, hspace=0.42)
    _curves(three, plotted, FIG6, "nudged by .05 of a unit weight")
    names = ("random start", "nudged by .05 as printed")
    for other, name, style in zip(others, names, (":", "--"), strict=True):
        steps = np.linspace(0, min(END, *(one["step"][-1] for one in other)), 400)
        medians = [np.interp(steps, run["step"], run["cosine quartiles"][1]) for run in other]
        three[0].plot(steps, np.median(medians, 0), color=GREY, ls=style, lw=1.8, label=name)
    three[0].legend(loc="center right")
    return figure


def _curves(
    three: Sequence[Axes], runs: Sequence[Run], published: Mapping[str, Mapping[float, float]], name: str = ""
) -> None:
    cosine, loss, distance = three
    grid = np.linspace(0, min(END, *(run["step"][-1] for run in runs)), 500)

    def on_grid(lines: Sequence[Sequence[float]]) -> Array:
        """A line of every run at the same steps, (runs, steps)."""
        return np.stack([np.interp(grid, run["step"], line) for run, line in zip(runs, lines, strict=True)])

    low, middle, high = (on_grid([run["cosine quartiles"][row] for run in runs]) for row in range(3))
    cosine.fill_between(grid, low.mean(0), high.mean(0), color=BLUE, alpha=0.15, lw=0)
    panels.band(cosine, grid, middle, BLUE, **MEDIAN, label=name)
    panels.band(loss, grid, on_grid([run["loss"] for run in runs]), BLACK, **MEDIAN)
    steps = np.array(runs[0]["distance step"])
    seen = steps <= END
    far = panels.rows(runs, "distance")[:, seen]
    far = np.hstack([np.ones((len(far), 1)), far])
    panels.band(distance, np.append(0, steps[seen]), far, VERMILION, **MEDIAN)
    cosine.set_title("Alignment: largest cosine to a centre, median (light: quartiles)")
    loss.set_title("Loss, mean of (y − f)²")
    distance.set_title("Distance to the ideal net, sup |f − F⁽³⁾| (1 at the start, where f ≈ 0)")
    for panel, points in zip(three, ("cosine", "loss", "distance"), strict=True):
        panel.set(xlim=(0, END), ylim=(-0.04, 1.08))
        if points in published:
            panel.plot(
                [*published[points]], [*published[points].values()], ls="none", marker="o", mfc="white", mec=BLACK,
                mew=1.2, ms=6, zorder=6, clip_on=False, label="published, read off",
            )  # fmt: skip
    distance.set_xlabel("steps of gradient descent at rate .2 (flow time / .4)")
    if published:
        loss.legend(loc="lower left")


def _later(panel: Axes, runs: Sequence[Run]) -> None:
    steps, far = np.array(runs[0]["distance step"]), panels.rows(runs, "distance")
    panels.band(panel, steps, far, VERMILION, **MEDIAN)
    panel.set(title="Trained on, the distance rises again", xscale="log", yscale="log", xlabel="steps")
    ticks = [tick for tick in (300, 500, 1000, 2000, 5000, 10_000) if steps[0] <= tick <= steps[-1]]
    panel.set_xticks(ticks, [f"{tick}" for tick in ticks])
    panel.minorticks_off()
    best = float(np.median(far, 0).min())
    panel.axhline(best, color=GREY, lw=1, ls=DOTTED)
    panel.text(steps[0], best * 0.9, f"smallest {best:.2g}", color=GREY, fontsize=9, va="top")
    panel.set_ylim(best / 2, 1.6)


def _sums(panel: Axes, runs: Sequence[Run]) -> None:
    sums = panels.rows(runs, "cluster sums")
    clusters = range(1, 1 + sums.shape[1])
    for one in sums:
        panel.plot(clusters, one, "o", color=BLUE, ms=5, alpha=0.6)
    panel.axhline(1, color=BLACK, lw=1, ls=DOTTED)
    panel.set(title="Σ |w|² at each centre, when nearest to F⁽³⁾", xlabel="cluster (5 positive, 5 negative)")
    panel.set_xticks(clusters)
    widest = abs(sums - 1).max()
    panel.set_ylim(1 - 2 * widest, 1 + 2 * widest)


@paper_figure(
    id="mv25-fig7",
    title="Figure 7: regular polynomial nets and large starts",
    paper="MV25",
    caption="Normalised neurons and a small start are both needed. Open markers: published curves, read off, for "
    "D = 2000; their loss, rate and length of training are unknown. Lines: mean of the seeds, faint bands: "
    "smallest to largest.",
    claims=("B10", "B11", "B12"),
)
def initialisation(results: Results) -> Figure:
    """Robust accuracy against radius: what is proven, what is attacked, the unproven between them."""
    runs = panels.runs_of(results, "mv25.robust_accuracy.starts")
    figure = canvas((10, 5.4), "The start decides: only small pReLU nets reach √2/2")
    for column, (size, std) in enumerate((("small", ".01"), ("large", ".5"))):
        panel = figure.add_axes((0.065 + 0.48 * column, 0.3, 0.44, 0.53))
        for kind in KINDS:
            _starts(panel, panels.select(runs, net=f"{kind}, {size}"), kind, FIG7[f"{kind}, {size}"])
        if size == "small" and (later := panels.select(runs, net="polynomial, small, trained on")):
            left = panels.shares_beyond(later, "upper", RADII).mean(0)
            panel.plot(RADII, left, color=VERMILION, lw=1.6, ls=":", label="polynomial, trained on")
        panel.axvline(np.sqrt(0.5), color=BLACK, lw=1, ls=DOTTED)
        panel.text(np.sqrt(0.5), 1.035, "√2/2", ha="center", va="bottom", fontsize=9, color=BLACK)
        panel.set_title(f"{size} start: entries of size {std}", pad=16)
        panel.set(xlim=(0, RADII[-1]), ylim=(-0.02, 1.03), xlabel="radius of the perturbation (ℓ2)")
        pale_rules(panel)
        panel.tick_params(labelcolor=BLACK, color=GREY)
    figure.axes[0].set_ylabel("robust accuracy")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=3, loc="lower center", fontsize=9.5)
    return figure


def _starts(panel: Axes, runs: Sequence[Run], kind: str, published: Mapping[float, float]) -> None:
    colour, marker, name = KINDS[kind]
    lower, upper = (panels.shares_beyond(runs, side, RADII) for side in ("lower", "upper"))
    if len(upper) > 1:
        panel.fill_between(RADII, upper.min(0), upper.max(0), color=colour, alpha=0.08, lw=0)
    panel.plot(RADII, upper.mean(0), color=colour, lw=2.2, label=f"{name}: not broken by any attack")
    panel.fill_between(RADII, lower.mean(0), upper.mean(0), color=colour, alpha=0.25, lw=0, label=f"{name}: unproven")
    panel.plot(
        [*published], [*published.values()], ls="none", marker=marker, mfc="white", mec=colour, ms=5, zorder=6,
        clip_on=False, label=f"{name}: published (D = 2000)",
    )  # fmt: skip
