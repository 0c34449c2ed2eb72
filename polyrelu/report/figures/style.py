"""What every figure shares: colours that all eyes tell apart (Okabe & Ito), settings of matplotlib, files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from polyrelu.checks import checked
from polyrelu.errors import InputError, require
from polyrelu.files import write_atomically

BLUE, VERMILION = "#0072B2", "#D55E00"  # of sub-class centres and of class averages, where both are drawn
GREEN, PURPLE, ORANGE, YELLOW = "#009E73", "#CC79A7", "#E69F00", "#F0E442"
BLACK, GREY, LIGHT_GREY = "#1A1A1A", "#666666", "#B5B5B5"
DASHED, DOTTED = (0, (4, 2)), (0, (2, 2))
SETTINGS: Any = {
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 9.5,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.hashsalt": "polyrelu",  # the same names inside the file every time
}


@contextmanager
def figure_style() -> Iterator[None]:
    """The settings of matplotlib that every figure is drawn and written with; also a decorator."""
    with rc_context(SETTINGS):
        yield


def canvas(size: tuple[float, float], title: str) -> Figure:
    """A white figure with its title top left; ``size`` in inches."""
    figure = Figure(figsize=size, dpi=100, facecolor="white")
    FigureCanvasAgg(figure)
    figure.suptitle(title, x=0.012, y=0.985, ha="left", va="top", fontsize=13, fontweight="bold", color=BLACK)
    return figure


def pale_rules(panel: Axes) -> None:
    """Horizontal lines behind everything, to read heights by."""
    panel.grid(axis="y", color="#E6E6E6", lw=0.8)
    panel.set_axisbelow(True)


@checked
def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write a .png or .svg, whole or not at all; the same figure gives the same bytes."""
    kind = Path(path).suffix.lower().removeprefix(".")
    require(kind in ("png", "svg"), "path", path, "a name that ends in .png or .svg")
    metadata = {"Software": None} if kind == "png" else {"Date": None, "Creator": None}

    def write(temporary: Path) -> None:
        try:
            with figure_style():
                figure.savefig(temporary, format=kind, dpi=150, metadata=metadata)
        except (RuntimeError, OverflowError, ValueError) as error:  # numbers near the end of what a float holds
            raise InputError(
                f"figure={path}: cannot be drawn ({error}): expected numbers that fit on an axis."
            ) from None

    return write_atomically(path, write)
