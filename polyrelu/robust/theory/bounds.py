r"""Every probability bound and critical radius of the papers as a function, in the scales of the paper it comes from.

Setting: x = mu_k + (alpha/sqrt(D)) N(0, I_D), K = K1 + K2 orthonormal centres, equally likely. Bounds on a probability
are cut to [0, 1]: where a lower bound is 0 or an upper bound is 1 it says nothing (it is vacuous), and each docstring
says when. Constants the papers leave open are arguments ``C`` without a default; a value that is proven here or
measured is named beside them. Arguments outside a statement's range raise InputError.
"""

from __future__ import annotations

import math

from scipy.integrate import quad
from scipy.stats import chi2, norm

from polyrelu.checks import checked, finite_number, whole_number
from polyrelu.errors import require

HALF_GAP = math.sqrt(2) / 2  # half the distance between two orthonormal centres
FAR = 12.0  # standard deviations: beyond, 4e-33 of a Gaussian is left


@checked
def average_clean_bound(dim: int, clusters: int, alpha: float, C: float) -> float:
    """P(y F(x) > 0) >= 1 - 2 exp(-C D/(4 alpha^2 K)) (Min & Vidal 2024, Prop. 1).

    True with C = 2: {y F <= 0} needs <x, mu_own> <= 0 or <x, mu_own - mu_other> <= 0, each a Gaussian tail of at most
    exp(-D/(2 alpha^2 K))/2. Vacuous where D/K <= 4 log(2) alpha^2/C.
    """
    return _at_least(2, finite_number("C", C, above=0) * _signal(dim, clusters, alpha) / 4)


@checked
def centre_clean_bound(dim: int, clusters: int, alpha: float, C: float) -> float:
    """P(y F^(p)(x) > 0) >= 1 - 2(K+1) exp(-C D/(alpha^2 K)) (Min & Vidal 2024, Prop. 1).

    True with C = 1/4 for p >= 2: the radius is 1-Lipschitz and sqrt(2)/2 at a centre, so a wrong point has
    noise of at least sqrt(2)/2 in the span, and one of its K coordinates is at least sqrt(1/(2K)). Vacuous where
    D/K <= log(2K+2) alpha^2/C.
    """
    return _at_least(2 * (clusters + 1), finite_number("C", C, above=0) * _signal(dim, clusters, alpha))


@checked
def average_attacked_bound(rho: float, dim: int, clusters: int, alpha: float, C: float) -> float:
    """P(y F(x - y (1+rho)/sqrt(K) d0) > 0) <= 2 exp(-C D rho^2/(alpha^2 K)), rho > 0 (Min & Vidal 2024, Thm 1a).

    d0 = sum_k y_k mu_k/sqrt(K). Printed for x + r d0 with one d0 for both classes, which cannot hold: the
    sign of y belongs there. True with C = 1/2 (the tail of <x, mu_own - mu_other>). Vacuous (1) where
    rho^2 D/K <= log(2) alpha^2/C.
    """
    exponent = finite_number("C", C, above=0) * _square("rho", rho) * _signal(dim, clusters, alpha)
    return min(1.0, 2 * math.exp(-exponent))


@checked
def centre_robust_bound(delta: float, dim: int, clusters: int, alpha: float, C: float) -> float:
    """P(F^(p) holds at radius (sqrt(2) - delta)/2) >= 1 - 2(K+1) exp(-C D delta^2/(2 alpha^2 K^2)), p > 2 (Thm 1b).

    Min & Vidal 2024; 0 < delta <= sqrt(2) (the poster allows sqrt(2), which is clean accuracy). True with C = 1/4, in
    fact C = K/4: see `span_robust_bound`, which is the same argument without the union bound. Vacuous where
    delta^2 D/K^2 <= 2 log(2K+2) alpha^2/C.
    """
    delta = finite_number("delta", delta, above=0)
    require(delta <= math.sqrt(2), "delta", delta, "a number in (0, sqrt(2)]")
    signal = _signal(dim, clusters, alpha) / clusters
    return _at_least(2 * (clusters + 1), finite_number("C", C, above=0) * delta**2 * signal / 2)


