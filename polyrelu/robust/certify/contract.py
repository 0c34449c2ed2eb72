"""The contract of certificates, and the call they share.

    radius_i <= min |d| : margin(x_i + d) <= 0      for each point, in the arithmetic of the job; 0 proves nothing

A certificate's own file says for which nets and norms it holds (`Certificate.scope`) and what it proves
(`Certificate.radius`). The call, which no certificate overrides, owns the checks of what people give it.

To add a certificate: its file with a final subclass, a row of `polyrelu.robust.certify.CERTIFICATES`, and a row of the
table in tests/robust/certify/test_certificates.py, which refuses certificates that are in one table only.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from numbers import Real
from typing import final

import torch
from torch import Tensor, nn

from polyrelu.checks import checked, is_whole
from polyrelu.errors import require
from polyrelu.nets import PolyReLUNet, ReadOut, as_float64
from polyrelu.robust.core.arithmetic import REAL, Arithmetic, arithmetic_of
from polyrelu.robust.core.integrity import require_genuine
from polyrelu.robust.core.margin import check_points, margin_of
from polyrelu.robust.core.model_copy import copied
from polyrelu.robust.core.norms import NORMS, check_norm
from polyrelu.robust.core.pool import LabelledRows, PoolSource
from polyrelu.robust.core.reduced_net import ReducedNet


@final
@dataclass(frozen=True)
class Budget:
    """When to stop: nodes of branch and bound a point, seconds a point; None is no limit.

    The whole ball is always bounded: one to three nodes for each rival class, after which ``nodes=0`` or ``seconds=0``
    stops. Cutting boxes keeps to ``nodes``, but for the last few; leaders (p > 2) are begun where there are no more of
    them than that, and may take three nodes each. ``seconds`` are an average over the points of a call, begin when the
    first attack has ended, and are looked at between batches of nodes: the one under way is finished.
    """

    nodes: int | None = 300
    seconds: float | None = None

    def __post_init__(self) -> None:
        """Refuse what is no budget."""
        nodes, seconds = self.nodes, self.seconds
        good = nodes is None or is_whole(nodes, 0)
        require(good, "budget.nodes", nodes, "a whole number >= 0, or None")
        good = seconds is None or (isinstance(seconds, Real) and not isinstance(seconds, bool) and seconds >= 0)
        require(good, "budget.seconds", seconds, "a number >= 0, or None")


def silent(done: int) -> None:
    """The default of `Job.progress`: reports nothing."""


@final
@dataclass(frozen=True, eq=False)
class Job:
    """Points of one net whose radii are wanted, and all that a certificate or `bracket` may need for them.

    net, X (n, D), y (n,) : labels as the net's margin wants them
    norm, tol, budget, arithmetic, pool, seed : as in `polyrelu.robust.bracket`; without a pool X and y are one
    limit : the radius wanted; nothing beyond it need be proven
    perturbation (n, D) : what an attack has found; decides speed and tightness only
    rivals (n, C) bool : the logits that logit y must exceed; None: all others
    own (n,) : of a `ReadOut`, the sub-class of class y that is proven to win; None: the one that wins at the point
    reduced : the net in few coordinates, where there is one
    progress : called with the number of points that are done
    """

    net: nn.Module
    X: Tensor
    y: Tensor
    norm: float = 2.0
    tol: float = 1e-3
    budget: Budget = field(default_factory=Budget)
    arithmetic: Arithmetic = REAL
    pool: PoolSource | None = None
    seed: int = 0
    limit: float = math.inf
    perturbation: Tensor | None = None
    rivals: Tensor | None = None
    own: Tensor | None = None
    reduced: ReducedNet | None = None
    progress: Callable[[int], None] = silent

    def __len__(self) -> int:
        """Number of points."""
        return len(self.X)

    @property
    def pool_or_points(self) -> PoolSource:
        """The pool, or the points themselves."""
        return LabelledRows(self.X, self.y) if self.pool is None else self.pool

    def at(self, points: Tensor, perturbation: Tensor | None = None) -> Job:
        """The same of some of the points, with what an attack has found for these."""
        rivals = None if self.rivals is None else self.rivals[points]
        own = None if self.own is None else self.own[points]
        return replace(self, X=self.X[points], y=self.y[points], rivals=rivals, own=own, perturbation=perturbation)


class Tier(Enum):
    """How a certificate proves, and so who asks the table for it (`polyrelu.robust.certify.table.applicable`)."""

    BRANCHING = "branch and bound, which `bracket` runs with its attacks where one of these applies"
    ONE_BALL = "one ball for each point, milliseconds; begun where an attack ended"
    QUADRATIC = "one quadratic a ball, milliseconds; no attack needed"
    EVERY_NORM = "in every norm and for every power, microseconds"


WITHOUT_BRANCHING = (Tier.ONE_BALL, Tier.EVERY_NORM)  # the tighter first


@final
@dataclass(frozen=True)
class Scope:
    """What a certificate is made for, and what its `Certificate.radius` is given.

    tier : by which `bracket`, the bounds at one radius and heads ask for it; None: used where it is named, only
    norms : of perturbations; nets : classes of nets; powers : p of relu^p, in words, see `Certificate.takes_power`
    executed : it can speak of the net as executed in floating point
    right_points_only : it wants a float64 net and only points that it is right about; the call makes both
    takes_rivals : its radii are against ``job.rivals`` alone where these are given
    """

    tier: Tier | None = None
    norms: tuple[float, ...] = NORMS
    nets: tuple[type[nn.Module], ...] = (PolyReLUNet,)
    powers: str = "at least 1"
    executed: bool = True
    right_points_only: bool = False
    takes_rivals: bool = False


class Certificate(ABC):
    """Proven radii of points: a final frozen dataclass that overrides `radius`, and `scope` where it is not for all."""

    @property
    def scope(self) -> Scope:
        """What it is made for."""
        return Scope()

    def takes_power(self, p: float) -> bool:
        """Whether it holds for relu^p."""
        return p >= 1

    def applies(self, net: nn.Module, norm: float) -> bool:
        """Whether something can be proven of this net in this norm."""
        return isinstance(net, self.scope.nets) and norm in self.scope.norms and self.takes_power(_power(net))

    @abstractmethod
    def radius(self, job: Job) -> Tensor:
        """A proven radius of each point, (n,) float64, the least over rivals; nothing is checked."""

    @final
    @checked
    def __call__(
        self,
        net: nn.Module,
        X: Tensor,
        y: Tensor,
        *,
        norm: float | str = 2,
        limit: float = math.inf,
        arithmetic: Arithmetic | str = REAL,
    ) -> Tensor:
        """A proven radius of each point, (n,) float64; 0 for misclassified ones.

        Parameters
        ----------
        net : of one of the ``scope.nets``, with a p it takes
        X : (n, D) in the net's dtype; y : (n,) of +1/-1 for one logit, of 0..C-1 otherwise
        norm : 1, 2 or inf, one of the ``scope.norms``
        limit : the radius wanted; what proves single radii tries nothing beyond it
        arithmetic : "real", or "float32", "float64" for the net as executed, see `polyrelu.robust.core.arithmetic`
        """
        norm, arithmetic, name, scope = check_norm(norm), arithmetic_of(arithmetic), type(self).__name__, self.scope
        classes = " or ".join(kind.__name__ for kind in scope.nets)
        require(isinstance(net, scope.nets), "net", type(net).__name__, f"a {classes} for {name}")
        require(norm in scope.norms, "norm", norm, f"{' or '.join(f'{n:g}' for n in scope.norms)} for {name}")
        require(self.takes_power(_power(net)), "net.p", _power(net), scope.powers)
        require(scope.executed or arithmetic is REAL, "arithmetic", arithmetic.name, f"'real' for {name}")
        require(limit > 0, "limit", limit, "a number > 0, or inf for the largest radius")
        require_genuine(net)
        X, y = check_points(net, X, y)
        require(self.applies(net, norm), "net", type(net).__name__, f"one that {name} applies to")
        job = Job(net, X, y, norm=norm, limit=limit, arithmetic=arithmetic)
        return self._of_right_points(job) if scope.right_points_only else self.radius(job)

    def _of_right_points(self, job: Job) -> Tensor:
        net = as_float64(copied(job.net)).eval()
        X, y = job.X.detach().double(), job.y.double() if job.y.is_floating_point() else job.y
        radius = torch.zeros(len(X), dtype=torch.float64)
        with torch.no_grad():
            right = (margin_of(net(X), y) > 0).nonzero()[:, 0]
        if len(right):
            radius[right] = self.radius(replace(job, net=net, X=X, y=y).at(right))
        return radius


def _power(net: nn.Module) -> float:
    """p of relu^p in the net, or in the one it reads; 1 where there is none."""
    return float(getattr(net.net if isinstance(net, ReadOut) else net, "p", 1.0))
