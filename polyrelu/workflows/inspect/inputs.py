"""What an inspection looks at: a net, data that fit it, how it was trained if that is known, and what both share."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import final

import torch

from polyrelu.bias import (
    TRIAL_ROWS,
    Alignment,
    Decoupling,
    HomogeneousLayer,
    Subclasses,
    UniversalRadii,
    alignment,
    decoupling,
    estimate_subclasses,
    known_subclasses,
    layers,
    neurons_of,
    universal,
)
from polyrelu.data import Dataset
from polyrelu.errors import InputError, require
from polyrelu.nets import AverageClassifier, CentreClassifier, Net, PolyReLUNet
from polyrelu.train import Trajectory
from polyrelu.workflows.evaluate.inputs import fitted, read_net, read_points
from polyrelu.workflows.evaluate.settings import EvaluationSettings
from polyrelu.workflows.flow.run import ends_with
from polyrelu.workflows.flow.settings import TRAJECTORY_FILE
from polyrelu.workflows.records import to_argv


@final
@dataclass(frozen=True)
class InspectionSettings:
    """What is inspected, as typed; ``limit``: only the first so many rows."""

    net: str
    data: str
    trajectory: str | None = None
    limit: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Check all that needs neither the net nor the data."""
        require(self.seed >= 0, "seed", self.seed, "a whole number >= 0")
        require(self.limit is None or self.limit >= 2, "limit", self.limit, "a whole number >= 2")

    @property
    def name(self) -> str:
        """The net's, as pictures and the table call it."""
        name = Path(self.net).name or "net"
        return name if len(name) <= 40 else name[:39] + "…"

    def command(self, out: str) -> str:
        """The command that makes this inspection again."""
        options = {"trajectory": self.trajectory, "limit": self.limit, "seed": self.seed}
        return to_argv("inspect", self.net, self.data, **options, out=out)


@final
@dataclass(frozen=True)
class InspectedNet:
    """A net, data and (maybe) a trajectory that belong together. What several measurements need is computed once.

    An ideal classifier of ReLU powers is looked at as the PolyReLUNet it equals; ``kind`` is what was read.
    """

    net: Net
    data: Dataset
    trajectory: Trajectory | None
    seed: int
    kind: str
    name: str

    @cached_property
    def shallow(self) -> bool:
        """Has it one hidden layer, whose neurons can be looked at?"""
        try:
            neurons_of(self.net)
        except InputError:
            return False
        return True

    @property
    def poly(self) -> PolyReLUNet:
        """The net itself; refused in words if it is of another kind."""
        if not isinstance(self.net, PolyReLUNet):
            raise InputError(f"it is measured for a PolyReLUNet only, this is a {self.kind}.")
        return self.net

    @cached_property
    def layers(self) -> tuple[HomogeneousLayer, ...]:
        """The layers of a homogeneous net; refused with the layer that breaks it."""
        try:
            return layers(self.net, self.data.rows(0, min(len(self.data), TRIAL_ROWS)))
        except InputError as error:
            expected, but, why = str(error).split("; train without it")[0].partition(", but ")
            raise InputError(f"not homogeneous in its weights: {why}" if but else expected) from None

    @cached_property
    def decoupling(self) -> Decoupling:
        """Averages or single centres."""
        if bool((neurons_of(self.net).log_contribution == -torch.inf).all()):
            raise InputError("every neuron is 0, nothing was learned.")
        return decoupling(self.net, self.data, seed=self.seed)

    @cached_property
    def subclasses(self) -> Subclasses:
        """Those of the data; estimated where nobody knows them, once for this and for `decoupling`."""
        found = known_subclasses(self.data)
        with suppress(InputError):
            found = found or self.decoupling.subclasses
        return found or estimate_subclasses(self.data, seed=self.seed, origin=getattr(self.net, "centre", None))

    @property
    def estimated(self) -> bool:
        """Were the sub-classes estimated, because the data do not say?"""
        return self.data.cluster is None and self.data.centres is None

    @cached_property
    def placed(self) -> Dataset:
        """The data with a centre and a cluster for every sub-class, known or estimated."""
        if self.data.centres is not None and self.data.cluster is not None:
            return self.data
        return dataclasses.replace(self.data, centres=self.subclasses.centres, cluster=self.subclasses.cluster)

    @cached_property
    def order(self) -> list[int]:
        """The number each sub-class has among the centres of ``placed``."""
        numbers = range(len(self.subclasses.labels))
        if self.placed is not self.data:
            return list(numbers)
        assert self.data.cluster is not None
        first_rows = [int((self.subclasses.cluster == k).nonzero()[0, 0]) for k in numbers]
        return [int(number) for number in self.data.cluster[first_rows]]

    @cached_property
    def alignment(self) -> Alignment:
        """Cosines of every neuron to averages and centres."""
        return alignment(self.poly, self.placed)

    @cached_property
    def universal(self) -> UniversalRadii:
        """The universal direction and where the net breaks along it."""
        return universal(self.subclasses.centres, self.subclasses.labels, self.net)

    @property
    def loss(self) -> str:
        """The loss it was trained on where that has margins, else exp (one logit) or cross_entropy (several)."""
        known = "" if self.trajectory is None else self.trajectory.settings.get("loss", "")
        good = ("exp", "logistic") if self.data.binary else ("cross_entropy",)
        return known if known in good else good[0]

    @property
    def history(self) -> Trajectory:
        """The trajectory; refused in words where there is none."""
        if self.trajectory is None:
            raise InputError("no trajectory: give a folder of polyrelu flow as NET, or --trajectory FILE.")
        return self.trajectory


def read_inspected_net(settings: InspectionSettings) -> InspectedNet:
    """Read everything and check that it belongs together."""
    net, evaluated = read_net(settings.net), EvaluationSettings(settings.net, settings.data)
    net, data = fitted(net, read_points(net, evaluated), evaluated)
    if settings.limit is not None and settings.limit < len(data):
        try:
            data = data.subset(slice(0, settings.limit))
        except InputError as error:
            raise InputError(f"limit={settings.limit}: the first rows are no data set ({error}) Raise it.") from None
    kind = type(net).__name__
    if isinstance(net, AverageClassifier | CentreClassifier):
        net = net.as_polyrelu_net()
    return InspectedNet(net, data, _trajectory(settings, net), settings.seed, kind, settings.name)


def _trajectory(settings: InspectionSettings, net: Net) -> Trajectory | None:
    """The one given, else the one in the net's folder; checked to end with the net."""
    path = Path(settings.net if settings.trajectory is None else settings.trajectory)
    path = path / TRAJECTORY_FILE if settings.trajectory is None or path.is_dir() else path
    if settings.trajectory is None and not path.is_file():
        return None
    trajectory = Trajectory.load(path, net)
    if trajectory.history.log_contribution[-1:].size and not ends_with(trajectory, net):
        raise InputError(
            f"trajectory={path}: does not end with the net {settings.net}; expected the record of its own training "
            "(to leave it out, give the net's file instead of its folder)."
        )
    return trajectory


def some_rows(data: Dataset, most: int, seed: int) -> Dataset:
    """At most so many rows, drawn at random; the data themselves if they have no more."""
    if len(data) <= most:
        return data
    return data.subset(torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))[:most].sort().values)
