"""A saved run: a folder that ``polyrelu flow`` wrote, as the messages a page plays.

A folder keeps cosines and contributions of every moment, but directions only at the end: the timeline is that of
the run; sphere, matrix, plane and point show its final net, which is the one moment that is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import final

import torch

from polyrelu.data import OrthonormalMixture, parse_clusters
from polyrelu.errors import InputError, require
from polyrelu.explorer import frames
from polyrelu.explorer.parameters import CHOICES, MOST_WORK, PARAMETERS, Setting
from polyrelu.explorer.training_problem import TEST_POINTS, FlowProblem
from polyrelu.nets import PolyReLUNet
from polyrelu.train import Trajectory
from polyrelu.workflows import NET_FILE, RUN_FILE, TRAJECTORY_FILE, FlowSettings, read_run_record, read_trajectory

DRAWN_POINTS = 2000  # points of the mixture that class averages and dots are of


@final
@dataclass(frozen=True, eq=False)
class SavedRun:
    """A run that was read: its settings, its trajectory and the mixture it was trained on."""

    name: str
    settings: FlowSettings
    run: Trajectory
    problem: FlowProblem

    def stream(self, send: frames.Send) -> frames.Recording:
        """Send the messages that the flow would have sent."""
        history, net = self.run.history, self.problem.net
        recording = frames.Recording(self.problem, send)
        polar, final = net.polar(), torch.as_tensor(history.log_contribution[-1]).double()
        recording.keep(frames.NeuronFrame(len(history.clock) - 1, polar.u, polar.q[:, 0], final))
        send({**frames.start(self.problem), **self.about(), "final": frames.base64_float32(final)})
        for i in range(len(history.clock)):
            send(
                {
                    "kind": "frame",
                    "clock": float(history.clock[i]),
                    "log_time": frames.finite(history.log_time[i]),
                    "log_loss": float(history.log_loss[i]),
                    "accuracy": float(history.accuracy[i]),
                    "cosines": frames.base64_float32(polar.u @ recording.columns.T) if i == 0 else None,
                    "log_contribution": frames.base64_float32(history.log_contribution[i]),
                    "read_out": frames.base64_float32(polar.q[:, 0]) if i == 0 else None,
                    "cos_centre": frames.base64_float32(history.cos_centre[i]),
                    "cos_average": frames.base64_float32(history.cos_average[i]),
                }
            )
        send(frames.end(self.problem, recording, self.run))
        return recording

    def about(self) -> frames.Message:
        """Its name, its command, and how many points it saw and how many of such are shown."""
        command, samples = self.settings.command(self.name), self.settings.samples
        return {"saved_run": self.name, "command": command, "samples": samples, "drawn": len(self.problem.train)}


def read_run(folder: str | Path) -> SavedRun:
    """The run in a folder, or a sentence why it cannot be shown."""
    path = Path(folder)
    for name in (RUN_FILE, NET_FILE, TRAJECTORY_FILE):
        _readable(path / name)
    settings = FlowSettings.from_json(read_run_record(path).get("settings"), path / "run.json")
    run = read_trajectory(path)
    net = run.net
    require(isinstance(net, PolyReLUNet), "DIR", path, "a run of a PolyReLUNet")
    assert isinstance(net, PolyReLUNet)
    require(net.dim == settings.dim, "DIR", path, f"a net of dimension {settings.dim} as in run.json, not {net.dim}")
    positive, negative = parse_clusters(settings.clusters)
    mixture = OrthonormalMixture(settings.dim, positive, negative, settings.alpha, dtype=net.dtype)
    train = mixture.sample(min(settings.samples, DRAWN_POINTS), settings.seed)
    test = mixture.sample(TEST_POINTS, settings.seed + 1)
    setting = _nearest_setting(settings, positive, negative)
    problem = FlowProblem(setting, net, train, test, mixture.centres, mixture.labels)
    return SavedRun(path.resolve().name, settings, run, problem)


def _readable(path: Path) -> None:
    """Name a file that is there but may not be read; whoever reads a missing one names it."""
    try:
        if path.is_file():  # a pipe would wait for its writer
            path.open("rb").close()
    except PermissionError:
        raise InputError(f"DIR={path}: expected a file that may be read; permission was denied.") from None
    except OSError:
        return


def _nearest_setting(settings: FlowSettings, positive: int, negative: int) -> Setting:
    """The setting of the page nearest to that of the run: the values of the sliders."""
    given = {name: getattr(settings, name) for name in ("p", "alpha", "dim", "width", "seed")}
    given |= {"positive": positive, "negative": negative, "log10_scale": math.log10(settings.init)}
    limits = {limit.name: limit for limit in PARAMETERS}
    cut = {name: min(max(value, limits[name].least), limits[name].most) for name, value in given.items()}
    samples = min(settings.samples, 5000, int(MOST_WORK / (cut["dim"] * cut["width"])))
    start = settings.start if settings.start in CHOICES["start"] else "balanced"
    return Setting.from_json({**cut, "samples": max(samples, 20), "start": start})
