"""What an inspection says about any net and about the data, each measurement in one sentence."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from polyrelu.bias import (
    correlation,
    cosine_to_svm,
    feature_stable_rank,
    gradient_to_margin,
    lipschitz,
    lipschitz_radius,
    simplicity,
    svm_direction,
    weight_stable_ranks,
)
from polyrelu.errors import InputError
from polyrelu.nets import LogisticRegression
from polyrelu.robust import margin_of
from polyrelu.workflows.inspect.inputs import InspectedNet
from polyrelu.workflows.inspect.table import (
    Measurement,
    at_least,
    at_most,
    cosine,
    does_not_apply,
    fields_of,
    of,
    short,
    unit,
)

Measurements = list[Measurement]


def accuracy(subject: InspectedNet) -> Measurements:
    """How many rows are right."""
    right = 0
    for start, block in subject.data.blocks():
        y = subject.data.y[start : start + len(block)]
        with torch.no_grad():
            right += int((margin_of(subject.net(block), y) > 0).sum())
    n = len(subject.data)
    words = f"{of(right, n, 'row')} {'are' if n > 1 else 'is'} classified as labelled"
    value = "100 %" if right == n else f"{math.floor(1000 * right / n) / 10:g} %"
    return [Measurement("accuracy on these rows", value, words, {"right": right, "rows": n})]


def subclasses(subject: InspectedNet) -> Measurements:
    """The sub-classes everything else refers to."""
    found = subject.subclasses
    words = "the data name their sub-classes" + ("" if found.exact else "; their centres are means of their rows")
    if subject.estimated:
        words = (
            "no sub-classes are known, so they were estimated: clusters in each class that half of its rows find too"
        )
    numbers = {"counts": found.counts, "sizes": found.sizes, "estimated": subject.estimated}
    return [Measurement("sub-classes", "+".join(map(str, found.counts)), words, numbers)]


def universal_radius(subject: InspectedNet) -> Measurements:
    """The universal direction."""
    found = subject.universal
    predicted = float(found.predicted.median())
    there = f"would break by {short(predicted)}" if predicted > 0 else "would be wrong at half of them as they are"
    words = f"{breaks(subject)}; a net of class averages {there}"
    value = "never" if math.isinf(found.radius) else short(found.radius)
    numbers = {"radius": found.radius, "predicted": predicted, "found": found.measured}
    numbers["predicted_each"] = found.predicted
    return [Measurement("universal radius", value, words, numbers)]


def breaks(subject: InspectedNet) -> str:
    """Where the net breaks along the universal direction, as a clause that holds at every radius."""
    radius, way = subject.universal.radius, "direction" if subject.data.binary else "directions (one a pair of classes)"
    if math.isinf(radius):
        return f"fewer than half of the centres break along the universal {way}, up to four times their length"
    if radius == 0:
        return "at least half of the centres are misclassified as they are"
    return f"moved along the universal {way}, half of the centres or more break by radius {at_most(radius)}"


def slope_over_margin(subject: InspectedNet) -> Measurements:
    """Gradient over margin at the centres."""
    centres, labels = subject.subclasses.centres, subject.subclasses.labels
    ratio = float(gradient_to_margin(subject.net, centres, labels).median())
    if math.isinf(ratio):
        raise InputError("half of the centres or more are misclassified, their margins have no such ratio.")
    words = f"at a typical centre the slope is {short(ratio)} times the margin"
    words += f", so straight on it breaks at {short(1 / ratio)}" if ratio > 0 else ": the net is flat there"
    return [Measurement("slope over margin", short(ratio), words, {"median": ratio})]


def distance_to_linear(subject: InspectedNet) -> Measurements:
    """Distance to the best linear map, and where that points."""
    net, data = subject.net, subject.data
    affine = getattr(net, "centre", None) is not None or any("bias" in name for name, _ in net.named_parameters())
    few = len(data) <= 2 * data.dim
    found = simplicity(net, data, offset=affine, probes=4 * data.dim if few else 0, seed=subject.seed)
    residual = found.probe_residual if few and found.probe_residual is not None else found.residual
    size = unit(residual) if residual <= 1 else short(residual)
    where = "Gaussian points of the rows' covariance" if few else "these rows"
    words = (
        f"the best {'affine' if affine else 'linear'} map misses {size} of the net's size on {where}, "
        f"and on the rows gives its class for {math.floor(1000 * found.agreement) / 10:g} %"
    )
    numbers = {"residual": residual, "on_rows": found.residual, **fields_of(found, "agreement", "evenness")}
    return [Measurement("distance to linear", size, words, numbers), _cosine_to_svm(subject, found.map[0], affine)]


def _cosine_to_svm(subject: InspectedNet, best_map: Tensor, affine: bool) -> Measurement:
    """Cosine of the net's weights, or of its best linear map, to the widest separator."""
    net, data, name = subject.net, subject.data, "cosine to the SVM"
    if not data.binary:
        return does_not_apply(name, f"a separator belongs to labels +1/-1, these data have {data.classes} classes")
    try:
        if isinstance(net, LogisticRegression):
            value, which = cosine_to_svm(net, data), "its weights make"
        else:
            way = best_map / best_map.norm()
            value, which = float(way @ svm_direction(data, affine).direction), "its best linear map makes"
    except InputError as error:
        why = str(error).removeprefix(f"data={data.name}: ").replace("; bias=True allows an offset", "")
        return does_not_apply(name, why)
    words = f"with the widest separator of the data {which} a cosine of {cosine(value)}"
    return Measurement(name, cosine(value), words, {"cosine": value})


