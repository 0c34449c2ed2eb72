"""One's own run: a folder that ``polyrelu flow`` wrote, as the messages a page plays.

A folder keeps cosines and contributions of every moment, but directions only at the end: the timeline is the run's
own, sphere, matrix and plane show its final net.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import final

import torch

from polyrelu.data import OrthonormalMixture, parse_clusters
from polyrelu.errors import require
from polyrelu.explorer import frames
from polyrelu.explorer.limits import CHOICES, LIMITS, MOST_WORK, Setting
from polyrelu.explorer.problem import TEST, Problem
from polyrelu.nets import PolyReLUNet
from polyrelu.runs.folder import read_record, read_trajectory
from polyrelu.runs.settings import FlowSettings
from polyrelu.train import Trajectory


@final
@dataclass(frozen=True, eq=False)
class Own:
    """A run that was read: its settings, its trajectory and the mixture it was trained on."""

    name: str
    settings: FlowSettings
    run: Trajectory
    problem: Problem

    def tell(self, tell: frames.Tell) -> frames.Recording:
        """The messages of the run, as a flow would have told them."""
        history, net = self.run.history, self.problem.net
        recording = frames.Recording(self.problem, tell)
        tell({**frames.start(self.problem), "own": self.name, "command": self.settings.command(self.name)})
        polar = net.polar()
        directions = frames.packed(polar.u @ recording.columns.T)
        for i in range(len(history.clock)):
            logs = torch.as_tensor(history.log_contribution[i]).double()
            recording.keep(frames.Frame(i, polar.u, polar.q[:, 0], logs))
            tell(
                {
                    "kind": "frame",
                    "clock": float(history.clock[i]),
                    "log_time": frames.finite(history.log_time[i]),
                    "log_loss": float(history.log_loss[i]),
                    "accuracy": float(history.accuracy[i]),
                    "cosines": directions if i == 0 else None,
                    "log_contribution": frames.packed(logs),
                    "read_out": frames.packed(polar.q[:, 0]) if i == 0 else None,
                    "cos_centre": frames.packed(history.cos_centre[i]),
                    "cos_average": frames.packed(history.cos_average[i]),
                }
            )
        tell(frames.end(self.problem, recording, self.run))
        return recording


def read(folder: str | Path) -> Own:
    """The run in a folder, or a sentence why it cannot be shown."""
    path = Path(folder)
    settings = FlowSettings.from_json(read_record(path).get("settings"), path / "run.json")
    run = read_trajectory(path)
    net = run.net
    require(isinstance(net, PolyReLUNet), "DIR", path, "a run of a PolyReLUNet")
    assert isinstance(net, PolyReLUNet)
    positive, negative = parse_clusters(settings.clusters)
    mixture = OrthonormalMixture(settings.dim, positive, negative, settings.alpha, dtype=net.dtype)
    train = mixture.sample(min(settings.samples, 2000), settings.seed)
    test = mixture.sample(TEST, settings.seed + 1)
    problem = Problem(_near(settings, positive, negative), net, train, test, mixture.centres, mixture.labels)
    return Own(path.resolve().name, settings, run, problem)


def _near(settings: FlowSettings, positive: int, negative: int) -> Setting:
    """The setting of the page nearest to that of the run: where the sliders stand."""
    given = {"p": settings.p, "positive": positive, "negative": negative, "alpha": settings.alpha, "dim": settings.dim}
    given |= {"width": settings.width, "log10_scale": math.log10(settings.init), "seed": settings.seed}
    cut = {limit.name: min(max(given[limit.name], limit.least), limit.most) for limit in LIMITS if limit.name in given}
    samples = min(settings.samples, 5000, int(MOST_WORK / (cut["dim"] * cut["width"])))
    start = settings.start if settings.start in CHOICES["start"] else "balanced"
    return Setting.of({**cut, "samples": max(samples, 20), "start": start})
