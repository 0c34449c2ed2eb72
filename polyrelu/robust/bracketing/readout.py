r"""Both bounds for classes read out from sub-classes.

    g_c = max_{s in c} f_s:   where f_s > f_t for one s of class c and every t of other classes, c is read out

so what is proven for one sub-class of the point's own class is proven for the class: the winner at the point, or the
next ones where that falls short. An attack on the winner need not break the class, whose other sub-classes may take
over: it is checked with the read-out itself, and a walk along the boundary goes on from there.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from polyrelu.nets import ReadOut
from polyrelu.robust.attacks.convex_concave import Perturbations, shortest_steps, verified
from polyrelu.robust.attacks.nearest_boundary import nearest_boundary_points
from polyrelu.robust.bracketing.strategies import (
    CLOSE_GAP,
    STARTS,
    Bounds,
    boundary_attack,
    branching_bounds,
    certificate,
    general_attack,
)
from polyrelu.robust.certify.contract import Job, silent
from polyrelu.robust.certify.sub_classes import winners
from polyrelu.robust.core.pool import LabelledRows
from polyrelu.robust.core.reduced_net import ReducedNet

OWN_SUBCLASSES = 3  # of a point's own class that may prove it


def readout_bounds(job: Job, branched: bool) -> Bounds:
    """lower: a sub-class of the own class against all of the others; upper: what breaks the maximum itself.

    ``branched``: the winner is proven by branch and bound.
    """
    net, X, y = job.net, job.X, job.y
    found = _branched(job) if branched else _single_ball(job)
    broken = verified(net, X, y, found.perturbation)
    far = (broken.radius > (1 + CLOSE_GAP) * found.lower).nonzero()[:, 0]
    if len(far):
        broken.improve(far, boundary_attack(net, X[far], y[far], found.perturbation[far]))
    far = far[broken.radius[far].isinf() | branched]
    if len(far):
        broken.improve(far, general_attack(job.at(far)))
    raise_by_next_subclasses(job, found.lower, broken)
    return found._replace(upper=broken.radius, perturbation=broken.perturbation)


def readout_of(job: Job) -> ReadOut:
    """The net of a job about a read-out."""
    assert isinstance(job.net, ReadOut)
    return job.net


def _branched(job: Job) -> Bounds:
    """Both bounds of the winners alone."""
    net, found = readout_of(job), Bounds.zero(job.X)
    winner = winners(net, job.X, job.y)
    for own in torch.unique(winner).tolist():
        here = (winner == own).nonzero()[:, 0]
        alone, first = net.against(own), torch.zeros(len(here), dtype=torch.long)
        reduced, pool = ReducedNet.from_net(alone, job.tol, job.arithmetic), LabelledRows(job.X[here], first)
        part = replace(job.at(here), net=alone, y=first, reduced=reduced, pool=pool, progress=silent)
        found.put(here, branching_bounds(part))
    return found


def _single_ball(job: Job) -> Bounds:
    """Both bounds of the winners alone, without branching."""
    net, reduced = readout_of(job), job.reduced
    assert reduced is not None
    winner = winners(net, job.X, job.y)
    rows = reduced.rows(job.X, winner)
    rows = rows.only((net.class_of != job.y[:, None])[rows.point, rows.rival])
    step = shortest_steps(rows, nearest_boundary_points(reduced, rows, STARTS)) @ reduced.Q
    lower = certificate(replace(job, own=winner, perturbation=step))
    return Bounds.zero(job.X)._replace(lower=lower, perturbation=step)


def raise_by_next_subclasses(job: Job, lower: Tensor, broken: Perturbations) -> None:
    """Raise ``lower`` by the next sub-classes of the own class, where they win at the point too and it falls short."""
    net, X = readout_of(job), job.X
    mine = net.class_of == job.y[:, None]
    with torch.no_grad():
        logits = net.net(X)
    least, order = logits.masked_fill(mine, -torch.inf).amax(dim=1), logits.masked_fill(~mine, -torch.inf)
    for own in order.argsort(dim=1, descending=True).T[1:OWN_SUBCLASSES]:
        wins = logits.gather(1, own[:, None])[:, 0] > least  # none of another class, which `least` counts too
        far = (wins & (broken.radius > (1 + CLOSE_GAP) * lower) & broken.radius.isfinite()).nonzero()[:, 0]
        if not len(far):
            return
        proof = certificate(replace(job, own=own).at(far, broken.perturbation[far]))
        lower[far] = torch.maximum(lower[far], proof)
