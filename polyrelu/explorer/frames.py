"""A flow as a stream of frames: u_j = w_j/|w_j| centred from the sub-class centres, and |v_j| |w_j|.

Every frame holds cos(w_j, mu_k) for all neurons j and centres k, and the cosines to both class averages: all that the
page needs for the sphere (three chosen centres), for the matrix, and for the decision in the plane of two centres,
where f(x) = sum_j y_j |v_j||w_j| relu(<x, u_j>)^p.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from polyrelu.bias import decompose, phases
from polyrelu.explorer.training_problem import FlowProblem
from polyrelu.nets import Polar, PolyReLUNet
from polyrelu.train import Trajectory, flow
from polyrelu.train.gradient_flow import PolarState
from polyrelu.workflows import FlowSettings

Message = dict[str, Any]
Send = Callable[[Message], None]  # passes a message on; raises Stopped when it is no longer wanted
MAX_KEPT_NUMBERS = 4_000_000  # numbers of all neurons kept of a run, so that points of any moment can be asked
FRAME_THRESHOLDS = (0.02, 0.1, 0.3)  # of a cosine, of the log loss, of the usual log contribution: worth a frame
FRAMES_PER_DOUBLING = 100  # frames after which twice as much must change
LOSS = {"coarse": "exp", "fine": "cross_entropy"}
FINAL_LOSS = {"mixture": 1e-2, "digits": 0.2}  # loss at which training ends
MAX_EVALUATIONS = 1000  # passes over the data; some hundred are usual, data that cannot be separated have no end
SHOWN_POINTS = 120  # training points on the sphere


def base64_float32(values: ArrayLike | Tensor) -> str:
    """float32, little-endian, as base64: exact, and a third of the size of the digits."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode("ascii")


@final
@dataclass(frozen=True, eq=False)
class NeuronFrame:
    """All neurons at one moment: directions (h, D), what each counts for +1 (h,), log |v_j||w_j| (h,)."""

    number: int
    u: Tensor
    read_out: Tensor
    log_contribution: Tensor


