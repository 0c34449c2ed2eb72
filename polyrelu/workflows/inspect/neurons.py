"""What an inspection says about the neurons of a net of one hidden layer, each measurement in one sentence."""

from __future__ import annotations

import math

import torch
from torch.nn.functional import normalize

from polyrelu.bias import (
    ALIGNED_COSINE,
    CLASS_AVERAGES,
    MIXTURE,
    SINGLE_CENTRES,
    LearnedStructure,
    alignment_field,
    balance,
    class_regions,
    cones,
    effective_neurons,
    stationary_directions,
)
from polyrelu.errors import InputError
from polyrelu.nets import FixedOutputNet, PolyReLUNet
from polyrelu.train import ReferenceDirections
from polyrelu.workflows.inspect.inputs import InspectedNet, some_rows
from polyrelu.workflows.inspect.table import Measurement, at_least, at_most, cosine, counted, fields_of, of, short, unit

EVEN_RATIO = 0.9  # averaging ratio from which on class averages are not called uneven
SINGLE_CENTRE_COUNT = 1.1  # centres in use, up to which single centres are not called "mostly" single
STARTS, FIELD_ROWS = 100, 2000  # of the search for stationary directions
Measurements = list[Measurement]


def known(subject: InspectedNet) -> Measurements:
    """Nothing to say about a PolyReLUNet; what cannot be measured of others."""
    if not subject.shallow:
        raise InputError(f"this {subject.kind} has no single layer of neurons; only what applies to any net is shown.")
    if not isinstance(subject.net, PolyReLUNet):
        raise InputError(f"cosines, balance and alignment are measured for a PolyReLUNet, this is a {subject.kind}.")
    return []


def carriers(subject: InspectedNet) -> Measurements:
    """How many neurons make the net."""
    net, found = subject.poly, subject.alignment
    if not len(found.dominant):
        raise InputError("every neuron is 0.")
    size, effective = len(found.dominant), effective_neurons(net.log_contributions())
    words = (
        f"99 % of the net (the sum of |v||w|) is in {of(size, net.width, 'neuron')}, and the sizes are spread as over "
        f"{short(effective)} equal ones"
    )
    numbers = {"carriers": size, "width": net.width, "effective": effective}
    return [Measurement("neurons that count", f"{size} of {net.width}", words, numbers)]


def directions(subject: InspectedNet) -> Measurements:
    """What the neurons point at."""
    found = subject.alignment
    if found.best_average is None or found.best_centre is None or found.covered is None:
        raise InputError("every neuron is 0 and points nowhere.")
    guess = "an estimated sub-class centre" if subject.estimated else "a sub-class centre"
    covered, among = int(found.covered.sum()), len(found.covered)
    words = f"a neuron that counts points (cosine above {ALIGNED_COSINE}) at {of(covered, among, 'centre')}"
    numbers = {"covered": covered, "centres": among, "which": found.covered}
    return [
        _pointing("cosine to class averages", found.best_average, "a class average"),
        _pointing("cosine to centres", found.best_centre, guess),
        Measurement("centres covered", f"{covered} of {among}", words, numbers),
    ]


def _pointing(name: str, median: float, target: str) -> Measurement:
    """True for every median: at least half of the weight lies at or above it, and at or below it."""
    if median > ALIGNED_COSINE:
        near = f"points at {target}: cosine " + ("1" if median > 1 - 1e-12 else f"{at_least(median)} or more")
    else:
        near = f"does not point at {target}: cosine {at_most(median)} or less"
    words = f"at least half of the net, counted by |v||w|, {near}"
    return Measurement(name, cosine(median), words, {"median": median})


def learned(subject: InspectedNet) -> Measurements:
    """Averages or single centres."""
    found = subject.decoupling
    known = found.learned
    numbers = {
        **fields_of(known, *LearnedStructure.__dataclass_fields__),
        **fields_of(found, "centres", "deviation"),
        "others": {"+".join(map(str, counts)): score for counts, score in found.others.items()},
    }
    rows = [Measurement("what was learned", known.verdict.split(":")[0], verdict(known), numbers)]
    if math.isfinite(known.averaging_ratio):
        ratio = unit(known.averaging_ratio)
        words = f"the smallest own coefficient of a neuron is on average {ratio} of its largest (1: class average)"
        rows.append(Measurement("averaging ratio", ratio, words))
    if math.isfinite(known.score):
        known_to = "" if known.low == known.high else f" ({known.low:.2f} to {known.high:.2f})"
        words = f"on average a neuron uses {short(known.effective)} of the centres of its class (0: all alike; 1: one)"
        rows.append(Measurement("decoupling score", unit(known.score) + known_to, words))
    if math.isfinite(known.explained):
        words = f"the span of the centres holds {unit(known.explained)} of the squared weights"
        if math.isfinite(known.other_ratio):
            words += f"; centres of other classes have {short(known.other_ratio)} times the weight of own ones"
        rows.append(Measurement("explained by centres", unit(known.explained), words))
    return rows


