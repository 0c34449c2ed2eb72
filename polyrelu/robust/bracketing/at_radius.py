"""Which points hold at one radius (l2): the quadratic certificate, then attacks, then `bracket` for what is left.

proven_i  =>  margin(x_i + d) > 0 for every |d| <= r          not unbroken_i  =>  some |d| <= r has margin <= 0
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from polyrelu.checks import checked
from polyrelu.errors import require
from polyrelu.nets import Net, PolyReLUNet, ReadOut, as_float64
from polyrelu.robust.attacks import strongest
from polyrelu.robust.bracketing.bracket import bracket
from polyrelu.robust.bracketing.strategies import QUICK_DIRECTIONS
from polyrelu.robust.certify.contract import Budget
from polyrelu.robust.certify.table import CERTIFICATES
from polyrelu.robust.core.arithmetic import REAL, Arithmetic
from polyrelu.robust.core.integrity import require_genuine
from polyrelu.robust.core.margin import check_points, margin_of
from polyrelu.robust.core.model_copy import copied
from polyrelu.robust.core.pool import LabelledRows, PoolSource

BEYOND = 1.001  # a radius is proven by proving slightly more
QUICK_DIMENSIONS = (
    128  # dimensions of the neurons' span up to which the quadratic certificate takes a millisecond or two
)
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
    proven = _quadratic_proof(net, X, y, radius, arithmetic)
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
    inner, (X, y) = _inner(net), check_points(net, X, y)
    if _has_quadratic_proof(inner):
        return _quadratic_proof(net, X, y, radius, REAL)
    return bracket(net, X, y, tol=0.01, budget=Budget(nodes=0), widest=QUICK_DIRECTIONS, seed=seed).lower > radius


def _quadratic_proof(net: Net, X: Tensor, y: Tensor, radius: float, arithmetic: Arithmetic) -> Tensor:
    """What the quadratic certificate alone proves, (n,) bool; nothing in many dimensions, or for 1 < p < 2.

    A class read out from sub-classes holds where its winner alone does, see `polyrelu.nets.ReadOut`.
    """
    with torch.no_grad():
        proven = margin_of(net(X), y) > 0
    right, inner = proven.nonzero()[:, 0], _inner(net)
    if not len(right):
        return proven
    if not _has_quadratic_proof(inner):
        return torch.zeros_like(proven)
    quadratic = partial(
        CERTIFICATES["quadratic"], limit=BEYOND * radius if radius > 0 else torch.inf, arithmetic=arithmetic
    )
    if not isinstance(net, ReadOut):
        proven[right] = quadratic(inner, X[right], y[right]) > radius
        return proven
    with torch.no_grad():
        winner = torch.where(net.class_of == y[right, None], inner(X[right]), -torch.inf).argmax(dim=1)
    for own in sorted(set(winner.tolist())):
        here = right[winner == own]
        first = torch.zeros(len(here), dtype=torch.long, device=X.device)
        proven[here] = quadratic(net.against(own), X[here], first) > radius
    return proven


def _has_quadratic_proof(net: PolyReLUNet) -> bool:
    """Whether the quadratic certificate applies and takes a millisecond or two."""
    return CERTIFICATES["quadratic"].applies(net, 2.0) and min(net.width, net.dim) <= QUICK_DIMENSIONS


def _inner(net: Net) -> PolyReLUNet:
    """The net itself, or what a read-out reads."""
    inner = net.net if isinstance(net, ReadOut) else net
    require(isinstance(inner, PolyReLUNet), "net", type(inner).__name__, "a PolyReLUNet or a ReadOut of one")
    assert isinstance(inner, PolyReLUNet)
    return inner


def with_neurons(net: Net, X: Tensor, y: Tensor) -> LabelledRows:
    """X, y and, for every neuron, the point c + m u_j (m the median of |x - c|) with the class that ``net`` gives it.

    A pool that shows attacks where each class is, whatever X holds.
    """
    inner = _inner(net)
    centre = torch.zeros(inner.dim) if inner.centre is None else inner.centre
    length = torch.linalg.vector_norm(X - centre.to(X), dim=1).median()
    with torch.no_grad():
        Z = centre.to(X) + length * inner.directions().to(X)
        f = net(Z)
    found = torch.where(f > 0, 1.0, -1.0) if f.ndim == 1 else f.argmax(dim=1)
    return LabelledRows(torch.cat([X, Z]), torch.cat([y, found.to(y)]))
