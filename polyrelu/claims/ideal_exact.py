"""Radii and sizes of the ideal classifiers in closed form, against solvers of another kind.

F       min(s/sqrt(K1), (s - t)/sqrt(K)), s = <x, mu_+>, t = <x, mu_->, for a positive x
F^(p)   one scalar problem for p > 2
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from polyrelu.claims.claim import Claim, Standing, at_most
from polyrelu.claims.experiment import Experiment, Measured
from polyrelu.claims.ideal import expected, mixture_of
from polyrelu.claims.profile import Profile
from polyrelu.nets import AverageClassifier, CentreClassifier
from polyrelu.robust import Budget, average_radius, bracket, centre_radius, dist, relative_gaps

Array = NDArray[np.float64]
POWERS = (2.5, 3.0, 4.0, 6.0)


def closed_forms(profile: Profile, seed: int) -> Measured:
    """min(s/sqrt(K1), (s-t)/sqrt(K)) for F and the scalar problems for F^(p), against brackets and SLSQP."""
    points, cases = (200, 6) if profile == "quick" else (2000, 24)
    mixture, generator = mixture_of(10, 10, 0.0), torch.Generator().manual_seed(seed)
    centres, labels = mixture.centres, mixture.labels
    X = torch.randn(points, 10, generator=generator, dtype=torch.float64)
    net = AverageClassifier(centres, labels)
    X = X[net(X) != 0]
    found, exact = bracket(net, X, net(X).sign(), tol=1e-7), average_radius(X, net(X).sign(), centres, labels)
    apart = torch.maximum(found.upper / exact - 1, 1 - found.lower / exact).abs().amax()
    values = {"largest relative error for F": float(apart), "largest gap": float(relative_gaps(found).max())}
    errors, proofs, Z = list[float](), list[float](), X[:cases]
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


def sizes(profile: Profile, seed: int) -> Measured:
    """sup |F| and sup |F^(3)| on the unit sphere, by ascent from centres, class sums, pairs and random points."""
    mixture = mixture_of(100 if profile == "quick" else 1000, 10, 0.0)
    F, F3 = AverageClassifier(mixture.centres, mixture.labels), CentreClassifier(mixture.centres, mixture.labels, 3)
    of_F, of_F3 = (dist(net, net, c=0, seed=seed).value for net in (F, F3))
    return Measured({"sup of |F|": of_F, "sup of |F^(3)|": of_F3})


CLOSED, SIZES = Experiment(closed_forms), Experiment(sizes)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="A11",
        sentence="The exact radius of F at a positive x is min(s/√K1, (s−t)/√K), s and t the products with the two "
        "class sums.",
        paper="ours",
        where="closed form",
        standing=Standing.DERIVED,
        published="relative error below 1e-6",
        settings={"quick": "200 Gaussian points, K = 10 (6+4), bracket to 1e-7", "paper": "the same, 2000 points"},
        experiment=CLOSED,
        checks=(at_most("largest relative error for F", 1e-6), at_most("largest gap", 2e-7)),
    ),
    Claim(
        id="A12",
        sentence="The exact radius of F^(p), p > 2, at any x is the solution of one scalar problem.",
        paper="ours",
        where="closed form",
        standing=Standing.DERIVED,
        published="relative error below 1e-6",
        settings={
            "quick": "p = 2.5, 3, 4, 6, 24 Gaussian points, K = 10, against SLSQP from 8 to 10 starts and proofs",
            "paper": "p = 2.5, 3, 4, 6, 96 Gaussian points, K = 10, against SLSQP from 8 to 10 starts and proofs",
        },
        experiment=CLOSED,
        checks=(
            at_most("largest relative error for F^(p)", 1e-6),
            at_most("largest proof over closed form for F^(p)", 1 + 1e-9),
        ),
    ),
    Claim(
        id="A15",
        sentence="On the unit sphere |F| reaches √max(K1, K2) and |F^(3)| reaches 1: the scale of distances to them.",
        paper="ours",
        where="sizes of the ideal classifiers",
        standing=Standing.DERIVED,
        published="√6 = 2.449; 1",
        settings={"quick": "D = 100, 6+4 clusters, ascent on the sphere", "paper": "D = 1000, the same"},
        experiment=SIZES,
        checks=(expected("sup of |F|", math.sqrt(6), 1e-3), expected("sup of |F^(3)|", 1.0, 1e-3)),
    ),
)
