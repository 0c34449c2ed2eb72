"""The figures of all papers are found in their modules."""

import importlib
import sys

import pytest

from polyrelu.report import paper_figures


def test_figures_are_collected_from_their_folder_in_the_order_of_the_papers(tmp_path, monkeypatch):
    line = "PaperFigure({!r}, '', {!r}, '', (), None)".format
    head = "from polyrelu.report.paper_figures import PaperFigure\n"
    (tmp_path / "one.py").write_text(f"{head}one = {line('fig10', 'MV24')}\nother = {line('table', 'LL20')}")
    (tmp_path / "two.py").write_text(f"{head}one = {line('fig2', 'MV24')}")
    monkeypatch.setattr(paper_figures, "__path__", [str(tmp_path)])
    importlib.invalidate_caches()
    try:
        assert [figure.id for figure in paper_figures._collected()] == ["fig2", "fig10", "table"]
    finally:
        for name in ("one", "two"):
            sys.modules.pop(f"{paper_figures.__name__}.{name}", None)
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        paper_figures.other  # noqa: B018