def verdict(found: LearnedStructure) -> str:
    """What was learned, as a clause that holds at every value of the numbers."""
    if found.verdict == CLASS_AVERAGES:
        even = "class averages" if found.averaging_ratio >= EVEN_RATIO else "uneven class averages"
        said = f"the neurons learned {even}: averaging ratio {unit(found.averaging_ratio)}"
    elif found.verdict == SINGLE_CENTRES:
        alone = "single centres" if found.effective <= SINGLE_CENTRE_COUNT else "mostly single centres"
        said = f"the neurons learned {alone}: decoupling score {unit(found.score)}"
    elif found.verdict == MIXTURE:
        said = (
            f"the neurons learned something between class averages and single centres: decoupling score "
            f"{unit(found.score)}"
        )
    else:
        what, _, why = found.verdict.partition(": ")
        opening = {
            "undefined": "averages and centres cannot be told apart",
            "nothing": "the neurons learned neither averages nor centres",
            "neither": "the neurons learned neither averages nor centres",
        }
        return f"{opening.get(what, what)}: {why}"
    if found.low < 0.25 < found.high or found.low < 0.75 < found.high:
        averages = found.verdict == CLASS_AVERAGES
        could = "with a decoupling score that could be" if averages else "which could as well be"
        said += f", {could} {found.low:.2f} to {found.high:.2f}"
    return said


def layer_balance(subject: InspectedNet) -> Measurements:
    """|v| against |w|."""
    found = balance(subject.poly)
    words = f"at the least balanced neuron |v|² and |w|² differ by {unit(found.relative)} of the larger (0: balanced)"
    numbers = {"relative": found.relative, "log_absolute": found.log_absolute}
    return [Measurement("balance of the layers", unit(found.relative), words, numbers)]


def centre_regions(subject: InspectedNet) -> Measurements:
    """Which centre's region each neuron stands in."""
    parts = class_regions(subject.poly, subject.placed)
    counts = torch.cat([part.counts for part in parts])
    hit = int((counts > 0).sum())
    void = sum(part.void for part in parts)
    border = sum(part.border for part in parts)
    gap = min(part.gap for part in parts)
    words = (
        f"nearer than to any other centre of its class, a neuron stands at {of(hit, len(counts), 'centre')}; "
        f"{counted(void, 'neuron')} {'is' if void == 1 else 'are'} activated by none of them, {border} on a border"
    )
    numbers = {"counts": counts, "void": void, "border": border, "gap": gap}
    return [Measurement("regions of the centres", f"{hit} of {len(counts)} hit", words, numbers)]


def activation_cones(subject: InspectedNet) -> Measurements:
    """The cones S+, S-, dead."""
    if not subject.data.binary:
        raise InputError(f"the cones belong to labels +1/-1, these data have {subject.data.classes} classes.")
    if isinstance(subject.net, FixedOutputNet):
        raise InputError("its neurons have biases, and the cones belong to neurons without.")
    found = cones(subject.net, subject.data)
    numbers = {name: int(getattr(found, name).sum()) for name in ("plus", "minus", "dead", "other")}
    words = (
        f"active on every +1 row and no other: {counted(numbers['plus'], 'neuron')}; on every −1 row and no other: "
        f"{numbers['minus']}; on no row: {numbers['dead']}; on another mixture: {numbers['other']}"
    )
    value = f"{numbers['plus']} / {numbers['minus']} / {numbers['dead']} dead"
    return [Measurement("cones of activation", value, words, numbers)]


def field_alignment(subject: InspectedNet) -> Measurements:
    """How far from rest the neurons would be in a small net."""
    net, heavy = subject.poly, subject.alignment.dominant[:500]
    if not subject.data.binary:
        raise InputError(f"measured for labels +1/-1 only, these data have {subject.data.classes} classes.")
    u = normalize(net.directions().detach().double()[heavy])
    sign = net.output.detach().double()[0, heavy, None].sign()
    pull = sign * alignment_field(subject.data, u, net.p, preprocess=net.preprocess)
    median = float(((u * pull).sum(1) / pull.norm(dim=1)).nanmedian())
    if math.isnan(median):
        raise InputError("the field is 0 at all neurons that count.")
    words = (
        "were the net small, the pull on at least half of the neurons that count would make a cosine of "
        f"{at_least(median)} or more with them (1: at rest)"
    )
    return [Measurement("alignment field", cosine(median), words, {"median": median, "neurons": len(heavy)})]


def stationary(subject: InspectedNet) -> Measurements:
    """Where the alignment phase leads neurons that start small."""
    net, data = subject.poly, some_rows(subject.placed, FIELD_ROWS, subject.seed)
    kinds: list[dict[str, int]] = (
        [{"sign": 1}, {"sign": -1}] if data.binary else [{"target": c} for c in range(data.classes)]
    )
    found = [
        stationary_directions(data, net.p, STARTS, subject.seed, preprocess=net.preprocess, **kind) for kind in kinds
    ]
    probes = ReferenceDirections.from_net(net, subject.placed)
    assert probes.centres is not None
    ends = torch.cat([one.directions[one.stable] for one in found])
    if not len(ends):
        raise InputError("no start came to rest at a stable direction.")
    near = {
        name: int(((ends @ rows.double().T).amax(1) > ALIGNED_COSINE).sum())
        for name, rows in (("averages", probes.averages), ("centres", probes.centres))
    }
    dead = sum(one.dead for one in found)
    words = (
        f"of the {counted(len(ends), 'stable direction')} small neurons turn to, {near['averages']} "
        f"{'is' if near['averages'] == 1 else 'are'} at a class average and {near['centres']} at a single centre "
        f"(cosine above {ALIGNED_COSINE}; {STARTS} starts a {'sign' if data.binary else 'class'}, {dead} of them die)"
    )
    numbers = {**near, "stable": len(ends), "dead": dead, "rows": len(data), "starts": STARTS * len(kinds)}
    return [Measurement("stationary directions", f"{len(ends)}", words, numbers)]
