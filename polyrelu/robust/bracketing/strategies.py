"""Both bounds of the points of a job: attack and certificate, each tried again with what the other has found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import torch
from torch import Tensor, nn

from polyrelu.nets import PolyReLUNet
from polyrelu.robust.attacks import Anchor, AttackTask, BoundaryWalk, OtherClassStart, RandomStart, Start, ZeroStart
from polyrelu.robust.attacks.convex_concave import Perturbations, lifted_perturbations
from polyrelu.robust.attacks.nearest_boundary import likeliest_rivals, nearest_boundary_points
from polyrelu.robust.bracketing.fallback_search import attack_through_proof, search_along_directions
from polyrelu.robust.certify.branch_and_bound import certify
from polyrelu.robust.certify.contract import WITHOUT_BRANCHING, Budget, Job, Tier
from polyrelu.robust.certify.table import applicable
from polyrelu.robust.core.norms import lengths
from polyrelu.robust.core.reduced_net import ReducedNet, ReducedRows

QUICK_DIRECTIONS = 60  # directions up to which branch and bound takes milliseconds a point
MOST_DIRECTIONS = 200  # directions beyond which it takes minutes a point
SMALL_NET = 20_000  # weights up to which the general attack is worth its time beside the convex-concave one
ROUNDS, ROUND_NODES = 4, 10  # for points whose bounds did not meet; for small budgets half of the nodes
CLOSE_GAP = 0.02  # upper / lower - 1 up to which no attack and no further round is worth its time
STARTS = 3  # of the convex-concave attack for each rival, on neurons that did not collapse
BOUNDARY_STEPS = 8  # of the walk from where another attack ended
RIVALS = 3  # classes attacked for each point, if there are more


class Bounds(NamedTuple):
    """Both bounds for some points, before anything is said about them."""

    lower: Tensor
    upper: Tensor
    perturbation: Tensor
    nodes: Tensor

    @staticmethod
    def zero(X: Tensor) -> Bounds:
        """Radius 0 everywhere."""
        zero = torch.zeros(len(X), dtype=torch.float64)
        return Bounds(zero, zero.clone(), torch.zeros_like(X), zero.long())

    def put(self, points: Tensor, some: Bounds) -> None:
        """Take over ``some``, whose rows are these ``points``."""
        for whole, part in zip(self, some, strict=True):
            whole[points] = part


def in_parts(job: Job, right: Tensor, size: int, bounds: Callable[[Job], Bounds]) -> Bounds:
    """``bounds`` of the points that are ``right``, ``size`` at a time; radius 0 for the others."""
    found, done = Bounds.zero(job.X), int(len(job) - right.sum())
    for here in torch.split(right.nonzero()[:, 0], size):

        def progress(count: int, before: int = done) -> None:
            job.progress(before + count)

        found.put(here, bounds(replace(job.at(here), progress=progress)))
        done += len(here)
        job.progress(done)
    return found


def branching_bounds(job: Job) -> Bounds:
    """Convex-concave attack and branch and bound in the coordinates of ``job.reduced``.

    What is left of the budget then goes to points whose bounds do not meet.
    """
    assert isinstance(job.net, PolyReLUNet) and job.reduced is not None
    if job.reduced.groups == 0:  # all neurons vanish in float64, beside a bias that decides
        lower = certificate(job, [Tier.EVERY_NORM])
        return Bounds.zero(job.X)._replace(lower=lower, upper=torch.full_like(lower, torch.inf))
    search = _Branching(job, job.net, job.reduced)
    search.branch()
    search.attack_from_proof()
    far = search.attack_in_general()
    search.prove_smaller_balls(far)
    search.prove_without_branching()
    return Bounds(search.lower, search.broken.radius, search.broken.perturbation, search.nodes)


class _Branching:
    """The first attack on the points of a job, branch and bound, and what brings their bounds nearer."""

    def __init__(self, job: Job, net: PolyReLUNet, reduced: ReducedNet) -> None:
        self.job, self.net, self.reduced, self.rows = job, net, reduced, reduced.rows(job.X, job.y)
        self.near = nearest_boundary_points(reduced, self.rows)
        self.broken = lifted_perturbations(net, reduced, job.X, job.y, self.rows, self.near)
        self.lost = self.broken.radius.isinf().nonzero()[:, 0]
        if len(self.lost):
            self.broken.improve(self.lost, general_attack(job.at(self.lost)))
            search_along_directions(net, reduced, job.X, job.y, self.rows, self.broken)
        seconds, most = job.budget.seconds, job.budget.nodes
        self.end = None if seconds is None else time.monotonic() + seconds * len(job)
        self.round_nodes = ROUND_NODES if most is None else min(ROUND_NODES, max(1, most // 8))

    def apart(self, gap: float) -> Tensor:
        """The points whose bounds are further apart than this relative gap."""
        return (self.lower * (1 + gap) < self.broken.radius).nonzero()[:, 0]

    def branch(self) -> None:
        """The first proof, in the ball that the attack leaves; some nodes are kept for later rounds."""
        job, budget, most = self.job, self.job.budget, self.job.budget.nodes
        if most is not None:
            budget = replace(budget, nodes=most - min(ROUNDS * self.round_nodes, most // 2))
        proof = certify(
            self.reduced, job.X, job.y, self.rows, self.near.z, self.broken.radius,
            tol=job.tol, budget=budget, done=job.progress,
        )  # fmt: skip
        self.lower, self.nodes, self.hardest = proof.lower, proof.nodes, proof.z

    def attack_from_proof(self) -> None:
        """Another attack through the points that the proof hangs on."""
        short = self.apart(self.job.tol)
        if len(short):
            mine, some = self.rows.at_points(short)
            X, y = self.job.X[short], self.job.y[short]
            self.broken.improve(short, attack_through_proof(self.net, self.reduced, X, y, some, self.hardest[mine]))

    def attack_in_general(self) -> Tensor:
        """The general attack on points still far apart, but for those it has seen; returns those far apart before."""
        far = self.apart(max(self.job.tol, CLOSE_GAP))
        walked = far[~torch.isin(far, self.lost)]
        if self.reduced.U.numel() > SMALL_NET or self.job.budget.nodes == 0:
            walked = walked[_blurred(self.reduced, self.job, self.rows)[walked]]
        if len(walked):
            self.broken.improve(walked, general_attack(self.job.at(walked)))
        return far

    def prove_smaller_balls(self, far: Tensor) -> None:
        """Rounds of few nodes for smaller balls, as long as a point gains by them and its budget lasts."""
        X, y, tol, most = self.job.X, self.job.y, self.job.tol, self.job.budget.nodes
        for _ in range(ROUNDS):
            far = far[self.lower[far] * (1 + max(tol, CLOSE_GAP)) < self.broken.radius[far]]
            if most is not None:
                far = far[self.nodes[far] + self.round_nodes <= most]
            left = None if self.end is None else max(0.0, self.end - time.monotonic())
            if not len(far) or left == 0:
                break
            budget = Budget(self.round_nodes, None if left is None else left / len(far))
            mine, some = self.rows.at_points(far)
            lower, upper = self.lower[far], self.broken.radius[far]
            ball = torch.where(lower > upper / 64, (lower * upper).sqrt(), upper / 8)
            ball = torch.where(ball.isfinite(), ball, 2 * lower + lengths(X[far], 2.0) / 8)
            smaller = certify(self.reduced, X[far], y[far], some, self.near.z[mine], ball, tol=tol, budget=budget)
            gained = smaller.lower > 1.01 * lower
            self.lower[far] = torch.maximum(lower, smaller.lower)
            self.nodes[far] += smaller.nodes
            far = far[gained]

    def prove_without_branching(self) -> None:
        """Certificates of single balls may be the better ones where bounds are still apart."""
        short = self.apart(self.job.tol)
        if len(short):
            self._raise(short, Tier.EVERY_NORM)
        short = short[(self.lower[short] * (1 + self.job.tol) < self.broken.radius[short])]
        short = short[self.broken.radius[short].isfinite()]
        if len(short) and self.reduced.groups > QUICK_DIRECTIONS:
            self._raise(short, Tier.ONE_BALL)

    def _raise(self, points: Tensor, tier: Tier) -> None:
        radius = certificate(self.job.at(points, self.broken.perturbation[points]), [tier])
        self.lower[points] = torch.maximum(self.lower[points], radius)


def _blurred(reduced: ReducedNet, job: Job, rows: ReducedRows) -> Tensor:
    """(n,) bool: points whose margin the reduction may blur by half, and so cannot lead an attack on them.

    Beside one huge neuron all small ones fall into few groups, but where the huge one is inactive they decide alone.
    """
    X, y = job.X, job.y
    zero = torch.zeros(len(X), dtype=torch.float64)
    blur = zero.scatter_reduce(0, rows.point, reduced.slack(y, rows, zero), "amax")
    margin = reduced.ray(X, y, rows, torch.zeros(len(X), len(reduced.Q), dtype=torch.float64)).margin(zero)
    if reduced.normalised:
        margin = margin * lengths(X - reduced.centre, 2.0).pow(reduced.p - 1)
    return blur >= margin / 2


def single_ball_bounds(job: Job) -> Bounds:
    """Without branching, for neurons that did not collapse: the convex-concave attack above, single balls below."""
    net, reduced, X, y = job.net, job.reduced, job.X, job.y
    assert reduced is not None
    rows = likeliest_rivals(reduced, reduced.rows(X, y), RIVALS)
    broken = lifted_perturbations(net, reduced, X, y, rows, nearest_boundary_points(reduced, rows, STARTS))
    lost = broken.radius.isinf().nonzero()[:, 0]
    if len(lost):
        broken.improve(lost, general_attack(job.at(lost)))
    if reduced.normalised and reduced.p > 1 and bool(reduced.bias.any()):  # unseen by the convex-concave attack
        broken.improve(torch.arange(len(job)), boundary_attack(net, X, y, broken.perturbation))
    lower = certificate(replace(job, perturbation=broken.perturbation))
    lost = broken.radius.isinf().nonzero()[:, 0]
    if len(lost):
        proof = certificate(job.at(lost), [Tier.EVERY_NORM])
        lower[lost] = torch.maximum(lower[lost], proof)
    return Bounds.zero(X)._replace(lower=lower, upper=broken.radius, perturbation=broken.perturbation)


def certificate(job: Job, tiers: Iterable[Tier] = WITHOUT_BRANCHING) -> Tensor:
    """By the first certificate of these ``tiers`` that applies, begun at ``job.perturbation``; 0 where there is none.

    With the default the tightest radius without branching.
    """
    proof = applicable(tiers, job.net, job.norm)
    return torch.zeros(len(job), dtype=torch.float64) if proof is None else proof.radius(job)


def general_bounds(job: Job) -> Bounds:
    """The general attack above, the tightest certificate without branching below."""
    broken = general_attack(job)
    lower = certificate(replace(job, perturbation=broken.perturbation))
    return Bounds.zero(job.X)._replace(lower=lower, upper=broken.radius, perturbation=broken.perturbation)


def general_attack(job: Job) -> Perturbations:
    """The boundary walk of any model; with one class alone in the pool there is nothing to walk towards."""
    alone = len(set(job.pool_or_points.y.tolist())) == 1
    starts = (ZeroStart(), RandomStart(8)) if alone else (ZeroStart(), RandomStart(2), OtherClassStart())
    walk = BoundaryWalk(steps=20, starts=starts)
    found = walk(job.net, job.X, job.y, norm=job.norm, pool=job.pool_or_points, seed=job.seed)
    return Perturbations(found.perturbation.double(), found.radius.double())


def boundary_attack(net: nn.Module, X: Tensor, y: Tensor, step: Tensor) -> Perturbations:
    """A short walk along the boundary from x + 1.02 ``step``, where another attack ended."""
    Z = X + 1.02 * step
    with torch.no_grad():
        logits = net(Z)
    target = -y if logits.ndim == 1 else logits.scatter(1, y[:, None], -torch.inf).argmax(dim=1)
    found = BoundaryWalk(steps=BOUNDARY_STEPS, starts=(_KnownPoints(Z, target),))(net, X, y)
    return Perturbations(found.perturbation, found.radius)


@final
@dataclass(frozen=True, eq=False)
class _KnownPoints(Start):
    """Known points (n, D), and the classes (n,) they lead to."""

    Z: Tensor
    target: Tensor

    def anchors(self, task: AttackTask) -> Iterator[Anchor]:
        """The points themselves, as one set of starts."""
        yield self.Z[task.rows], self.target[task.rows]
