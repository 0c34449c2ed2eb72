"""What people look at: summaries, figures and the self-contained page."""

from polyrelu.report.figures import save_figure, trajectory_figure
from polyrelu.report.page import Section, write_page
from polyrelu.report.summary import RunSummary, summarise

__all__ = ["RunSummary", "Section", "save_figure", "summarise", "trajectory_figure", "write_page"]
