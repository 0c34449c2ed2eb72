"""Every certificate by its public name: what it takes, and what it proves.

A certificate gives for each row of X a radius within which the label holds in real arithmetic with the stored weights.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from polyrelu import Budget
from polyrelu.nets import AverageClassifier, CentreClassifier, Net, PolyReLUNet, ReadOut, inner_net
from polyrelu.robust import certify
from polyrelu.robust.core import ReducedNet
from tools.campaign.names import located
from tools.campaign.scores import Array

NORMS = (1.0, 2.0, math.inf)


@dataclass(frozen=True)
class Job:
    """A classifier and its points: X (n, D), labels y (n,); what the search found; nodes of branch and bound.

    ``steps`` (n, D) : perturbations that break, 0 where none was found; ``extra`` : what a family says of its nets
    """

    net: Any
    X: Tensor
    y: Tensor
    norm: float
    nodes: int = 300
    steps: Array | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


Answer = tuple[Tensor, Tensor | None]
Prove = Callable[[Callable[..., Any], Job], "Answer | None"]


@dataclass(frozen=True)
class Certificate:
    """A certificate by its public ``name`` and first ``parameters``, where it applies, and how to ask it.

    ``prove`` gives lower bounds (n,), and upper ones (n,) or None; None for nothing proven. ``slack``: relative, for
    formulas documented as exact up to their last digits and not as rounded to the safe side. ``after``: asked after the
    search, with what it found.
    """

    name: str
    parameters: tuple[str, ...]
    applies: Callable[[Job], bool]
    prove: Prove
    variant: str = ""
    slack: float = 0.0
    after: bool = False

    @property
    def title(self) -> str:
        """What tables call it."""
        return self.name + (f" ({self.variant})" if self.variant else "")

    def function(self) -> Callable[..., Any]:
        """The certificate itself, as the package has it now."""
        return located(self.name, *self.parameters)

    def __call__(self, job: Job) -> tuple[Array, Array | None] | None:
        """Proven radii and, of a bracket, found ones; None where nothing is claimed."""
        answer = self.prove(self.function(), job)
        if answer is None:
            return None
        lower, upper = answer
        return np.asarray(lower.detach().double()), None if upper is None else np.asarray(upper.detach().double())


def _is_net(job: Job) -> bool:
    return isinstance(job.net, PolyReLUNet)


def _quadratic(job: Job) -> bool:
    return certify.CERTIFICATES["quadratic"].applies(job.net, job.norm)


def _l2_net(job: Job) -> bool:
    return _is_net(job) and job.norm == 2


def _bracketed(job: Job) -> bool:
    return isinstance(job.net, (PolyReLUNet, ReadOut))


def _ideal(kind: str) -> Callable[[Job], bool]:
    return lambda job: job.norm == 2 and job.extra.get("ideal") == kind


def _foreign(job: Job) -> bool:
    return not isinstance(job.net, Net) and not hasattr(job.net, "net_")


def _any_norm(function: Callable[..., Any], job: Job) -> Answer:
    return function(job.net, job.X, job.y, norm=job.norm), None


def _l2(function: Callable[..., Any], job: Job) -> Answer:
    return function(job.net, job.X, job.y), None


def _bracket(**more: Any) -> Prove:
    def prove(function: Callable[..., Any], job: Job) -> Answer:
        found = function(job.net, job.X, job.y, norm=job.norm, budget=Budget(nodes=job.nodes), **more)
        return found.lower, found.upper

    return prove


def _closed(function: Callable[..., Any], job: Job) -> Answer:
    power = {"p": job.net.p} if job.extra["ideal"] == "centre" else {}
    return function(job.X, job.y, job.extra["centres"], job.extra["labels"], **power), None


def _nearest(function: Callable[..., Any], job: Job) -> Answer:
    radius: Tensor = function(job.net, job.X, 2.0 * job.y.double() - 1)
    return radius.clamp(min=0), None


def _certified(function: Callable[..., Any], job: Job) -> Answer | None:
    lower = function(job.net, job.X, job.y, job.norm, budget=Budget(nodes=job.nodes))
    return None if lower is None else (lower, None)


def _head(function: Callable[..., Any], job: Job) -> Answer:
    classes, X = job.net.classes_, job.X.numpy()
    place = (job.y > 0).long() if job.y.is_floating_point() else job.y
    found = function(job.net, X, classes[place.numpy()], norm=job.norm, budget=Budget(nodes=job.nodes))
    return found.lower, found.upper


def _doubled(job: Job) -> tuple[PolyReLUNet, Tensor, Tensor]:
    """What the quick certificate and branch and bound take: float64."""
    y = job.y.double() if job.y.is_floating_point() else job.y
    return copy.deepcopy(job.net).double(), job.X.double(), y


def _right(net: Any, X: Tensor, y: Tensor) -> Tensor:
    """(n,) bool: rows that the net, as it runs, is right about."""
    with torch.no_grad():
        right: Tensor = located("margin_of", "logits", "y")(net(X), y) > 0
        return right


def _quick(function: Callable[..., Any], job: Job) -> Answer:
    net, X, y = _doubled(job)
    radius, right = torch.zeros(len(X), dtype=torch.float64), _right(net, X, y)
    assert job.steps is not None
    if bool(right.any()):
        radius[right] = function(net, X[right], y[right], torch.as_tensor(job.steps)[right])
    return radius, None


def _least(function: Callable[..., Any], job: Job) -> Answer:
    def quick(net: Any, X: Tensor, y: Tensor, step: Tensor) -> Tensor:
        logits = torch.arange(net.outputs).expand(len(X), -1)
        rivals = torch.ones_like(logits, dtype=torch.bool) if net.outputs == 1 else logits != y[:, None]
        radius: Tensor = function(net, X, y, rivals, step)
        return radius

    return _quick(quick, job)


def _branch(function: Callable[..., Any], job: Job) -> Answer:
    """Branch and bound in the ball of twice the break that the search found: it may be proven to be too large."""
    net, X, y = _doubled(job)
    radius, right = torch.zeros(len(X), dtype=torch.float64), _right(net, X, y)
    assert job.steps is not None
    upper = 2 * torch.linalg.vector_norm(torch.as_tensor(job.steps), dim=1)
    here = (right & (upper > 0)).nonzero()[:, 0]
    shallow = ReducedNet.from_net(net, 1e-3)
    if len(here) and 0 < shallow.groups <= 60:
        rows = shallow.rows(X[here], y[here])
        near = located("nearest_boundary_points", "net", "rows")(shallow, rows)
        budget = Budget(nodes=min(job.nodes, 30))
        found = function(shallow, X[here], y[here], rows, near.z, upper[here], tol=1e-3, budget=budget)
        radius[here] = found.lower
    return radius, None


def _held(function: Callable[..., Any], job: Job) -> Answer:
    """Asked at one radius, the median of the breaks that the search found: half of the points must not hold there."""
    assert job.steps is not None
    radii = torch.linalg.vector_norm(torch.as_tensor(job.steps), dim=1)
    proven, radii = torch.zeros(len(job.X), dtype=torch.float64), radii[(radii > 0) & (radii < math.inf)]
    if len(radii):
        radius = float(radii.median()) * (1 + 1e-9)
        held = function(job.net, job.X, job.y, radius)
        proven[getattr(held, "proven", held)] = radius
    return proven, None


def _of_table(name: str) -> Certificate:
    """A row of the package's own table, asked by its name; an ideal classifier that a net was made from, as itself."""

    def subject(job: Job) -> Any:
        ideal, kinds = job.extra.get("ideal"), certify.CERTIFICATES[name].scope.nets
        if ideal == "centre" and CentreClassifier in kinds:
            return CentreClassifier(job.extra["centres"], job.extra["labels"], p=job.net.p)
        if ideal == "average" and AverageClassifier in kinds:
            return AverageClassifier(job.extra["centres"], job.extra["labels"])
        return job.net

    def applies(job: Job) -> bool:
        row = certify.CERTIFICATES[name]
        if not row.applies(subject(job), job.norm):
            return False
        return row.scope.tier is not certify.Tier.BRANCHING or inner_net(job.net).width <= FEW_NEURONS

    def prove(function: Callable[..., Any], job: Job) -> Answer:
        net = subject(job)
        X, y = (job.X, job.y) if net is job.net else (job.X.to(net.centres), job.y.to(net.labels))
        return function(net, X, y, job.norm, method=name), None

    slack = 0.0 if certify.CERTIFICATES[name].scope.executed else 1e-9
    return Certificate("certified_radius", NET, applies, prove, name, slack=slack)


