r"""The shortest perturbation that breaks a label, sought with numpy alone: directions, line searches, descents.

Two and three dimensions: a dense grid of directions. More: neurons, their sums and differences, axes, corners, random
ones. Each is walked along a grid of lengths, and the first break is bisected. The best directions are then varied at
random, less and less, and followed along the boundary by the tangent step d = <g, d0> g*/|g|_dual (g the slope of the
deciding duel). Descents in the ball of a proven radius look for breaks that no ray meets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from tools.campaign.exact import broken, exact_length
from tools.campaign.scores import Array, Duels, Scores

ANGLES, SPHERE, OTHERS = 720, 1500, 400  # directions in 2, 3 and more dimensions
KEPT, VARIED = 6, 24  # directions kept for each norm, and variations of each
SPREADS = (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4, 1e-5)
LENGTHS = np.concatenate([np.logspace(-8, -1.6, 12), np.linspace(0.04, 1.6, 36), np.logspace(0.25, 3, 8)])
INSIDE = (0.1, 0.25, 0.5, 0.7, 0.85, 0.95, 0.99, 0.9999)  # of a proven radius
DOUBT = 1e-9  # a value this small may have the wrong sign
WALKS, DESCENTS, STEPS = 12, 24, 30


def length(D: Array, norm: float) -> Array:
    """|d| over the last axis, without overflow."""
    largest: Array = np.abs(D).max(axis=-1)
    if norm == math.inf:
        return largest
    inner = np.abs(D) / np.where(largest > 0, largest, 1.0)[..., None]
    sums: Array = inner.sum(axis=-1) if norm == 1 else np.sqrt((inner**2).sum(axis=-1))
    return sums * largest


def steepest(G: Array, norm: float) -> Array:
    """The unit vector of ``norm`` along which <g, d> is largest."""
    if norm == math.inf:
        corner: Array = np.sign(G)
        return corner
    if norm == 2:
        size = length(G, 2)
        unit: Array = G / np.where(size > 0, size, 1.0)[..., None]
        return unit
    top = np.abs(G).argmax(axis=-1)[..., None]
    found = np.zeros_like(G)
    np.put_along_axis(found, top, np.sign(np.take_along_axis(G, top, -1)), -1)
    return found


@final
@dataclass(frozen=True, eq=False)
class Search:
    """One point x and label; what every norm's search shares."""

    scores: Scores
    label: float
    x: Array
    duels: Duels
    rng: np.random.Generator

    @staticmethod
    def of(scores: Scores, label: float, x: Array, rng: np.random.Generator) -> Search:
        """Ready to search around ``x``."""
        return Search(scores, label, x, Duels.of(scores, label), rng)

    def along(self, D: Array, ts: Array) -> Array:
        """The deciding value at x + t d: D (n, dim), ts (n, k); (n, k)."""
        duels, z = self.duels, self.duels.place(self.x)
        change = duels.turn(D)
        T = (duels.U @ z + duels.offset) + ts[..., None] * (change @ duels.U.T)[:, None]
        logs = duels.log_length(z + ts[..., None] * change[:, None]) if duels.normalised else np.zeros(ts.shape)
        return duels.worst(duels.each(T, logs))

    def first(self, D: Array, ts: Array, halvings: int = 40) -> Array:
        """The first break on each ray, met by the lengths ``ts`` (n, k) in rising order and bisected; else inf."""
        out = self.along(D, ts) <= 0
        hit = out.any(axis=1)
        at = out.argmax(axis=1)
        rows = np.nonzero(hit)[0]
        found = np.full(len(D), math.inf)
        if len(rows):
            high = ts[rows, at[rows]]
            low = np.where(at[rows] > 0, ts[rows, np.maximum(at[rows] - 1, 0)], 0.0)
            for _ in range(halvings):
                middle = (low + high) / 2
                inside = self.along(D[rows], middle[:, None])[:, 0] <= 0
                high, low = np.where(inside, middle, high), np.where(inside, low, middle)
            found[rows] = high
        return found

    def directions(self) -> Array:
        """Directions to try, of l2 length 1."""
        dim, rng, duels = len(self.x), self.rng, self.duels
        U = (duels.U if duels.matrix is None else duels.U @ duels.matrix) / duels.divisor
        eye = np.eye(dim)
        own = [eye, U, *(U[rng.permutation(len(U))] * s + U for s in (1, -1)), (self.x - duels.centre)[None]]
        own += [np.sign(U), rng.choice([-1.0, 1.0], (16, dim)), duels.slopes(self.x[None])[1]]
        if dim == 2:
            angle = np.arange(ANGLES) * (2 * math.pi / ANGLES) + rng.uniform(0, 0.01)
            grid = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        elif dim == 3:
            height = 1 - (2 * np.arange(SPHERE) + 1) / SPHERE
            turn = np.arange(SPHERE) * (math.pi * (3 - math.sqrt(5)))
            flat = np.sqrt(1 - height**2)
            grid = np.stack([flat * np.cos(turn), flat * np.sin(turn), height], axis=1)
        else:
            mixed = rng.standard_normal((OTHERS // 2, len(U))) * (rng.random((OTHERS // 2, len(U))) < 4 / len(U))
            grid = np.concatenate([rng.standard_normal((OTHERS // 2, dim)), mixed @ U])
        rest = np.concatenate(own)[:600]
        D = np.concatenate([grid, rest, -rest])
        size = length(D, 2)
        units: Array = D[size > 0] / size[size > 0, None]
        return units

    def scales(self) -> Array:
        """Lengths that matter: |x - c|, and where a neuron weighs as much as a bias or its offset."""
        duels = self.duels
        found = [float(length(self.x - duels.centre, 2))]
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            top = duels.log.max(axis=1)
            even = np.exp(np.clip((duels.log_beta - top) / (1 if duels.normalised else duels.p), -690, 690))
        found += even[np.isfinite(duels.log_beta) & np.isfinite(top)].tolist()
        if duels.offset.any():
            found += [float(np.abs(duels.offset).max() * np.abs(duels.divisor).max())]
        scales = np.array(sorted(scale for scale in found if scale > 0) or [1.0])
        apart = np.concatenate([[True], np.diff(np.log(scales)) > 1])
        kept: Array = scales[apart][-3:]
        return kept

    def run(self, proven: dict[float, list[float]]) -> dict[float, tuple[float, Array]]:
        """For every norm the shortest break found, as (length, perturbation); inf where none was.

        ``proven``: radii claimed for each norm, looked at closely. Lengths that overflow are no break.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self._run(proven)

    def _run(self, proven: dict[float, list[float]]) -> dict[float, tuple[float, Array]]:
        at = self.duels.values(self.x[None])[0]
        if at < DOUBT and broken(self.scores, self.label, self.x, np.zeros_like(self.x)):
            return {norm: (0.0, np.zeros_like(self.x)) for norm in proven}
        D = self.directions()
        shared = np.sort(np.concatenate([scale * LENGTHS for scale in self.scales()]))
        ts = np.broadcast_to(shared, (len(D), len(shared)))
        far = self.first(D, ts, halvings=12)
        found = {}
        for norm, radii in proven.items():
            claims = sorted({r for r in radii if 0 < r < math.inf})
            units = D / length(D, norm)[:, None]
            reach = far * length(D, norm)
            if claims:
                inside = np.sort(np.concatenate([r * np.array(INSIDE) for r in (claims[0], claims[-1])]))
                reach = np.minimum(reach, self.first(units, np.broadcast_to(inside, (len(D), len(inside))), 12))
            start = self._descend(claims[-1], norm) if claims else None
            if start is not None:
                size = length(start, norm)
                units = np.concatenate([units, start / size[:, None]])
                reach = np.concatenate([reach, size])
            found[norm] = self._refine(units, reach, norm)
        return self._centre(found)

    def _centre(self, found: dict[float, tuple[float, Array]]) -> dict[float, tuple[float, Array]]:
        """``found``, or the step to the centre: all neurons may be silent there and nowhere else."""
        step = self.duels.centre - self.x
        shorter = {norm: float(length(step, norm)) for norm in found if length(step, norm) < found[norm][0]}
        if not shorter or not broken(self.scores, self.label, self.x, step):
            return found
        return found | {norm: (size, step) for norm, size in shorter.items()}

    def _descend(self, radius: float, norm: float) -> Array | None:
        """Projected steepest descent of the deciding duel in the ball, from many starts; breaks met on the way."""
        d = self.rng.standard_normal((DESCENTS, len(self.x)))
        d *= (radius * self.rng.random(DESCENTS) / length(d, norm))[:, None]
        d[0] = 0
        met = []
        for k in range(STEPS):
            value, slope = self.duels.slopes(self.x + d)
            met.append(d[(value <= 0) & (length(d, norm) > 0)])
            d = d - radius * 0.6 * (1 - k / STEPS) * steepest(slope, norm)
            size = length(d, norm)
            d *= np.minimum(1.0, 0.99999 * radius / np.where(size > 0, size, 1.0))[:, None]
        breaks = np.concatenate(met)
        return breaks[:64] if len(breaks) else None

    def _refine(self, units: Array, reach: Array, norm: float) -> tuple[float, Array]:
        """The best rays varied at random and by tangent steps, then bisected to the end."""
        order = np.argsort(reach)
        order = order[np.isfinite(reach[order])][: 4 * KEPT]
        if not len(order):
            return math.inf, np.zeros_like(self.x)
        order = order[:: max(1, len(order) // KEPT)][:KEPT]
        units, reach = units[order], reach[order]
        for spread in SPREADS:
            units, reach = self._better(units, reach, self._varied(units, spread, norm), norm)
        for _ in range(WALKS):
            before = reach[0]
            units, reach = self._better(units, reach, self._tangents(units, reach, norm), norm)
            if reach[0] >= before * (1 - 1e-12):
                break
        best = self.first(units[:1], reach[:1, None] * np.array([[0.5, 0.9, 0.99, 0.999, 1 - 1e-6, 1 + 1e-9]]), 60)[0]
        best = float(min(best, reach[0]))
        return best, units[0] * best

    def _better(self, units: Array, reach: Array, others: Array, norm: float) -> tuple[Array, Array]:
        """The best of ``units`` and ``others``."""
        size = length(others, norm)
        others = others[size > 0] / size[size > 0, None]
        parts = np.array([0.5, 0.8, 0.9, 0.96, 0.99, 0.999, 0.99999, 1.0])
        found = self.first(others, np.broadcast_to(reach[0] * parts, (len(others), len(parts))), 16)
        units, reach = np.concatenate([units, others]), np.concatenate([reach, found])
        order = np.argsort(reach, kind="stable")[:KEPT]
        return units[order], reach[order]

    def _varied(self, units: Array, spread: float, norm: float) -> Array:
        n, dim = units.shape
        noise = self.rng.standard_normal((n, VARIED, dim))
        noise[:, : VARIED // 3] *= self.rng.random((n, VARIED // 3, dim)) < 2 / dim
        others = units[:, None] + spread * noise * length(units, math.inf)[:, None, None]
        others = others.reshape(-1, dim)
        if norm == math.inf:
            others = np.concatenate([others, np.clip(others, -1 + spread, 1 - spread)])
        if norm == 1:
            others = np.concatenate([others, np.where(np.abs(others) > spread, others, 0.0)])
        return others

    def _tangents(self, units: Array, reach: Array, norm: float) -> Array:
        d = units * reach[:, None]
        _, slope = self.duels.slopes(self.x + d)
        to = steepest(slope, norm)
        dual = (slope * to).sum(axis=1)
        level = (slope * d).sum(axis=1) / np.where(dual > 0, dual, 1.0)
        target = to * level[:, None]
        parts = np.array([1.0, 0.5, 0.2, 0.05, 0.01])[:, None, None]
        mixed: Array = ((1 - parts) * d + parts * target).reshape(-1, d.shape[1])
        return mixed


def confirmed(scores: Scores, label: float, x: Array, step: Array, norm: float, below: float) -> Array | None:
    """A step along ``step``, of exact length < ``below``, at which the label breaks in exact arithmetic; else None."""
    for more in (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1):
        longer = step * (1 + more)
        if below < math.inf and not exact_length(longer, norm) < below:
            return None
        if broken(scores, label, x, longer):
            return longer
    return None