@checked
def span_robust_bound(radius: float, at_centre: float, dim: int, clusters: int, alpha: float) -> float:
    """P(r(x) > R) >= P(chi^2_K < (D/alpha^2)(r_centre - R)^2) for R <= r_centre, no constant left (derived).

    r(x) is the distance to a set, so r(x) >= r(mu_k) - |noise in the span|, for every classifier that sees x through
    the span of the centres only (F, F^(p), Bayes, nearest centre), with radius ``at_centre`` or more at every centre.
    R = 0 is clean accuracy. Small as R nears ``at_centre``, 0 at it.
    """
    radius, at_centre = finite_number("radius", radius, least=0), finite_number("at_centre", at_centre, least=0)
    require(radius <= at_centre, "radius", radius, f"at most at_centre={at_centre:g}")
    gap = at_centre - radius
    return float(chi2.cdf(_signal(dim, clusters, alpha) * clusters * gap * gap, clusters))


@checked
def average_robust_accuracy(radius: float, dim: int, positive: int, negative: int, alpha: float) -> float:
    """P(r(x) > R) for F, exactly: P(s > R sqrt(K_own), s - t > R sqrt(K)), averaged over the classes (derived).

    s = <x, mu_own> ~ N(1, alpha^2 K_own/D) and t = <x, mu_other> ~ N(0, alpha^2 K_opp/D) are independent; F breaks in
    one of two half-spaces. R = 0 is clean accuracy, for which Phi(sqrt(D/K)/alpha) is an upper bound.
    """
    plus, minus = math.sqrt(whole_number("positive", positive)), math.sqrt(whole_number("negative", negative))
    return _average(radius, plus, minus, dim, positive, negative, alpha)


@checked
def average_attacked_accuracy(radius: float, dim: int, positive: int, negative: int, alpha: float) -> float:
    """P(y F(x - y R d0) > 0), d0 = sum_k y_k mu_k/sqrt(K), exactly; about Phi(-(rho/alpha) sqrt(D/K)).

    R = (1 + rho)/sqrt(K). The attack takes R K_own/sqrt(K) from s and R sqrt(K) from s - t; the Gaussian formula
    forgets the event s <= 0 < s - t, which only lowers the accuracy.
    """
    root = math.sqrt(whole_number("positive", positive) + whole_number("negative", negative))
    return _average(radius, positive / root, negative / root, dim, positive, negative, alpha)


def _average(radius: float, plus: float, minus: float, dim: int, K1: int, K2: int, alpha: float) -> float:
    """P(s > R lost, s - t > R sqrt(K)) averaged over the classes, whose ``lost`` are ``plus`` and ``minus``."""
    R, K = finite_number("radius", radius, least=0), K1 + K2
    noise = 1 / math.sqrt(_signal(dim, K, alpha) * K)  # alpha/sqrt(D)
    a, b = noise * math.sqrt(K1), noise * math.sqrt(K2)
    lost = R * math.sqrt(K)
    return (K1 * both_above(R * plus, lost, a, b) + K2 * both_above(R * minus, lost, b, a)) / K


@checked
def impossibility_bound(positive: int, negative: int) -> float:
    """P(f breaks within sqrt(2)/2) >= min(K1, K2)/K for every classifier f (Min & Vidal 2025, Prop. 1).

    Never vacuous; the robust accuracy of anything at sqrt(2)/2 is at most 1 minus this, whatever alpha.
    """
    K1, K2 = whole_number("positive", positive), whole_number("negative", negative)
    return min(K1, K2) / (K1 + K2)


@checked
def bayes_robust_bound(nu: float, dim: int, clusters: int, alpha: float) -> float:
    """P(f* holds at radius (sqrt(2) - nu)/2) >= 1 - 2K exp(-D nu^2/(64 alpha^2)) (Min & Vidal 2025, Prop. 2).

    For 2 sqrt(2) alpha^2 log(K)/D <= nu <= sqrt(2), else InputError. Vacuous where nu <= 8 alpha sqrt(log(2K)/D).
    """
    noise = 1 / (_signal(dim, clusters, alpha) * clusters)
    least = 2 * math.sqrt(2) * noise * math.log(clusters)
    require(least <= finite_number("nu", nu) <= math.sqrt(2), "nu", nu, f"a number in [{least:.4g}, sqrt(2)]")
    return _at_least(2 * clusters, nu**2 / (64 * noise))


