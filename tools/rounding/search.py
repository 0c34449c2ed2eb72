"""Down to the boundary, then among the floats around it.

The margin falls to about 0 at the end of the shortest breaking perturbation d. There many points x + d' with
|d'| <= |d| have a margin smaller than its rounding error: d turned a little (the margin grows with the square of the
angle), single coordinates moved by an ulp. Each is run, the lowest computed margins are turned and moved again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from tools.rounding.exact import inside, length
from tools.rounding.executed import WAYS, Executed
from tools.rounding.neighbours import Neighbours

Array = NDArray[Any]
KEPT = 6  # rows with the least margin that the next round starts from, and that are run alone
FIRST, FACTOR = 1e-15, 32.0  # the depths: 1e-15, 3.2e-14, ... of the radius inside it, then outside
TURNS = (1.0, 1.0, 1.0, 0.3, 0.3, 0.1, 0.1, 0.03, 0.03, 0.01, 0.01, 1e-3, 1e-3, 1e-4, 1e-5)
FAR = tuple(10.0**k for k in (2, 6, 12, 18, 19.5, 25, 37, 60, 150, 250, 305))  # lengths tried where lower = inf


@final
@dataclass(frozen=True, eq=False)
class Outcome:
    """What one point gave: rows run, the flip of least length, that length over the radius (inf if there is none).

    ``broken``: that flip is strictly inside the radius, exactly.
    """

    tries: int
    ratio: float
    flip: Array | None
    broken: bool


@final
class Search:
    """One point of one classifier, proven to be ``label`` within ``radius``; rounds of ``count`` rows."""

    def __init__(
        self, runs: Executed, row: Array, label: int, radius: float, norm: float, source: np.random.Generator,
        count: int = 64,
    ) -> None:  # fmt: skip
        self.runs, self.row, self.label, self.radius, self.norm = runs, row, label, radius, norm
        self.near = Neighbours(row, norm, runs.eps, source)
        self.count, self.tries, self.turn = count, 0, 0
        self.ratio, self.flip = np.inf, np.empty(0)

    def run(self, starts: Array, rounds: int = 4) -> Outcome:
        """Inwards from the radius as long as there are flips; if there are none, outwards to the first one.

        ``starts`` (k, D) are directions that may lead to the boundary; the slope at the point is always tried.
        """
        self._itself()
        if np.isinf(self.radius):
            self._far()
            return self._outcome()
        step = self._lowest(np.concatenate([starts, self._down(self._slopes(self.row[None])[1])]))
        if step is None:
            return self._outcome()
        depth = FIRST
        while depth < 1 and self._at(step, 1 - depth, rounds):
            depth *= FACTOR
        depth = 1e-9
        while not len(self.flip) and depth < 4:
            self._at(step, 1 + depth, 2)
            depth *= FACTOR
        return self._outcome()

    def _outcome(self) -> Outcome:
        if not len(self.flip):
            return Outcome(self.tries, np.inf, None, False)
        ratio = length(self.flip, self.row, self.norm) / self.radius
        return Outcome(self.tries, ratio, self.flip, inside(self.flip, self.row, self.radius, self.norm))

    def _itself(self) -> None:
        """The point alone and among others: near the boundary its batch may decide."""
        for way in WAYS:
            changed = self.runs.run(self.row[None].repeat(3, 0), self.label, way)[1] != self.label
            changed |= self.runs.decide(self.row[None]) != self.label
            self.tries += 4
            if changed.any():
                self._note(self.row[None])

    def _slopes(self, rows: Array) -> tuple[Array, Array]:
        return self.runs.slope(rows, self.label)

    def _lowest(self, starts: Array) -> Array | None:
        """The step of length ``radius`` with the least real margin: each start, turned towards the descent."""
        steps = self.near.scaled(starts, self.radius)
        steps = steps[np.isfinite(steps).all(axis=1) & (np.abs(steps).max(axis=1) > 0)]
        if not len(steps):
            return None
        margin, gradient = self._slopes(self.row + steps)
        for turn in TURNS:
            down = self.near.scaled(self._down(gradient), self.radius)
            turned = self.near.scaled((1 - turn) * steps + turn * down, self.radius)
            new, slopes = self._slopes(self.row + turned)
            good = new < margin
            steps[good], margin[good], gradient[good] = turned[good], new[good], slopes[good]
        lowest: Array = steps[margin.argmin()]
        self.near.slope = gradient[margin.argmin()]
        return lowest

    def _down(self, gradient: Array) -> Array:
        """argmin <gradient, d> over |d| <= 1, up to its length."""
        if self.norm == 2:
            return -gradient
        if self.norm == np.inf:
            return -np.sign(gradient)
        top = np.abs(gradient).argmax(axis=1)[:, None]
        return np.where(np.arange(gradient.shape[1]) == top, -np.sign(gradient), 0.0)

    def _at(self, step: Array, ratio: float, rounds: int) -> bool:
        """Is there a flip at ``ratio`` times the radius at most?"""
        steps = step[None]
        for _ in range(rounds):
            kind = self.runs.types[self.turn % len(self.runs.types)]
            way = WAYS[self.turn % len(WAYS)]
            self.turn += 1
            rows = self.near.rows(steps, self.radius * ratio, kind, self.count)
            if not len(rows):
                continue
            margin, decided = self.runs.run(rows, self.label, way)
            lowest = rows[np.argsort(margin)[:KEPT]]
            alone = [self.runs.run(one[None], self.label, (1, 0))[1] for one in lowest[: KEPT // 2]]
            self.tries += len(rows) + len(alone)
            changed = np.concatenate(alone) != self.label
            flips = np.concatenate([rows[decided != self.label], lowest[: len(alone)][changed]])
            if len(flips):
                self._note(flips)
                return True
            steps = np.concatenate([step[None].repeat(KEPT, 0), lowest.astype(np.float64) - self.row])
        return False

    def _note(self, flips: Array) -> None:
        """Keep the shortest."""
        ratio: Array = np.linalg.norm(flips.astype(np.float64) - self.row, self.norm, axis=1) / self.radius
        if ratio.min() < self.ratio:
            self.ratio, self.flip = float(ratio.min()), flips[ratio.argmin()]

    def _far(self) -> None:
        """Nothing is said to break it: rows as long as the type allows."""
        for reach in FAR:
            for kind in self.runs.types:
                if reach < np.finfo(kind).max / 8:
                    rows = (self.row + self.near.anywhere(8) * reach).astype(kind)
                    decided = self.runs.run(rows, self.label, WAYS[0])[1]
                    self.tries += len(rows)
                    if not len(self.flip):
                        self.flip = next(iter(rows[decided != self.label]), self.flip)
