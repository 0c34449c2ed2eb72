"""Stored rows next to x + d that are no farther from x than allowed."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@final
class Neighbours:
    """Around ``row``, in the ball of ``norm`` (1, 2 or inf), for a head that computes with precision ``eps``."""

    def __init__(self, row: Array, norm: float, eps: float, source: np.random.Generator) -> None:
        self.row, self.norm, self.eps, self.source = row.astype(np.float64), norm, eps, source
        self.slope = np.zeros(len(row))  # of the margin, where the rows will lie

    def scaled(self, steps: Array, to: float) -> Array:
        """Every step made as long as ``to``; a zero stays zero."""
        largest = np.abs(steps).max(axis=1, keepdims=True)
        steps = steps / np.where(largest > 0, largest, 1.0)
        size = np.linalg.norm(steps, self.norm, axis=1)[:, None]
        scaled: Array = steps / np.where(size > 0, size, 1.0) * to
        return scaled

    def rows(self, steps: Array, limit: float, kind: Any, count: int) -> Array:
        """Up to ``count`` rows of type ``kind`` within ``limit``: steps turned a little, shortened, moved by ulps."""
        picked = steps[self.source.integers(len(steps), size=count)]
        moved = self._turned(picked)
        some = self.source.random(count) < 0.5
        moved[some] = self._moved(picked[some])
        moved[0] = picked[0]
        near = self._within(moved, limit)
        shorter = self.source.random(count) < 0.1
        near[shorter] *= self.source.uniform(0.9, 1.0, size=(count, 1))[shorter]
        if self.norm == 2 and self.eps > np.finfo(kind).eps:
            near[-count // 3 :] = self._leaning(near[-count // 3 :], limit)
        with np.errstate(over="ignore"):
            rows = (self.row + near).astype(kind)
        return self._stored(rows[np.isfinite(rows).all(axis=1)], limit)

    def anywhere(self, count: int) -> Array:
        """Random directions, and single coordinates, with a largest entry of 1."""
        steps = self.source.standard_normal((count, len(self.row)))
        one = self.source.integers(len(self.row), size=count // 2)
        steps[: count // 2] *= np.arange(len(self.row)) == one[:, None]
        scaled: Array = steps / np.abs(steps).max(axis=1, keepdims=True)
        return scaled

    def _turned(self, steps: Array) -> Array:
        """Noise around sqrt(eps) of the length, which costs eps of the radius, in all or in few coordinates."""
        size = np.sqrt(self.eps) * 10.0 ** self.source.uniform(-4, 1.5, size=(len(steps), 1))
        noise = self.source.standard_normal(steps.shape) * size * _root_mean_square(steps)
        turned: Array = steps + noise * self._some(steps.shape)
        return turned

    def _moved(self, steps: Array) -> Array:
        """Some coordinates moved by an ulp or a few."""
        ulp = np.abs(self.row + steps) * self.eps / 2
        moved: Array = steps + ulp * self.source.integers(-3, 4, size=steps.shape) * self._some(steps.shape)
        return moved

    def _leaning(self, steps: Array, limit: float) -> Array:
        """Coordinates that float32 rounds down the slope by nearly half an ulp, all of them: just beside the middles.

        Rounding then adds up instead of cancelling, and the length hardly changes.
        """
        leaned, down = steps, self.slope > 0
        slack = 10.0 ** self.source.uniform(-3, -0.5, size=steps.shape)
        for _ in range(4):
            y = self.row + steps
            low = y.astype(np.float32)
            low = np.where(low > y, np.nextafter(low, np.float32(-np.inf)), low)
            high = np.nextafter(low, np.float32(np.inf)).astype(np.float64)
            half = (high - low) / 2
            leaned = low + half * np.where(down, 1 - slack, 1 + slack) - self.row
            over = np.linalg.norm(leaned, axis=1, keepdims=True) / limit - 1
            steps = steps * (1 - 1.01 * np.clip(over, 0.0, 0.5))
        return leaned

    def _some(self, shape: tuple[int, ...]) -> Array:
        share = 10.0 ** self.source.uniform(-3, 0, size=(shape[0], 1))
        chosen = self.source.random(shape) < share
        chosen[np.arange(shape[0]), self.source.integers(shape[1], size=shape[0])] = True
        return chosen

    def _within(self, steps: Array, limit: float) -> Array:
        """As long as ``limit``: scaled (l2), cut (l-infinity), or by the largest coordinate alone (l1)."""
        if self.norm == 2:
            return self.scaled(steps, limit)
        if self.norm == np.inf:
            return np.clip(steps, -limit, limit)
        top = np.abs(steps).argmax(axis=1)
        at = np.arange(len(steps)), top
        steps = steps.copy()
        rest = np.abs(steps).sum(axis=1) - np.abs(steps[at])
        steps[at] = np.sign(steps[at]) * np.maximum(limit - rest, 0.0)
        return self.scaled(steps, limit)

    def _stored(self, rows: Array, limit: float) -> Array:
        """Those within ``limit``; the others, made longer by rounding, after steps of an ulp towards the point."""
        good = np.zeros(len(rows), dtype=bool)
        target = np.broadcast_to(self.row.astype(rows.dtype), rows.shape)
        for share in (0.0, 0.01, 0.1, 1.0, 1.0):
            step = np.abs(rows.astype(np.longdouble) - self.row)
            too_far = ~good[:, None] & (self.source.random(rows.shape) < share)
            if self.norm == np.inf:
                too_far = step >= limit
            rows = np.where(too_far, np.nextafter(rows, target), rows)
            sizes = np.linalg.norm(np.abs(rows.astype(np.longdouble) - self.row).astype(np.float64), self.norm, axis=1)
            good = sizes < limit * (1 - 4e-16)
            if good.all():
                break
        fitted: Array = rows[good]
        return fitted


def _root_mean_square(steps: Array) -> Array:
    """Of each row, where squares would overflow too."""
    largest = np.abs(steps).max(axis=1, keepdims=True)
    scaled = steps / np.where(largest > 0, largest, 1.0)
    size: Array = largest * np.sqrt((scaled**2).mean(axis=1, keepdims=True))
    return size
