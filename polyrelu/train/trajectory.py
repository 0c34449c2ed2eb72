"""What a training run leaves: the network, how it ended, and how it got there."""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from polyrelu.arrays import DAMAGED, read_npz, write_npz
from polyrelu.checks import checked
from polyrelu.errors import InputError, require
from polyrelu.files import parse_json
from polyrelu.train.stopping import LN10, Status

FORMAT = "polyrelu-trajectory-1"
MAX_MOMENTS = 400  # recorded ones; beyond, every second one is dropped


@dataclass(frozen=True)
class History:
    """One entry per recorded moment, T of them.

    ``clock``: loss time of a flow, steps of a descent; ``log_time``: natural log of flow time (rate x steps for a
    descent); ``log_loss``: natural log of the mean loss; ``accuracy`` on the training set; ``log_rho``: natural log of
    |theta|; ``min_margin``: the smallest margin of a sample. Per neuron, (T, width), where the network has such ones:
    ``cos_centre`` and ``cos_average``, the largest cosine to a sub-class centre and to a class average, and
    ``log_contribution`` = log |v_j| |w_j|. Between passes over the data loss, accuracy and margin are estimates.
    """

    clock: NDArray[np.float64]
    log_time: NDArray[np.float64]
    log_loss: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    cos_centre: NDArray[np.float32]
    cos_average: NDArray[np.float32]
    log_contribution: NDArray[np.float32]
    log_rho: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    min_margin: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    @classmethod
    def from_moments(cls, moments: list[dict[str, Any]]) -> History:
        """Stack moments (dicts with one value per field; missing per-neuron values become empty rows)."""
        columns: dict[str, Any] = {}
        for part in fields(cls):
            per_neuron = part.name.startswith(("cos", "log_con"))
            rows = [moment.get(part.name, () if per_neuron else math.nan) for moment in moments]
            columns[part.name] = np.asarray(rows, dtype=np.float32 if per_neuron else np.float64)
        return cls(**columns)

    def require_whole(self) -> History:
        """Itself, if every field is of the numbers and the shape that a run leaves; ValueError otherwise."""
        moments = len(self.clock) if self.clock.ndim == 1 else -1
        for part in fields(self):
            values, per_neuron = getattr(self, part.name), part.name.startswith(("cos", "log_con"))
            shape = values.shape == (moments,) or (part.default_factory is not MISSING and values.size == 0)
            shape = values.ndim == 2 and len(values) == moments if per_neuron else shape
            if values.dtype.kind != "f" or not shape:
                raise ValueError(f"{part.name} is {values.dtype} of shape {values.shape}")
        for name in ("clock", "log_time"):
            values = getattr(self, name)
            if not (values < np.inf).all() or not (values[1:] >= values[:-1]).all():
                raise ValueError(f"{name} does not go forward in finite steps")
        return self

    def moments(self) -> list[dict[str, Any]]:
        """The inverse of `from_moments`."""
        names = [part.name for part in fields(self) if len(getattr(self, part.name)) == len(self.clock)]
        return [{name: getattr(self, name)[i] for name in names} for i in range(len(self.clock))]

    @property
    def time(self) -> NDArray[np.float64]:
        """Flow time; infinite where it exceeds what a float holds."""
        with np.errstate(over="ignore"):
            return np.exp(self.log_time)


@dataclass(frozen=True)
class Trajectory:
    """A finished (or interrupted) run of ``flow`` or ``descend``.

    ``evaluations``: passes over the data, in units of all samples and all neurons; ``counts`` says where work went.
    ``snapshots``: networks at the requested times; ``checkpoints``: networks at the requested log10 losses.
    """

    net: nn.Module
    status: Status
    history: History
    evaluations: float
    seconds: float
    counts: dict[str, float]
    settings: dict[str, Any]
    snapshots: dict[float, nn.Module] = field(default_factory=dict)
    checkpoints: dict[float, nn.Module] = field(default_factory=dict)

    @property
    def log_loss(self) -> float:
        """Natural log of the final mean loss."""
        return self._last(self.history.log_loss)

    @property
    def log10_loss(self) -> float:
        """Decimal log of the final mean loss."""
        return self.log_loss / LN10

    @property
    def accuracy(self) -> float:
        """Final accuracy on the training set."""
        return self._last(self.history.accuracy)

    @property
    def time(self) -> float:
        """Final flow time."""
        return self._last(self.history.time)

    def _last(self, values: NDArray[np.float64]) -> float:
        require(len(values) > 0, "trajectory", "no recorded moments", "a run with at least one")
        return float(values[-1])

    @checked
    def save(self, path: str | Path) -> Path:
        """Write everything but the networks as .npz (arrays and a JSON string; loading runs no code)."""
        about = {
            "format": FORMAT,
            "status": self.status.name,
            "evaluations": self.evaluations,
            "seconds": self.seconds,
            "counts": self.counts,
            "settings": self.settings,
        }
        arrays = {part.name: getattr(self.history, part.name) for part in fields(self.history)}
        return write_npz(path, {"about": json.dumps(about), **arrays}, compressed=True)

    @classmethod
    @checked
    def load(cls, path: str | Path, net: nn.Module) -> Trajectory:
        """Read what ``save`` wrote, for the network saved beside it."""
        try:
            arrays = read_npz(path)
            about = parse_json(str(arrays.pop("about")))
            if about["format"] != FORMAT:
                raise InputError(
                    f"trajectory={path}: written as {about['format']}, expected {FORMAT}; upgrade polyrelu."
                )
            history, status = History(**arrays).require_whole(), Status[about["status"]]
            kept = {name: about[name] for name in ("evaluations", "seconds", "counts", "settings")}
            numbers = all(isinstance(kept[name], int | float) for name in ("evaluations", "seconds"))
            tables = all(isinstance(kept[name], dict) for name in ("counts", "settings"))
            if not numbers or not tables:
                raise ValueError("its record is not one of a run")
        except FileNotFoundError:
            raise InputError(f"trajectory={path}: no such file; expected a trajectory.npz.") from None
        except InputError:
            raise
        except DAMAGED:
            raise InputError(f"trajectory={path}: damaged or foreign file; expected one written by polyrelu.") from None
        return cls(net=net, status=status, history=history, **kept)


def thinned(moments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most MAX_MOMENTS moments, the first and the last among them."""
    while len(moments) > MAX_MOMENTS:
        moments = moments[:-1:2] + moments[-1:]
    return moments
