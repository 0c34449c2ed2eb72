"""Radii and sizes of the ideal classifiers in closed form, against solvers of another kind.

F       min(s/sqrt(K1), (s - t)/sqrt(K)), s = <x, mu_+>, t = <x, mu_->, for a positive x
F^(p)   one scalar problem for p > 2
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from polyrelu.claims import Measured, Profile, experiment
from polyrelu.claims.mv24 import sizes
from polyrelu.claims.mv24.ideal import mixture_of
from polyrelu.nets import AverageClassifier, CentreClassifier
from polyrelu.robust import Budget, average_radius, bracket, centre_radius, dist, relative_gaps

Array = NDArray[np.float64]
POWERS = (2.5, 3.0, 4.0, 6.0)


@experiment()
def closed_forms(profile: Profile, seed: int) -> Measured:
    """min(s/sqrt(K1), (s-t)/sqrt(K)) for F and the scalar problems for F^(p), against brackets and SLSQP."""
    mixture, generator = mixture_of(10, 10, 0.0), torch.Generator().manual_seed(seed)
    centres, labels = mixture.centres, mixture.labels
    X = torch.randn(sizes.GAUSSIAN_POINTS[profile], 10, generator=generator, dtype=torch.float64)
    net = AverageClassifier(centres, labels)
    X = X[net(X) != 0]
    found, exact = bracket(net, X, net(X).sign(), tol=1e-7), average_radius(X, net(X).sign(), centres, labels)
    apart = torch.maximum(found.upper / exact - 1, 1 - found.lower / exact).abs().amax()
    values = {"largest relative error for F": float(apart), "largest gap": float(relative_gaps(found).max())}
    errors, proofs, Z = list[float](), list[float](), X[: sizes.SOLVED[profile]]
    for p in POWERS:
        centre = CentreClassifier(centres, labels, p)
        y = centre(Z).sign()
        radii = centre_radius(Z, y, centres, labels, p)
        solved = torch.tensor([nearest(z, label * labels, p, seed) for z, label in zip(Z, y, strict=True)])
        errors.append(float((solved / radii - 1).abs().amax()))
        proofs.append(float((bracket(centre, Z, y, budget=Budget(nodes=0)).lower / radii).amax()))
    values |= {"largest relative error for F^(p)": max(errors), "largest proof over closed form for F^(p)": max(proofs)}
    return Measured(values)


def nearest(x: Tensor, own: Tensor, p: float, seed: int, random: int = 4) -> float:
    """min |z - x| : |z_own^+|_p <= |z_opp^+|_p by SLSQP from many starts, coordinates on the centres; ``own`` +-1."""
    at, sign, rng = x.numpy(), own.numpy(), np.random.default_rng(seed)

    def length(z: Array, side: int) -> float:
        return float(((sign == side) * np.maximum(z, 0) ** p).sum() ** (1 / p))

    def margin(z: Array) -> float:
        return length(z, 1) - length(z, -1)

    def uphill(z: Array) -> Array:
        size = np.where(sign > 0, length(z, 1), length(z, -1)).clip(1e-300)
        return np.asarray(sign * (np.maximum(z, 0) / size) ** (p - 1))

    top, opposite = at[sign > 0].max(), np.flatnonzero(sign < 0)
    lifted = [np.where(np.arange(len(at)) == k, 0.7 * top, np.where(sign > 0, 0.7 * at, at)) for k in opposite]
    constraint = {"type": "ineq", "fun": lambda z: -margin(z), "jac": lambda z: -uphill(z)}
    best = float(np.linalg.norm(np.maximum(at[sign > 0], 0)))  # all own coordinates to 0
    for start in [*lifted, *(at + rng.normal(size=(random, len(at))))]:
        found = minimize(
            lambda z: ((z - at) ** 2).sum() / 2,
            start,
            jac=lambda z: z - at,
            constraints=[constraint],
            options={"maxiter": 200, "ftol": 1e-15},
        ).x
        if margin(found) <= 1e-9:
            best = min(best, float(np.linalg.norm(found - at)))
    return best


@experiment()
def largest_values(profile: Profile, seed: int) -> Measured:
    """sup |F| and sup |F^(3)| on the unit sphere, by ascent from centres, class sums, pairs and random points."""
    mixture = mixture_of(sizes.SIZE_DIM[profile], 10, 0.0)
    F, F3 = AverageClassifier(mixture.centres, mixture.labels), CentreClassifier(mixture.centres, mixture.labels, 3)
    of_F, of_F3 = (dist(net, net, c=0, seed=seed).value for net in (F, F3))
    return Measured({"sup of |F|": of_F, "sup of |F^(3)|": of_F3})
