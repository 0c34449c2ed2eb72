"""A robustness number: proven below, found above."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import final

import torch
from torch import Tensor, nn

from polyrelu.checks import checked, checked_output
from polyrelu.errors import InputError, require
from polyrelu.nets import PolyReLUNet, ReadOut, as_float64, as_polyrelu_net, inner_net, logit_classes
from polyrelu.progress import Progress
from polyrelu.robust.bracketing.readout import readout_bounds
from polyrelu.robust.bracketing.strategies import (
    MOST_DIRECTIONS,
    Bounds,
    branching_bounds,
    general_bounds,
    in_parts,
    single_ball_bounds,
)
from polyrelu.robust.certify.contract import WITHOUT_BRANCHING, Budget, Job, Tier
from polyrelu.robust.certify.table import applicable
from polyrelu.robust.core.arithmetic import REAL, Arithmetic, arithmetic_of
from polyrelu.robust.core.external_layers import Opaque
from polyrelu.robust.core.integrity import altered
from polyrelu.robust.core.margin import check_points, margin_of
from polyrelu.robust.core.model_copy import copied
from polyrelu.robust.core.norms import check_norm, lengths
from polyrelu.robust.core.pool import LabelledRows, PoolSource, check_pool
from polyrelu.robust.core.reduced_net import ReducedNet
from polyrelu.robust.core.scaled_net import UNIT

POINTS = 2000  # at a time, a tenth of it without branching: a thousand neurons and inputs fit in memory many times
WEIGHTS_BETWEEN_REPORTS = 5_000_000  # weights times points of a general attack


class BracketStatus(Enum):
    """How it went for one point; the text is the message for a person."""

    CLOSED = "Proven and found radius agree within the tolerance."
    BUDGET = "The budget ended before the bounds met; both hold."
    WRONG = "Misclassified without any perturbation, as the net computes it in float64: radius 0."
    FAINT = (
        "Nothing proven: the margin is too small beside the net's largest terms, or too near a tie, for float64 to say."
    )
    UNPROVEN = "No certificate reaches this net or norm beyond the lower bound given; both bounds hold."
    UNBROKEN = "No perturbation was found that changes the decision; the upper bound is infinite, the lower one holds."
    UNBREAKABLE = "Proven: no perturbation, however large, changes the decision."


@final
@dataclass(frozen=True, eq=False)
class Bracket:
    """lower_i <= min |d| : margin(x_i + d) <= 0 <= upper_i for each point.

    ``lower`` holds in the arithmetic named by ``arithmetic``: "real" with the stored weights, or "float32" and
    "float64" for the net as executed, in any batch, order and number of threads (see `robust.core.arithmetic`).
    ``upper`` is the length of a perturbation at which the net itself, run in float64, has a margin <= 0: checked as
    anyone can check it, up to the rounding of its logits.

    lower, upper : (n,) float64; 0 for misclassified points, upper = inf where no attack succeeded, lower = inf where it
        is proven that none can
    perturbation : (n, D) float64, the attack behind ``upper``; zero where there is none
    status : one `BracketStatus` per point
    norm : 1, 2 or inf
    nodes : (n,) int64, nodes of branch and bound spent
    arithmetic : "real", "float32" or "float64"
    why : why nothing is proven of a classifier that is not what its class says ("it has hooks"); else ""
    """

    lower: Tensor
    upper: Tensor
    perturbation: Tensor
    status: tuple[BracketStatus, ...]
    norm: float
    nodes: Tensor
    arithmetic: str = REAL.name
    why: str = ""

    def __len__(self) -> int:
        """Number of points."""
        return len(self.lower)


class BoundsInconsistentError(RuntimeError):
    """A proven radius above a found one: never a property of the net, always a mistake of this package."""

    def __init__(self, what: str) -> None:
        """``what``: a sentence that names the point and both radii."""
        super().__init__(f"{what} This is a bug in polyrelu, not in your net or data; please report it.")


@checked
def bracket(
    net: nn.Module,
    X: Tensor,
    y: Tensor,
    *,
    norm: float | str = 2,
    tol: float = 1e-3,
    budget: Budget | None = None,
    widest: int = MOST_DIRECTIONS,
    arithmetic: Arithmetic | str = REAL,
    pool: PoolSource | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Bracket:
    """lower_i <= r_i <= upper_i, r_i = min |d| : margin(x_i + d) <= 0, worked at until upper/lower - 1 <= ``tol``.

    For a `PolyReLUNet` (or an ideal classifier that is one) and the l2 norm both sides come from the reduced net: the
    convex-concave attack above, branch and bound below. Where neurons did not collapse (more than ``widest``
    directions left, as in heads trained on images or embeddings) the quadratic certificate does without that search,
    and ``tol`` and ``budget`` have no effect. A `ReadOut` is proven by single sub-classes of
    the point's class, so its bounds need not meet. Other norms get the boundary walk and the linear certificate; other
    modules, and nets that are not what their class says (`robust.core.integrity.altered`), the boundary walk and,
    with nothing proven, lower = 0. ``X`` has the dtype of ``net``; everything is computed in float64. What is proven
    holds in ``arithmetic``, by default in real arithmetic with the stored weights; what is found, for the net as it
    runs in float64.

    Parameters
    ----------
    net : any module with one logit (labels +1/-1) or C logits (labels 0..C-1)
    tol : where to stop; 1e-3 is a tenth of a percent
    budget : nodes and seconds a point, see `Budget`; what is proven when it ends is returned
    arithmetic : "real", or "float32", "float64" for a net of that dtype as executed: lower by a margin for rounding
    widest : directions up to which to branch and bound; it takes seconds a point from a hundred on, 60 are cheap
    pool : rows and labels for the starts of general attacks (a Dataset); None takes X and y
    progress : gets ``update(done=...)`` as the work goes on
    """
    norm = check_norm(norm)
    require(0 < tol < 1, "tol", tol, "a number between 0 and 1, such as 1e-3")
    budget = Budget() if budget is None else budget
    arithmetic = arithmetic_of(arithmetic)
    require(isinstance(budget, Budget), "budget", budget, "a polyrelu.Budget, such as Budget(nodes=300), or None")
    X, y = check_points(net, X, y)
    X, y = X.detach().double(), y.double() if y.is_floating_point() else y
    plain, why = as_float64(copied(net)).eval(), altered(net)
    exact = Opaque(plain) if why else as_polyrelu_net(plain)
    pool = LabelledRows(X, y) if pool is None else pool
    check_pool(pool, X, y)
    with torch.no_grad():
        margin = margin_of(checked_output(exact, X, "net"), y)
    _check_margins(plain, margin)
    job = Job(exact, X, y, norm, tol, budget, arithmetic, pool, seed, progress=DoneReporter(progress))
    found, status = _bounds(job, margin > 0, widest)
    return Bracket(found.lower, found.upper, found.perturbation, status, norm, found.nodes, arithmetic.name, why)


def _bounds(job: Job, right: Tensor, widest: int) -> tuple[Bounds, tuple[BracketStatus, ...]]:
    """Both bounds by the certificates that apply, the upper ones of points that are not ``right`` 0."""
    inner = None if applicable(WITHOUT_BRANCHING, job.net, job.norm) is None else inner_net(job.net)
    if inner is not None and applicable([Tier.BRANCHING], job.net, job.norm) is not None:
        job = replace(job, reduced=ReducedNet.from_net(inner, job.tol, job.arithmetic))
    sub_classes = isinstance(job.net, ReadOut)
    branched = job.reduced is not None and job.reduced.groups <= widest
    job.progress(int(len(job) - right.sum()))
    if not bool(right.any()) or (inner is not None and job.arithmetic is REAL and _constant(inner)):
        forever = torch.where(right, torch.inf, 0.0).double()
        found = Bounds.zero(job.X)._replace(lower=forever, upper=forever.clone())
    elif job.reduced is None:
        weights = sum(weight.numel() for weight in job.net.parameters())
        found = in_parts(job, right, max(25, WEIGHTS_BETWEEN_REPORTS // max(1, weights)), general_bounds)
    elif sub_classes:
        found = in_parts(job, right, POINTS // 10, partial(readout_bounds, branched=branched))
    elif branched:
        found = in_parts(job, right, POINTS, branching_bounds)
    else:
        found = in_parts(job, right, POINTS // 10, single_ball_bounds)
    job.progress(len(job))
    if inner is not None:
        _lower_to_attack(job, inner, found)
    check_bounds(found.lower, found.upper)
    return found, _statuses(found, right, job.tol, branched and not sub_classes, inner is not None)


def check_bounds(lower: Tensor, upper: Tensor) -> None:
    """Raise `BoundsInconsistentError` if a proven radius exceeds a found one."""
    wrong = (lower > upper).nonzero()[:, 0].tolist()
    if wrong:
        i = wrong[0]
        raise BoundsInconsistentError(
            f"Point {i} has a proven radius {lower[i]:.17g} above the found one {upper[i]:.17g}."
        )


def _constant(net: PolyReLUNet) -> bool:
    """No neuron counts: right here, right everywhere."""
    return not bool((net.weight.any(dim=1) & net.output.any(dim=0)).any())


def _lower_to_attack(job: Job, net: PolyReLUNet, found: Bounds) -> None:
    """Cut ``lower`` to ``upper`` where it is above, unless the attack's point is broken whatever its logits round off.

    The proof speaks of real arithmetic, the attack of float64: where large logits cancel, both may be right. Every
    logit counts with its own rounding, so that a large one that decides nothing excuses nothing.
    """
    over = (found.lower > found.upper).nonzero()[:, 0]
    if not len(over):
        return
    y, Z = job.y, job.X[over] + found.perturbation[over]
    with torch.no_grad():
        logits, length = net(Z).view(len(Z), -1), lengths(net.preprocess(Z), 2.0)
        rate = lengths(net.weight, 2.0) * (2 * net.log_scale).exp()
        size = length.pow(net.p)[:, None] * (net.output.abs() * rate).sum(dim=1)
        size = size if net.bias is None else size + net.bias.abs()
    off = 8 * net.p * (net.dim + net.width + 32) * UNIT * size
    if net.outputs == 1:
        broken = y[over] * logits[:, 0] < -off[:, 0]
    else:
        own = logit_classes(job.net) == y[over, None]
        most = (logits + off).masked_fill(~own, -torch.inf).amax(dim=1)
        broken = (logits - off).masked_fill(own, -torch.inf).amax(dim=1) > most
    over = over[~broken]
    found.lower[over] = found.upper[over]


class DoneReporter:
    """Passes the number of points done on to a `Progress`, as the largest so far: what is reported never falls."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress, self.done = progress, 0

    def __call__(self, done: int) -> None:
        """``done`` points are done."""
        self.done = max(self.done, done)
        if self.progress is not None:
            self.progress.update(done=self.done)


