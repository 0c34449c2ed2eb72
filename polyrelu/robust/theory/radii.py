"""Radii of averaged, decoupled and hand-built features, in the scales of the papers they come from."""

from __future__ import annotations

import math

from polyrelu.checks import checked, finite_number, whole_number
from polyrelu.errors import require

HALF_GAP = math.sqrt(2) / 2  # half the distance between two orthonormal centres


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
def lipschitz_radius(margin: float, lipschitz: float) -> float:
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
