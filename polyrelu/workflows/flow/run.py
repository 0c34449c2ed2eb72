"""What `polyrelu flow` runs: a net trained by gradient flow, and its folder.

DIR/net.safetensors, trajectory.npz, run.json and trajectory.png.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from polyrelu.data import OrthonormalMixture, parse_clusters
from polyrelu.errors import InputError
from polyrelu.files import output_folder, written_together
from polyrelu.nets import PolyReLUNet, load, save
from polyrelu.progress import Progress
from polyrelu.report import RunSummary, summarise
from polyrelu.train import Trajectory, Until, flow
from polyrelu.workflows.flow.settings import LIMITS, NET_FILE, RUN_FILE, TARGETS, TRAJECTORY_FILE, FlowSettings
from polyrelu.workflows.records import read_record, versions, write_record

FORMAT = "polyrelu-run-1"
GIVEN_UP = "given up; nothing of this run was saved, and the same command begins anew"
REACHED = ("LOSS", "TIME", "ACCURATE", "ALIGNED")  # statuses that are a target


@dataclass(frozen=True)
class FlowRun:
    """A run that has ended, for whatever reason: where it lives, what it was asked, what came out."""

    folder: Path
    settings: FlowSettings
    trajectory: Trajectory
    summary: RunSummary

    @property
    def title(self) -> str:
        """What the picture and the page call it."""
        s = self.settings
        return f"p = {s.p:g}: {s.clusters} clusters, dimension {s.dim}, {s.samples} samples, {s.width} neurons"

    @property
    def exit_code(self) -> int:
        """0 if a target was reached, 130 if the run was interrupted, else 1."""
        status = self.summary.status
        return 0 if status in REACHED else 130 if status == "INTERRUPTED" else 1

    def record(self) -> dict[str, Any]:
        """What run.json holds: enough to make the run again, and what it gave."""
        return {
            "format": FORMAT,
            "command": self.settings.command(self.folder.name or "."),
            "settings": self.settings.as_json(),
            "seed": self.settings.seed,
            "versions": versions(),
            "summary": self.summary.as_json(),
            "reading": self.summary.reading(),
        }

    def save(self) -> None:
        """Write the four files, all of them or none; what was there before stays until they are whole."""
        from polyrelu.report.figures import save_figure, trajectory_figure

        net = self.trajectory.net
        if not isinstance(net, PolyReLUNet):
            raise InputError(f"net={type(net).__name__}: expected a PolyReLUNet.")
        with written_together():
            save(net, self.folder / NET_FILE)
            for level, kept in self.trajectory.checkpoints.items():
                if isinstance(kept, PolyReLUNet):
                    save(kept, self.folder / f"net-1e{level:g}.safetensors")
            self.trajectory.save(self.folder / TRAJECTORY_FILE)
            write_record(self.folder / RUN_FILE, self.record())
            save_figure(trajectory_figure(self.trajectory, self.title), self.folder / "trajectory.png")


def mixture_and_net(settings: FlowSettings) -> tuple[OrthonormalMixture, PolyReLUNet]:
    """The data's distribution, and the net as it starts."""
    dtype = getattr(torch, settings.dtype)
    mixture = OrthonormalMixture(settings.dim, *parse_clusters(settings.clusters), settings.alpha, dtype=dtype)
    net = PolyReLUNet(
        settings.dim, settings.width, settings.p, init=settings.start, scale=settings.init, seed=settings.seed,
        centres=mixture.centres, nudge=settings.nudge, dtype=dtype,
    )  # fmt: skip
    return mixture, net


def run_flow(settings: FlowSettings, out: str | Path, progress: Progress, before: Trajectory | None = None) -> FlowRun:
    """Check everything, train (on from ``before``) and save. Stopped by a KeyboardInterrupt, it saves what it has."""
    mixture, drawn = mixture_and_net(settings)
    net: Any = before.net if before else drawn
    folder = output_folder(out)
    data = mixture.sample(settings.samples, settings.seed)
    until = Until(**{name.removeprefix("until_"): value for name, value in settings.targets.items()})
    progress.stage(f"p = {settings.p:g}")
    progress.keep(GIVEN_UP, "finishing the step under way, then saving")
    progress.update(doing="first pass over the data")
    trajectory = flow(
        net, data, loss=settings.loss, until=until, rtol=settings.rtol, checkpoints=settings.levels(),
        max_evaluations=settings.max_evaluations, progress=progress, after=before,
    )  # fmt: skip
    progress.stage("saving")
    run = FlowRun(folder, settings, trajectory, summarise(trajectory, data))
    run.save()
    return run


def resume_flow(out: Path, given: dict[str, Any], progress: Progress) -> FlowRun | dict[str, Any]:
    """Go on with the run in a folder, with the settings ``given`` now; the record where nothing is left to do."""
    record = read_run_record(out)
    settings = FlowSettings.from_json(record.get("settings"), out / RUN_FILE).resumed(given)
    if record["summary"].get("status") == "INTERRUPTED" or any(name in given for name in (*TARGETS, *LIMITS)):
        trajectory = read_trajectory(out)
        if not reached(settings, trajectory):
            return run_flow(settings, out, progress, trajectory)
    return record


def reached(settings: FlowSettings, trajectory: Trajectory) -> bool:
    """Does the last moment meet a target already? (Alignment is left to the flow, which knows which neurons move.)"""
    targets = settings.targets
    return (
        ("until_loss" in targets and trajectory.log_loss <= math.log(targets["until_loss"]))
        or ("until_log10_loss" in targets and trajectory.log10_loss <= targets["until_log10_loss"])
        or ("until_time" in targets and trajectory.time >= targets["until_time"])
        or ("until_accurate" in targets and trajectory.accuracy >= 1)
    )


def read_run_record(folder: Path) -> dict[str, Any]:
    """What run.json of a folder says."""
    expected = f"a {RUN_FILE} written by this version of polyrelu"
    record = read_record(folder / RUN_FILE, FORMAT, expected, summary=dict)
    if record is None:
        raise InputError(f"{folder}: expected a folder that polyrelu flow has written; it has no {RUN_FILE}.")
    return record


def read_trajectory(folder: Path) -> Trajectory:
    """The network and the history of a folder, checked to be of one moment."""
    trajectory = Trajectory.load(folder / TRAJECTORY_FILE, load(folder / NET_FILE))
    if not ends_with(trajectory, trajectory.net):
        raise InputError(
            f"out={folder}: {NET_FILE} and {TRAJECTORY_FILE} are not of the same moment (a save was cut short?); "
            "start again without --resume."
        )
    return trajectory


def ends_with(trajectory: Trajectory, net: Any) -> bool:
    """Are the sizes of the neurons at the last moment those of ``net``?"""
    last = trajectory.history.log_contribution[-1:]
    now = net.log_contributions().numpy()[None] if isinstance(net, PolyReLUNet) else np.empty(0)
    return now.shape == last.shape and np.allclose(now, last, rtol=1e-5, atol=1e-4)