@checked
def closeness_radius(nu: float, p: float) -> float:
    """(sqrt(2) - 8 nu^(1/p))/2: what dist(f, F^(p)) <= nu still guarantees (Min & Vidal 2025, Prop. 3).

    p > 2 and 0 < nu <= (sqrt(2)/8)^p, .00552 at p = 3, where the radius is 0.
    """
    p = finite_number("p", p, above=2)
    most = (math.sqrt(2) / 8) ** p
    require(0 < finite_number("nu", nu) <= most * (1 + 1e-12), "nu", nu, f"a number in (0, (sqrt(2)/8)^p = {most:.4g}]")
    return float(max(0.0, (math.sqrt(2) - 8 * nu ** (1 / p)) / 2))


@checked
def closeness_bound(nu: float, p: float, dim: int, clusters: int, alpha: float) -> float:
    """P(f holds at closeness_radius(nu, p)) >= 1 - 2K exp(-D nu^(2/p)/(2 K^2 alpha^2)) - 4 exp(-3/(8 alpha^2)).

    Min & Vidal 2025, Prop. 3, range of nu as in `closeness_radius`. Printed for 1-homogeneous f, though the nets and
    F^(p) are p-homogeneous in x: the bound is stated here as printed. Vacuous for alpha >= .52 whatever
    D, and where nu^(2/p) D <= 2 K^2 alpha^2 log(2K).
    """
    closeness_radius(nu, p)
    near = _at_least(2 * clusters, nu ** (2 / p) * _signal(dim, clusters, alpha) / (2 * clusters))
    return max(0.0, near - 4 * math.exp(-3 / (8 * alpha**2)))


@checked
def trained_radius(alpha: float, p: float, C: float) -> float:
    """sqrt(2)/2 - C alpha^(2/p): what a net trained by gradient flow resists, p > 2 (Min & Vidal 2025, Cor. 1).

    With probability at least 1 - C' exp(-1/alpha^2); both constants hide logarithms and are unknown. 0 = says nothing.
    """
    p, alpha = finite_number("p", p, above=2), finite_number("alpha", alpha, above=0)
    return max(0.0, HALF_GAP - finite_number("C", C, above=0) * math.exp(2 / p * math.log(alpha)))


def _signal(dim: int, clusters: int, alpha: float) -> float:
    """D/(alpha^2 K)."""
    D, K = whole_number("dim", dim), whole_number("clusters", clusters, least=2)
    require(D >= K, "dim", dim, f"at least K={clusters}")
    return D / (_square("alpha", alpha) * K)


def _square(name: str, value: float) -> float:
    square = finite_number(name, value, above=0) * value
    require(1e-300 <= square <= 1e300, name, value, "a number in [1e-150, 1e150], so that float64 holds its square")
    return square


def _at_least(events: float, exponent: float) -> float:
    """1 - events exp(-exponent), at least 0."""
    return max(0.0, 1 - events * math.exp(-exponent))


def both_above(first: float, second: float, a: float, b: float) -> float:
    """P(s > first, s - t > second) for independent s ~ N(1, a^2), t ~ N(0, b^2), to 1e-12.

    The integral over s = 1 + a z > first of the density of z times Phi((s - second)/b), split where the latter rises.
    """
    low = max((first - 1) / a, -FAR)
    if low >= FAR:
        return 0.0
    rise = (second - 1) / a
    inside = [rise] if low < rise < FAR else None

    def density(z: float) -> float:
        return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) * float(norm.cdf((1 + a * z - second) / b))

    return min(1.0, float(quad(density, low, FAR, points=inside, limit=200, epsabs=1e-13, epsrel=1e-12)[0]))


@checked
def average_critical_radius(clusters: int) -> float:
    """1/sqrt(K): where F = relu<x,mu+> - relu<x,mu-> flips at a centre, for any K1 + K2 = K (derived)."""
    return 1 / math.sqrt(whole_number("clusters", clusters, least=2))


