"""Radii of what was learned, lower <= min |d| : margin(x + d) <= 0 <= upper: of a point in a plane, of fresh points.

x = a e1 + b e2 + c in the plane through two centres and the net's origin c; the nearest point that breaks the decision
mostly lies outside that plane, so there is a second one, through origin, x and that point. Beside it, on wish, the path
of projected gradient descent that starts at x itself and sees no slope towards the other class for p > 2 (A10, B7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, final

import torch
from torch import Tensor, nn

from polyrelu.errors import InputError, require
from polyrelu.explorer.frames import Message, Recording, Send, base64_float32, finite
from polyrelu.nets import PolyReLUNet
from polyrelu.progress import Progress
from polyrelu.robust import QUICK_DIRECTIONS, Bracket, Budget, bracket, curve, margin_of
from polyrelu.robust.attacks import PublishedPGD

TOLERANCE, BUDGET = 1e-3, Budget(nodes=12)  # of one point; no seconds: the same on every machine
CURVE_TOLERANCE, CURVE_BUDGET = 5e-3, Budget(nodes=4)  # of fresh points
PART_SIZES = (10, 20, 30)  # fresh points at a time: a first answer soon, then fewer calls
MAX_COORDINATE = 100.0  # a point may lie this far out
PGD_STEPS = 60  # of the published attack


class SendProgress(Progress):
    """The progress of a bracket: every update is where it can stop, as ``send`` raises Stopped if it is to."""

    def __init__(self, send: Send) -> None:
        self.send = send

    def update(self, done: float | None = None, **_: Any) -> None:
        """Some more points are done."""
        self.send({"kind": "working", "done": done})


@final
@dataclass(frozen=True)
class Question:
    """Which frame, which two centres, which point of their plane, which label, and whether PGD is to be shown."""

    frame: int
    centres: tuple[int, int]
    point: tuple[float, float]
    label: int
    pgd: float

    @classmethod
    def from_json(cls, given: Mapping[str, Any], recording: Recording) -> Question:
        """From what a page sent."""
        K = len(recording.problem.centres)
        pair: Any = given.get("centres")
        point: Any = given.get("point")
        good = _two_numbers(pair) and all(type(k) is int and 0 <= k < K for k in pair) and pair[0] != pair[1]
        require(good, "centres", str(pair)[:40], f"two different numbers below {K}")
        good = _two_numbers(point) and all(abs(a) <= MAX_COORDINATE for a in point)  # NaN is not
        require(good, "point", str(point)[:40], f"two numbers of size {MAX_COORDINATE:g} at most")
        frame, pgd, label = (given.get(name, 0) for name in ("frame", "pgd", "label"))
        require(type(frame) is int and frame >= 0, "frame", str(frame)[:40], "a whole number >= 0")
        good = type(pgd) in (int, float) and 0 <= pgd <= MAX_COORDINATE
        require(good, "pgd", str(pgd)[:40], "a radius, or 0 for none")
        require(label in (1, -1), "label", str(label)[:40], "1 or -1")
        return cls(frame, (pair[0], pair[1]), (float(point[0]), float(point[1])), int(label), float(pgd))


def _two_numbers(given: Any) -> bool:
    return isinstance(given, list) and len(given) == 2 and all(type(a) in (int, float) for a in given)


def answer(recording: Recording, question: Question, send: Send = lambda message: None) -> Message:
    """Both radii of the point, where it breaks, and the plane through it and that place; ``send`` may raise to end."""
    problem, frame = recording.problem, recording.near(question.frame)
    net = recording.net(frame).double()
    axes = recording.columns.double()
    flat = orthonormal(axes[list(question.centres)])
    origin = torch.zeros(net.dim).double() if net.centre is None else net.centre.double()
    x = origin + torch.tensor(question.point).double() @ flat
    y = torch.tensor([float(question.label)]).double()
    with torch.no_grad():
        margin = float(margin_of(net(x[None]), y))
    found = bracket(net, x[None], y, tol=TOLERANCE, budget=BUDGET, pool=problem.test, progress=SendProgress(send))
    d = found.perturbation[0]
    reply: Message = {
        "kind": "point",
        "frame": frame.number,
        "centres": list(question.centres),
        "point": list(question.point),
        "label": question.label,
        "right": margin > 0,
        "lower": finite(float(found.lower[0])),
        "upper": finite(float(found.upper[0])),
        "status": found.status[0].value,
        "broken": (flat @ (x + d - origin)).tolist(),
        "outside": float(torch.linalg.vector_norm(d - (flat @ d) @ flat)),
    }
    somewhere = float(d.norm()) > 0 and float((x - origin).norm()) > 0
    toward = orthonormal(torch.stack([x - origin, d])) if somewhere else flat
    reply["toward"] = {
        "point": (toward @ (x - origin)).tolist(),
        "broken": (toward @ (x + d - origin)).tolist(),
        "cosines": base64_float32(frame.u.double() @ toward.T),
    }
    if question.pgd > 0:
        path, success = published_pgd_path(net, x, y, question.pgd)
        ways = {name: ((path - origin) @ plane.T).tolist() for name, plane in (("path", toward), ("flat", flat))}
        reply["pgd"] = {"radius": question.pgd, "success": success, **ways}
    return reply


def orthonormal(pair: Tensor) -> Tensor:
    """Gram-Schmidt of two rows; the second is any direction where they are parallel."""
    first = pair[0] / torch.linalg.vector_norm(pair[0])
    rest = pair[1] - (pair[1] @ first) * first
    if float(rest.norm()) < 1e-9 * max(1.0, float(pair[1].norm())):
        rest = torch.eye(len(first)).double()[int(first.abs().argmin())]
        rest = rest - (rest @ first) * first
    return torch.stack([first, rest / torch.linalg.vector_norm(rest)])


class QueryRecorder(nn.Module):
    """A net that records its inputs: the path of an attack."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net, self.inputs = net, list[Tensor]()

    def forward(self, X: Tensor) -> Tensor:
        """The net's answer."""
        self.inputs.append(X.detach()[0].double())
        return torch.as_tensor(self.net(X))


