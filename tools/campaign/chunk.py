"""One chunk of a family: nets drawn, certified, searched, compared."""

from __future__ import annotations

import math
import time
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from polyrelu.errors import InputError
from tools.campaign.certificates import CERTIFICATES, NORMS, Certificate, Job
from tools.campaign.exact import exact_length
from tools.campaign.families import FAMILIES, Drawn
from tools.campaign.scores import Array
from tools.campaign.search import Search, confirmed

NETS = 3  # in a chunk
NODES = (0, 20, 20, 60, 60, 300)  # budgets of branch and bound, one of them for each net
DOUBT = 1e-6  # radii this close to a break are decided in exact arithmetic
BEATEN = 1.005  # an upper bound is beaten by a break this much shorter


@dataclass
class Record:
    """What came of one chunk, as JSON can hold it."""

    family: str
    seed: int
    chunk: int
    pairs: int = 0
    comparisons: int = 0
    refused: int = 0
    uppers: int = 0
    beaten: int = 0
    unbroken: int = 0
    missed: int = 0
    ratio: float = 0.0
    seconds: float = 0.0
    violations: list[dict[str, Any]] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)
    refusals: dict[str, int] = field(default_factory=dict)
    by_certificate: dict[str, list[float]] = field(default_factory=dict)


def generator(family: str, seed: int, chunk: int, net: int) -> np.random.Generator:
    """The source of net ``net`` of a chunk; the same on every machine."""
    return np.random.default_rng([seed, zlib.crc32(family.encode()), chunk, net])


def draw(family: str, seed: int, chunk: int, net: int) -> tuple[Drawn, np.random.Generator]:
    """One net of a chunk with its points, and the generator as drawing left it."""
    rng = generator(family, seed, chunk, net)
    return FAMILIES[family](rng), rng


def run_chunk(
    family: str,
    seed: int,
    chunk: int,
    nets: int = NETS,
    certificates: Sequence[Certificate] = CERTIFICATES,
    only: int | None = None,
    points: int | None = None,
) -> Record:
    """Draw, prove, search, compare; ``only`` one of the nets and so many ``points`` of each, if given."""
    torch.set_num_threads(1)
    record, began = Record(family, seed, chunk), time.process_time()
    for number in range(nets) if only is None else (only,):
        drawn, rng = draw(family, seed, chunk, number)
        drawn.X = drawn.X if points is None else drawn.X[rng.permutation(len(drawn.X))[:points]]
        compare(record, drawn, rng, number, certificates)
    record.seconds = round(time.process_time() - began, 3)
    return record


def compare(
    record: Record, drawn: Drawn, rng: np.random.Generator, number: int, certificates: Sequence[Certificate]
) -> None:
    """Hold every certificate of one net against the searches around its points."""
    scores, X = drawn.scores, drawn.X
    labels = np.array([scores.decision(x) for x in X])
    y = torch.as_tensor(labels).to(drawn.dtype if scores.single else torch.int64)
    rows = torch.as_tensor(X).to(drawn.dtype)
    nodes = int(rng.choice(NODES))
    record.pairs += len(X)
    proven: dict[tuple[Certificate, float], tuple[Array, Array | None]] = {}

    def ask(after: bool, steps: dict[float, Array] | None = None) -> set[float]:
        """The norms in which some certificate applies."""
        norms = set()
        for norm in NORMS:
            job = Job(drawn.net, rows, y, norm, nodes, None if steps is None else steps.get(norm), drawn.extra)
            some = [certificate for certificate in certificates if certificate.applies(job)]
            norms |= {norm} if some else set()
            for certificate in some:
                answer = _ask(record, certificate, job, number) if certificate.after == after else None
                if answer is not None:
                    proven[certificate, norm] = answer
        return norms

    norms = sorted(ask(after=False))
    found: list[dict[float, tuple[float, Array]]] = []
    for i, x in enumerate(X):
        claims = {norm: [float(lower[i]) for (_, at), (lower, _) in proven.items() if at == norm] for norm in norms}
        found.append(Search.of(scores, float(labels[i]), x, rng).run(claims))
    ask(after=True, steps={norm: np.stack([one[norm][1] for one in found]) for norm in norms})
    for (certificate, norm), (lower, upper) in proven.items():
        for i in range(len(X)):
            where = {"net": number, "point": i, "norm": norm, "certificate": certificate.title}
            best, step = found[i][norm]
            _judge(record, drawn, float(labels[i]), X[i], float(lower[i]), best, step, certificate.slack, where)
            if upper is not None and best > 0:
                record.uppers += 1
                record.beaten += bool(best * BEATEN < upper[i] < math.inf)
                record.unbroken += bool(best < math.inf and upper[i] == math.inf)
                record.missed += bool(best > BEATEN * upper[i])
            if upper is not None and lower[i] > upper[i]:
                record.errors.append({**where, "error": f"lower {lower[i]!r} above upper {upper[i]!r}"})


def _ask(record: Record, certificate: Certificate, job: Job, number: int) -> tuple[Array, Array | None] | None:
    certificate.function()  # one that vanished ends the campaign
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return certificate(job)
    except InputError as refusal:
        record.refused += len(job.X)
        why = f"{certificate.title}: {refusal}"[:120]
        record.refusals[why] = record.refusals.get(why, 0) + 1
    except Exception as error:  # whatever it is, it is to be reported, with how to make it again
        what = f"{type(error).__name__}: {str(error)[:200]}"
        record.errors.append({"net": number, "norm": job.norm, "certificate": certificate.title, "error": what})
    return None


def _judge(
    record: Record,
    drawn: Drawn,
    label: float,
    x: Array,
    lower: float,
    best: float,
    step: Array,
    slack: float,
    where: dict[str, Any],
) -> None:
    record.comparisons += 1
    if math.isnan(lower):
        record.errors.append({**where, "error": "the proven radius is NaN"})
        return
    ratio = lower / best if best > 0 else (math.inf if lower > 0 else 0.0)
    below = lower * (1 - slack)
    title = where["certificate"]
    if lower > 0 and best * (1 - DOUBT) < below:
        real = confirmed(drawn.scores, label, x, step, where["norm"], below)
        if real is not None:
            record.violations.append(
                {
                    **where,
                    "label": label,
                    "x": x.tolist(),
                    "step": real.tolist(),
                    "proven": lower,
                    "broken": float(exact_length(real, where["norm"])),
                }
            )
        else:
            ratio = min(ratio, 1.0)
    ratio = ratio if math.isfinite(ratio) else 0.0  # an infinite one is in the list of violations
    record.ratio = max(record.ratio, ratio)
    count, worst = record.by_certificate.get(title, [0, 0.0])
    record.by_certificate[title] = [count + 1, max(worst, ratio)]
