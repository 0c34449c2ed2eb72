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

from polyrelu.claims.claim import Check, Claim, Standing, at_least, at_most, near
from polyrelu.claims.experiment import Experiment, Measured
from polyrelu.claims.profile import Profile
from polyrelu.data import OrthonormalMixture
from polyrelu.nets import AverageClassifier, CentreClassifier
from polyrelu.robust import bracket, centre_radius, curve
from polyrelu.robust.theory import (
    average_attacked_bound,
    average_critical_radius,
    average_robust_accuracy,
    centre_critical_radius,
    centre_robust_bound,
)

HALF_GAP = math.sqrt(2) / 2
POWERS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
NOISY = (2.0, 3.0, 4.0)  # noise at which accuracies are not simply 1, D = 100
CENTRE = (1, 2, 3, 4)
OFF = "distance from the exact accuracy,"


def mixture_of(dim: int, clusters: int, alpha: float) -> OrthonormalMixture:
    """K clusters in float64, three fifths of them positive as published (6+4, 12+8)."""
    positive = round(0.6 * clusters)
    return OrthonormalMixture(dim, positive, clusters - positive, alpha, dtype=torch.float64)


def slope(K: list[int], radii: list[float]) -> float:
    """Least-squares slope of log r against log K."""
    return float(np.polyfit(np.log(K), np.log(radii), 1)[0])


def accuracy(profile: Profile, seed: int) -> Measured:
    """P(y F(x) > 0) and P(y F^(p)(x) > 0) (Min & Vidal 2024, Prop. 1), as shares of points."""
    many, values = 50_000 if profile == "quick" else 200_000, {}
    for dim, alpha, n in ((1000, 0.1, 20_000), *((100, alpha, many) for alpha in NOISY)):
        mixture = OrthonormalMixture(dim, 6, 4, alpha)
        data = mixture.sample(n, seed=seed)
        powers = ((f"F^({p})", CentreClassifier(mixture.centres, mixture.labels, p)) for p in CENTRE)
        for name, net in (("F", AverageClassifier(mixture.centres, mixture.labels)), *powers):
            right = (net(data.rows()) * data.y > 0).double().mean()
            values[f"accuracy of {name}, D = {dim}, α = {alpha:g}"] = float(right)
    for p in CENTRE:
        share = values[f"accuracy of F^({p}), D = 100, α = 3"]
        values[f"{OFF} F^({p}), D = 100, α = 3"] = abs(share - centre_accuracy(p, 6, 4, 0.3))
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


def one_direction(profile: Profile, seed: int) -> Measured:
    """P(y F(x - y r d0) > 0) ~ Phi(-(rho/alpha) sqrt(D/K)), r = (1 + rho)/sqrt(K), d0 = sum_k y_k mu_k/sqrt(K)."""
    dim, alpha = 100 if profile == "quick" else 1000, 0.1
    values: dict[str, float] = {}
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
            f"r50 along d0, K = {K}": float(np.interp(0.5, share[::-1], radii[::-1])),
            f"largest distance from the Gaussian formula, K = {K}": float(np.abs(share - gaussian).max()),
            f"largest excess over the printed bound, K = {K}": float((share[rho > 0] - bounds).max()),
        }
    return Measured(values)


def fragility(profile: Profile, seed: int) -> Measured:
    """r50 of F for many K, proven from below and attacked from above: 1/sqrt(K)."""
    many, points = (64, 100) if profile == "quick" else (200, 500)
    K = [*(2**k for k in range(1, int(math.log2(many)) + 1)), *([] if profile == "quick" else [many])]
    low, high = list[float](), list[float]()
    for clusters in K:
        mixture = mixture_of(2 * clusters if profile == "quick" else 1000, clusters, 0.1)
        data = mixture.sample(points, seed=seed)
        found = bracket(AverageClassifier(mixture.centres, mixture.labels), data.rows(), data.y, tol=1e-4)
        low.append(curve(found).median_radius.lower)
        high.append(curve(found).median_radius.upper)
    off = max(abs(r * math.sqrt(k) - 1) for k, r in zip(K + K, low + high, strict=True))
    slopes = {f"slope of log r50 against log K, {side}": slope(K, r) for side, r in _sides(low, high)}
    return Measured(slopes | {"largest |r50 √K - 1|": off}, {"K": K, "lower": low, "upper": high})