@checked
def flip_radius(p: float, m: int) -> float:
    """r(p, m) = 1/sqrt(1 + m^(2/p-1)): where F^(p) flips at a centre moving to m opposite ones (derived)."""
    return 1 / math.sqrt(1 + whole_number("m", m) ** (2 / finite_number("p", p, least=1) - 1))


@checked
def centre_critical_radius(p: float, opposite: int) -> float:
    """min_{m <= K_opp} 1/sqrt(1 + m^(2/p-1)): where F^(p) flips at a centre; sqrt(2)/2 for p >= 2 (derived)."""
    return flip_radius(p, 1 if finite_number("p", p, least=1) >= 2 else whole_number("opposite", opposite))


@checked
def margin_over_lipschitz(margin: float, lipschitz: float) -> float:
    """R(x) >= q/beta: margin q at x, q beta-Lipschitz on the ball of radius q/beta (Lyu & Li 2020).

    0 for a misclassified point.
    """
    return max(0.0, finite_number("margin", margin)) / finite_number("lipschitz", lipschitz, above=0)


@checked
def feature_averaging_radius(dim: int, clusters: int) -> float:
    """sqrt(d/k): where averaged features break, centres of length sqrt(d) (Li et al. 2025); constant 1."""
    return math.sqrt(whole_number("dim", dim)) * average_critical_radius(clusters)


@checked
def feature_decoupling_radius(dim: int, opposite: int, readout: str = "max") -> float:
    """sqrt(d/2) for the largest logit of each class, sqrt(d/(1 + k_opp)) for the summed one (derived)."""
    require(readout in ("max", "sum"), "readout", readout, '"max" or "sum"')
    return math.sqrt(whole_number("dim", dim)) * (HALF_GAP if readout == "max" else flip_radius(1, opposite))


@checked
def hand_built_radii(dim: int) -> tuple[float, float]:
    """sqrt(d)/2 and sqrt(d/2): where sum_k y_k relu(4 <mu_k,x>/d - 2) reaches 0, and changes sign (Frei et al. 2023).

    From a centre of length sqrt(d); Frei et al. 2023, Thm 4.1, gives the order only.
    """
    return math.sqrt(whole_number("dim", dim)) / 2, math.sqrt(dim) * HALF_GAP


@checked
def universal_perturbation_bound(dim: int, clusters: int, balance: float, C: float) -> float:
    """|z| <= C sqrt(d/(c^2 k)): length of one z = eta sum_j y_j mu_j that flips x - y z (Frei et al. 2023, Thm 4.2).

    ``balance`` c <= min(|Q+|, |Q-|)/k, so at most 1/2; centres of length sqrt(d). Holds with probability 1 - delta for
    a share 1 - eps of the points, for n in `universal_perturbation_samples`. C unknown; 1/2 for F itself with c = 1/2.
    With the number of margin points for k it is the statement of Vardi et al. 2022.
    """
    balance = finite_number("balance", balance, above=0)
    require(balance <= 0.5, "balance", balance, "a number in (0, 1/2]")
    return finite_number("C", C, above=0) * feature_averaging_radius(dim, clusters) / balance


@checked
def universal_perturbation_samples(dim: int, clusters: int, delta: float, eps: float) -> tuple[float, float]:
    """k ln^2 d <= n <= min(sqrt(delta/3) e^(d/32), sqrt(delta)/3 d^(ln(d)/4), eps/4 d^(ln(d)/2)) (Thm 4.2).

    Needs 1/delta <= d^(ln(d)-1)/3. Empty (first > second) in small dimensions: the theorem then says nothing.
    """
    log_d = math.log(whole_number("dim", dim, least=2))
    for name, value in (("delta", delta), ("eps", eps)):
        require(0 < finite_number(name, value) < 1, name, value, "a number in (0, 1)")
    least = math.exp(math.log(3) + (1 - log_d) * log_d)
    require(delta >= least * (1 - 1e-12), "delta", delta, f"at least {least:.4g}, 3 d^(1 - ln d)")
    exponents = (
        math.log(delta / 3) / 2 + dim / 32,
        math.log(delta) / 2 - math.log(3) + log_d**2 / 4,
        math.log(eps / 4) + log_d**2 / 2,
    )
    return whole_number("clusters", clusters, least=2) * log_d**2, math.exp(min(min(exponents), 700.0))
