"""Accuracy against radius of what was learned: certified(r) <= truth <= attacked(r) (polyrelu.robust.curve)."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import torch

from polyrelu.explorer.frames import Message, Recording, Send, finite
from polyrelu.progress import Progress
from polyrelu.robust import QUICK_DIRECTIONS, Bracket, Budget, bracket, curve

PART_SIZES = (10, 20, 30)  # points at a time: a first answer soon, then fewer calls
BRACKET_SETTINGS: dict[str, Any] = {
    "tol": 5e-3,
    "budget": Budget(nodes=4),
    "widest": QUICK_DIRECTIONS,
}  # no seconds: the same on every machine


class SendProgress(Progress):
    """The progress of a bracket: every update is where it can stop."""

    def __init__(self, send: Send) -> None:
        """``send`` raises Stopped when they are no longer wanted."""
        self.send = send

    def update(self, done: float | None = None, **_: Any) -> None:
        """Some more points are done."""
        self.send({"kind": "working", "done": done})


def stream(recording: Recording, send: Send) -> None:
    """Bracket the fresh points of a finished flow, a part at a time, and send the radii found so far."""
    net, test = recording.net(recording.frames[-1]), recording.problem.test
    X, y = test.rows(), test.y
    parts = list[Bracket]()
    for last, part in zip(accumulate(PART_SIZES), PART_SIZES, strict=True):
        rows = slice(last - part, last)
        parts.append(bracket(net, X[rows], y[rows], pool=test, progress=SendProgress(send), **BRACKET_SETTINGS))
        send(radii(parts, len(X)))


def radii(parts: list[Bracket], of: int) -> Message:
    """Sorted radii and their medians; null where a radius is infinite."""
    line = curve(concatenated(parts))
    median = line.median_radius
    return {
        "kind": "robust",
        "lower": [finite(radius) for radius in line.lower[0]],
        "upper": [finite(radius) for radius in line.upper[0]],
        "median": [finite(median.lower), finite(median.upper)],
        "points": line.points,
        "of": of,
    }


def concatenated(parts: list[Bracket]) -> Bracket:
    """Several brackets as one."""
    return Bracket(
        torch.cat([part.lower for part in parts]),
        torch.cat([part.upper for part in parts]),
        torch.cat([part.perturbation for part in parts]),
        tuple(status for part in parts for status in part.status),
        2.0,
        torch.cat([part.nodes for part in parts]),
    )