def resistance(profile: Profile, seed: int) -> Measured:
    """r50 of F^(p), p > 2, for several K: sqrt(2)/2 whatever K; and Theorem 1(b) with its constant C = K/4."""
    K, dim, points = ([4, 10, 20], 50, 60) if profile == "quick" else ([4, 10, 20, 40], 1000, 200)
    values: dict[str, float] = {}
    data: dict[str, list[float]] = {"K": [float(k) for k in K]}
    for p in (3, 4):
        low, high, spare = list[float](), list[float](), list[float]()
        for clusters in K:
            for alpha in (0.01, 0.1):
                mixture = mixture_of(dim, clusters, alpha)
                sample = mixture.sample(points, seed=seed)
                found = curve(bracket(CentreClassifier(mixture.centres, mixture.labels, p), sample.rows(), sample.y))
                if alpha == 0.01:
                    low.append(found.median_radius.lower)
                    high.append(found.median_radius.upper)
                for delta in (0.1, 0.2, 0.4, 0.8):
                    bound = centre_robust_bound(delta, dim, clusters, alpha, C=clusters / 4)
                    spare.append(found.certified((math.sqrt(2) - delta) / 2) - bound)
        values |= {f"least r50 of F^({p}), proven": min(low), f"largest r50 of F^({p}), attacked": max(high)}
        values |= {f"slope of log r50 against log K, p = {p}, {side}": slope(K, r) for side, r in _sides(low, high)}
        values[f"least proven accuracy above the bound, p = {p}"] = min(spare)
        data |= {f"lower, p = {p}": low, f"upper, p = {p}": high}
    return Measured(values, data)


def _sides(low: list[float], high: list[float]) -> tuple[tuple[str, list[float]], ...]:
    return ("proven", low), ("attacked", high)


def threshold(profile: Profile, seed: int) -> Measured:
    """min_m 1/sqrt(1 + m^(2/p-1)), the flip radius of F^(p) at a centre, three ways: formula, closed form, bracket."""
    error, off, rows = 0.0, 0.0, []
    for clusters in (10,) if profile == "quick" else (10, 20):
        mixture = mixture_of(clusters, clusters, 0.0)
        ends, labels = mixture.centres[[0, -1]], mixture.labels[[0, -1]]
        for p in POWERS:
            found = bracket(CentreClassifier(mixture.centres, mixture.labels, p), ends, labels, tol=1e-4)
            exact = centre_radius(ends, labels, mixture.centres, mixture.labels, p).tolist()
            for side, opposite in enumerate((mixture.negative, mixture.positive)):
                formula, low, high = centre_critical_radius(p, opposite), found.lower[side], found.upper[side]
                error = max(error, abs(exact[side] - formula))
                off = max(off, 1 - float(low) / formula, float(high) / formula - 1)
                rows.append({"p": p, "opposite": opposite, "lower": float(low), "upper": float(high)})
    radii = {p: [row["lower"] for row in rows if row["p"] == p] for p in POWERS}
    values = {
        "largest error of the closed form": error,
        "largest distance of the bracket, relative": off,
        "least proven flip radius for p ≥ 2": min(min(radii[p]) for p in POWERS if p >= 2),
        "largest found flip radius for p < 2": max(row["upper"] for row in rows if row["p"] < 2),
    }
    return Measured(values, {"centres": rows})


ACCURACY, DIRECTION, THRESHOLD = (Experiment(run) for run in (accuracy, one_direction, threshold))
FRAGILITY, RESISTANCE = (Experiment(run, repeats={"quick": 2, "paper": 5}) for run in (fragility, resistance))


def expected(name: str, value: float, tolerance: float) -> Check:
    """``|number - value| <= tolerance`` for a value that no source prints."""
    return Check(name, value - tolerance, value + tolerance)


