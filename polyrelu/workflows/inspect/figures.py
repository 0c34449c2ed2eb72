"""The pictures of an inspection: which ones, of what; None where there is nothing to draw."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure

from polyrelu.bias import LARGEST_LOSS, correlation, margin_history, median_alignment, neurons_of, phases
from polyrelu.errors import InputError
from polyrelu.report.figures import (
    NeuronSnapshot,
    contribution_bars,
    correlation_map,
    cosine_map,
    lambda_matrix,
    margin_figure,
    phase_timeline,
    sphere_figure,
)
from polyrelu.workflows.inspect.inputs import InspectedNet, some_rows

POINTS, MAP_ROWS = 300, 600  # rows drawn on the sphere and in the correlation map


def contributions(subject: InspectedNet) -> Figure:
    """|v||w| of the neurons in order."""
    found, title = subject.alignment, _title("Sizes of the neurons", subject.name)
    return contribution_bars(found.log_contributions.numpy(), found.dominant.numpy(), title=title)


def cosines(subject: InspectedNet) -> Figure:
    """What the largest neurons point at."""
    found = subject.alignment
    assert found.centres is not None
    return cosine_map(
        found.averages.numpy(), found.centres.numpy(), found.log_contributions.numpy(),
        title=_title("What the neurons point at", subject.name, subject.estimated),
    )  # fmt: skip


def coefficients(subject: InspectedNet) -> Figure:
    """The neurons as sums of centres, the carriers' rows only."""
    found = subject.decoupling.decomposition
    heavy = found.share.argsort(descending=True, stable=True)
    heavy = heavy[: int((found.share[heavy].cumsum(0) < 0.99).sum()) + 1]
    return lambda_matrix(
        found.coefficients[heavy].numpy(), found.own_mask()[heavy].numpy(),
        names=[rf"$\mu_{{{k + 1}}}$" for k in subject.order],
        title=_title("Neurons that count, as sums of centres", subject.name, subject.estimated),
    )  # fmt: skip


def correlations(subject: InspectedNet) -> Figure:
    """Cosines between rows of the data."""
    found = correlation(subject.data, most=MAP_ROWS, seed=subject.seed)
    names = list(found.names)
    if subject.data.centres is not None:  # as in the other pictures
        names = [rf"$\mu_{{{int(name.split()[1]) + 1}}}$" if name.startswith("cluster") else name for name in names]
    title = _title("Cosines between rows of the data", subject.data.name)
    return correlation_map(found.matrix.numpy(), found.group.numpy(), names, title=title)


def sphere(subject: InspectedNet) -> Figure:
    """The neurons as they are now; in up to 3 dimensions, or seen in the span of 2 or 3 centres."""
    net, dim, K = subject.net, subject.data.dim, len(subject.subclasses.centres)
    if not 2 <= dim <= 3 and not 2 <= K <= 3:
        raise InputError(f"{dim} dimensions and {K} centres: a sphere is drawn for 2 or 3 of either.")
    neurons = neurons_of(net)
    shift = getattr(net, "centre", None)
    origin = np.zeros(dim) if shift is None else shift.double().numpy()
    rows = some_rows(subject.data, POINTS, subject.seed)
    signs = np.zeros(len(neurons.directions))
    if neurons.owner is not None and subject.data.binary:
        signs = neurons.owner.numpy()
    stage = NeuronSnapshot("now", neurons.directions.numpy(), neurons.log_contribution.numpy(), signs)
    surface = "circle" if 2 in (dim, K if dim > 3 else 3) else "sphere"
    return sphere_figure(
        [stage], rows.rows().double().numpy() - origin, rows.y.numpy() if rows.binary else None,
        subject.subclasses.centres.numpy() - origin, subject.data.class_means().double().numpy() - origin,
        title=_title(f"The neurons on the {surface}", subject.name, subject.estimated),
    )  # fmt: skip


def phase_line(subject: InspectedNet) -> Figure:
    """Directions, norms and loss over time."""
    history, found = subject.history.history, phases(subject.history)
    moments = [None if moment is None else moment.time for moment in (found.aligned, found.fallen)]
    if any(moment is not None and math.isinf(moment) for moment in moments):
        raise InputError("the flow times of the phases are too large to draw.")
    return phase_timeline(
        history.log_time, median_alignment(history), history.log_loss, history.log_contribution,
        aligned=moments[0], fallen=moments[1], title=_title("Phases of training", subject.name),
    )  # fmt: skip


def margin_line(subject: InspectedNet) -> Figure:
    """Loss and margins over time."""
    trajectory = subject.history
    found = margin_history(trajectory, subject.layers)
    smoothed = None if found.monotone is None else np.exp(found.log_smoothed)
    return margin_figure(
        found.log10_loss, found.normalised, smoothed, log_time=trajectory.history.log_time,
        samples=trajectory.settings["samples"], threshold=LARGEST_LOSS[trajectory.settings["loss"]][1],
        title=_title("Loss and margins over time", subject.name),
    )  # fmt: skip


def _title(what: str, name: str, estimated: bool = False) -> str:
    """Two lines that fit above the narrowest picture."""
    guess = ", sub-classes estimated" if estimated else ""
    most = 44 - len(guess)
    return f"{what}\n{name if len(name) <= most else name[: most - 1] + '…'}{guess}"
