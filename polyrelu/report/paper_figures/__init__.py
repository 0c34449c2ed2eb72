"""The published figures drawn again; a file here with a tuple FIGURES adds its own. Collected when first asked for."""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache

from polyrelu.claims.papers import PAPERS
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
    for file in pkgutil.iter_modules(__path__):
        found += getattr(importlib.import_module(f"{__name__}.{file.name}"), "FIGURES", ())
    assert len({figure.id for figure in found}) == len(found), "two figures share an id"
    return tuple(sorted(found, key=_order))


def _order(figure: PaperFigure) -> tuple[int, list[str | int]]:
    parts = re.split(r"(\d+)", figure.id)  # text and numbers by turns: fig2 before fig10
    return list(PAPERS).index(figure.paper), [int(part) if part.isdigit() else part for part in parts]
