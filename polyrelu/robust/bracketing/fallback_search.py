"""Breaking points of PolyReLUNets where the convex-concave attack stopped too early, or found none."""

from __future__ import annotations

import torch
from torch import Tensor

from polyrelu.nets import PolyReLUNet
from polyrelu.robust.attacks.convex_concave import Perturbations, lifted_perturbations, verified
from polyrelu.robust.attacks.nearest_boundary import class_terms, convex_concave_steps, power_root, ray_to_boundary
from polyrelu.robust.core.margin import margin_of
from polyrelu.robust.core.norms import unit
from polyrelu.robust.core.reduced_net import ReducedNet, ReducedRows

SEEK = 64  # directions along which points that nothing broke are sought


def attack_through_proof(
    net: PolyReLUNet, shallow: ReducedNet, X: Tensor, y: Tensor, rows: ReducedRows, z: Tensor
) -> Perturbations:
    """Through the points a proof hangs on, straight and by convex-concave steps from there."""
    part = class_terms(shallow, rows)
    tangent = power_root(z @ shallow.C.T, part.opposite, part.opposite_constant, shallow.p)[1] @ shallow.C
    broken = lifted_perturbations(net, shallow, X, y, rows, convex_concave_steps(shallow, rows.s, part, tangent))
    broken.improve(
        torch.arange(len(X)), lifted_perturbations(net, shallow, X, y, rows, ray_to_boundary(shallow, rows.s, part, z))
    )
    return broken


def search_along_directions(
    net: PolyReLUNet, shallow: ReducedNet, X: Tensor, y: Tensor, rows: ReducedRows, broken: Perturbations
) -> None:
    """For points nothing has broken: the nearest broken one among points along the net's directions, near and far.

    What broke other points, and c + t v: v the heaviest directions, their mean, what each is off it, and the way that
    turns all neurons on or off (where they are independent), with both signs; t from a millionth of the points'
    distance from the centre c to a million times that. 42 passes of the net over a few hundred points.
    """
    lost = broken.radius.isinf().nonzero()[:, 0]
    if not len(lost):
        return
    heavy = shallow.coefficients.abs().amax(dim=0).argsort(descending=True)[:SEEK]
    V = shallow.C[heavy] @ shallow.Q
    middle = V.mean(dim=0, keepdim=True)
    all_on = torch.linalg.pinv(shallow.C).sum(dim=1) @ shallow.Q
    V = unit(torch.cat([V, V - middle, middle, all_on[None]]))
    V = torch.cat([V, -V])
    size = float(torch.linalg.vector_norm(X[lost] - shallow.centre, dim=1).median()) or 1.0
    Z, away = X[lost].clone(), torch.full((len(lost),), torch.inf, dtype=torch.float64)
    known = broken.radius.isfinite()
    others = [(X + (1 + 1e-6) * broken.perturbation)[known]] if bool(known.any()) else []  # not on the very boundary
    for ends in [*others, *(shallow.centre + 2.0**k * size * V for k in range(-20, 21))]:
        with torch.no_grad():
            logits = net(ends)
        for label in torch.unique(y[lost]):
            good = ends[margin_of(logits, label.expand(len(ends))) <= 0]
            mine = (y[lost] == label).nonzero()[:, 0]
            if len(good):
                distance, which = torch.cdist(X[lost[mine]], good).min(dim=1)
                nearer = distance < away[mine]
                away[mine[nearer]], Z[mine[nearer]] = distance[nearer], good[which[nearer]]
    lost, Z = lost[away.isfinite()], Z[away.isfinite()]
    if not len(lost):
        return
    X, y, D = X[lost], y[lost], Z - X[lost]
    low, high = torch.zeros(len(lost), dtype=torch.float64), torch.ones(len(lost), dtype=torch.float64)
    for _ in range(50):
        middle = (low + high) / 2
        with torch.no_grad():
            here = margin_of(net(X + middle[:, None] * D), y) <= 0
        low, high = torch.where(here, low, middle), torch.where(here, middle, high)
    broken.improve(lost, verified(net, X, y, high[:, None] * D))
    mine, some = rows.at_points(lost)
    z = ((X + high[:, None] * D - shallow.centre) @ shallow.Q.T)[some.point]
    broken.improve(lost, attack_through_proof(net, shallow, X, y, some, z))