def stable_ranks(subject: InspectedNet) -> Measurements:
    """Stable ranks."""
    try:
        rank = feature_stable_rank(subject.net, subject.data)
        words = f"what the last layer sees of these rows has the size of {short(rank)} equal directions"
        features = Measurement("stable rank, features", short(rank), words, {"rank": rank})
    except InputError as error:
        features = does_not_apply("stable rank, features", str(error))
    each = weight_stable_ranks(subject.net)
    words = "the weights have the size of so many equal directions: "
    words += ", ".join(f"{name} {short(value)}" for name, value in each.items())
    value = " / ".join(short(value) for value in each.values())
    return [features, Measurement("stable rank, weights", value, words, each)]


def lipschitz_constant(subject: InspectedNet) -> Measurements:
    """Lipschitz constant and what it proves."""
    centre = getattr(subject.net, "centre", None)
    origin = torch.zeros(1).double() if centre is None else centre.double()
    reach = max(float((block.double() - origin).norm(dim=1).max()) for _, block in subject.data.blocks())
    if reach == 0:
        raise InputError("all rows are the net's centre.")
    found = lipschitz(subject.net, reach)
    proven = float(lipschitz_radius(subject.net, subject.data).median())
    value = short(found.value) if found.kind == "exact" else f"at most {at_most(found.value)}"
    words = f"as far out as these rows lie the steepest slope of a margin is {value}; this alone proves " + (
        f"a radius of {at_least(proven)} or more for half of the rows" if proven > 0 else "nothing for half of the rows"
    )
    numbers = {**fields_of(found, "value", "attained", "kind"), "reach": reach, "median_radius": proven}
    return [Measurement("Lipschitz constant", value.replace("at most", "≤"), words, numbers)]


def data_correlation(subject: InspectedNet) -> Measurements:
    """Cosines between rows."""
    found = correlation(subject.data, most=1, seed=subject.seed)
    group = "sub-class" if subject.data.cluster is not None else "class"
    words = (
        f"two rows of one {group} have a mean cosine of {short(found.within)}, rows of different ones "
        f"{short(found.between)} (the mean row subtracted)"
    )
    numbers = {"within": found.within, "between": found.between, "means": found.means, "groups": found.names}
    value = f"{short(found.within)} / {short(found.between)}"
    return [Measurement("correlation of the data", value, words, numbers)]