class Recording:
    """Watches a flow: sends frames to the page, and keeps the neurons of as many moments as memory allows.

    A moment is sent if some cosine, the loss (in logs) or the usual log |v_j||w_j| changed by FRAME_THRESHOLDS since
    the last one that was; after every FRAMES_PER_DOUBLING frames twice that is required. So a flow of thousands of
    steps has few hundred frames. ``send`` may raise to end the flow.
    """

    def __init__(self, problem: FlowProblem, send: Send) -> None:
        self.problem, self.send, self.columns = problem, send, problem.columns()
        self.count, self.stride = 0, 1
        self.frames: list[NeuronFrame] = []
        self.sent: list[Tensor] = []  # what is watched, at the last moment that was sent
        self.last: Callable[[], None] | None = None  # sends the latest moment, if that was not yet sent

    def __call__(self, moment: dict[str, Any], state: PolarState) -> None:
        """One more moment."""
        polar = state.polar()
        cosines, logs = polar.u @ self.columns.T, torch.as_tensor(moment["log_contribution"]).double()
        watched = [cosines, torch.tensor([moment["log_loss"]]), logs.median()[None]]
        factor = 2.0 ** (self.count // FRAMES_PER_DOUBLING)
        still = bool(self.sent) and all(
            bool((a - b).abs().max() < factor * c) for a, b, c in zip(watched, self.sent, FRAME_THRESHOLDS, strict=True)
        )
        self.last = lambda: self.send_frame(moment, polar, cosines, logs)
        if not still:
            self.sent = watched
            self.finish()
        else:
            self.send({"kind": "working"})

    def finish(self) -> None:
        """Send the latest moment if it was not yet sent."""
        if self.last is not None:
            self.last()
        self.last = None

    def send_frame(self, moment: dict[str, Any], polar: Polar, cosines: Tensor, logs: Tensor) -> None:
        """Send one moment and keep it."""
        q = polar.q
        read_out = q[:, 0] if q.shape[1] == 1 else q @ self.problem.sides.to(q.dtype)
        self.keep(NeuronFrame(self.count, polar.u.clone(), read_out.clone(), logs))
        self.count += 1
        self.send(
            {
                "kind": "frame",
                "clock": moment["clock"],
                "log_time": finite(moment["log_time"]),
                "log_loss": moment["log_loss"],
                "accuracy": moment["accuracy"],
                "cosines": base64_float32(cosines),
                "log_contribution": base64_float32(logs),
                "read_out": base64_float32(read_out),
            }
        )

    def keep(self, frame: NeuronFrame) -> None:
        """Every ``stride``-th moment and the last; the stride doubles when there are too many."""
        if self.frames and self.frames[-1].number % self.stride:
            self.frames.pop()
        self.frames.append(frame)
        if len(self.frames) * frame.u.numel() > MAX_KEPT_NUMBERS and len(self.frames) > 2:
            self.stride *= 2
            self.frames = [kept for kept in self.frames[:-1] if kept.number % self.stride == 0] + self.frames[-1:]

    def near(self, number: int) -> NeuronFrame:
        """The kept moment nearest to a frame's number."""
        return min(self.frames, key=lambda frame: abs(frame.number - number))

    def net(self, frame: NeuronFrame) -> PolyReLUNet:
        """The classifier +1/-1 at a moment, up to a factor."""
        return self.problem.binary(frame.u, frame.read_out, frame.log_contribution)


def stream(problem: FlowProblem, send: Send) -> tuple[Recording, Trajectory]:
    """Send what is to be centred, then the flow frame by frame, then what came of it."""
    send(start(problem))
    recording = Recording(problem, send)
    loss, until = LOSS[problem.setting.labels], FINAL_LOSS[problem.setting.data]
    run = flow(problem.net, problem.train, loss=loss, until=until, max_evaluations=MAX_EVALUATIONS, watch=recording)
    recording.finish()
    send(end(problem, recording, run))
    return recording, run


def start(problem: FlowProblem) -> Message:
    """What stays as it is during a flow."""
    columns = problem.columns()
    rows = problem.train.rows(0, min(SHOWN_POINTS, len(problem.train)))
    points = torch.nn.functional.normalize(problem.centred(rows))
    labels = problem.binary_labels(problem.train).y[: len(points)]
    return {
        "kind": "start",
        "setting": asdict(problem.setting),
        "width": problem.net.width,
        "dim": problem.net.dim,
        "p": problem.net.p,
        "names": problem.names,
        "sides": problem.sides.int().tolist(),
        "axes": len(columns) - 2,
        "lengths": torch.linalg.vector_norm(problem.centred(problem.centres), dim=1).tolist(),
        "gram": base64_float32(columns @ columns.T),
        "points": base64_float32(points @ columns.T),
        "labels": labels.int().tolist(),
        "theory": problem.theory,
        "command": command(problem),
    }


def end(problem: FlowProblem, recording: Recording, run: Trajectory) -> Message:
    """How it ended, when which phase did, and what the neurons learned."""
    when = phases(run)
    net = recording.net(recording.frames[-1])
    learned = decompose(net, problem.centres, problem.sides).learned()
    return {
        "kind": "end",
        "status": run.status.name,
        "message": run.status.value,
        "seconds": run.seconds,
        "evaluations": run.evaluations,
        "log_loss": run.log_loss,
        "accuracy": run.accuracy,
        "aligned": None if when.aligned is None else when.aligned.clock,
        "fallen": None if when.fallen is None else when.fallen.clock,
        "verdict": learned.verdict,
        "score": finite(learned.score),
    }


def command(problem: FlowProblem) -> str:
    """The command that trains this net outside the page, or none."""
    s = problem.setting
    if s.data != "mixture" or s.labels != "coarse":
        return ""
    same = {name: getattr(s, name) for name in ("p", "dim", "samples", "width", "alpha", "start", "seed")}
    clusters = f"{s.positive}+{s.negative}"
    settings = FlowSettings(clusters=clusters, init=s.scale, max_evaluations=MAX_EVALUATIONS, **same)
    return settings.command("runs/explored")


def finite(value: float) -> float | None:
    """JSON has no infinity."""
    return float(value) if np.isfinite(value) else None
