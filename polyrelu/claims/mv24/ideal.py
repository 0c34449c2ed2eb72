"""The two ideal classifiers, without any training: how right they are, and how far they hold.

    F(x)     = relu<x, mu_+> - relu<x, mu_->        mu_+- = sums of the class's centres; breaks at 1/sqrt(K)
    F^(p)(x) = sum_k y_k relu(<x, mu_k>)^p          breaks at sqrt(2)/2 for p >= 2

Data x = mu_k + (alpha/sqrt(D)) N(0, I), K = K1 + K2 orthonormal centres (Min & Vidal, ICML 2024 and 2025).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import norm

from polyrelu.claims import Key, Measured, Profile, Quantity, experiment
from polyrelu.claims.mv24 import sizes
from polyrelu.claims.setups.power_law import slope
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import AverageClassifier, CentreClassifier
from polyrelu.robust import bracket, centre_radius, curve
from polyrelu.robust.theory import average_attacked_bound, centre_critical_radius, centre_robust_bound

NOISY = (2.0, 3.0, 4.0)  # noise at which accuracies are not simply 1, D = 100
THRESHOLD_POWERS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0)


def mixture_of(dim: int, clusters: int, alpha: float) -> OrthonormalMixture:
    """K clusters in float64, three fifths of them positive as published (6+4, 12+8)."""
    positive = round(0.6 * clusters)
    return OrthonormalMixture(dim, positive, clusters - positive, alpha, dtype=torch.float64)


@experiment()
def accuracy(profile: Profile, seed: int) -> Measured:
    """P(y F(x) > 0) and P(y F^(p)(x) > 0) (Min & Vidal 2024, Prop. 1), as shares of points."""
    values: dict[Key, float] = {}
    many = sizes.NOISY_POINTS[profile]
    for dim, alpha, n in ((1000, 0.1, 20_000), *((100, alpha, many) for alpha in NOISY)):
        mixture = OrthonormalMixture(dim, 6, 4, alpha)
        data = mixture.sample(n, seed=seed)
        powers = ((f"F^({p})", CentreClassifier(mixture.centres, mixture.labels, p)) for p in sizes.CENTRE_POWERS)
        for name, net in (("F", AverageClassifier(mixture.centres, mixture.labels)), *powers):
            right = (net(data.rows()) * data.y > 0).double().mean()
            values[Quantity("accuracy", of=name, dim=dim, alpha=alpha)] = float(right)
    for p in sizes.CENTRE_POWERS:
        share = values[Quantity("accuracy", of=f"F^({p})", dim=100, alpha=3)]
        off = abs(share - centre_accuracy(p, 6, 4, 0.3))
        values[Quantity("distance from the exact accuracy", of=f"F^({p})", dim=100, alpha=3)] = off
    return Measured(values)


def centre_accuracy(p: float, positive: int, negative: int, deviation: float, bins: int = 2**18) -> float:
    """P(y F^(p)(x) > 0) for scores <x, mu_k> ~ N(1 or 0, deviation^2): the law of the sum, by convolution.

    relu(z)^p has the distribution function Phi((t^(1/p) - m)/deviation); the mass of each of ``bins`` cells is put in
    its middle, so the mistake is of the order of a cell.
    """
    cell = 2 * (positive + negative) * (1 + 6 * deviation) ** p / bins

    def law(mean: float) -> npt.NDArray[Any]:
        edges = (np.arange(bins // 2) + 0.5) * cell
        mass = np.zeros(bins)
        mass[: bins // 2] = np.diff(norm.cdf((edges ** (1 / p) - mean) / deviation), prepend=0.0)
        return np.fft.rfft(mass)

    own, other = law(1.0), law(0.0)

    def right(ours: int, theirs: int) -> float:
        mass = np.fft.irfft(own * other ** (ours - 1) * other.conj() ** theirs, bins)
        return float(mass[1 : bins // 2].sum() + mass[0] / 2)

    return (positive * right(positive, negative) + negative * right(negative, positive)) / (positive + negative)


@experiment()
def one_direction(profile: Profile, seed: int) -> Measured:
    """P(y F(x - y r d0) > 0) ~ Phi(-(rho/alpha) sqrt(D/K)), r = (1 + rho)/sqrt(K), d0 = sum_k y_k mu_k/sqrt(K)."""
    dim, alpha = sizes.DIRECTION_DIM[profile], 0.1
    values: dict[Key, float] = {}
    for positive, negative in ((6, 4), (8, 12)):
        K, mixture = positive + negative, OrthonormalMixture(dim, positive, negative, alpha)
        sample, net = mixture.sample(20_000, seed=seed), AverageClassifier(mixture.centres, mixture.labels)
        X, toward = sample.rows(), sample.y[:, None] * (mixture.labels @ mixture.directions / math.sqrt(K))
        rho = np.linspace(-3, 3, 25) * alpha * math.sqrt(K / dim)
        radii = (1 + rho) / math.sqrt(K)
        share = np.array([float((net(X - r * toward) * sample.y > 0).double().mean()) for r in radii.tolist()])
        gaussian = norm.cdf(-rho / alpha * math.sqrt(dim / K))
        bounds = np.array([average_attacked_bound(r, dim, K, alpha, C=0.5) for r in rho[rho > 0].tolist()])
        values |= {
            Quantity("r50 along d0", K=K): float(np.interp(0.5, share[::-1], radii[::-1])),
            Quantity("largest distance from the Gaussian formula", K=K): float(np.abs(share - gaussian).max()),
            Quantity("largest excess over the printed bound", K=K): float((share[rho > 0] - bounds).max()),
        }
    return Measured(values)


@experiment(repeats={"quick": 2, "paper": 5})
def fragility(profile: Profile, seed: int) -> Measured:
    """r50 of F for many K, proven from below and attacked from above: 1/sqrt(K)."""
    size = sizes.FRAGILITY[profile]
    r50 = {"proven": list[float](), "attacked": list[float]()}
    for clusters in size.K:
        mixture = mixture_of(size.dim or 2 * clusters, clusters, 0.1)
        sample = mixture.sample(size.points, seed=seed)
        found = bracket(AverageClassifier(mixture.centres, mixture.labels), sample.rows(), sample.y, tol=1e-4)
        r50["proven"].append(curve(found).median_radius.lower)
        r50["attacked"].append(curve(found).median_radius.upper)
    off = max(abs(r * math.sqrt(k) - 1) for radii in r50.values() for k, r in zip(size.K, radii, strict=True))
    slopes = {Quantity("slope of log r50 against log K", side=side): slope(size.K, r50[side]) for side in r50}
    data = {"K": list(size.K), "lower": r50["proven"], "upper": r50["attacked"]}
    return Measured({**slopes, "largest |r50 √K - 1|": off}, data)


@experiment(repeats={"quick": 2, "paper": 5})
def resistance(profile: Profile, seed: int) -> Measured:
    """r50 of F^(p), p > 2, for several K: sqrt(2)/2 whatever K; and Theorem 1(b) with its constant C = K/4."""
    size = sizes.RESISTANCE[profile]
    values: dict[Key, float] = {}
    data: dict[str, list[float]] = {"K": [float(k) for k in size.K]}
    for p in (3, 4):
        r50, spare = {"proven": list[float](), "attacked": list[float]()}, list[float]()
        for clusters in size.K:
            for alpha in (0.01, 0.1):
                mixture = mixture_of(size.dim, clusters, alpha)
                sample = mixture.sample(size.points, seed=seed)
                found = curve(bracket(CentreClassifier(mixture.centres, mixture.labels, p), sample.rows(), sample.y))
                if alpha == 0.01:
                    r50["proven"].append(found.median_radius.lower)
                    r50["attacked"].append(found.median_radius.upper)
                for delta in (0.1, 0.2, 0.4, 0.8):
                    bound = centre_robust_bound(delta, size.dim, clusters, alpha, C=clusters / 4)
                    spare.append(found.certified((math.sqrt(2) - delta) / 2) - bound)
        values[Quantity("least r50, proven", p=p)] = min(r50["proven"])
        values[Quantity("largest r50, attacked", p=p)] = max(r50["attacked"])
        for side, radii in r50.items():
            values[Quantity("slope of log r50 against log K", p=p, side=side)] = slope(size.K, radii)
        values[Quantity("least proven accuracy above the bound", p=p)] = min(spare)
        data |= {f"lower, p = {p}": r50["proven"], f"upper, p = {p}": r50["attacked"]}
    return Measured(values, data)


@experiment()
def threshold(profile: Profile, seed: int) -> Measured:
    """min_m 1/sqrt(1 + m^(2/p-1)), the flip radius of F^(p) at a centre, three ways: formula, closed form, bracket."""
    error, off, rows = 0.0, 0.0, []
    for clusters in sizes.THRESHOLD_K[profile]:
        mixture = mixture_of(clusters, clusters, 0.0)
        ends, labels = mixture.centres[[0, -1]], mixture.labels[[0, -1]]
        for p in THRESHOLD_POWERS:
            found = bracket(CentreClassifier(mixture.centres, mixture.labels, p), ends, labels, tol=1e-4)
            exact = centre_radius(ends, labels, mixture.centres, mixture.labels, p).tolist()
            for side, opposite in enumerate((mixture.negative, mixture.positive)):
                formula, low, high = centre_critical_radius(p, opposite), found.lower[side], found.upper[side]
                error = max(error, abs(exact[side] - formula))
                off = max(off, 1 - float(low) / formula, float(high) / formula - 1)
                rows.append({"p": p, "opposite": opposite, "lower": float(low), "upper": float(high)})
    values = {
        "largest error of the closed form": error,
        "largest distance of the bracket, relative": off,
        "least proven flip radius for p ≥ 2": min(row["lower"] for row in rows if row["p"] >= 2),
        "largest found flip radius for p < 2": max(row["upper"] for row in rows if row["p"] < 2),
    }
    return Measured(values, {"centres": rows})