def _check_margins(net: nn.Module, margin: Tensor) -> None:
    """A margin that is no finite number is neither right nor wrong; the weights are named if they are to blame."""
    strange = (~margin.isfinite()).nonzero()[:, 0].tolist()
    if not strange:
        return
    for name, weight in net.named_parameters():
        require(
            bool(weight.isfinite().all()), f"net.{name}", "NaN or infinity", "finite numbers; this net cannot decide"
        )
    where, given = f"margin of X[{strange[0]}]", f"{margin[strange[0]]:g}"
    wanted = f"a finite number ({len(strange)} rows have none); scale X or the net to avoid overflow"
    raise InputError(f"{where}={given}: expected {wanted}.")


def _statuses(found: Bounds, right: Tensor, tol: float, branched: bool, provable: bool) -> tuple[BracketStatus, ...]:
    closed = found.upper <= found.lower * (1 + tol) * (1 + 1e-12)
    open_ = BracketStatus.BUDGET if branched else BracketStatus.UNPROVEN

    def one(right: bool, lower: float, finite: bool, closed: bool) -> BracketStatus:
        if not right:
            return BracketStatus.WRONG
        if provable and lower == 0:
            return BracketStatus.FAINT
        if not finite:
            return BracketStatus.UNBREAKABLE if closed else BracketStatus.UNBROKEN
        return BracketStatus.CLOSED if closed else open_

    flags = zip(right.tolist(), found.lower.tolist(), found.upper.isfinite().tolist(), closed.tolist(), strict=True)
    return tuple(one(*flag) for flag in flags)
