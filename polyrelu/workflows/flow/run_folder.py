"""One run and its folder: net.safetensors, trajectory.npz, run.json and trajectory.png."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from polyrelu._version import __version__
from polyrelu.errors import InputError, require
from polyrelu.files import parse_json, read_text, write_atomically, written_together
from polyrelu.nets import PolyReLUNet, load, save
from polyrelu.report import RunSummary
from polyrelu.train import Trajectory
from polyrelu.workflows.flow.settings import FlowSettings

FORMAT = "polyrelu-run-1"
NET, TRAJECTORY, RECORD, PICTURE = "net.safetensors", "trajectory.npz", "run.json", "trajectory.png"


@dataclass(frozen=True)
class Run:
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
        record = json.dumps(self.record(), indent=2, allow_nan=False) + "\n"
        with written_together():
            save(net, self.folder / NET)
            for level, kept in self.trajectory.checkpoints.items():
                if isinstance(kept, PolyReLUNet):
                    save(kept, self.folder / f"net-1e{level:g}.safetensors")
            self.trajectory.save(self.folder / TRAJECTORY)
            write_atomically(self.folder / RECORD, lambda temporary: temporary.write_text(record, encoding="utf-8"))
            save_figure(trajectory_figure(self.trajectory, self.title), self.folder / PICTURE)


def read_record(folder: Path) -> dict[str, Any]:
    """What run.json of a folder says."""
    path = folder / RECORD
    try:
        record = parse_json(read_text(path))
    except OSError:
        raise InputError(f"{folder}: expected a folder that polyrelu flow has written; it has no {RECORD}.") from None
    except ValueError:
        record = None
    good = isinstance(record, dict) and isinstance(record.get("summary"), dict)
    require(good and record.get("format") == FORMAT, "out", path, f"a {RECORD} written by this version of polyrelu")
    return dict(record)


def read_trajectory(folder: Path) -> Trajectory:
    """The network and the history of a folder, checked to be of one moment."""
    net = load(folder / NET)
    trajectory = Trajectory.load(folder / TRAJECTORY, net)
    last = trajectory.history.log_contribution[-1:]
    now = net.log_contributions().numpy()[None] if isinstance(net, PolyReLUNet) else np.empty(0)
    if now.shape != last.shape or not np.allclose(now, last, rtol=1e-5, atol=1e-4):
        raise InputError(
            f"out={folder}: {NET} and {TRAJECTORY} are not of the same moment (a save was cut short?); "
            "start again without --resume."
        )
    return trajectory


def versions() -> dict[str, str]:
    """What computed the numbers."""
    return {"python": platform.python_version(), "torch": str(torch.__version__), "polyrelu": __version__}