def published_pgd_path(net: PolyReLUNet, x: Tensor, y: Tensor, radius: float) -> tuple[Tensor, bool]:
    """The points that the published attack visits within ``radius`` (m, D), and whether it broke the decision."""
    recorder = QueryRecorder(net)
    result = PublishedPGD(steps=PGD_STEPS, mean_over=1)(recorder, x[None], y, radius=radius)
    if not recorder.inputs:
        raise InputError("pgd: the attack evaluated no point.")
    return torch.stack(recorder.inputs), bool(result.success[0])


def stream(recording: Recording, send: Send) -> None:
    """Bracket the fresh points of a finished flow, a part at a time, and send the radii found so far."""
    net, test, parts = recording.net(recording.frames[-1]), recording.problem.test, list[Bracket]()
    settings: dict[str, Any] = {"tol": CURVE_TOLERANCE, "budget": CURVE_BUDGET, "widest": QUICK_DIRECTIONS}
    for last, part in zip(accumulate(PART_SIZES), PART_SIZES, strict=True):
        X, y = test.rows(last - part, last), test.y[last - part : last]
        parts.append(bracket(net, X, y, pool=test, progress=SendProgress(send), **settings))
        send(radii(parts, len(test)))


def radii(parts: list[Bracket], of: int) -> Message:
    """Sorted radii and their medians, certified(r) <= truth <= attacked(r); null where a radius is infinite."""
    lower, upper, d, nodes = (
        torch.cat([getattr(part, name) for part in parts]) for name in ("lower", "upper", "perturbation", "nodes")
    )
    line = curve(Bracket(lower, upper, d, tuple(status for part in parts for status in part.status), 2.0, nodes))
    median = line.median_radius
    return {
        "kind": "robust",
        "lower": [finite(radius) for radius in line.lower[0]],
        "upper": [finite(radius) for radius in line.upper[0]],
        "median": [finite(median.lower), finite(median.upper)],
        "points": line.points,
        "of": of,
    }
