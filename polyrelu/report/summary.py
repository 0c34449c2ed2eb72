"""One training run in a few numbers, and in one sentence."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, final

from polyrelu.bias import ALIGNED_COSINE, alignment
from polyrelu.checks import checked
from polyrelu.data import Dataset
from polyrelu.nets import PolyReLUNet
from polyrelu.train import Trajectory

RATE = 0.2  # learning rate of the published runs (Min & Vidal, ICML 2024): one of their steps is 0.2 of flow time


@final
@dataclass(frozen=True)
class RunSummary:
    """What a run reached and what its neurons learned.

    The neurons that carry 99 % of sum_j |v_j| |w_j| are counted (``carrying`` of ``width``); ``cos_centre`` and
    ``cos_average`` are the means of their largest cosines to a sub-class centre and to a class average, and
    ``covered`` of the ``centres`` have one of them within cosine 0.95. None stands for what the data (no centres) or
    the network (no such neurons) cannot tell.
    """

    status: str
    message: str
    log10_time: float
    evaluations: float
    seconds: float
    log10_loss: float
    accuracy: float
    width: int | None = None
    carrying: int | None = None
    cos_centre: float | None = None
    cos_average: float | None = None
    centres: int | None = None
    covered: int | None = None

    @property
    def time(self) -> float:
        """Flow time; infinite where a float cannot hold it."""
        return 10**self.log10_time if self.log10_time < 308 else math.inf

    @property
    def gd_steps(self) -> float:
        """Steps of gradient descent at the published rate 0.2 that cover the same time."""
        return self.time / RATE

    def as_json(self) -> dict[str, float | int | str | None]:
        """Everything as JSON holds it: finite numbers, texts, null for the rest."""
        values = {**asdict(self), "time": self.time, "gd_steps": self.gd_steps}
        unknown = {key for key, value in values.items() if isinstance(value, float) and not math.isfinite(value)}
        return {key: None if key in unknown else value for key, value in values.items()}

    def rows(self) -> list[tuple[str, str]]:
        """(label, text) of each line of the table."""
        steps = power_text(self.log10_time - math.log10(RATE), whole=True)
        rows = [
            ("The neurons learned", self.learned()),
            ("Status", self.message),
            ("Flow time", power_text(self.log10_time)),
            ("Gradient descent steps for that time", f"{steps} at the published rate {RATE}"),
            ("Passes over the data", f"{self.evaluations:,.1f}"),
            ("Seconds", f"{self.seconds:,.1f}"),
            ("Training loss", power_text(self.log10_loss)),
            ("Training accuracy", _percent(self.accuracy)),
        ]
        if self.carrying is not None:
            rows.append(("Neurons that carry 99 % of Σ|v||w|", f"{self.carrying} of {self.width}"))
        if self.cos_centre is not None:
            rows.append(("… mean cosine to the nearest centre", f"{self.cos_centre:.4f}"))
        if self.cos_average is not None:
            rows.append(("… mean cosine to the nearest class average", f"{self.cos_average:.4f}"))
        if self.covered is not None:
            rows.append((f"Centres they cover (cosine > {ALIGNED_COSINE})", f"{self.covered} of {self.centres}"))
        return rows

    def learned(self) -> str:
        """What the neurons that carry the net point at, in two words."""
        at_average = self.cos_average is not None and self.cos_average > ALIGNED_COSINE
        at_centre = self.cos_centre is not None and self.cos_centre > ALIGNED_COSINE
        if at_average:
            return "class averages, which are the centres" if at_centre else "class averages"
        if at_centre:
            return "single sub-class centres"
        return "nothing that was measured" if self.cos_average is None else "neither centres nor averages"

    def reading(self) -> str:
        """The result in one plain sentence."""
        if not self.carrying or self.cos_average is None:
            return f"The training loss is {power_text(self.log10_loss)}; there are no neurons to look at."
        who = f"{self.carrying} of {self.width} neurons carry the net"
        average = f"class averages (mean cosine {self.cos_average:.3f})"
        if self.cos_centre is None:
            verb = "point" if self.cos_average > ALIGNED_COSINE else "do not point"
            return f"{who} and {verb} at the {average}."
        if self.cos_centre > ALIGNED_COSINE:
            every = "all" if self.covered == self.centres else f"{self.covered} of"
            return (
                f"{who}, each points at a single sub-class centre (mean cosine {self.cos_centre:.3f}), "
                f"and {every} {self.centres} centres are covered."
            )
        if self.cos_average > ALIGNED_COSINE:
            return f"{who} and point at the {average}, not at single sub-classes ({self.cos_centre:.3f})."
        return f"{who} and point neither at {average} nor at sub-class centres ({self.cos_centre:.3f})."


@checked
def summarise(trajectory: Trajectory, data: Dataset) -> RunSummary:
    """The numbers of a run, measured on its network; O(width D K). ``data``: what it was trained on."""
    neurons: dict[str, Any] = {}
    if isinstance(trajectory.net, PolyReLUNet):
        seen = alignment(trajectory.net, data)
        neurons = {"width": trajectory.net.width, "carrying": len(seen.dominant)}
        if len(seen.dominant):
            neurons["cos_average"] = float(seen.averages[seen.dominant].amax(1).mean())
            if seen.centres is not None and seen.covered is not None:
                neurons["cos_centre"] = float(seen.centres[seen.dominant].amax(1).mean())
                neurons["centres"], neurons["covered"] = len(seen.covered), int(seen.covered.sum())
    return RunSummary(
        status=trajectory.status.name,
        message=trajectory.status.value,
        log10_time=float(trajectory.history.log_time[-1]) / math.log(10),
        evaluations=trajectory.evaluations,
        seconds=trajectory.seconds,
        log10_loss=trajectory.log10_loss,
        accuracy=trajectory.accuracy,
        **neurons,
    )


def power_text(log10: float, whole: bool = False) -> str:
    """A positive number given by its decimal log, at any size: 291.6, 9.950e-03, 10^-803.2; or ``whole``, 1,458."""
    if log10 == -math.inf:
        return "0"
    if not math.isfinite(log10):
        return "not finite"
    if abs(log10) > 300:
        return f"10^{log10:.1f}"
    number = 10**log10
    if (whole and number < 1e7) or 1e4 <= number < 1e7:
        return f"{number:,.0f}"
    return f"{number:.4g}" if 0.01 <= number < 1e4 else f"{number:.3e}"


def _percent(share: float) -> str:
    """100 % only when it is: 0.999999 is 99.999 %."""
    return "100 %" if share >= 1 else f"{math.floor(share * 1e5) / 1e3:g} %"
