"""Pictures and pages: everything a person looks at after a run."""

from polyrelu.report.figures.style import save_figure
from polyrelu.report.figures.training import trajectory_figure
from polyrelu.report.summary import RunSummary, summarise

__all__ = ["RunSummary", "save_figure", "summarise", "trajectory_figure"]
