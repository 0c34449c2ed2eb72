"""Pictures and pages: everything a person looks at after a run."""

from polyrelu.report.figures.training import save_figure, trajectory_figure
from polyrelu.report.summary import RunSummary, summarise

__all__ = ["RunSummary", "save_figure", "summarise", "trajectory_figure"]
