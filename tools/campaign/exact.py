"""Signs of margins and lengths of perturbations in mpmath, with as many digits as it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from mpmath import mp, mpf  # type: ignore[import-untyped]

from tools.campaign.scores import Array, Scores

EXACT = 1400  # digits in which sums and products of two float64 numbers are exact
DIGITS = (50, 120, 400, 1500)  # tried in turn until the sign of a duel is beyond its rounding


def broken(scores: Scores, label: float, x: Array, step: Array) -> bool:
    """Does ``label`` break at the real point x + step? Decided in mpmath; a sign that stays doubtful is no break."""
    active, pairs = _active(scores, x, step), scores.pairs(label)
    return all(
        any(_at_most_zero(scores, active, label, s, t) for own, s, t in pairs if own == one)
        for one in sorted({own for own, _, _ in pairs})
    )


@dataclass(frozen=True, eq=False)
class _Active:
    """What is active at one point: |z|, and for each direction |w|, the pre-activation > 0, log_scale, its neurons."""

    length: Any
    neurons: list[tuple[Any, Any, Any, list[int]]]


def _active(scores: Scores, x: Array, step: Array) -> _Active:
    """Neurons that differ in their outputs only are one: what cancels exactly is exactly 0."""
    groups: dict[tuple[bytes, float, float], list[int]] = {}
    for j, row in enumerate(scores.weight):
        groups.setdefault((row.tobytes(), float(scores.offset[j]), float(scores.log_scale[j])), []).append(j)
    with mp.workdps(EXACT):
        rows = zip(x.tolist(), step.tolist(), scores.centre.tolist(), scores.divisor.tolist(), strict=True)
        z = [(mpf(a) + mpf(b) - mpf(c)) / mpf(q) for a, b, c, q in rows]
        if scores.matrix is not None:
            z = [mp.fsum(mpf(m) * part for m, part in zip(row, z, strict=True)) for row in scores.matrix.tolist()]
        length = mp.sqrt(mp.fsum(part * part for part in z)) if scores.normalised else mpf(1)
        neurons = []
        for (_, offset, log_scale), members in groups.items():
            w = [mpf(part) for part in scores.weight[members[0]].tolist()]
            pre = mp.fsum(a * b for a, b in zip(w, z, strict=True)) + mpf(offset)
            if pre > 0:
                norm = mp.sqrt(mp.fsum(part * part for part in w)) if scores.p != 1 else mpf(1)
                neurons.append((norm, pre, mpf(log_scale), members))
    return _Active(length, neurons)


def _at_most_zero(scores: Scores, active: _Active, label: float, s: int, t: int) -> bool:
    for digits in DIGITS:
        total, size = _duel(scores, active, label, s, t, digits)
        if size == 0:
            return True
        if abs(total) > size * mpf(10) ** (12 - digits):
            return bool(total < 0)
    return False


def _duel(scores: Scores, active: _Active, label: float, s: int, t: int, digits: int) -> tuple[Any, Any]:
    """The duel and the sum of the sizes of its terms, to so many digits."""

    def less(one: Any, other: Any) -> Any:
        return mpf(float(one)) - (mpf(0) if t < 0 else mpf(float(other)))

    with mp.workdps(EXACT):
        terms: list[tuple[Any, Any]] = [(less(scores.bias[s], scores.bias[t]), None)]
        for norm, pre, log_scale, members in active.neurons:
            coefficient = mp.fsum(less(scores.output[s, j], scores.output[t, j]) for j in members)
            terms.append((coefficient, (norm, pre, log_scale)))
    side, p = mpf(label) if scores.single else mpf(1), mpf(scores.p)
    with mp.workdps(digits):
        parts = []
        for coefficient, neuron in terms:
            if coefficient != 0 and neuron is not None:
                norm, pre, log_scale = neuron
                coefficient = coefficient * mp.exp(2 * log_scale) * norm * (pre / norm) ** p / active.length ** (p - 1)
            parts.append(side * coefficient)
        return mp.fsum(parts), mp.fsum(abs(part) for part in parts)


def exact_length(step: Array, norm: float) -> Any:
    """|step| in mpmath, 50 digits."""
    with mp.workdps(50):
        parts = [abs(mpf(float(part))) for part in step]
        if norm == 1:
            return mp.fsum(parts)
        return max(parts) if norm == np.inf else mp.sqrt(mp.fsum(part * part for part in parts))
