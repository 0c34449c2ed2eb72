"""What an inspection says about margins, KKT points and the phases of training, each measurement in one sentence."""

from __future__ import annotations

import math

import numpy as np

from polyrelu.bias import LARGEST_LOSS, HomogeneousLayer, kkt, margin_history, margins, phases
from polyrelu.errors import InputError
from polyrelu.report import power_text
from polyrelu.workflows.inspect.inputs import InspectedNet
from polyrelu.workflows.inspect.table import Measurement, at_most, counted, does_not_apply, fields_of, short

CLOSE_RESIDUAL = 0.05  # KKT residuals below which a net is called close to a KKT point
Measurements = list[Measurement]


def homogeneity(subject: InspectedNet) -> Measurements:
    """The degrees of the layers."""
    degree = math.fsum(layer.degree for layer in subject.layers)
    each = ", ".join(f"{layer.name}: {layer.degree:g}" for layer in subject.layers)
    words = f"weights times c multiply the answer by c^{degree:g} ({each})"
    numbers = {"degree": degree, "layers": {layer.name: layer.degree for layer in subject.layers}}
    return [Measurement("homogeneity", f"degree {degree:g}", words, numbers)]


def margin_sizes(subject: InspectedNet) -> Measurements:
    """Normalised, product and smoothed margin, and the loss."""
    found = margins(subject.net, subject.data, subject.loss, _layers(subject))
    names = ("smallest", "sample", "normalised", "product", "smoothed", "lower", "log_rho", "log10_loss")
    numbers = {"loss": subject.loss, **fields_of(found, *names)}
    state = "every row is right" if found.separated else "not separated yet"
    words = (
        f"{state}: the smallest margin, of row {found.sample}, is {short(found.smallest)}, or "
        f"{short(found.normalised)} for weights of norm 1"
    )
    rows = [Measurement("normalised margin", short(found.normalised), words, numbers)]
    words = f"with every layer of norm 1 the smallest margin is {short(found.product)}"
    rows.append(Measurement("product-norm margin", short(found.product), words))
    if found.reason:
        rows.append(does_not_apply("smoothed margin", found.reason))
    else:
        words = (
            f"gradient flow on the {subject.loss} loss cannot lower it; it lies between {short(found.lower)} and the "
            "normalised margin"
        )
        rows.append(Measurement("smoothed margin", short(found.smoothed), words))
    mean = power_text(found.log10_loss)
    return [*rows, Measurement("loss", mean, f"The mean {subject.loss} loss on these rows is {mean}.")]


def kkt_residual(subject: InspectedNet) -> Measurements:
    """The KKT residual."""
    found = kkt(subject.net, subject.data, layers=_layers(subject))
    best = found.best
    support = len(set(best.support.tolist()))
    close = best.stationarity < CLOSE_RESIDUAL and best.slackness < CLOSE_RESIDUAL
    words = (
        f"the net is {'close' if close else 'not close'} to a stationary point of the largest margin (0 and 0): "
        f"gradients of {counted(support, 'row')} leave {at_most(best.stationarity)} of its weights unexplained, with "
        f"slackness {at_most(best.slackness)}"
    )
    if found.free is not None:
        words += (
            f"; with {counted(found.kinks, 'gate')} near the kink left free (p = 1), "
            f"{at_most(found.free.stationarity)} and {at_most(found.free.slackness)}"
        )
    numbers = {
        **fields_of(best, "stationarity", "slackness"),
        "support": support,
        **fields_of(found, "candidates", "left_out", "kinks", "kinks_left"),
        "free_stationarity": None if found.free is None else found.free.stationarity,
    }
    value = f"{short(best.stationarity)} and {short(best.slackness)}"
    return [Measurement("KKT residual", value, words, numbers)]


def order_of_phases(subject: InspectedNet) -> Measurements:
    """Directions first, norms later?"""
    found = phases(subject.history)
    turned, fell = ("never" if at is None else _time(at.log_time) for at in (found.aligned, found.fallen))
    words = (
        f"the neurons had turned to centres or averages (median cosine 0.9, to stay) {turned}; the loss had "
        f"fallen by a tenth {fell}"
    )
    numbers = {
        "aligned": None if found.aligned is None else found.aligned.time,
        "fallen": None if found.fallen is None else found.fallen.time,
        **fields_of(found, "ratio", "grown", "alignment_first"),
    }
    value = {True: "directions first", False: "loss first", None: "neither happened"}[found.alignment_first]
    return [Measurement("phases of training", value, words, numbers)]


def margin_over_time(subject: InspectedNet) -> Measurements:
    """Does the smoothed margin ever fall?"""
    trajectory = subject.history
    found = margin_history(trajectory, _layers(subject))
    below = LARGEST_LOSS[trajectory.settings["loss"]][0]
    if found.monotone is None:
        raise InputError(f"the summed loss never came below {below}, where a smoothed margin begins.")
    fall = found.monotone.largest_fall
    ever = "never fell" if found.monotone.ok else f"fell, by {at_most(-100 * math.expm1(-fall))} % at the most"
    moments = int((~np.isnan(found.log_smoothed)).sum())
    words = f"the smoothed margin {ever}, over {counted(moments, 'recorded moment')} with a summed loss below {below}"
    numbers = {"ok": found.monotone.ok, "largest_fall": fall, "moments": moments}
    return [Measurement("margin over time", ever.split(",")[0], words, numbers)]


def _layers(subject: InspectedNet) -> tuple[HomogeneousLayer, ...]:
    try:
        return subject.layers
    except InputError:
        raise InputError("it needs weights in which the net is homogeneous (see homogeneity).") from None


def _time(log_time: float) -> str:
    return f"by flow time {power_text(log_time / math.log(10))}"
