"""Figures of nets, data, training runs and robustness curves; importing this loads matplotlib."""

from polyrelu.report.figures.heatmap import correlation_map
from polyrelu.report.figures.margins import margin_figure, phase_timeline
from polyrelu.report.figures.neurons import contribution_bars, cosine_map, lambda_matrix
from polyrelu.report.figures.robustness import robust_figure
from polyrelu.report.figures.sphere import NeuronSnapshot, sphere_figure
from polyrelu.report.figures.style import save_figure
from polyrelu.report.figures.training import trajectory_figure

__all__ = [
    "NeuronSnapshot",
    "contribution_bars",
    "correlation_map",
    "cosine_map",
    "lambda_matrix",
    "margin_figure",
    "phase_timeline",
    "robust_figure",
    "save_figure",
    "sphere_figure",
    "trajectory_figure",
]
