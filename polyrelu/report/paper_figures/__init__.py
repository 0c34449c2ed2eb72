"""The published figures drawn again: one folder for each paper, whose files each have a tuple FIGURES.

They are collected when FIGURES is first asked for, so that matplotlib is not loaded before.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache

from polyrelu.claims import PAPERS
from polyrelu.report.paper_figures.figure import PaperFigure, Results

__all__ = ["FIGURES", "PaperFigure", "Results"]

FIGURES: tuple[PaperFigure, ...]  # in the order of the papers, then of their ids


def __getattr__(name: str) -> tuple[PaperFigure, ...]:
    if name == "FIGURES":
        return _figures()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _figures() -> tuple[PaperFigure, ...]:
    found: list[PaperFigure] = []
    for file in pkgutil.walk_packages(__path__, f"{__name__}."):
        found += getattr(importlib.import_module(file.name), "FIGURES", ())
    assert len({figure.id for figure in found}) == len(found), "two figures share an id"
    return tuple(sorted(found, key=_order))


def _order(figure: PaperFigure) -> tuple[int, list[str | int]]:
    parts = re.split(r"(\d+)", figure.id)  # text and numbers by turns: fig2 before fig10
    return list(PAPERS).index(figure.paper), [int(part) if part.isdigit() else part for part in parts]
