"""The published figures drawn again: a module for each paper, or a folder of them. FIGURES are all that they define."""

from __future__ import annotations

import importlib
import pkgutil
import re

from polyrelu.claims import PAPERS
from polyrelu.report.paper_figures.panels import PaperFigure, Results

__all__ = ["FIGURES", "PaperFigure", "Results"]


def _collected() -> tuple[PaperFigure, ...]:
    modules = [importlib.import_module(file.name) for file in pkgutil.walk_packages(__path__, f"{__name__}.")]
    found = [one for module in modules for one in vars(module).values() if isinstance(one, PaperFigure)]
    assert len({figure.id for figure in found}) == len(found), "two figures share an id"
    return tuple(sorted(found, key=_order))


def _order(figure: PaperFigure) -> tuple[int, list[str | int]]:
    parts = re.split(r"(\d+)", figure.id)  # text and numbers by turns: fig2 before fig10
    return list(PAPERS).index(figure.paper), [int(part) if part.isdigit() else part for part in parts]


FIGURES = _collected()  # in the order of the papers, then of their ids