def _slopes(name: str, value: float, tolerance: float) -> tuple[Check, ...]:
    return tuple(near(f"{name}, {side}", value, tolerance) for side in ("proven", "attacked"))


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="A1",
        sentence="F, the difference of the two class averages, classifies clean data rightly: "
        "P(F(x)y > 0) ≥ 1 − 2exp(−CD/(4α²K)).",
        paper="MV24",
        where="Prop. 1",
        standing=Standing.PRINTED,
        published="≥ 1 − 2exp(−CD/(4α²K)), C not given; true with C = 2",
        settings={
            "quick": "6+4 clusters; D = 1000, α = .1, 20 000 points; D = 100, α = 2, 3, 4, 50 000 points",
            "paper": "6+4 clusters; D = 1000, α = .1, 20 000 points; D = 100, α = 2, 3, 4, 200 000 points",
        },
        experiment=ACCURACY,
        checks=(  # .01 is five deviations of the share among 50 000 points
            at_least("accuracy of F, D = 1000, α = 0.1", 0.9999),
            *(
                expected(f"accuracy of F, D = 100, α = {alpha:g}", average_robust_accuracy(0, 100, 6, 4, alpha), 0.01)
                for alpha in NOISY
            ),
        ),
    ),
    Claim(
        id="A2",
        sentence="F^(p), with one neuron for each centre, classifies clean data rightly for every p: "
        "P(F^(p)(x)y > 0) ≥ 1 − 2(K+1)exp(−CD/(α²K)).",
        paper="MV24",
        where="Prop. 1",
        standing=Standing.PRINTED,
        published="≥ 1 − 2(K+1)exp(−CD/(α²K)), C not given; true with C = 1/4 for p ≥ 2",
        settings="as A1, p = 1, 2, 3, 4; the accuracies at α = 3 beside the exact law of the sum",
        experiment=ACCURACY,
        checks=(
            *(at_least(f"accuracy of F^({p}), D = 1000, α = 0.1", 0.9999) for p in CENTRE),
            *(at_most(f"{OFF} F^({p}), D = 100, α = 3", 0.005, 0.0) for p in CENTRE),  # four deviations
        ),
    ),
    Claim(
        id="A3",
        sentence="One direction d0 breaks F for almost all points at radius (1+ρ)/√K: the accuracy at x − y(1+ρ)/√K·d0 "
        "is at most 2exp(−CDρ²/(α²K)).",
        paper="MV24",
        where="Theorem 1(a)",
        standing=Standing.PRINTED,
        published="half broken at 1/√K: .3162 (K = 10), .2236 (K = 20)",
        settings={
            "quick": "D = 100, α = .1, 20 000 points, d0 = Σ y_k μ_k/√K with the sign of y; C = 1/2",
            "paper": "D = 1000, α = .1, 20 000 points, d0 = Σ y_k μ_k/√K with the sign of y; C = 1/2",
        },
        experiment=DIRECTION,
        checks=tuple(
            check
            for K in (10, 20)
            for check in (
                near(f"r50 along d0, K = {K}", average_critical_radius(K), 0.01 * average_critical_radius(K)),
                at_most(f"largest distance from the Gaussian formula, K = {K}", 0.02),
                at_most(f"largest excess over the printed bound, K = {K}", 0.0),
            )
        ),
    ),
    Claim(
        id="A4",
        sentence="The radius at which F breaks falls like 1/√K with the number K of hidden sub-classes.",
        paper="MV24",
        where="Theorem 1(a)",
        standing=Standing.PRINTED,
        published="slope −1/2 of log radius against log K",
        settings={
            "quick": "K = 2, 4, …, 64, D = 2K, α = .1, 100 points for each K, proven and attacked",
            "paper": "K = 2, 4, …, 128, 200, D = 1000, α = .1, 500 points for each K, proven and attacked",
        },
        experiment=FRAGILITY,
        # the median of 100 radii lies within 5 % of 1/√K (five deviations): D = 2K makes it the same for every K
        checks=(*_slopes("slope of log r50 against log K", -0.5, 0.02), at_most("largest |r50 √K - 1|", 0.05)),
    ),
    Claim(
        id="A5",
        sentence="F^(p) with p > 2 resists every perturbation up to (√2−δ)/2, whatever the number K of sub-classes.",
        paper="MV24",
        where="Theorem 1(b)",
        standing=Standing.PRINTED,
        published="√2/2 = .7071 for every K; P ≥ 1 − 2(K+1)exp(−CDδ²/(2α²K²)), true with C = K/4",
        settings={
            "quick": "D = 50, K = 4, 10, 20, p = 3, 4, 60 points; α = .01 for the radius, also .1 for the bound",
            "paper": "D = 1000, K = 4, 10, 20, 40, p = 3, 4, 200 points; α = .01 for the radius, also .1 for the bound",
        },
        experiment=RESISTANCE,
        checks=tuple(
            check
            for p in (3, 4)
            for check in (
                Check(f"least r50 of F^({p}), proven", HALF_GAP - 0.02, HALF_GAP, HALF_GAP),
                near(f"largest r50 of F^({p}), attacked", HALF_GAP, 0.02),
                *_slopes(f"slope of log r50 against log K, p = {p}", 0.0, 0.01),
                at_least(f"least proven accuracy above the bound, p = {p}", 0.0),
            )
        ),
    ),
    Claim(
        id="A6",
        sentence="p = 2 is the threshold: at a centre F^(p) breaks at min_m 1/√(1+m^(2/p−1)), m the number of opposite "
        "centres taking part, which is √2/2 from p = 2 on and falls with the number of opposite centres below.",
        paper="MV25",
        where="poster",
        standing=Standing.DERIVED,
        published="min_m 1/√(1+m^(2/p−1)); √2/2 for p ≥ 2",
        settings={
            "quick": "at centres, K = 10 (6+4), p = 1, 1.5, 2, 2.5, 3, 4; formula, closed form and bracket",
            "paper": "at centres, K = 10 and 20, p = 1, 1.5, 2, 2.5, 3, 4; formula, closed form and bracket",
        },
        experiment=THRESHOLD,
        checks=(
            at_most("largest error of the closed form", 1e-6),
            at_most("largest distance of the bracket, relative", 2e-4),  # worked at to 1e-4
            expected("least proven flip radius for p ≥ 2", HALF_GAP, 1e-4),
            at_most("largest found flip radius for p < 2", 0.65),  # .622 at p = 1.5 with 4 opposite centres
        ),
    ),
)