NET = ("net", "X", "y")
FEW_NEURONS = 8  # up to which branch and bound with its own budget takes a fraction of a second
CERTIFICATES = (
    *(_of_table(name) for name in certify.CERTIFICATES),  # whatever stands there is held
    Certificate("bracket", NET, _bracketed, _bracket()),
    Certificate("bracket", NET, lambda job: _bracketed(job) and job.norm == 2, _bracket(widest=1), "without branching"),
    Certificate("root_lipschitz_radius", NET, _is_net, _any_norm),
    Certificate("linear_radius", NET, _is_net, _any_norm),
    Certificate("quadratic_radius", NET, _quadratic, _l2),
    Certificate("krylov_radius", (*NET, "step"), _quadratic, _quick, after=True),
    Certificate("krylov_radius_against", ("net", "X", "own", "rivals", "step"), _quadratic, _least, after=True),
    Certificate("certify", (*NET, "rows"), _l2_net, _branch, "branch and bound", after=True),
    Certificate("bounds_at_radius", (*NET, "radius"), lambda job: _bracketed(job) and job.norm == 2, _held, after=True),
    Certificate("proven_at_radius", (*NET, "radius"), lambda job: _bracketed(job) and job.norm == 2, _held, after=True),
    Certificate("centre_radius", ("X", "y", "centres", "labels", "p"), _ideal("centre"), _closed, slack=1e-9),
    Certificate("average_radius", ("X", "y", "centres", "labels"), _ideal("average"), _closed, slack=1e-9),
    Certificate("nearest_centre_radius", NET, _ideal("nearest"), _nearest, slack=1e-9),
    Certificate("certified", ("model", "X", "y"), _foreign, _certified),
    Certificate("PolyReLUClassifier.certify", ("self", "X", "y"), lambda job: hasattr(job.net, "net_"), _head),
)

# Public functions whose names end like a certificate's and that prove nothing of a given net at a given point.
NO_CERTIFICATES = {
    "average_critical_radius": "a number of the ideal classifier at a centre; average_radius is held instead",
    "centre_critical_radius": "a number of the ideal classifier at a centre; centre_radius is held instead",
    "closeness_radius": "a bound of the papers, of constants",
    "feature_averaging_radius": "a scale of the papers",
    "feature_decoupling_radius": "a scale of the papers",
    "flip_radius": "a number of the ideal classifier at a centre",
    "half_radius": "where measured curves fall below one half",
    "lipschitz_radius": "of a margin as float64 computes it, without rounding; root_lipschitz_radius is tested",
    "trained_radius": "a bound of the papers, with constants that are not known",
    "by_radius": "a table",
    "mark_radius": "a line in a figure",
    "universal_radius": "a measurement of `polyrelu inspect`: where one direction breaks, which is no proof",
}
