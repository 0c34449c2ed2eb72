"""Which points hold at one radius (l2): the quadratic certificate, then attacks, then `bracket` for what is left.

proven_i  =>  margin(x_i + d) > 0 for every |d| <= r          not unbroken_i  =>  some |d| <= r has margin <= 0
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from polyrelu.checks import checked
from polyrelu.errors import require
from polyrelu.nets import Net, as_float64, inner_net
from polyrelu.robust.attacks import strongest
from polyrelu.robust.bracketing.bracket import bracket
from polyrelu.robust.bracketing.strategies import QUICK_DIRECTIONS
from polyrelu.robust.certify.contract import Budget, Certificate, Tier
from polyrelu.robust.certify.table import applicable
from polyrelu.robust.core.arithmetic import REAL, Arithmetic
from polyrelu.robust.core.integrity import require_genuine
from polyrelu.robust.core.margin import check_points, margin_of
from polyrelu.robust.core.model_copy import copied
from polyrelu.robust.core.pool import LabelledRows, PoolSource

BEYOND = 1.001  # a radius is proven by proving slightly more
QUICK_DIMENSIONS = 128  # of the neurons' span, up to which the quadratic certificate takes a millisecond or two
LAST_BUDGET = Budget(nodes=30)  # for points that neither proof nor attack has decided


class RadiusBounds(NamedTuple):
    """For each point, (n,) bool: is it proven to hold at the radius; did no attack break it?"""

    proven: Tensor
    unbroken: Tensor


@checked
def bounds_at_radius(
    net: Net,
    X: Tensor,
    y: Tensor,
    radius: float,
    *,
    arithmetic: Arithmetic = REAL,
    pool: PoolSource | None = None,
    seed: int = 0,
) -> RadiusBounds:
    """The quadratic certificate where it is quick, the attacks of `strongest`, then `bracket`, each on what is left.

    Misclassified points neither hold nor are proven. All in float64; ``arithmetic``, ``pool`` as in `bracket`.
    """
    require(radius >= 0, "radius", radius, "a number >= 0")
    require_genuine(net)
    X, y = check_points(net, X, y)
    X, y = X.detach().double(), y.double() if y.is_floating_point() else y
    net = as_float64(copied(net)).eval()
    proven = _proven_by(_quadratic(net), net, X, y, radius, arithmetic)
    with torch.no_grad():
        unbroken = margin_of(net(X), y) > 0
    left = (unbroken & ~proven).nonzero()[:, 0]
    pool = LabelledRows(X, y) if pool is None else pool
    if len(left):
        unbroken[left] = ~strongest(net, X[left], y[left], radius, pool=pool, seed=seed).success
        left = (unbroken & ~proven).nonzero()[:, 0]
    if len(left):
        found = bracket(
            net,
            X[left],
            y[left],
            tol=0.01,
            budget=LAST_BUDGET,
            widest=QUICK_DIRECTIONS,
            arithmetic=arithmetic,
            pool=pool,
            seed=seed,
        )
        proven[left], unbroken[left] = found.lower > radius, found.upper > radius
    return RadiusBounds(proven, unbroken)


@checked
def proven_at_radius(net: Net, X: Tensor, y: Tensor, radius: float, *, seed: int = 0) -> Tensor:
    """What is proven without branching, (n,) bool, all in float64: by the quadratic certificate, or by `bracket`."""
    proof, (X, y) = _quadratic(net), check_points(net, X, y)
    if proof is not None:
        return _proven_by(proof, net, X, y, radius, REAL)
    return bracket(net, X, y, tol=0.01, budget=Budget(nodes=0), widest=QUICK_DIRECTIONS, seed=seed).lower > radius


def _quadratic(net: Net) -> Certificate | None:
    """The quadratic certificate for the net; None where it takes more than a millisecond or two, or for 1 < p < 2."""
    inner = inner_net(net)
    return applicable([Tier.QUADRATIC], net, 2.0) if min(inner.width, inner.dim) <= QUICK_DIMENSIONS else None


def _proven_by(
    proof: Certificate | None, net: Net, X: Tensor, y: Tensor, radius: float, arithmetic: Arithmetic
) -> Tensor:
    """Which points ``proof`` alone proves at the radius, (n,) bool."""
    with torch.no_grad():
        proven = margin_of(net(X), y) > 0
    if proof is None:
        return torch.zeros_like(proven)
    right, limit = proven.nonzero()[:, 0], BEYOND * radius if radius > 0 else torch.inf
    if len(right):
        proven[right] = proof(net, X[right], y[right], limit=limit, arithmetic=arithmetic) > radius
    return proven


def with_neurons(net: Net, X: Tensor, y: Tensor) -> LabelledRows:
    """X, y and, for every neuron, the point c + m u_j (m the median of |x - c|) with the class that ``net`` gives it.

    A pool that shows attacks where each class is, whatever X holds.
    """
    inner = inner_net(net)
    centre = torch.zeros(inner.dim) if inner.centre is None else inner.centre
    length = torch.linalg.vector_norm(X - centre.to(X), dim=1).median()
    with torch.no_grad():
        Z = centre.to(X) + length * inner.directions().to(X)
        f = net(Z)
    found = torch.where(f > 0, 1.0, -1.0) if f.ndim == 1 else f.argmax(dim=1)
    return LabelledRows(torch.cat([X, Z]), torch.cat([y, found.to(y)]))
