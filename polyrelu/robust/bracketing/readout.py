r"""Both bounds for classes read out from sub-classes.

    g_c = max_{s in c} f_s:   where f_s > f_t for one s of class c and every t of other classes, c is read out

so what is proven for one sub-class of the point's own class is proven for the class: the winner at the point, or the
next ones where that falls short. An attack on the winner need not break the class, whose other sub-classes may take
over: it is looked at again with the read-out itself, and a walk along the boundary goes on from there.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from polyrelu.nets import ReadOut
from polyrelu.robust.attacks import Perturbations, nearest_boundary_points, shortest_steps, verified
from polyrelu.robust.bracketing.strategies import (
    STARTS,
    Found,
    Tell,
    general_bounds,
    general_walk,
    shallow_bounds,
    walk_on,
)
from polyrelu.robust.certify.branch_and_bound import Budget
from polyrelu.robust.certify.krylov import least_radius
from polyrelu.robust.certify.linear import certified_radius
from polyrelu.robust.core.arithmetic import Arithmetic
from polyrelu.robust.core.pool import Labelled, Own
from polyrelu.robust.core.reduced_net import Shallow, reduce

MET = 1.02  # bounds this close are left alone
OWN = 3  # sub-classes of a point's own class that may prove it
POINTS = 200  # at a time


def readout_bounds(
    net: ReadOut,
    X: Tensor,
    y: Tensor,
    right: Tensor,
    norm: float,
    widest: int,
    tol: float,
    budget: Budget,
    arithmetic: Arithmetic,
    pool: Labelled,
    seed: int,
    tell: Tell,
) -> Found:
    """lower: a sub-class of the own class against all of the others; upper: what breaks the maximum itself.

    Up to ``widest`` directions the winner is proven by branch and bound.
    """
    if norm != 2:
        return general_bounds(net, X, y, right, norm, arithmetic, pool, seed, tell, _winners)
    found, done, shallow = Found.nothing(X), int(len(X) - right.sum()), reduce(net.net, tol, arithmetic)
    for here in torch.split(right.nonzero()[:, 0], POINTS):
        points, labels = X[here], y[here]
        if shallow.groups <= widest:
            part = _branched(net, points, labels, tol, budget, arithmetic, seed)
        else:
            part = _quick(net, shallow, points, labels, arithmetic)
        broken = verified(net, points, labels, part.perturbation)
        far = (broken.radius > MET * part.lower).nonzero()[:, 0]
        if len(far):
            broken.improve(far, walk_on(net, points[far], labels[far], part.perturbation[far]))
        far = far[broken.radius[far].isinf() | (shallow.groups <= widest)]
        if len(far):
            broken.improve(far, general_walk(net, points[far], labels[far], norm, pool, seed))
        _others(net, points, labels, part.lower, broken, arithmetic)
        found.put(here, Found(part.lower, broken.radius, broken.perturbation, part.nodes))
        done += len(here)
        tell(done)
    return found


def _branched(
    net: ReadOut, X: Tensor, y: Tensor, tol: float, budget: Budget, arithmetic: Arithmetic, seed: int
) -> Found:
    """Both bounds of the winners alone."""
    found, winner = Found.nothing(X), ranked(net, X, y)[:, 0]
    for own in torch.unique(winner).tolist():
        here = (winner == own).nonzero()[:, 0]
        alone, first = net.against(own), torch.zeros(len(here), dtype=torch.long)
        everyone, rivals = torch.ones_like(first, dtype=torch.bool), Own(X[here], first)
        shallow = reduce(alone, tol, arithmetic)
        part = shallow_bounds(
            alone, shallow, X[here], first, everyone, tol, budget, arithmetic, rivals, seed, lambda count: None
        )
        found.put(here, part)
    return found


def _quick(net: ReadOut, shallow: Shallow, X: Tensor, y: Tensor, arithmetic: Arithmetic) -> Found:
    """Both bounds of the winners alone, without branching."""
    winner = ranked(net, X, y)[:, 0]
    rivals = net.of != y[:, None]
    rows = shallow.rows(X, winner)
    rows = rows.only(rivals[rows.point, rows.rival])
    step = shortest_steps(rows, nearest_boundary_points(shallow, rows, STARTS)) @ shallow.Q
    return Found.nothing(X)._replace(lower=_proven(net, X, winner, rivals, step, arithmetic), perturbation=step)


def _others(net: ReadOut, X: Tensor, y: Tensor, lower: Tensor, broken: Perturbations, arithmetic: Arithmetic) -> None:
    """Raise ``lower`` by the next sub-classes of the own class, where they win at the point too and it falls short."""
    order, rivals = ranked(net, X, y), net.of != y[:, None]
    with torch.no_grad():
        logits = net.net(X)
    least = torch.where(rivals, logits, -torch.inf).amax(dim=1)
    for own in order.T[1:OWN]:
        wins = logits.gather(1, own[:, None])[:, 0] > least  # none of another class, which `least` counts too
        far = (wins & (broken.radius > MET * lower) & broken.radius.isfinite()).nonzero()[:, 0]
        if not len(far):
            return
        proof = _proven(net, X[far], own[far], rivals[far], broken.perturbation[far], arithmetic)
        lower[far] = torch.maximum(lower[far], proof)


def _proven(net: ReadOut, X: Tensor, own: Tensor, rivals: Tensor, step: Tensor, arithmetic: Arithmetic) -> Tensor:
    """The radius within which sub-class ``own`` (n,) of each point exceeds its ``rivals`` (n, S)."""
    if net.net.p == 1 or net.net.p >= 2:
        return least_radius(net.net, X, own, rivals, step, arithmetic)
    return _alone(net, X, own, 2.0, arithmetic)


def _alone(net: ReadOut, X: Tensor, own: Tensor, norm: float, arithmetic: Arithmetic) -> Tensor:
    """The linear certificate of sub-class ``own`` (n,) against every one of other classes."""
    radius = torch.zeros(len(X), dtype=torch.float64)
    for one in torch.unique(own).tolist():
        here = (own == one).nonzero()[:, 0]
        first = torch.zeros(len(here), dtype=torch.long)
        radius[here] = certified_radius(net.against(one), X[here], first, norm, arithmetic=arithmetic)
    return radius


def _winners(net: nn.Module, X: Tensor, y: Tensor, norm: float, step: Tensor, arithmetic: Arithmetic) -> Tensor:
    assert isinstance(net, ReadOut)
    return _alone(net, X, ranked(net, X, y)[:, 0], norm, arithmetic)


def ranked(net: ReadOut, X: Tensor, y: Tensor) -> Tensor:
    """(n, S): all sub-classes, those of the own class first, by their logits at the point."""
    with torch.no_grad():
        return torch.where(net.of == y[:, None], net.net(X), -torch.inf).argsort(dim=1, descending=True)
