"""Exact l2 radii of the ideal classifiers at any point, but for some D roundings of |x| in float64.

The radius is min |d| : y f(x + d) <= 0; misclassified points and the origin have radius 0. Everything is computed in
float64 from the coordinates <x, mu_k>, for all points at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from polyrelu.checks import checked, finite_number
from polyrelu.errors import require
from polyrelu.nets import AverageClassifier, CentreClassifier, exact_sums
from polyrelu.robust.certify.contract import Certificate, Job, Scope
from polyrelu.robust.certify.scalar_branch_and_bound import Problems, least_cost
from polyrelu.robust.core.norms import lengths

CHUNK = 8192  # points at a time
LARGEST = 1e5  # p; from there on a point takes seconds
POWERS = f"at most {LARGEST:g}; beyond it F^(p) is the nearest-centre rule"


@checked
def average_radius(X: Tensor, y: Tensor, centres: Tensor, labels: Tensor) -> Tensor:
    """max(0, min(s/|mu_+|, (s - t)/|mu_+ - mu_-|)), s = <x, mu_+>, t = <x, mu_->, for y = +1.

    The exact l2 radius of F(x) = relu(s) - relu(t), mu_+- = sums of the class's centres; for y = -1 the roles are
    swapped. F <= 0 exactly where s <= 0 or s <= t, a union of two half-spaces, whatever the sign of the coordinates and
    the angles between the centres: nothing is asked of them. For orthonormal centres |mu_+| = sqrt(K1) and
    |mu_+ - mu_-| = sqrt(K): at a centre the radius is 1/sqrt(K).

    Parameters
    ----------
    X : (n, D); y : (n,) of +1 and -1
    centres : (K, D); labels : (K,) of +1 and -1, both present

    Returns
    -------
    (n,) float64
    """
    X, y, centres, labels = _checked(X, y, centres, labels)
    sums = exact_sums(centres, labels)
    require(bool(sums.isfinite().all()), "centres", "sums that overflow", "sums of each class that float64 holds")
    between = exact_sums(labels[:, None] * centres, torch.ones_like(labels))[0]  # not a difference of rounded sums
    unit = _power_of_two(X.abs().amax(dim=1))
    (plus, minus, between), Z = map(_direction, (*sums, between)), X / unit[:, None]
    to_zero = torch.where(y > 0, Z @ plus, Z @ minus)
    # mu_own = 0 or mu_+ = mu_-: F y <= 0 everywhere, and the direction is 0
    return torch.minimum(to_zero, y * (Z @ between)).clamp(min=0) * unit


@checked
def centre_radius(X: Tensor, y: Tensor, centres: Tensor, labels: Tensor, p: float) -> Tensor:
    """min |d| : y F^(p)(x + d) <= 0 for F^(p)(x) = sum_k y_k relu(<x, mu_k>)^p, real p from 1 to 1e5.

    Exact for orthonormal centres (of any common length: F^(p) only scales with it). With own coordinates a and
    opposite ones b, only a_i > 0 shrink and b_j grow. Two opposite coordinates keep the order of their b, since
    exchanging values that do not costs less; with the second-order condition (at most one coordinate on a branch where
    the Lagrangian is concave) this leaves

    - p = 1: the m largest b grow by the same lam, a_i falls to (a_i - lam)_+: one equation for each m;
    - 1 < p < 2: the m largest b grow, the last of them perhaps on its concave branch: one scalar problem for each m;
    - p = 2: with A = |a_+|, B = |b_+| (or max b if no b is positive), min(A, (A - B)/sqrt(2));
    - p > 2: only the largest b may be on its concave branch: one scalar problem, not one for each opposite centre;

    and a_+ = 0, at distance |a_+|, always. The scalar problems are solved by branch and bound (`least_cost`), to 1e-12
    relative. p within 1e-7 of 1 or 2 counts as 1 or 2 (the radius moves by less than that times its size).

    Parameters
    ----------
    X : (n, D); y : (n,) of +1 and -1
    centres : (K, D), orthogonal and of one length, within 100 roundings of their dtype
    labels : (K,) of +1 and -1, both present

    Returns
    -------
    (n,) float64
    """
    p = finite_number("p", p, least=1)
    require(p <= LARGEST, "p", p, POWERS)
    p = next((float(whole) for whole in (1, 2) if abs(p - whole) < 1e-7), p)
    precision = torch.finfo(centres.dtype).eps if torch.as_tensor(centres).is_floating_point() else 0.0
    X, y, centres, labels = _checked(X, y, centres, labels)
    coordinates = X @ _unit(centres, precision).T
    radius = torch.zeros_like(y)
    for sign in (1.0, -1.0):
        own, other = coordinates[:, labels == sign], coordinates[:, labels == -sign]
        of_class = (y == sign).nonzero()[:, 0]
        for start in range(0, len(of_class), CHUNK):
            rows = of_class[start : start + CHUNK]
            radius[rows] = _radius(own[rows], other[rows], p)
    return radius


@final
@dataclass(frozen=True)
class AverageClosedForm(Certificate):
    """`average_radius` of an AverageClassifier, of any centres; roundings of the classifier itself are not counted."""

    scope = Scope(norms=(2.0,), nets=(AverageClassifier,), executed=False)

    def radius(self, job: Job) -> Tensor:
        """`centre_radius` or `average_radius` of the points, by the class of the net."""
        assert isinstance(job.net, AverageClassifier)
        return average_radius(job.X, job.y, job.net.centres, job.net.labels)


@final
@dataclass(frozen=True)
class CentreClosedForm(Certificate):
    """`centre_radius` of a CentreClassifier whose centres are orthogonal and of one length."""

    scope = Scope(norms=(2.0,), nets=(CentreClassifier,), powers=POWERS, executed=False)

    def takes_power(self, p: float) -> bool:
        """From 1 to 1e5."""
        return 1 <= p <= LARGEST

    def radius(self, job: Job) -> Tensor:
        """Exact; other centres are refused by `centre_radius`."""
        assert isinstance(job.net, CentreClassifier)
        return centre_radius(job.X, job.y, job.net.centres, job.net.labels, job.net.p)


def _radius(a: Tensor, b: Tensor, p: float) -> Tensor:
    """The radius for own coordinates ``a`` (n, K_own) and opposite ones ``b`` (n, K_opp)."""
    a = a.clamp(min=0)
    largest = a.amax(dim=1)
    scale = torch.where(largest > 0, largest, 1.0)
    a, b = a / scale[:, None], (b / scale[:, None]).sort(dim=1, descending=True).values
    right = a.pow(p).sum(dim=1) > b.clamp(min=0).pow(p).sum(dim=1)
    a, b = a[right], b[right]
    nearest = torch.zeros_like(scale)
    nearest[right] = torch.minimum(_opposite(a, b, p), lengths(a, 2.0))
    return nearest * scale


def _opposite(a: Tensor, b: Tensor, p: float) -> Tensor:
    """Distance to the nearest point broken by opposite coordinates; ``a`` >= 0, max a = 1, ``b`` falling."""
    if p == 1:
        return _p1(a, b)
    if p == 2:
        B = torch.where(b[:, 0] > 0, lengths(b.clamp(min=0), 2.0), b[:, 0])
        return (lengths(a, 2.0) - B) / 2**0.5
    if p > 2:
        rest = b[:, 1:]
        return (2 * least_cost(Problems(a, rest, torch.ones_like(rest, dtype=torch.bool), b[:, 0]), p)).sqrt()
    # free = the last b >= 0, or any b < 0; all before it grow
    after = torch.cat([b[:, 1:], b.new_full((len(b), 1), -1.0)], dim=1)
    point, last = ((b < 0) | (after < 0)).nonzero().unbind(dim=1)
    before = torch.arange(b.shape[1], device=b.device) < last[:, None]
    cost = least_cost(Problems(a[point], b[point], before, b[point, last]), p)
    best = torch.full_like(b[:, 0], torch.inf).scatter_reduce_(0, point, cost, "amin")
    return (2 * best).sqrt()


def _p1(a: Tensor, b: Tensor) -> Tensor:
    """p = 1: sum_i (a_i - lam)_+ = sum_{j <= m} (b_j + lam), for every m >= 1.

    sum_i (a_i - lam)_+ = max_n (A_n - n lam), A_n the sum of the n largest: lam = max_n (A_n - B_m)/(n + m). Asking
    for less than relu, sum_{j <= m} u_j <= sum_j relu(u_j), with equality for the right m.
    """
    count = torch.arange(a.shape[1] + 1, dtype=a.dtype, device=a.device)
    m = torch.arange(1, b.shape[1] + 1, dtype=a.dtype, device=a.device)
    A = torch.cat([torch.zeros_like(a[:, :1]), a.sort(dim=1, descending=True).values.cumsum(dim=1)], dim=1)
    lam = ((A[:, None, :] - b.cumsum(dim=1)[:, :, None]) / (count + m[:, None])).amax(dim=2)
    squares = a[:, None, :].minimum(lam[:, :, None]).square().sum(dim=2) + m * lam.square()
    return squares.amin(dim=1).sqrt()


def _direction(vector: Tensor) -> Tensor:
    """v/|v|; 0 for 0. Divided by its size first, so that no square under- or overflows."""
    vector = vector / _power_of_two(vector.abs().amax())
    length = lengths(vector, 2.0)
    return vector / torch.where(length > 0, length, 1.0)


def _power_of_two(size: Tensor) -> Tensor:
    """The largest one that is not above ``size``; 1 for 0. To divide by it is exact."""
    return torch.where(size > 0, torch.ldexp(torch.ones_like(size), torch.frexp(size).exponent - 1), 1.0)


def _unit(centres: Tensor, precision: float) -> Tensor:
    """Centres of length 1, after checking that they are orthogonal and equally long."""
    length = lengths(centres, 2.0).mean()
    require(bool(length > 0), "centres", "all zero", "orthogonal centres of one length")
    gram = centres @ centres.T / length.square()
    off = (gram - torch.eye(len(gram), dtype=gram.dtype, device=gram.device)).abs().amax().item()
    wanted = "orthogonal rows of one length (no closed form is known otherwise)"
    require(off <= 100 * max(precision, 2.3e-16), "centres", f"rows {off:.2g} away from orthonormal", wanted)
    unit: Tensor = centres / length
    return unit


def _checked(X: Tensor, y: Tensor, centres: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """All four in float64, on the device of X."""
    X = torch.as_tensor(X).detach()
    X, y, centres, labels = (
        torch.as_tensor(part).detach().to(X.device, torch.float64) for part in (X, y, centres, labels)
    )
    require(centres.ndim == 2 and len(centres) > 0, "centres.shape", tuple(centres.shape), "(K, D)")
    D = centres.shape[1]
    require(X.ndim == 2 and X.shape[1] == D, "X.shape", tuple(X.shape), f"(n, {D}), one row per point")
    require(tuple(y.shape) == (len(X),), "y.shape", tuple(y.shape), f"({len(X)},), one label per row of X")
    require(tuple(labels.shape) == (len(centres),), "labels.shape", tuple(labels.shape), f"({len(centres)},)")
    require(bool(X.isfinite().all() and centres.isfinite().all()), "X, centres", "NaN or infinity", "finite numbers")
    require(set(y.tolist()) <= {1, -1}, "y", sorted(set(y.tolist()))[:5], "labels +1 and -1")
    require(set(labels.tolist()) == {1, -1}, "labels", sorted(set(labels.tolist())), "+1 and -1, both present")
    return X, y, centres, labels
