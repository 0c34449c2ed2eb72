"""What people look at: summaries, figures and the self-contained page.

Names are imported when first used: a summary does not wait for matplotlib, nor the command line for torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyrelu.report.figures import save_figure, trajectory_figure
    from polyrelu.report.page import Section, write_page
    from polyrelu.report.summary import RunSummary, summarise

_FILES = {
    "RunSummary": "summary",
    "Section": "page",
    "save_figure": "figures",
    "summarise": "summary",
    "trajectory_figure": "figures",
    "write_page": "page",
}

__all__ = [
    "RunSummary",
    "Section",
    "save_figure",
    "summarise",
    "trajectory_figure",
    "write_page",
]


def __getattr__(name: str) -> Any:
    if name in _FILES:
        value = getattr(importlib.import_module(f"polyrelu.report.{_FILES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'polyrelu.report' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
