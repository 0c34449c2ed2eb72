"""Everything that decides a run of ``polyrelu flow``, as plain values: what run.json keeps and the command line asks.

No heavy import here: the command line reads its defaults from this record and refuses bad values before torch loads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, final

from polyrelu.errors import InputError, require
from polyrelu.workflows.records import to_argv

NET_FILE, TRAJECTORY_FILE, RUN_FILE = "net.safetensors", "trajectory.npz", "run.json"  # in the folder of a run
STARTS = ("balanced", "gaussian", "nudged", "kaiming")
LOSSES = ("exp", "logistic", "cross_entropy", "squared")
DTYPES = ("float32", "float64")
TARGETS = ("until_loss", "until_log10_loss", "until_time", "until_accurate", "until_alignment")
LIMITS = ("max_evaluations", "checkpoints")
DEFAULT_LOSS = 1e-2  # the target when none is given


@final
@dataclass(frozen=True)
class FlowSettings:
    """The net, its data, the flow, the seed and dtype of all of it, and where to stop.

    The default sizes are the published ones (Min & Vidal, ICML 2024, Fig. 2; their start is "gaussian"). ``init`` is
    the initial scale, as in the papers; ``start`` is what ``PolyReLUNet`` calls init.
    """

    p: float = 3.0
    clusters: str = "6+4"
    dim: int = 1000
    samples: int = 20_000
    width: int = 2000
    alpha: float = 0.1
    init: float = 1e-7
    start: str = "balanced"
    nudge: float = 0.05
    loss: str = "exp"
    rtol: float = 1e-2
    seed: int = 0
    dtype: str = "float32"
    until_loss: float | None = None
    until_log10_loss: float | None = None
    until_time: float | None = None
    until_accurate: bool = False
    until_alignment: float | None = None
    max_evaluations: float = 10_000.0
    checkpoints: str = ""

    def __post_init__(self) -> None:
        """Check what is named differently inside the package; the rest is checked where it is used."""
        for name, allowed in (("start", STARTS), ("loss", LOSSES), ("dtype", DTYPES)):
            require(getattr(self, name) in allowed, name, getattr(self, name), f"one of {', '.join(allowed)}")
        require(self.samples >= 1, "samples", self.samples, "a whole number >= 1")
        require(1e-8 <= self.rtol <= 0.1, "rtol", self.rtol, "a number between 1e-8 and 0.1")
        for name in ("init", "until_loss", "until_time", "max_evaluations"):
            value = getattr(self, name)
            good = value is None or (value > 0 and math.isfinite(value))
            require(good, name.replace("_", "-"), value, "a finite number > 0")
        log10 = self.until_log10_loss
        require(log10 is None or math.isfinite(log10), "until-log10-loss", log10, "a finite number such as -1000")
        self.levels()
        cosine = self.until_alignment
        require(cosine is None or 0 < cosine < 1, "until-alignment", cosine, "a cosine between 0 and 1")

    def levels(self) -> tuple[float, ...]:
        """The log10 losses of ``checkpoints``, given as "-10,-15"."""
        try:
            found = tuple(float(word) for word in self.checkpoints.split(",") if word.strip())
        except ValueError:
            found = (math.nan,)
        require(all(map(math.isfinite, found)), "checkpoints", self.checkpoints, "log10 losses, as -10,-15,-20")
        return found

    @property
    def targets(self) -> dict[str, Any]:
        """The stop conditions that were asked for; a loss of 0.01 if none was."""
        given = {name: getattr(self, name) for name in TARGETS if getattr(self, name) not in (None, False)}
        return given or {"until_loss": DEFAULT_LOSS}

    def resumed(self, new: Mapping[str, Any]) -> FlowSettings:
        """For a resumed run: new targets replace the old ones, new limits too; nothing else may differ."""
        ends = {name: value for name, value in new.items() if name in (*TARGETS, *LIMITS)}
        for name, value in new.items():
            kept = getattr(self, name)
            if name not in ends and value != kept:
                option = name.replace("_", "-")
                raise InputError(f"{option}={value}: the run to resume has {option}={kept}; leave --{option} out.")
        if "checkpoints" in ends:
            ends["checkpoints"] = ",".join(filter(None, [self.checkpoints, ends["checkpoints"]]))
        if any(name in TARGETS for name in ends):
            ends = {**{part.name: part.default for part in fields(self) if part.name in TARGETS}, **ends}
        return replace(self, **ends)

    def command(self, out: str) -> str:
        """The command that makes this run again, every setting that decided it spelled out, targets among them."""
        decided = {**asdict(self), **dict.fromkeys(TARGETS), **self.targets}
        decided["nudge"] = self.nudge if self.start == "nudged" else None
        return to_argv("flow", **decided, out=out)

    def as_json(self) -> dict[str, Any]:
        """Plain values by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Any, path: object) -> FlowSettings:
        """The inverse of ``as_json``; ``path`` is named when something in it is not right."""
        known = {part.name: part.default for part in fields(cls)}
        good = isinstance(values, dict) and values.keys() == known.keys()
        good = good and all(_like(values[name], default) for name, default in known.items())
        require(good, "out", path, "settings written by this version of polyrelu")
        return cls(**values)


def _like(value: object, default: object) -> bool:
    """Is ``value`` of the type of ``default``? A number may be whole, and None stands for no number."""
    if isinstance(value, bool) or isinstance(default, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if default is None:
        return value is None or isinstance(value, (int, float))
    return isinstance(value, (int, float) if isinstance(default, float) else type(default))
